"""The page as the server sends it: who gets it, how it is kept, and what it may ask before it spends or removes."""

from __future__ import annotations

from pathlib import Path

import httpx2 as httpx
from tests.server.conftest import make_tome
from tests.server.served import TOKEN, Served, serve

from tomewise.sample import STORY, read_questions
from tomewise.web import list_assets

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_a_browser_gets_the_page_and_others_a_line_of_text(served: Served):
    page = served.http.get("/", headers=BROWSER)
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert 'src="assets/main.js"' in page.text
    assert served.http.get("/").text.startswith("Tomewise is serving.")


def test_a_browser_without_the_token_gets_the_page_and_nothing_else(served: Served):
    with httpx.Client(base_url=served.url, trust_env=False) as stranger:
        page = stranger.get("/", headers=BROWSER)
        assert page.text == served.http.get("/", headers=BROWSER).text
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        old = stranger.get("/", params={"token": "of-a-former-start"}, headers=BROWSER)
        assert (old.status_code, old.text) == (200, page.text)
        assert "set-cookie" not in old.headers
        assert stranger.get("/assets/page.css").status_code == 200
        assert stranger.get("/").json()["error"]["code"] == "token"
        for path in ("/api/sample", "/api/tomes/novel/removal?document=light"):
            assert stranger.get(path, headers=BROWSER).json()["error"]["code"] == "token"


def test_files_are_kept_until_they_change(served: Served):
    for name, asset in list_assets().items():
        first = served.http.get(f"/assets/{name}")
        assert first.content == asset.body
        assert first.headers["content-type"] == asset.media_type
        assert first.headers["cache-control"] == "no-cache"
        again = served.http.get(f"/assets/{name}", headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_no_other_file_is_sent(served: Served):
    for name in ("nothing.js", "__init__.py", "../page.py", "%2e%2e/page.py", "vendor", "vendor/preact.LICENSE", ""):
        assert served.http.get(f"/assets/{name}").status_code == 404, name


def test_the_sample_is_the_bundled_story(served: Served):
    sample = served.http.get("/api/sample").json()
    assert sample["text"] == STORY.read_text(encoding="utf-8")
    assert [each["question"] for each in sample["questions"]] == [each.question for each in read_questions()]


def test_systems_can_be_left_out_of_the_information(served: Served):
    brief = served.http.get("/api/info", params={"systems": False}).json()
    whole = served.http.get("/api/info").json()
    assert {name: value for name, value in whole.items() if name != "systems"} == brief
    assert whole["systems"]


def test_what_a_removal_takes_with_it_is_stated_before(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with serve(tmp_path, "novel.tome") as served:
        job = served.post("/api/tomes/novel/builds", {"system": "comorag", "accept": {"calls": 100}}).json()
        assert served.wait_for_job(job["id"])["state"] == "done"
        served.post("/api/tomes/novel/ask", {"question": "Who put out the light?", "session": "s"})
        foreseen = served.http.get("/api/tomes/novel/removal", params={"document": "light"}).json()
        assert foreseen["passages"] == 1
        assert (foreseen["session_answers"], foreseen["paid"]) == (1, {})
        assert foreseen["layers"]["facts:passages-triples"] > 0
        done = served.http.request("DELETE", "/api/tomes/novel/document", params={"document": "light"}).json()
        assert sum(foreseen["layers"].values()) == done["derived"]
        unknown = served.http.get("/api/tomes/novel/removal", params={"document": "lihgt"})
        assert unknown.status_code == 404


def test_a_job_names_its_system_and_its_files_and_no_path(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    make_tome(tmp_path / "lib" / "novel.tome")
    with serve(tmp_path, "--root", "lib") as served:
        files = [("files", ("notes/empty.txt", b"")), ("files", ("notes/full.txt", b"The boat came in at ten."))]
        job = served.http.post("/api/tomes/novel/documents", files=files).json()
        assert (job["files"], job["system"]) == (2, None)
        ended = served.wait_for_job(job["id"])
        assert ended["report"]["failed"]["notes/empty.txt"].startswith("notes/empty.txt is empty")
        assert str(tmp_path) not in served.http.get("/api/jobs").text
        assert TOKEN not in served.http.get("/api/jobs").text
        built = served.post("/api/tomes/novel/builds", {"system": "raptor", "accept": {"calls": 100}}).json()
        assert (built["files"], built["system"]) == (0, "raptor")
        served.wait_for_job(built["id"])


def test_a_guess_takes_the_place_of_a_declined_answer(served: Served):
    question = {"question": "Why did Zebulon Quill sail to Lisbon?", "system": "hybrid"}
    declined = served.post("/api/tomes/novel/ask", question).json()
    assert (declined["resolved"], declined["forced"]) == (False, False)
    assert all(passage["end"] > passage["start"] for passage in declined["nearest"])
    guessed = served.post("/api/tomes/novel/ask", {**question, "force": True}).json()
    assert guessed["supported"] != "full"
    assert guessed["text"]
