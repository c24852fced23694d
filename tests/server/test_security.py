"""Who may ask: token, cookie, Host, Origin; the headers of every reply; and what is refused before the start."""

from __future__ import annotations

import os
import re
from pathlib import Path

import httpx2 as httpx
import pytest
from tests.forked import Forked
from tests.patience import SOON
from tests.server.served import ASK, NOVEL, TOKEN, UPLOAD, Served, make_tome, read_code, serve, serve_novel

from tomewise.errors import UsageError
from tomewise.server.serve_options import ServerOptions

BODY = {"question": "Who put out the light?"}
FOREIGN = {"origin": "http://evil.example"}
SITES = ("cross-site", "same-site")
FORMS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Basic abc", f"Bearer {TOKEN}x"])
def test_without_the_token_nothing_is_answered(served: Served, header: str):
    for path in ("/api/tomes", "/api/info", "/v1/models", "/openapi.json", "/mcp", "/mcp/", "/nowhere"):
        assert read_code(served.http.get(path, headers={"authorization": header})) == (401, "token")


def test_a_foreign_host_is_refused(served: Served):
    for host in ("evil.example", "127.0.0.1", f"127.0.0.1:{served.port + 1}", f"evil.example:{served.port}"):
        assert read_code(served.http.get("/api/health", headers={"host": host})) == (421, "host")


@pytest.mark.parametrize(
    "headers",
    [FOREIGN, {"origin": "null"}, {"origin": "http://127.0.0.1:1"}, *({"sec-fetch-site": site} for site in SITES)],
)
def test_a_foreign_page_is_refused(served: Served, headers: dict[str, str]):
    assert read_code(served.http.post(ASK, json=BODY, headers=headers)) == (403, "origin")


def test_the_token_is_traded_for_a_cookie_and_leaves_the_address(served: Served):
    with httpx.Client(base_url=served.url, trust_env=False) as browser:
        entry = browser.get("/", params={"token": TOKEN, "view": "a b"})
        assert (entry.status_code, entry.headers["location"]) == (303, "/?view=a+b")
        cookie = entry.headers["set-cookie"]
        assert cookie.startswith(f"tome-{served.port}=")
        assert "HttpOnly; SameSite=Strict" in cookie
        assert TOKEN not in cookie
        assert browser.get("/api/tomes").status_code == 200
        assert read_code(browser.post(ASK, json=BODY)) == (403, "origin")
        assert browser.post(ASK, json=BODY, headers={"origin": served.url}).status_code == 200
        assert browser.get("/", params={"token": "wrong"}).status_code == 401


@pytest.mark.parametrize("kind", [*FORMS, ""])
@pytest.mark.parametrize("path", [ASK, "/mcp"])
def test_a_body_that_a_foreign_form_can_send_is_refused(served: Served, path: str, kind: str):
    reply = served.http.post(path, content=b'{"question": "x"}', headers={"content-type": kind})
    assert read_code(reply) == (415, "media_type")


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
    with serve_novel(tmp_path, "--read-only") as served:
        answer = served.post(ASK, BODY).json()
        assert answer["statements"][0]["text"].startswith("Ada Marsh put out the light at nine.")
        assert answer["trace"] is None
        assert served.http.get("/api/tomes/novel/traces").json()["traces"] == []
        assert served.http.get("/api/tomes/novel/export").status_code == 200
        changes = [("POST", path) for path in ("/api/tomes", UPLOAD, f"{NOVEL}/builds", f"{NOVEL}/rename")]
        changes += [("POST", "/api/tomes/copy/import"), ("DELETE", f"{NOVEL}?confirm=novel")]
        changes += [("DELETE", f"{NOVEL}/{path}") for path in ("document?document=light", "traces/1")]
        for method, path in changes:
            kind = "application/jsonl" if path.endswith("import") else "application/json"
            reply = served.http.request(method, path, headers={"content-type": kind})
            assert read_code(reply) == (403, "read_only"), path


