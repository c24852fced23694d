"""The document view: quotations at their place, whatever signs stand before them, and texts in parts."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from tests.server.served import Served
from tests.web.pages import Visit, expect, link

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

SIGNS = "a\u00e9e\u0301\U0001f30a\U0001f469\u200d\U0001f469\u200d\U0001f467\r\n\u202e\u202cא \u0928\u093f.<&"
LINE = "\U0001f30a\U0001f30a First\r\nZoe\u0308 put out the la\u0301mp \U0001f4a1 at nine.\r\n"
ODD = f"{LINE}Nobody \U0001f469\u200d\U0001f467 asked.\r\n" * 40
LONG = " ".join(f"Sentence {number} of the long text." for number in range(40_000))
CHANGED = "The document has changed since this answer."


@pytest.fixture(scope="module", autouse=True)
def documents(served: Served) -> None:
    for id, text in (("odd.txt", ODD), ("long.txt", LONG)):
        assert served.add(id=id, text=text)["state"] == "done"


def test_spans_are_cut_exactly_where_the_server_counts(visitor: Callable[..., Visit]):
    chance = random.Random(7)
    texts = ["".join(chance.choices(SIGNS, k=60)) for _ in range(100)]
    spans = [sorted(chance.sample(range(61), 2)) for _ in texts]
    cut = """(cases) => import("./assets/document.js").then(({cutPieces}) => cases.map(([text, start, end]) => {
        const span = {start: start + 1000, end: end + 1000};
        const pieces = cutPieces({text, start: 1000, end: 1060, passages: []}, [span], span);
        const join = (some) => some.map((piece) => piece.text).join("");
        return [join(pieces.filter((piece) => piece.mark === "current")), join(pieces)];
    }))"""
    page = visitor().enter()
    found = page.evaluate(cut, [[text, *span] for text, span in zip(texts, spans, strict=True)])
    assert found == [[text[start:end], text] for text, (start, end) in zip(texts, spans, strict=True)]


@pytest.mark.parametrize("turn", [0, 17, 39])
def test_a_quotation_behind_odd_signs_is_highlighted_exactly(visitor: Callable[..., Visit], turn: int):
    quotation = "put out the la\u0301mp \U0001f4a1 at nine.\r\nNobody \U0001f469"
    start = turn * (len(ODD) // 40) + ODD.index(quotation)
    page = visitor().enter(link("novel", "doc", id="odd.txt", start=start, end=start + len(quotation)))
    expect(page.locator("mark.current")).to_be_in_viewport()
    assert page.evaluate("document.querySelector('mark.current').textContent") == quotation
    before = page.evaluate(
        "(() => { const range = new Range(); range.selectNodeContents(document.querySelector('.reader-text'));"
        " range.setEndBefore(document.querySelector('mark.current')); return range.toString(); })()"
    )
    assert ODD[:start].endswith(before[-200:])


def read_on(page: Page) -> None:
    """Turn the wheel until the first part of the text that was here has been let go."""
    first = page.locator(".reader-text > span").first
    began = first.get_attribute("data-start")
    for _ in range(300):
        if first.get_attribute("data-start") != began:
            return
        page.mouse.wheel(0, 3000)
        page.wait_for_timeout(30)  # a part is read meanwhile
    raise AssertionError("the first part is still here")


def test_a_long_text_comes_in_parts_and_goes_on(visitor: Callable[..., Visit], served: Served):
    visit = visitor()
    start = LONG.index("Sentence 20000 ")
    page = visit.enter(link("novel", "doc", id="long.txt", start=start, end=start + 14))
    mark = page.locator("mark.current")
    expect(mark).to_be_in_viewport()
    expect(mark).to_have_text("Sentence 20000")
    page.wait_for_timeout(300)
    assert 0 < sum(size for url, size in visit.moved if "/text?" in url) < 64_000
    read_on(page)
    expect(page.get_by_text(CHANGED)).to_have_count(0)  # the cited part was let go, nothing more
    shown = page.locator(".reader-text").text_content() or ""
    assert len(shown) < 100_000
    assert shown in LONG
    assert LONG.index(shown) > start
    page.keyboard.press("n")  # the only quotation is found again
    expect(mark).to_be_focused()
    for _ in range(2):
        page.keyboard.press("End")
        expect(page.locator(".reader-text")).to_contain_text("Sentence 39999")
        page.keyboard.press("Home")
        expect(page.locator(".reader-text")).to_contain_text("Sentence 0 of")


def test_a_text_is_not_shown_under_the_name_of_another(visitor: Callable[..., Visit], served: Served):
    citation = served.http.get("/api/tomes/novel/traces/1").json()["answer"]["statements"][0]["quotes"][0]
    page = visitor().enter(link("novel", "doc", id="odd.txt"))
    expect(page.locator(".reader-text")).to_contain_text("First")
    waiting: list[Route] = []
    page.route(re.compile(r"/text\?document=keeper"), lambda route: waiting.append(route))
    span = {"id": citation["document"], "start": citation["start"], "end": citation["end"], "trace": 1}
    page.evaluate("(address) => { location.hash = address; }", link("novel", "doc", **span))
    expect(page.locator("h1")).to_have_text("keeper.txt")
    expect(page.get_by_text("Quotation 1 of")).to_be_visible()
    expect(page.locator(".reader-text")).to_have_count(0)
    expect(page.get_by_text(CHANGED)).to_have_count(0)
    for route in waiting:
        route.continue_()
    expect(page.locator("mark.current").first).to_have_text(citation["text"])


def test_a_quotation_that_no_longer_stands_there_is_told(visitor: Callable[..., Visit], served: Served):
    served.add(id="coin.txt", text="The widow Hanna Brook kept the coin in a drawer.")
    answer = served.post("/api/tomes/novel/ask", {"question": "Who kept the coin?"}).json()
    (citation, *_) = answer["statements"][0]["quotes"]
    served.add(id="coin.txt", text="In the spring, the widow Hanna Brook kept the coin in a drawer.")
    span = {"id": citation["document"], "start": citation["start"], "end": citation["end"], "trace": answer["trace"]}
    page = visitor().enter(link("novel", "doc", **span))
    expect(page.get_by_text(CHANGED)).to_be_visible()
