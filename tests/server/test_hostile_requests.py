"""Requests and files that nobody should send: each gets a clear sentence and its status, and the server lives on."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.hostile.test_reading_bounds import ENDLESS, MAILBOX, deflate_twice
from tests.language.openai_server import Behaviour, OpenAIServer, fail_with, reply_with
from tests.patience import wait_until
from tests.reading.documents import docx
from tests.server.served import (
    ASK,
    QUESTION,
    STREAM,
    TOKEN,
    UPLOAD,
    Served,
    make_tome,
    read_code,
    serve,
    serve_novel,
)


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
        ('{"question": "x", "budget": NaN}', "budget"),
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
        ('{"question": "x", "budget": "-1 calls"}', "budget"),
        ('["question"]', "body"),
        ('{"question": "x", "settings": {"limit": %s}}' % ("[" * 10_000 + "]" * 10_000), "body"),
        ('{"question": "x", "settings": {"limit": NaN}}', "limit"),
        ('{"question": "x", "system": "hgmem", "settings": {"rounds": 1000}}', "rounds"),
        ('{"question": "x", "system": "hybrid", "effort": "quick"}', "leave out the effort"),
        (json.dumps({"question": "x", "settings": {"limit": [1] * 100_000}}), "settings.limit is too long"),
        ('{"question": "x", "force": %s}' % ("9" * 5000), "the body cannot be read as JSON"),
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
        ("POST", "/api/tomes/novel/search", {"query": "x", "system": "raptor"}, 409, "tome build"),
        (
            "POST",
            "/v1/chat/completions",
            {"model": "novel/comorag", "messages": [{"role": "user", "content": "x"}]},
            409,
            "tome build",
        ),
        ("GET", "/api/tomes/novel/document?document=nothing", None, 404, "no document"),
        ("DELETE", "/api/tomes/novel/document?document=", None, 400, "document"),
        ("GET", "/api/tomes/novel/traces/999", None, 404, "no trace 999"),
        ("GET", "/api/tomes/novel/traces/99999999999999999999999", None, 404, "no trace"),
        ("GET", "/api/tomes/novel/traces/9223372036854775808", None, 404, "no trace"),
        ("GET", "/api/tomes/novel/pictures/tree?limit=501", None, 400, "from 1 to 500"),
        ("GET", "/api/jobs/nothing", None, 404, "no job"),
        ("GET", "/api/evaluations/nothing", None, 404, "no evaluation"),
        ("GET", "/api/tomes/..%2Fsecret", None, 404, ""),
        ("GET", "/api/tomes/novel/text?document=%00", None, 404, "no document"),
        ("GET", "/api/tomes/novel/text?document=ligth", None, 404, "did you mean 'light'? GET .../documents"),
        ("GET", "/api/tomes/novel/text?document=light&start=99999999999999999999999", None, 400, "start"),
        ("GET", "/api/tomes/novel/text?document=light&end=99999999999999999999999", None, 400, "end"),
        ("GET", "/api/tomes/novel/traces/-7", None, 404, "no trace -7 here: GET .../traces"),
        ("GET", "/nowhere", None, 404, "nothing is at this address"),
        ("PUT", "/api/tomes", {}, 405, "does not take that method"),
        ("POST", "/api/tomes", {"name": "../x"}, 400, "cannot name a tome"),
        ("POST", "/api/tomes", {"name": "x" * 5000}, 400, "name"),
    ],
)
def test_unknown_names(served: Served, method: str, path: str, body: object, status: int, words: str):
    reply = served.http.request(method, path, json=body)
    assert (reply.status_code, words in reply.json()["error"]["message"]) == (status, True), reply.text


def test_a_question_to_layers_that_are_not_built_is_answered_with_the_estimate(served: Served):
    wanted = served.post("/api/tomes/novel/estimate", {"system": "comorag cycles=2"}).json()
    body = {"question": "x", "system": "comorag", "settings": {"cycles": 2}}
    reply = served.post(ASK, body)
    assert read_code(reply) == (409, "not_built")
    assert reply.json()["estimate"] == wanted
    streamed = served.http.post(ASK, json=body, headers=STREAM)
    assert (streamed.status_code, streamed.json()) == (409, reply.json())


def test_a_link_out_of_the_root_is_not_served_and_a_tome_that_cannot_be_made_leaves_nothing(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    make_tome(tmp_path / "secret.tome")
    os.symlink(tmp_path / "secret.tome", tmp_path / "lib" / "secret.tome")
    os.symlink(tmp_path / "nothing.tome", tmp_path / "lib" / "nothing.tome")
    with serve(tmp_path, "--root", "lib") as own:
        assert own.http.get("/api/tomes").json()["tomes"] == [], "a link leads out of the root"
        assert own.http.get("/api/tomes/secret").status_code == 404
        for body in ({"name": "new", "passage_tokens": 99_999}, {"name": "new", "embedder": "nonsense"}):
            assert own.post("/api/tomes", body).status_code in (400, 404)
            assert not (tmp_path / "lib" / "new.tome").exists()
        for name in ("secret", "nothing"):
            reply = own.post("/api/tomes", {"name": name})
            assert (reply.status_code, "there is a file" in reply.text) == (400, True)
        assert not (tmp_path / "nothing.tome").exists()
        assert own.post("/api/tomes", {"name": "new"}).status_code == 201


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
    for boundary in ("x", "x" * 5000):  # the second is too long for any form
        kind = f"multipart/form-data; boundary={boundary}"
        reply = served.http.post(UPLOAD, content=body, headers={"content-type": kind})
        assert read_code(reply) == (400, "usage")
    assert served.http.get("/api/jobs").json()["total"] == before


def head(path: str, *lines: str) -> bytes:
    kind = "multipart/form-data; boundary=x" if path == UPLOAD else "application/json"
    own = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1:PORT", f"Authorization: Bearer {TOKEN}", f"Content-Type: {kind}"]
    return "\r\n".join([*own, *lines, "", ""]).encode()


def test_uploads_over_the_limit_and_cut_ones(tmp_path: Path):
    with serve_novel(tmp_path, "--max-upload", "1") as own:
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


def assert_answers(served: Served) -> None:
    answer = served.post(ASK, {"question": QUESTION}).json()
    assert answer["statements"][0]["text"].startswith("Ada Marsh put out the light at nine.")


def test_500_connections_that_send_a_byte_a_second_hold_up_nobody(served: Served):
    slow = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(500)]
    try:
        for byte in b"POS":
            for connection in slow:
                connection.sendall(bytes([byte]))
            assert_answers(served)
            threading.Event().wait(1.0)
    finally:
        for connection in slow:
            connection.close()


DOWN = ("--model", "openai:test", "--base-url", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("behaviour", "words", "status", "sentence"),
    [
        (None, ("--model", "openai:gpt-4o"), 502, "key"),
        (None, DOWN, 502, "127.0.0.1:9"),
        (None, (*DOWN, "--budget", "0 calls"), 402, "limit of 0"),
        (Behaviour({}, delay=60.0), (), 502, "reply within 1."),
        (fail_with(401, "wrong key"), (), 502, "401"),
        (reply_with(None, refusal="I will not."), (), 502, "I will not."),
        (fail_with(429, "too many"), (), 502, "429"),
        (reply_with("{}"), ("--budget", "$1"), 402, "the price of openai:test is unknown"),
    ],
    ids=["no key", "down", "no budget", "hangs", "wrong key", "refuses", "overloaded", "no price"],
)
def test_a_model_that_does_not_answer_or_does_not_help(
    tmp_path: Path, behaviour: Behaviour | None, words: tuple[str, ...], status: int, sentence: str
):
    key = "" if "openai:gpt-4o" in words else "k"
    with OpenAIServer(lambda _: behaviour or reply_with("")) as server:
        model = server if behaviour else None
        with serve_novel(tmp_path, *words, model=model, OPENAI_API_KEY=key, TOMEWISE_TIMEOUT="1") as own:
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
        assert_answers(own)
        with closing(sqlite3.connect(path)) as connection:
            (format,) = connection.execute("PRAGMA user_version").fetchone()
            connection.execute("PRAGMA user_version = 999")  # as a newer Tomewise does to a tome while it is served
            assert "newer Tomewise" in own.post(ASK, {"question": QUESTION}).json()["error"]["message"]
            assert own.post(UPLOAD, {"id": "late", "text": "x"}).status_code == 409
            connection.execute(f"PRAGMA user_version = {format}")
        assert_answers(own)
        path.rename(tmp_path / "lib" / "away.tome")
        assert own.post(ASK, {"question": QUESTION}).status_code == 404
        make_tome(tmp_path / "other.tome")
        (tmp_path / "other.tome").rename(path)
        assert_answers(own)


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path):
    with serve_novel(tmp_path) as own:
        own.http.get("/api/tomes/novel")
        resource.prlimit(own.process.pid, resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        reply = own.http.post(UPLOAD, files={"files": ("a.txt", b"x" * 2_000_000)})
        assert read_code(reply) == (507, "disk_full")
        assert not list((tmp_path / "novel.tome-jobs").glob("*/"))


def test_each_hostile_file_is_named_and_a_good_one_is_kept(tmp_path: Path) -> None:
    wide = docx(tmp_path / "wide", "<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 400_000).read_bytes()
    slow = "takes more than 100 MB of memory|took longer than 5 seconds"  # a busy machine finds the second first
    files = {
        "slow.html": (ENDLESS.encode(), slow),
        "wide.docx": (wide, slow),
        "good.txt": (b"The miller bought the horse.", ""),
        "endless.pdf": (deflate_twice(tmp_path / "deflated").read_bytes(), slow),
        "wrong.docx": (b"This is plain text.", "could not be converted"),
        "many.mbox": (MAILBOX, "holds more than 100 documents: raise the setting `read_documents`"),
        "binary.txt": (b"PK\x03\x04" * 100, "is binary, not text"),
    }
    bounds = {"TOMEWISE_READ_SECONDS": "5", "TOMEWISE_READ_MEMORY": "100", "TOMEWISE_READ_DOCUMENTS": "100"}
    with serve_novel(tmp_path, **bounds) as own:
        parts = [("files", (name, data)) for name, (data, _) in files.items()]
        job = own.http.post(UPLOAD, files=parts).json()["id"]
        healthy = 0
        while (state := own.http.get(f"/api/jobs/{job}").json())["state"] in ("queued", "running"):
            assert own.http.get("/api/health").json() == {"ok": True}
            healthy += 1
            time.sleep(0.05)
        alone = own.http.post(UPLOAD, files=parts[-1:]).json()["id"]
        ended = own.wait_for_job(alone)
    assert healthy > 1, "others are answered meanwhile"
    assert (state["state"], state["report"]["added"]) == ("done", ["good.txt"])
    assert state["report"]["failed"].keys() == files.keys() - {"good.txt"}
    for name, message in state["report"]["failed"].items():
        assert re.search(files[name][1], message)
        assert name in message
        assert "-jobs" not in message  # the file's place on the disk is nobody's business
    assert (ended["state"], ended["error"]["code"]) == ("failed", "reading")
