"""Requests that nobody should send: each gets a clear sentence and its status, and the server lives on."""

from __future__ import annotations

import json
import os
import resource
import socket
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.language.openai_server import Behaviour, OpenAIServer, fail_with, reply_with
from tests.patience import NEVER, wait_until
from tests.server.conftest import make_tome
from tests.server.served import TOKEN, Served, serve

ASK = "/api/tomes/novel/ask"
UPLOAD = "/api/tomes/novel/documents"
QUESTION = "Who put out the light?"


@pytest.fixture(autouse=True)
def alive(served: Served):
    yield
    assert served.http.get("/api/health").json() == {"ok": True}


def send_json(served: Served, text: str, path: str = ASK) -> tuple[int, str]:
    reply = served.http.post(path, content=text.encode(), headers={"content-type": "application/json"})
    return reply.status_code, reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"question": ' + "[" * 10_000, "body"),
        ('{"question": "x", "max_cost": NaN}', "max_cost"),
        ('{"question": "x", "surprise": 1}', "surprise"),
        ('{"question": "x", "settings": {"limit": 1000000000}}', "limit"),
        ('{"question": "x", "system": "hybrid+probe cycles=1000000000"}', "cycles"),
        ('{"question": "x", "system": "hybrid+probe", "settings": {"cycles": 1e9}}', "cycles"),
        ('{"question": " "}', "question"),
        (json.dumps({"question": "x" * 2_000_000}), "question"),
        ('{"question": "\\ud800"}', "question"),
        (json.dumps({"question": "x", "options": ["a"] * 27}), "options"),
        ('{"question": 3}', "question"),
        ("{}", "question"),
        ('{"question": "x", "max_calls": -1}', "max_calls"),
        ('["question"]', "body"),
        ('{"question": "x", "settings": {"limit": %s}}' % ("[" * 10_000 + "]" * 10_000), "body"),
        ('{"question": "x", "settings": {"limit": NaN}}', "limit"),
        ('{"question": "x", "system": "hgmem", "settings": {"rounds": 1000}}', "rounds"),
        ('{"question": "x", "system": "auto", "settings": {"ladder": "naive, hybrid+probe cycles=1000"}}', "cycles"),
        (json.dumps({"question": "x", "settings": {"limit": [1] * 100_000}}), "settings.limit is too long"),
        ('{"question": "x", "max_calls": %s}' % ("9" * 5000), "the body cannot be read as JSON"),
    ],
    ids=lambda value: value[:40],
)
def test_a_bad_body_is_refused_by_the_name_of_its_field(served: Served, body: str, field: str):
    status, message = send_json(served, body)
    assert (status, field in message) == (400, True), message


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "/api/tomes/novle/ask", {"question": "x"}, 404, "did you mean 'novel'"),
        ("POST", ASK, {"question": "x", "system": "hybird"}, 404, "did you mean 'hybrid'"),
        ("POST", ASK, {"question": "x", "system": "comorag"}, 409, "tome build"),
        ("GET", "/api/tomes/novel/document?document=nothing", None, 404, "no document"),
        ("GET", "/api/tomes/novel/traces/999", None, 404, "no trace 999"),
        ("GET", "/api/tomes/novel/traces/99999999999999999999999", None, 404, "no trace"),
        ("GET", "/api/jobs/nothing", None, 404, "no job"),
        ("GET", "/api/evaluations/nothing", None, 404, "no evaluation"),
        ("GET", "/api/tomes/..%2Fsecret", None, 404, ""),
        ("GET", "/api/tomes/novel/text?document=%00", None, 404, "no document"),
        ("GET", "/api/tomes/novel/text?document=ligth", None, 404, "did you mean 'light'? GET .../documents"),
        ("GET", "/api/tomes/novel/text?document=light&start=99999999999999999999999", None, 400, "start"),
        ("GET", "/api/tomes/novel/text?document=light&end=99999999999999999999999", None, 400, "end"),
        ("GET", "/api/tomes/novel/traces/-7", None, 404, "no trace -7"),
        ("GET", "/nowhere", None, 404, "nothing is at this address"),
        ("PUT", "/api/tomes", {}, 405, "does not take that method"),
        ("POST", "/api/tomes", {"name": "../x"}, 400, "cannot name a tome"),
        ("POST", "/api/tomes", {"name": "x" * 5000}, 400, "name"),
    ],
)
def test_unknown_names(served: Served, method: str, path: str, body: object, status: int, words: str):
    reply = served.http.request(method, path, json=body)
    assert (reply.status_code, words in reply.json()["error"]["message"]) == (status, True), reply.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/tomes/novel/search", {"query": "x", "system": "raptor"}),
        ("/v1/chat/completions", {"model": "novel/comorag", "messages": [{"role": "user", "content": "x"}]}),
    ],
)
def test_layers_that_are_not_built_are_refused(served: Served, path: str, body: dict[str, object]):
    reply = served.post(path, body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "not_built")
    assert "tome build" in reply.json()["error"]["message"]


