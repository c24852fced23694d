"""The OpenAI-compatible embedder with a small server on this machine, and requests that reach this machine alone.

Every server here is on loopback; addresses elsewhere are looked at and not connected to.
"""

import socket

import httpx2
import numpy as np
import pytest
from tests.language.openai_server import GOOD, Behaviour, OpenAIServer, in_turn
from tests.test_addresses import answer_with, resolve_numbers_alone

from tomewise.addresses import find_loopback
from tomewise.checked_transport import CheckedTransport, is_loopback
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.embedding.openai import BATCH, OpenAIEmbedder
from tomewise.errors import BadReply, ModelError, ModelUnavailable, StoreError
from tomewise.store.lookups import read_setting
from tomewise.tome.tome import Tome
from tomewise.types import Document, Embedder

LOG = Document(id="log", text="Ada Marsh put out the light.")
pytestmark = pytest.mark.usefixtures("here")  # no key, no proxy


def vector(text):
    return [float(len(text)), 1.0, 0.0]


def expect(texts):
    """The rows that the server gives for these texts, each of length one."""
    raw = np.array([vector(text) for text in texts])
    return pytest.approx(raw / np.linalg.norm(raw, axis=1, keepdims=True))


def good(asked):
    """A vector of each text, the last one first: the index says which text it is of."""
    entries = [{"object": "embedding", "index": i, "embedding": vector(text)} for i, text in enumerate(asked["input"])]
    return entries[::-1]


def fail(status):
    return Behaviour({"error": {"message": "no"}}, status, {"retry-after-ms": "1"})


class Script:
    """Replies with the entries of `script`, one per request, and then always with the last one."""

    def __init__(self):
        self.script, self.asked = [good], []

    def reply(self, body):
        self.asked.append(body)
        entry = self.script[min(len(self.asked), len(self.script)) - 1]
        if isinstance(entry, Behaviour):
            return entry
        data = entry(body)
        return data if isinstance(data, Behaviour) else {"object": "list", "model": "m", "data": data, "usage": {}}


@pytest.fixture
def script():
    return Script()


@pytest.fixture
def server(script):
    with OpenAIServer(in_turn(GOOD)) as made:
        made.pages["/v1/embeddings"] = script.reply
        yield made


@pytest.fixture
def embedder(server):
    return OpenAIEmbedder("m", base_url=server.url)


def test_unit_rows_in_order(script, embedder):
    texts = ["long text", "a", "long text", ""]
    found = embedder.embed(texts)
    assert isinstance(embedder, Embedder)
    assert found.dtype == np.float32
    assert found == expect([text or "." for text in texts])
    assert embedder.dimensions == 3
    assert embedder.embed([]).shape == (0, 3)
    assert "dimensions" not in script.asked[0]


def test_many_texts_go_in_bounded_requests(script, embedder):
    texts = ["x" * (1 + i % 500) + str(i) for i in range(2 * BATCH + 5)]
    assert embedder.embed(texts) == expect(texts)
    assert max(len(asked["input"]) for asked in script.asked) == BATCH


def test_long_texts_are_cut(script, embedder):
    embedder.embed(["word " * 100_000])
    (sent,) = script.asked[-1]["input"]
    assert len(embedder.tokenizer.encode(sent).ids) == 512


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_passing_failure_is_retried(script, embedder, code):
    script.script = [fail(code), fail(code), good]
    assert embedder.embed(["a"]).shape == (1, 3)


@pytest.mark.parametrize(
    ("code", "error", "times"),
    [(429, ModelUnavailable, 5), (401, ModelUnavailable, 1), (404, ModelUnavailable, 1), (400, ModelError, 1)],
)
def test_a_lasting_failure_is_named(script, embedder, code, error, times):
    script.script = [fail(code)]
    with pytest.raises(error, match=str(code)) as raised:
        embedder.embed(["a"])
    assert (type(raised.value), len(script.asked)) == (error, times)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda entries: entries[1:],
        lambda entries: [{**entry, "embedding": [1.0]} for entry in entries],
        lambda entries: [{**entry, "embedding": None} for entry in entries],
    ],
    ids=["one less", "other dimensions", "no numbers"],
)
def test_a_bad_reply_is_refused(script, embedder, wrong):
    assert embedder.dimensions == 3
    script.script = [lambda asked: wrong(good(asked))]
    with pytest.raises(BadReply):
        embedder.embed(["a", "bbb"])


