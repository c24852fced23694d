"""The files of the page: few and small, the stated libraries, and no way for a text to become HTML."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files

import pytest

from tomewise.web import PAGE, list_assets

ROOM = files("tomewise.web")
PAGE_BYTES = 500_000
PAGE_FILES = 32
OWN = sorted(name for name in list_assets() if name.endswith(".js") and "/" not in name and name != "d3.js")
FORBIDDEN = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|dangerouslySet|srcdoc|javascript:"
)


def test_the_page_is_small():
    assert sum(len(asset.body) for asset in list_assets().values()) <= PAGE_BYTES
    assert len(list_assets()) <= PAGE_FILES


def test_the_vendored_libraries_are_the_stated_ones():
    table = (ROOM / "vendor" / "README.md").read_text()
    stated = dict(re.findall(r"\| `(\w+\.js)` .* `([0-9a-f]{64})` \|", table))
    assert sorted(stated) == ["hooks.js", "htm.js", "preact.js"]
    for name, digest in stated.items():
        assert sha256((ROOM / "vendor" / name).read_bytes()).hexdigest() == digest, name
    assert "MIT License" in (ROOM / "vendor" / "preact.LICENSE").read_text()
    assert "Apache License" in (ROOM / "vendor" / "htm.LICENSE").read_text()


@pytest.mark.parametrize("name", OWN)
def test_no_module_makes_html_of_a_text(name: str):
    module = list_assets()[name].body.decode()
    assert not re.search(FORBIDDEN, module)
    assert not re.search(r"""\bstyle="|\bon[a-z]+="[^$]""", module)


@pytest.mark.parametrize("name", OWN)
def test_modules_import_only_files_of_the_page(name: str):
    found = re.findall(r"""(?:from |import\()\s*["'`]\./([^"'`$]+)["'`]""", list_assets()[name].body.decode())
    assert set(found) <= set(list_assets()), found


def test_the_page_names_only_files_that_are_there():
    text = list_assets()[PAGE].body.decode()
    named = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert named
    assert {name.removeprefix("assets/") for name in named} <= set(list_assets())
    assert not re.search(r"<style|style=|\son\w+=|<script(?! type=\"module\" src=)", text)