def test_a_question_to_layers_that_are_not_built_is_answered_with_the_estimate(served: Served):
    wanted = served.post("/api/tomes/novel/estimate", {"system": "comorag cycles=2"}).json()
    body = {"question": "x", "system": "comorag", "settings": {"cycles": 2}}
    reply = served.post(ASK, body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "not_built")
    assert reply.json()["estimate"] == wanted
    streamed = served.http.post(ASK, json=body, headers={"accept": "text/event-stream"})
    assert (streamed.status_code, streamed.json()) == (409, reply.json())


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_foreign_form_cannot_speak_mcp(served: Served, kind: str):
    reply = served.http.post("/mcp", content=b"{}", headers={"content-type": kind})
    assert (reply.status_code, reply.json()["error"]["code"]) == (415, "media_type")


def test_a_link_out_of_the_root_is_not_served(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    make_tome(tmp_path / "secret.tome")
    os.symlink(tmp_path / "secret.tome", tmp_path / "lib" / "secret.tome")
    with serve(tmp_path, "--root", "lib") as own:
        assert own.http.get("/api/tomes").json()["tomes"] == []
        assert own.http.get("/api/tomes/secret").status_code == 404


@pytest.mark.parametrize("body", ["[" * 10_000, '{"id": "a", "text": "x", "surprise": 1}', '{"id": "a"}', '{"id": 1}'])
def test_a_text_to_add_is_refused_in_the_same_words_as_other_bodies(served: Served, body: str):
    status, message = send_json(served, body, UPLOAD)
    assert status == 400
    assert any(words in message for words in ("not JSON", "'surprise' is not a field", "text is missing", "id: "))


def test_a_tome_that_cannot_be_made_leaves_nothing(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    make_tome(tmp_path / "secret.tome")
    os.symlink(tmp_path / "secret.tome", tmp_path / "lib" / "secret.tome")
    os.symlink(tmp_path / "nothing.tome", tmp_path / "lib" / "nothing.tome")
    with serve(tmp_path, "--root", "lib") as own:
        for body in ({"name": "new", "passage_tokens": 99_999}, {"name": "new", "embedder": "nonsense"}):
            assert own.post("/api/tomes", body).status_code in (400, 404)
            assert not (tmp_path / "lib" / "new.tome").exists()
        for name in ("secret", "nothing"):
            reply = own.post("/api/tomes", {"name": name})
            assert (reply.status_code, "there is a file" in reply.text) == (400, True)
        assert not (tmp_path / "nothing.tome").exists()
        assert own.post("/api/tomes", {"name": "new"}).status_code == 201


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "  ", "a\nb"])
def test_a_name_that_cannot_be_an_id(served: Served, name: str):
    assert send_json(served, json.dumps({"id": name, "text": "x"}), UPLOAD)[0] == 400


def form(*parts: bytes, end: bytes = b"--x--\r\n") -> bytes:
    return b"".join(b"--x\r\n" + part + b"\r\n" for part in parts) + end


def file_part(name: str, text: bytes = b"Some text.") -> bytes:
    return f'Content-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'.encode() + text