# ---------------------------------------------------------------- servers that take less


def refuse_more(most, message, status=400):
    """A server that refuses more texts than this in a request."""
    refusal = Behaviour({"error": {"message": message}}, status)
    return lambda asked: refusal if len(asked["input"]) > most else good(asked)


@pytest.mark.parametrize(
    ("most", "message", "least"),
    [
        (10, "batch size is invalid, it should not be larger than 10.: input.contents", 10),
        (1, "Too many inputs. The max number of inputs is 1.", 1),
        (20, "batch size 30 > maximum allowed batch size 20", 20),
        (16, "the array is too long", 15),
        (10, "payload too large", 7),
    ],
)
def test_a_server_that_takes_fewer_texts_gets_so_many_from_then_on(server, script, embedder, most, message, least):
    refusal = refuse_more(most, message, 413 if message.startswith("payload") else 400)
    script.script = [refusal]
    texts = [f"{'x' * number}." for number in range(30)]
    assert embedder.embed(texts) == expect(texts)
    counts = [len(asked["input"]) for asked in script.asked[1:]]  # the first one is for the dimensions
    assert counts[0] == 30
    assert max(counts[counts.index(least) :]) == least
    before = len(script.asked)
    assert OpenAIEmbedder("m", base_url=server.url).embed(texts) == expect(texts)
    assert max(len(asked["input"]) for asked in script.asked[before:]) <= most


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (413, "Input validation error: `inputs` must have less than 100 tokens. Given: 300"),
        (400, "input is too large to process: 300 tokens, at most 100"),
        (
            400,
            "input (300 tokens) is too large to process. increase the physical batch size (current batch size: 100)",
        ),
        (400, "This model's maximum context length is 100 tokens, however you requested 300 tokens"),
    ],
)
def test_a_server_that_takes_shorter_texts_gets_their_beginning_and_the_remedy_is_named(
    script, embedder, status, message
):
    refusal = Behaviour({"error": message if status == 413 else {"message": message}}, status)
    script.script = [lambda asked: refusal if max(map(len, asked["input"])) > 900 else good(asked)]
    texts = ["short", "words " * 300]
    with pytest.warns(UserWarning, match=r"only the beginning is embedded; `--passage-tokens \d+`"):
        found = embedder.embed(texts)
    sent = script.asked[-1]["input"]
    assert sent[0] == "short"
    assert 300 < len(sent[1]) <= 900
    assert found == expect(sent)


def test_a_refusal_that_stays_teaches_an_embedder_nothing(script, embedder):
    script.script = [good, refuse_more(0, "the batch queue is broken today")]
    with pytest.raises(ModelError, match="refused"):
        embedder.embed(["a", "b"])
    script.script = [good]
    before = len(script.asked)
    embedder.embed(["a", "b"])
    assert [len(asked["input"]) for asked in script.asked[before:]][-1] == 2


# ---------------------------------------------------------------- keys and addresses


def test_key_address_and_dimensions_are_sent_and_may_come_from_the_environment(server, script, monkeypatch):
    made = [OpenAIEmbedder("m", base_url=server.url, api_key="secret", dimensions=3)]
    monkeypatch.setenv("OPENAI_API_KEY", " of-the-environment\n")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    made.append(choose_embedder("openai:m@3"))
    assert [embedder.embed(["a"]).shape for embedder in made] == [(1, 3)] * 2
    monkeypatch.delenv("OPENAI_API_KEY")
    OpenAIEmbedder("m", base_url=server.url, dimensions=3).embed(["a"])
    assert server.keys == ["bearer secret", "bearer of-the-environment", "bearer none"]
    assert [asked["dimensions"] for asked in script.asked] == [3] * 3


