"""Who may ask: token, cookie, Host, Origin; and the headers of every reply."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2 as httpx
import pytest
from tests.server.conftest import make_tome
from tests.server.served import TOKEN, Served, serve

from tomewise.errors import UsageError
from tomewise.server.serve_options import ServerOptions

ASK = "/api/tomes/novel/ask"
BODY = {"question": "Who put out the light?"}


def code_of(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["code"]


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Basic abc", f"Bearer {TOKEN}x"])
def test_without_the_token_nothing_is_answered(served: Served, header: str):
    for path in ("/api/tomes", "/api/info", "/v1/models", "/openapi.json", "/mcp/", "/nowhere"):
        assert code_of(served.http.get(path, headers={"authorization": header})) == (401, "token")


def test_a_foreign_host_is_refused(served: Served):
    for host in ("evil.example", "127.0.0.1", f"127.0.0.1:{served.port + 1}", f"evil.example:{served.port}"):
        assert code_of(served.http.get("/api/health", headers={"host": host})) == (421, "host")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_foreign_page_is_refused(served: Served, headers: dict[str, str]):
    assert code_of(served.http.post(ASK, json=BODY, headers=headers)) == (403, "origin")


def test_the_token_is_traded_for_a_cookie_and_leaves_the_address(served: Served):
    with httpx.Client(base_url=served.url, trust_env=False) as browser:
        entry = browser.get("/", params={"token": TOKEN, "view": "a b"})
        assert (entry.status_code, entry.headers["location"]) == (303, "/?view=a+b")
        cookie = entry.headers["set-cookie"]
        assert cookie.startswith(f"tome-{served.port}=")
        assert "HttpOnly; SameSite=Strict" in cookie
        assert TOKEN not in cookie
        assert browser.get("/api/tomes").status_code == 200
        assert code_of(browser.post(ASK, json=BODY)) == (403, "origin")
        assert browser.post(ASK, json=BODY, headers={"origin": served.url}).status_code == 200
        assert browser.get("/", params={"token": "wrong"}).status_code == 401


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_body_that_a_foreign_form_can_send_is_refused(served: Served, kind: str):
    reply = served.http.post(ASK, content=b'{"question": "x"}', headers={"content-type": kind})
    assert code_of(reply) == (415, "media_type")


def test_every_reply_forbids_what_a_page_does_not_need(served: Served):
    for path in ("/", "/api/health", "/nowhere"):
        headers = served.http.get(path).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in headers


def test_read_only_answers_and_changes_nothing(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with serve(tmp_path, "novel.tome", "--read-only") as served:
        answer = served.post(ASK, BODY).json()
        assert answer["text"].startswith("Ada Marsh put out the light at nine.")
        assert answer["trace"] is None
        assert served.http.get("/api/tomes/novel/traces").json()["traces"] == []
        for method, path in (
            ("POST", "/api/tomes"),
            ("POST", "/api/tomes/novel/documents"),
            ("POST", "/api/tomes/novel/builds"),
            ("DELETE", "/api/tomes/novel/document?document=light"),
            ("DELETE", "/api/tomes/novel/traces/1"),
        ):
            reply = served.http.request(method, path, headers={"content-type": "application/json"})
            assert code_of(reply) == (403, "read_only"), path


def test_a_random_token_is_made_and_no_token_is_for_loopback(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with serve(tmp_path, "novel.tome", token=None) as served:
        assert served.http.get("/api/tomes").status_code == 401
    with serve(tmp_path, "novel.tome", "--no-token", token=None) as served:
        assert served.http.get("/api/tomes").json()["tomes"] == ["novel"]
        assert code_of(served.http.post(ASK, json=BODY, headers={"origin": "http://evil.example"})) == (403, "origin")
    with pytest.raises(UsageError, match="open to the network"):
        ServerOptions(host="0.0.0.0", token=None).check()
    with pytest.raises(UsageError, match="16 or more"):
        ServerOptions(token="short").check()


def test_no_path_and_no_token_stands_in_replies_and_log(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    make_tome(tmp_path / "lib" / "novel.tome")
    with serve(tmp_path, "--root", "lib") as served:
        texts = [
            served.http.get("/api/tomes/novel").text,
            served.http.get("/api/tomes/novel/document", params={"document": "none"}).text,
            served.http.get("/api/tomes/novel/traces/99").text,
            served.post(ASK, {**BODY, "system": "raptor+probe"}).text,
            served.http.post("/api/tomes/novel/documents", files={"files": ("empty.txt", b"")}).text,
        ]
        job = served.http.get("/api/jobs").json()["jobs"][0]["id"]
        failed = served.wait_for_job(job)
        assert (failed["state"], failed["error"]["code"]) == ("failed", "reading")
        assert "empty.txt" in failed["error"]["message"]
        texts.append(str(failed))
    texts.append((tmp_path / "server.log").read_text())
    for text in texts:
        assert str(tmp_path) not in text
        assert TOKEN not in text
        assert not re.search(r"/tmp/|/home/", text)