@pytest.mark.parametrize(
    "body",
    [
        form(*(file_part(f"{number}.txt") for number in range(10_000))),
        form(file_part("a.txt"), end=b""),
        form(file_part("a.txt"), end=b"--x"),
        form(file_part("a.txt"), file_part("a.txt")),
        form(file_part("x" * 5000)),
        form(b'Content-Disposition: form-data; name="other"\r\n\r\nx'),
        form(b"No header at all"),
        form(b"X: " + b"y" * 50_000 + b"\r\n\r\nx"),
        b"no form",
        b"",
    ],
    ids=["10,000 parts", "no end", "half an end", "twice", "long name", "field", "no header", "long", "none", "empty"],
)
def test_a_bad_form_is_refused_and_leaves_nothing(served: Served, body: bytes):
    before = served.http.get("/api/jobs").json()["total"]
    reply = served.http.post(UPLOAD, content=body, headers={"content-type": "multipart/form-data; boundary=x"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "usage")
    assert served.http.get("/api/jobs").json()["total"] == before


def test_a_boundary_that_is_too_long_is_refused(served: Served):
    kind = f"multipart/form-data; boundary={'x' * 5000}"
    reply = served.http.post(UPLOAD, content=b"x", headers={"content-type": kind})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "usage")


def head(path: str, *lines: str) -> bytes:
    kind = "multipart/form-data; boundary=x" if path == UPLOAD else "application/json"
    own = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1:PORT", f"Authorization: Bearer {TOKEN}", f"Content-Type: {kind}"]
    return "\r\n".join([*own, *lines, "", ""]).encode()


def test_uploads_over_the_limit_and_cut_ones(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with serve(tmp_path, "novel.tome", "--max-upload", "1") as own:
        port = f"127.0.0.1:{own.port}".encode()
        declared = head(UPLOAD, "Content-Length: 101000000").replace(b"127.0.0.1:PORT", port)
        assert b" 413 " in own.send_raw(declared).split(b"\r\n", 1)[0]
        chunk = b"10000\r\n" + b"y" * 65536 + b"\r\n"
        endless = head(UPLOAD, "Transfer-Encoding: chunked").replace(b"127.0.0.1:PORT", port)
        start = form(file_part("a.txt"), end=b"")
        endless += hex(len(start))[2:].encode() + b"\r\n" + start + b"\r\n" + chunk * 20
        assert b" 413 " in own.send_raw(endless).split(b"\r\n", 1)[0]
        with socket.create_connection(("127.0.0.1", own.port)) as connection:
            cut = head(UPLOAD, "Content-Length: 100000").replace(b"127.0.0.1:PORT", port)
            connection.sendall(cut + form(file_part("a.txt"), end=b""))
        wait_until(lambda: not list((tmp_path / "novel.tome-jobs").glob("*/")))
        assert own.http.get("/api/jobs").json()["total"] == 0


def test_of_200_questions_at_once_those_past_the_queue_are_refused(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    answer = json.dumps({"answer": "Ada", "quotes": []})
    hold = threading.Event()
    behaviour = replace(reply_with(answer, delay=NEVER), until=hold)
    with OpenAIServer(lambda _: behaviour) as model:
        words = ("novel.tome", "--model", "openai:test", "--base-url", model.url)
        with serve(tmp_path, *words, OPENAI_API_KEY="k") as own, ThreadPoolExecutor(200) as pool:
            asked = [pool.submit(own.post, ASK, {"question": f"{QUESTION} {number}"}) for number in range(200)]
            wait_until(lambda: sum(reply.done() for reply in asked) == 160)
            hold.set()
            replies = [reply.result() for reply in asked]
            statuses = [reply.status_code for reply in replies]
            assert (statuses.count(200), statuses.count(429)) == (40, 160)  # eight at once, and 32 that wait
            assert replies[statuses.index(429)].headers["retry-after"] == "5"


def test_500_connections_that_send_a_byte_a_second_hold_up_nobody(served: Served):
    slow = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(500)]
    try:
        for byte in b"POS":
            for connection in slow:
                connection.sendall(bytes([byte]))
            assert (
                served.post(ASK, {"question": QUESTION})
                .json()["text"]
                .startswith("Ada Marsh put out the light at nine.")
            )
            threading.Event().wait(1.0)
    finally:
        for connection in slow:
            connection.close()


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("--model", "openai:gpt-4o"), 502, "key"),
        (("--model", "openai:test", "--base-url", "http://127.0.0.1:9/v1"), 502, "127.0.0.1:9"),
        (("--model", "openai:test", "--base-url", "http://127.0.0.1:9/v1", "--max-calls", "0"), 402, "limit of 0"),
    ],
    ids=["no key", "down", "no budget"],
)
def test_a_model_that_does_not_answer(tmp_path: Path, words: tuple[str, ...], status: int, sentence: str):
    make_tome(tmp_path / "novel.tome")
    key = {"OPENAI_API_KEY": ""} if "gpt-4o" in words[1] else {"OPENAI_API_KEY": "k"}
    with serve(tmp_path, "novel.tome", *words, **key) as own:
        reply = own.post(ASK, {"question": QUESTION})
        assert (reply.status_code, sentence in reply.json()["error"]["message"]) == (status, True), reply.text


