"""The page of a picture: one file, nothing from elsewhere, and texts that stay texts."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files

from tests.drawing.pictures import IMAGE, SCRIPT, make_graph, make_hostile
from tests.drawn import read_picture

from tomewise.drawing.page import MODULES, write_page

ROOM = files("tomewise.drawing")
PAGE_BYTES = 150_000  # without data


class Reader(HTMLParser):
    """Collects what a browser would find: elements with their attributes, and the data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.elements and data.strip():
            tag, attributes = self.elements[-1]
            self.texts[attributes.get("id") or tag] = data


def test_the_page_fetches_nothing_allows_its_own_scripts_alone_and_stays_small():
    page = write_page(make_graph(30))
    read = Reader(page)
    tags = {"html", "head", "meta", "title", "style", "body", "main", "noscript", "script"}
    assert {tag for tag, _ in read.elements} == tags
    attributes = [name for _, found in read.elements for name in found]
    assert not {"src", "href"} & set(attributes)
    assert not [name for name in attributes if name.startswith("on")]
    policy = next(found["content"] or "" for _, found in read.elements if "http-equiv" in found)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    blocks = re.findall(r"<(?:style|script|script type=\"module\")>(.*?)</(?:style|script)>", page, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        assert b64encode(sha256(block.encode()).digest()).decode() in policy
    assert not re.search(r"^\s*(import|export)\b|\bfrom \"\./", page, re.MULTILINE), "the joined modules import nothing"
    assert len(write_page(make_graph(1)).encode()) < PAGE_BYTES
    assert len(write_page(make_graph(2000)).encode()) < PAGE_BYTES + 2000 * 400


def test_hostile_texts_do_not_leave_the_data():
    page = write_page(make_hostile())
    read = Reader(page)
    assert "img" not in {tag for tag, _ in read.elements}
    assert sum(tag == "script" for tag, _ in read.elements) == 3
    assert SCRIPT not in page
    assert IMAGE not in page
    assert read_picture(json.loads(read.texts["data"])) == make_hostile()
    page.encode()  # half of a surrogate pair would not encode


def test_modules_set_texts_as_texts_and_names_at_their_top_differ():
    """The page joins the modules to one."""
    names = []
    for module in (name.read_text() for name in map(ROOM.joinpath, MODULES)):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\.html\(|fetch\(", module
        )
        names += re.findall(r"^(?:export )?(?:function|class|const|let) (\w+)", module, re.MULTILINE)
    assert len(names) == len(set(names)) > 20
