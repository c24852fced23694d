"""The OpenAI-compatible embedder with a small server on this machine."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.embedding.openai import BATCH, OpenAIEmbedder
from tomewise.errors import BadReply, ModelError, ModelUnavailable, StoreError
from tomewise.store.lookups import read_setting
from tomewise.tome.tome import Tome
from tomewise.types import Document, Embedder


def vector(text):
    return [float(len(text)), 1.0, 0.0]


def good(asked):
    return 200, [{"object": "embedding", "index": i, "embedding": vector(t)} for i, t in enumerate(asked["input"])]


def status(code):
    return lambda asked: (code, [])


def shuffle(asked):
    return 200, good(asked)[1][::-1]


def one_less(asked):
    return 200, good(asked)[1][1:]


def other_dimensions(asked):
    return 200, [{**entry, "embedding": [1.0]} for entry in good(asked)[1]]


def no_numbers(asked):
    return 200, [{**entry, "embedding": None} for entry in good(asked)[1]]


class Server:
    """Replies with the entries of `script`, one per request, and then always with the last one."""

    def __init__(self):
        self.script, self.asked = [good], []

    def reply(self, body):
        self.asked.append(body)
        return self.script[min(len(self.asked), len(self.script)) - 1](body)


@pytest.fixture
def server():
    played, lock = Server(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                code, data = played.reply({**body, "path": self.path, "key": self.headers["Authorization"]})
            content = json.dumps({"object": "list", "model": "m", "data": data, "usage": {}}).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    played.address = f"http://127.0.0.1:{http.server_port}/v1"
    yield played
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def embedder(server):
    made = OpenAIEmbedder("m", base_url=server.address)
    yield made
    made._client.close()


def test_unit_rows_in_order(server, embedder):
    texts = ["long text", "a", "long text", ""]
    found = embedder.embed(texts)
    raw = np.array([vector(text or ".") for text in texts])
    assert isinstance(embedder, Embedder)
    assert found.dtype == np.float32
    assert found == pytest.approx(raw / np.linalg.norm(raw, axis=1, keepdims=True))
    assert embedder.dimensions == 3
    assert server.asked[0]["path"] == "/v1/embeddings"
    assert "dimensions" not in server.asked[0]


def test_no_texts_give_no_rows(embedder):
    assert embedder.embed([]).shape == (0, 3)


def test_key_and_dimensions_are_sent(server):
    embedder = OpenAIEmbedder("m", base_url=server.address, api_key="secret", dimensions=3)
    assert embedder.embed(["a"]).shape == (1, 3)
    embedder._client.close()
    assert (server.asked[0]["key"], server.asked[0]["dimensions"]) == ("Bearer secret", 3)


def test_many_texts_go_in_bounded_requests(server, embedder):
    texts = ["x" * (1 + i % 500) + str(i) for i in range(2 * BATCH + 5)]
    found = embedder.embed(texts)
    raw = np.array([vector(text) for text in texts])
    assert found == pytest.approx(raw / np.linalg.norm(raw, axis=1, keepdims=True))
    assert max(len(asked["input"]) for asked in server.asked) == BATCH


def test_long_texts_are_cut(server, embedder):
    embedder.embed(["word " * 100_000])
    (sent,) = server.asked[-1]["input"]
    assert len(embedder.tokenizer.encode(sent).ids) == 512


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_passing_failure_is_retried(server, embedder, code):
    server.script = [status(code), status(code), good]
    assert embedder.embed(["a"]).shape == (1, 3)


@pytest.mark.parametrize("code", [429, 500, 401, 404])
def test_a_lasting_failure_is_named(server, embedder, code):
    server.script = [status(code)]
    with pytest.raises(ModelUnavailable, match=str(code)):
        embedder.embed(["a"])


def test_a_refused_request_is_named(server, embedder):
    server.script = [status(400)]
    with pytest.raises(ModelError, match="refused"):
        embedder.embed(["a"])
    assert len(server.asked) == 1


def test_the_index_orders_the_vectors(server, embedder):
    expected = embedder.embed(["a", "bbb"])
    server.script = [shuffle]
    assert np.array_equal(embedder.embed(["a", "bbb"]), expected)


@pytest.mark.parametrize("wrong", [one_less, other_dimensions, no_numbers])
def test_a_bad_reply_is_refused(server, embedder, wrong):
    assert embedder.dimensions == 3
    server.script = [wrong]
    with pytest.raises(BadReply):
        embedder.embed(["a", "bbb"])


def test_the_key_and_the_address_may_come_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", " of-the-environment\n")
    monkeypatch.setenv("OPENAI_BASE_URL", server.address)
    embedder = choose_embedder("openai:m@3")
    assert embedder.embed(["a"]).shape == (1, 3)
    embedder._client.close()
    assert server.asked[0]["key"] == "Bearer of-the-environment"


def test_without_a_key_the_variable_is_named(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelUnavailable, match="OPENAI_API_KEY"):
        OpenAIEmbedder("text-embedding-3-small").embed(["a"])


def test_an_address_without_a_server(monkeypatch):
    monkeypatch.setattr("tomewise.embedding.openai.RETRIES", 0)
    embedder = OpenAIEmbedder("m", base_url="http://127.0.0.1:9/v1", dimensions=3)
    with pytest.raises(ModelUnavailable, match="check the address"):
        embedder.embed(["a"])
    embedder._client.close()


def test_a_server_of_one_s_own_needs_no_key(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    embedder = OpenAIEmbedder("m", base_url=server.address)
    assert embedder.embed(["a"]).shape == (1, 3)
    embedder._client.close()
    assert server.asked[0]["key"] == "Bearer none"


def test_the_tokenizer_approximates():
    encode = OpenAIEmbedder("m").tokenizer.encode
    assert [encode(text).offsets for text in ("a longerword", "北京", "no.")] == [
        [(0, 1), (2, 8), (8, 12)],
        [(0, 1), (1, 2)],
        [(0, 2), (2, 3)],
    ]


def test_a_tome_remembers_the_address_of_its_embedder(server, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user-0001")
    path = tmp_path / "a.tome"
    with Tome.open(path, embedder="openai:m", embedder_base_url=server.address) as tome:
        tome.add(Document(id="log", text="Ada Marsh put out the light."))
    asked = len(server.asked)
    for given in (None, "openai:m"):
        with Tome.open(path, embedder=given) as tome:
            assert tome.search("Who put out the light?")
    assert len(server.asked) > asked
    assert {request["key"] for request in server.asked[asked:]} == {"Bearer none"}, "nobody sent the key there by name"


def test_an_address_elsewhere_is_not_taken_from_a_tome(server, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    path = tmp_path / "a.tome"
    with Tome.open(path, embedder="openai:m@3", embedder_base_url="https://user:password1@models.example/v1") as tome:
        assert read_setting(tome.store, "embedder_base_url") == "https://models.example/v1"
    with pytest.raises(StoreError, match=r"https://models\.example/v1.*TOMEWISE_EMBEDDER_BASE_URL"):
        Tome.open(path)
    with Tome.open(path, embedder_base_url=server.address) as tome:
        tome.add(Document(id="log", text="Ada Marsh put out the light."))
    with Tome.open(path) as tome:
        assert tome.search("Who put out the light?"), "the server that was named last is remembered"
