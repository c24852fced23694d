"""What `tome serve` refuses before it listens, and where it is served."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import pytest
from tests.server.conftest import make_tome
from tests.server.served import TOKEN, serve


@pytest.mark.parametrize(
    ("words", "variables", "sentence"),
    [
        (("--model", "no-provider"), {}, "no-provider"),
        (("--model", "ansewr=extractive"), {}, "did you mean 'answer'"),
        (("--model", "openai:x", "--base-url", "ftp://x"), {}, "ftp://x"),
        (("--evaluations", "nowhere"), {}, "the folder nowhere does not exist"),
        (("--allow-host", "http://tomes.example/"), {}, "give a name alone"),
        (("--root-path", "https://site.example/books"), {}, "give a path alone"),
        (("--root-path", "/bücher"), {}, "give a path alone"),
        (("--root-path", "/api"), {}, "/api is a path of this server"),
        (("--limit", "0"), {}, "--limit"),
        (("--offer", "gpt-4o"), {}, "does not name a model"),
        ((), {"TOMEWISE_OFFER": "openai:gpt-4o gpt-4o"}, "does not name a model"),
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
    serving = [sys.executable, "-m", "tomewise", "serve", "novel.tome", "--port", "0", *words]
    own = {**os.environ, **variables}
    ran = subprocess.run(serving, cwd=here, env=own, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, sentence in ran.stderr) == (2, "", True), ran


@pytest.mark.parametrize("path", ["/books/tomes", "books/tomes/"])
def test_a_proxy_may_keep_or_take_off_the_path_at_which_it_serves(tmp_path: Path, path: str):
    make_tome(tmp_path / "novel.tome")
    with serve(tmp_path, "novel.tome", "--root-path", path) as served:
        site = served.url.removesuffix("/books/tomes")
        assert site != served.url
        with httpx.Client(base_url=site, trust_env=False) as browser:
            for entry in ("/", "/books/tomes/", "/books/tomes"):
                reply = browser.get(entry, params={"token": TOKEN})
                assert (reply.status_code, reply.headers["location"]) == (303, "/books/tomes/")
                assert "Path=/books/tomes" in reply.headers["set-cookie"]
            bare = browser.get("/books/tomes?a=1", headers={"accept": "text/html"})  # the page is at its slash
            assert (bare.status_code, bare.headers["location"]) == (307, "/books/tomes/?a=1")
            assert "<script" in browser.get("/books/tomes/", headers={"accept": "text/html"}).text
            assert browser.get("/books/tomes/api/tomes").json()["tomes"] == ["novel"]
            assert browser.get("/api/tomes").status_code == 401  # the cookie belongs to the path
            for prefix in ("", "/books/tomes"):
                headers = {"authorization": f"Bearer {TOKEN}"}
                assert browser.get(f"{prefix}/api/health").json() == {"ok": True}
                assert browser.get(f"{prefix}/v1/models/none", headers=headers).json()["error"]["type"]
                assert browser.get(f"{prefix}/assets/main.js").status_code == 200
            chat = {"model": "novel/naive", "messages": [{"role": "user", "content": "Who put out the light?"}]}
            answer = browser.post("/v1/chat/completions", json=chat, headers=headers).json()
            link = answer["choices"][0]["message"]["annotations"][0]["url_citation"]["url"]
            assert link.startswith(f"{site}/books/tomes/#/t/novel/doc?")
    assert (tmp_path / "server.log").read_text() == ""


def test_models_are_offered_on_the_command_line(here: Path):
    make_tome(here / "novel.tome")
    with serve(here, "novel.tome", "--offer", "openai:a", "--offer", "openai:b") as served:
        models = [model["name"] for model in served.http.get("/api/models").json()["models"]]
        assert models == ["extractive", "openai:a", "openai:b"]
