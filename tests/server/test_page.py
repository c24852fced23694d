"""The page: who gets its files and how they are kept; no text becomes HTML."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files

import httpx2 as httpx
import pytest
from tests.server.served import Served

from tomewise.sample import STORY, read_questions
from tomewise.web import list_assets

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ROOM = files("tomewise.web")
OWN = sorted(name for name in list_assets() if name.endswith(".js") and "/" not in name and name != "d3.js")
FORBIDDEN = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|dangerouslySet|srcdoc|javascript:"
)


def test_a_browser_without_the_token_gets_the_page_and_nothing_else(served: Served):
    with httpx.Client(base_url=served.url, trust_env=False) as stranger:
        page = stranger.get("/", headers=BROWSER)
        assert page.text == served.http.get("/", headers=BROWSER).text
        assert 'src="assets/main.js"' in page.text
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        old = stranger.get("/", params={"token": "of-a-former-start"}, headers=BROWSER)
        assert (old.status_code, old.text) == (200, page.text)
        assert "set-cookie" not in old.headers
        assert stranger.get("/").json()["error"]["code"] == "token"
        for path in ("/api/sample", "/api/tomes/novel/removal?document=light"):
            assert stranger.get(path, headers=BROWSER).json()["error"]["code"] == "token"
    assert served.http.get("/").text.startswith("Tomewise is serving.")


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


def test_the_vendored_libraries_are_the_stated_ones():
    table = (ROOM / "vendor" / "README.md").read_text()
    stated = dict(re.findall(r"\| `(\w+\.js)` .* `([0-9a-f]{64})` \|", table))
    assert sorted(stated) == ["hooks.js", "htm.js", "preact.js"]
    for name, digest in stated.items():
        assert sha256((ROOM / "vendor" / name).read_bytes()).hexdigest() == digest, name
    assert "MIT License" in (ROOM / "vendor" / "preact.LICENSE").read_text()
    assert "Apache License" in (ROOM / "vendor" / "htm.LICENSE").read_text()


@pytest.mark.parametrize("name", OWN)
def test_no_module_makes_html_of_a_text_or_imports_another_file(name: str):
    module = list_assets()[name].body.decode()
    assert not re.search(FORBIDDEN, module)
    assert not re.search(r"""\bstyle="|\bon[a-z]+="[^$]""", module)
    found = re.findall(r"""(?:from |import\()\s*["'`]\./([^"'`$]+)["'`]""", module)
    assert set(found) <= set(list_assets()), found