def test_a_random_token_is_made_and_no_token_is_for_loopback(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with serve(tmp_path, "novel.tome", token=None) as served:
        assert served.http.get("/api/tomes").status_code == 401
    with serve(tmp_path, "novel.tome", "--no-token", token=None) as served:
        assert served.http.get("/api/tomes").json()["tomes"] == ["novel"]
        assert read_code(served.http.post(ASK, json=BODY, headers=FOREIGN)) == (403, "origin")
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
            served.post(ASK, {**BODY, "system": "raptor+probe"}).text,
            served.post(f"{NOVEL}/search", {"query": "x", "system": "y" * 400}).text,
        ]
        job = served.http.post(UPLOAD, files={"files": ("empty.txt", b"")}).json()
        failed = served.wait_for_job(job["id"])
        assert (failed["state"], failed["error"]["code"]) == ("failed", "reading")
        assert "empty.txt" in failed["error"]["message"]
        texts += [str(job), served.http.get("/api/jobs").text]
    texts.append((tmp_path / "server.log").read_text())
    assert max(map(len, texts)) < 3000
    for text in texts:
        assert TOKEN not in text
        assert not re.search(rf"{tmp_path}|/tmp/|/home/", text)


@pytest.mark.parametrize(
    ("words", "variables", "sentence"),
    [
        (("--model", "no-provider"), {}, "no-provider"),
        (("--model", "openai:x", "--base-url", "ftp://x"), {}, "ftp://x"),
        (("--evaluations", "nowhere"), {}, "the folder nowhere does not exist"),
        (("--allow-host", "http://tomes.example/"), {}, "give a name alone"),
        (("--root-path", "https://site.example/books"), {}, "give a path alone"),
        (("--root-path", "/api"), {}, "/api is a path of this server"),
        (("--offer", "gpt-4o"), {}, "does not name a model"),
        (("--host", "192.0.2.1"), {}, "choose another --host"),
        (("--root", "nowhere"), {}, "does not exist"),
        ((), {"TOMEWISE_SYSTEM": "hybird"}, "did you mean 'hybrid'"),
        ((), {"TOMEWISE_PROMPTS": "nowhere"}, "the prompt folder nowhere does not exist"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(
    here: Path, words: tuple[str, ...], variables: dict[str, str], sentence: str
):
    make_tome(here / "novel.tome")
    with (here / "out.txt").open("w") as out, (here / "errors.txt").open("w") as errors:
        command = ["serve", "novel.tome", "--port", "0", *words]
        process = Forked(command, here, {**os.environ, **variables}, out.fileno(), errors.fileno())
    try:
        assert process.wait(SOON) == 2
    finally:
        process.kill()
    assert (here / "out.txt").read_text() == ""
    assert sentence in (here / "errors.txt").read_text()


def test_a_proxy_may_keep_or_take_off_the_path_at_which_it_serves(tmp_path: Path):
    with serve_novel(tmp_path, "--root-path", "books/tomes/") as served:
        site = served.url.removesuffix("/books/tomes")
        assert site != served.url
        with httpx.Client(base_url=site, timeout=SOON, trust_env=False) as browser:
            for entry in ("/", "/books/tomes/", "/books/tomes"):
                reply = browser.get(entry, params={"token": TOKEN})
                assert (reply.status_code, reply.headers["location"]) == (303, "/books/tomes/")
                assert "Path=/books/tomes" in reply.headers["set-cookie"]
            bare = browser.get("/books/tomes?a=1", headers={"accept": "text/html"})  # the page is at its slash
            assert (bare.status_code, bare.headers["location"]) == (307, "/books/tomes/?a=1")
            assert browser.get("/books/tomes/api/tomes").json()["tomes"] == ["novel"]
            assert browser.get("/api/tomes").status_code == 401  # the cookie belongs to the path
            for prefix in ("", "/books/tomes"):
                assert browser.get(f"{prefix}/api/health").json() == {"ok": True}
                assert browser.get(f"{prefix}/assets/main.js").status_code == 200
        chat = {"model": "novel/naive", "messages": [{"role": "user", "content": "Who put out the light?"}]}
        answer = served.post("/v1/chat/completions", chat).json()
        link = answer["choices"][0]["message"]["annotations"][0]["url_citation"]["url"]
        assert link.startswith(f"{site}/books/tomes/#/t/novel/doc?")
    assert (tmp_path / "server.log").read_text() == ""