@pytest.mark.parametrize(
    ("behaviour", "words", "status", "sentence"),
    [
        (Behaviour({}, delay=60.0), (), 502, "reply within 1 s"),
        (fail_with(401, "wrong key"), (), 502, "401"),
        (reply_with(None, refusal="I will not."), (), 502, "I will not."),
        (fail_with(429, "too many"), (), 502, "429"),
        (reply_with("{}"), ("--max-cost", "1"), 402, "the price of openai:test is unknown"),
    ],
    ids=["hangs", "wrong key", "refuses", "overloaded", "no price"],
)
def test_a_model_that_does_not_help(
    tmp_path: Path, behaviour: Behaviour, words: tuple[str, ...], status: int, sentence: str
):
    make_tome(tmp_path / "novel.tome")
    with OpenAIServer(lambda _: behaviour) as model:
        asking = ("--model", "openai:test", "--base-url", model.url, *words)
        with serve(tmp_path, "novel.tome", *asking, OPENAI_API_KEY="k", TOMEWISE_TIMEOUT="1") as own:
            reply = own.post(ASK, {"question": QUESTION, "system": "naive"})
            assert (reply.status_code, sentence in reply.json()["error"]["message"]) == (status, True), reply.text
            assert own.http.get("/api/health").json() == {"ok": True}


def test_a_tome_that_is_damaged_removed_or_replaced(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    path = tmp_path / "lib" / "novel.tome"
    make_tome(path)
    (tmp_path / "lib" / "bad.tome").write_bytes(b"no tome at all")
    with serve(tmp_path, "--root", "lib") as own:
        damaged = own.post("/api/tomes/bad/ask", {"question": QUESTION})
        assert (damaged.status_code, "not a tome" in damaged.text) == (409, True)
        make_tome(tmp_path / "lib" / "newer.tome")
        with closing(sqlite3.connect(tmp_path / "lib" / "newer.tome")) as connection:
            connection.execute("PRAGMA user_version = 999")
        newer = own.post("/api/tomes/newer/ask", {"question": QUESTION})
        assert (newer.status_code, "written by a newer Tomewise" in newer.text) == (409, True)
        assert str(tmp_path) not in newer.text
        assert own.post(ASK, {"question": QUESTION}).json()["text"].startswith("Ada Marsh put out the light at nine.")
        with closing(sqlite3.connect(path)) as connection:
            (format,) = connection.execute("PRAGMA user_version").fetchone()
            connection.execute("PRAGMA user_version = 999")  # as a newer Tomewise does to a tome while it is served
            assert "newer Tomewise" in own.post(ASK, {"question": QUESTION}).json()["error"]["message"]
            assert own.post(UPLOAD, {"id": "late", "text": "x"}).status_code == 409
            connection.execute(f"PRAGMA user_version = {format}")
        assert own.post(ASK, {"question": QUESTION}).json()["text"].startswith("Ada Marsh put out the light at nine.")
        path.rename(tmp_path / "lib" / "away.tome")
        assert own.post(ASK, {"question": QUESTION}).status_code == 404
        make_tome(tmp_path / "other.tome")
        (tmp_path / "other.tome").rename(path)
        assert own.post(ASK, {"question": QUESTION}).json()["text"].startswith("Ada Marsh put out the light at nine.")


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with serve(tmp_path, "novel.tome") as own:
        own.http.get("/api/tomes/novel")
        resource.prlimit(own.process.pid, resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        reply = own.http.post(UPLOAD, files={"files": ("a.txt", b"x" * 2_000_000)})
        assert (reply.status_code, reply.json()["error"]["code"]) == (507, "disk_full")
        assert not list((tmp_path / "novel.tome-jobs").glob("*/"))
