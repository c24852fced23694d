"""Marks in the text of an answer on the page: where they stand, what they show, and how an answer is copied."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.server.served import Served
from tests.web.conftest import KEEPER
from tests.web.pages import Visit, ask, expect, link, wait_for_answers
from tests.web.test_asking import QUESTION, write_stream

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT = "😀 **Ada Marsh** did it. The tide turned.\n\n- Tom saw it.\n\n| Ship | Captain |\n|---|---|\n| Orion | Ada |"
SEEN = "Tom Reed, the keeper of the harbour, saw it from the quay."


def quote(text: str) -> dict[str, Any]:
    start = KEEPER.index(text)
    where = {"document": "keeper.txt", "passage": "p-1", "position": 0, "start": start, "end": start + len(text)}
    return {**where, "text": text, "title": "", "place": {}, "before": "", "after": ""}


def state(words: str, support: str, *quotes: dict[str, Any]) -> dict[str, Any]:
    start = TEXT.index(words)
    return {
        "text": words, "start": start, "end": start + len(words), "support": support, "quotes": quotes, "choice": None
    }  # fmt: skip


ANSWER: dict[str, Any] = {
    "text": TEXT, "resolved": True, "forced": False, "claimed": "full", "missing": "", "remarks": [],
    "system": "naive", "nearest": [],
    "cost": {"calls": 0, "model_seconds": 0, "own_seconds": 0}, "trace": 1, "kept": True,
    "statements": [
        state("😀 **Ada Marsh** did it.", "quoted", quote("Ada Marsh put out the light at nine."), quote(SEEN)),
        state("The tide turned.", "none"), state("Tom saw it.", "contradicted", quote(SEEN)),
        state("| Orion | Ada |", "inferred", quote(SEEN)),
    ],
}  # fmt: skip


def show(made: Visit, answer: dict[str, Any] = ANSWER) -> Page:
    body = write_stream(("answer", answer))
    made.page.route("**/ask", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
    page = made.enter(link("novel", "ask"))
    ask(page, QUESTION)
    wait_for_answers(page, 1)
    made.complaints[:] = [each for each in made.complaints if "/sessions/" not in each]  # the server knows of none
    return page


def test_marks_stand_behind_their_statements(visitor: Callable[..., Visit]):
    box = show(made := visitor()).locator(".answer-text").first
    expect(box.locator("p").first).to_have_text(
        re.compile(r"Ada Marsh did it\.\s+1\s+2\s+The tide turned\.\s+unsupported")
    )
    expect(box.locator("li")).to_have_text(re.compile(r"Tom saw it\.\s+contradicted by\s+2"))
    expect(box.locator("td").last).to_have_text(re.compile(r"Ada\s+2"))
    expect(box.locator("strong")).to_have_text("Ada Marsh")
    made.complaints[:] = [each for each in made.complaints if "/sessions/" not in each]


def test_remarks_stand_below_as_the_server_words_them(visitor: Callable[..., Visit]):
    remarks = ["Not shown: 3 statements without support.", "The answer is unfinished: the window is full."]
    page = show(made := visitor(), ANSWER | {"remarks": remarks})
    for remark in remarks:
        expect(page.locator(".answer").get_by_text(remark)).to_be_visible()
    made.complaints[:] = [each for each in made.complaints if "/sessions/" not in each]


def test_a_mark_shows_its_sentence_in_its_place(visitor: Callable[..., Visit]):
    page = show(made := visitor())
    mark = page.locator(".answer-text .reference").nth(1)
    for reach, leave in (
        (mark.hover, page.locator("h2.question").hover),
        (mark.focus, lambda: page.keyboard.press("Escape")),
    ):
        reach()
        preview = page.get_by_role("tooltip")
        expect(preview.locator("mark")).to_have_text(SEEN)
        expect(preview).to_contain_text("at nine. " + SEEN + " Ada Marsh met Tom Reed")
        expect(preview).to_contain_text("keeper.txt, part 1")
        expect(preview).to_be_in_viewport()
        leave()
        expect(preview).to_have_count(0)
    mark.click()
    expect(page.locator("mark.current")).to_have_text(SEEN)
    made.complaints[:] = [each for each in made.complaints if "/sessions/" not in each]


def test_an_answer_is_copied_with_footnotes_that_lead_to_the_page(visitor: Callable[..., Visit], served: Served):
    page = show(made := visitor())
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for item, words in (
        ("As Markdown", f"**{QUESTION}**\n\n😀 **Ada Marsh** did it. [^1][^2] The tide turned. [unsupported]\n\n- Tom"),
        ("As Markdown", f"“{SEEN}” <{served.url}/#/t/novel/doc?id=keeper.txt&start="),
        ("As text", "| Orion | Ada [2] |\n[1] “Ada Marsh put out the light at nine.” (keeper.txt, part 1)"),
        ("As citation", f"“{SEEN}” keeper.txt, part 1."),
    ):
        page.locator(".turn-foot .menu > summary").click()
        page.get_by_role("menuitem", name=item).click()
        page.wait_for_function("async (words) => (await navigator.clipboard.readText()).includes(words)", arg=words)
    made.complaints[:] = [each for each in made.complaints if "/sessions/" not in each]