def test_without_a_key_the_variable_is_named():
    with pytest.raises(ModelUnavailable, match="OPENAI_API_KEY"):
        OpenAIEmbedder("text-embedding-3-small").embed(["a"])


def test_a_tome_remembers_the_address_of_its_embedder(server, here, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user-0001")
    path = here / "a.tome"
    with Tome.open(path, embedder="openai:m", settings={"embedder_base_url": server.url}) as tome:
        tome.add(LOG)
    asked = len(server.keys)
    for given in (None, "openai:m"):
        with Tome.open(path, embedder=given) as tome:
            assert tome.search("Who put out the light?")
    assert set(server.keys[asked:]) == {"bearer none"}, "nobody sent the key there by name"


def test_an_address_elsewhere_is_not_taken_from_a_tome(here):
    path = here / "a.tome"
    with Tome.open(
        path, embedder="openai:m@3", settings={"embedder_base_url": "https://user:password1@models.example/v1"}
    ) as tome:
        assert read_setting(tome.store, "embedder_base_url") == "https://models.example/v1"
    with pytest.raises(StoreError, match=r"https://models\.example/v1.*TOMEWISE_EMBEDDER_BASE_URL"):
        Tome.open(path)


# ---------------------------------------------------------------- requests to this machine alone


@pytest.mark.parametrize(
    "address",
    [
        "http://user@127.0.0.1/v1", "http://u:p@localhost/v1", "http://127.0.0.1@models.example/v1",
        "http://models.example\\@127.0.0.1/v1", "http://[::1%25lo]/v1", "http://[::1%lo]/v1",
        "http://[fe80::1%2]/v1", "http://models.example/127.0.0.1", "http://[::1", "http://127.0.0.1:port/v1",
        "http:///v1", "127.0.0.1", "http://134744072/v1", "http://0x08080808/v1", "http://01002004010/v1",
        "http://[::ffff:8.8.8.8]/v1",
    ],
)  # fmt: skip
def test_tricks_with_addresses(address):
    assert not is_loopback(address, resolve_numbers_alone)


def embed_here(address):
    """Embed a text with a server on this machine alone."""
    return OpenAIEmbedder("m", address, dimensions=3, loopback_only=True).embed(["a secret question"])


def test_an_answer_that_changes_after_the_check_has_no_effect(server, monkeypatch):
    """The first answer is loopback, each later one is not; nothing but what was checked is connected to."""
    answers = map(answer_with, ["127.0.0.1", "203.0.113.1"])
    connected = []
    connect = socket.create_connection

    def watch(address, *args, **options):
        connected.append(address[0])
        assert address[0] == "127.0.0.1", address
        return connect(address, *args, **options)

    monkeypatch.setattr(socket, "create_connection", watch)
    transport = CheckedTransport(lambda host: find_loopback(host, next(answers)), "is not on this machine")
    url = server.url.replace("127.0.0.1", "models.localhost")
    with httpx2.Client(transport=transport) as client:
        assert client.get(url).status_code == 404
        with pytest.raises(httpx2.ConnectError, match=r"models\.localhost' is not on this machine"):
            client.get(url)
    assert connected == ["127.0.0.1"]
    assert [f"http://{host}/v1" for host in server.hosts] == [url]


@pytest.mark.parametrize("location", ["http://203.0.113.1/v1/embeddings", "http://models.example/", "/elsewhere"])
def test_no_redirect_is_followed(server, script, location, monkeypatch):
    monkeypatch.setattr("tomewise.embedding.openai.RETRIES", 0)
    script.script = [Behaviour(b"", 307, {"location": location})]
    with pytest.raises(ModelError, match=r"307|[Rr]edirect"):
        embed_here(server.url)
    assert len(server.hosts) == 1


def test_no_proxy_is_used(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert embed_here(server.url).shape == (1, 3)


def test_an_embedder_that_may_ask_this_machine_alone_asks_nobody_else(monkeypatch):
    monkeypatch.setattr("tomewise.embedding.openai.RETRIES", 0)
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("something was connected to"))
    with pytest.raises(ModelUnavailable, match="is not on this machine"):
        embed_here("http://203.0.113.1/v1")
