"""Markdown of models and documents: rendered, marked at exact places; nothing of it runs, leaves the page or hangs."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from tests.server.served import Served
from tests.web.pages import Visit, ask, expect, link, wait_for_answers
from tests.web.test_asking import QUESTION, write_stream

if TYPE_CHECKING:
    from playwright.sync_api import Page

RENDER = """async (text) => {
  const {html, render} = await import("./assets/parts.js");
  const {Markdown} = await import("./assets/markdown.js");
  const box = document.querySelector("main").appendChild(document.createElement("div"));
  box.id = "rendered";
  render(html`<${Markdown} text=${text} />`, box);
  return box.querySelectorAll("*").length;
}"""
LEAVES = """async (texts) => {
  const {html, render} = await import("./assets/parts.js");
  const {Markdown} = await import("./assets/markdown.js");
  return texts.map((text) => {
    const leaves = [];
    const leaf = (from, to) => { leaves.push([from, to]); return text.slice(from, to); };
    const box = document.createElement("div");
    render(html`<${Markdown} text=${text} leaf=${leaf} />`, box);
    return leaves;
  });
}"""
WORDS = ["a", "b c", " ", "\n", "\n\n", "\t"]
SIGNS = [*WORDS, "*", "**", "_", "`", "[", "]", "#", "# ", "> ", "- ", "1. ", "|", "~~", "\\"]
HOSTILE = """<script>globalThis.owned = 1</script>
<style>body { display: none }</style>
<form action="https://evil.example/"><input name="q"><button>Send</button></form>
<iframe src="https://evil.example/"></iframe><img src=x onerror="globalThis.owned = 1">

[run](javascript:globalThis.owned=1) [run](JaVaScRiPt:globalThis.owned=1)
[data](data:text/html,<script>owned=1</script>)
[here](#/t/novel) [file](file:///etc/passwd) ![p](https://evil.example/p.png) <https://evil.example/a>
[far](https://evil.example/far "onmouseover=owned=1") ![](javascript:globalThis.owned=1)

| <img src=y onerror=globalThis.owned=1> | [run](vbscript:owned=1) |
|---|---|
| **<b onclick=owned=1>x</b>** | `<svg onload=globalThis.owned=1>` |
"""
BYTES = 10_000_000
DEEP = {
    "quotes": ">", "lists": "- ", "brackets": "[", "emphasis": "*a ", "both": "_*", "ticks": "`` ` ", "links": "[](",
    "pictures": "![a](", "rows": "|a", "lines": "\n>", "indents": "  - a\n", "headings": "# x\n", "tags": "<div>",
}  # fmt: skip


def show_answer(made: Visit, text: str) -> Page:
    """Ask a question whose answer is this text."""
    answer: dict[str, Any] = {
        "text": text, "resolved": True, "forced": False, "claimed": "full", "missing": "", "remarks": [],
        "system": "naive",
        "statements": [], "nearest": [], "cost": {"calls": 0, "model_seconds": 0, "own_seconds": 0},
    }  # fmt: skip
    body = write_stream(("answer", answer))
    made.page.route("**/ask", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
    page = made.enter(link("novel", "ask"))
    ask(page, QUESTION)
    wait_for_answers(page, 1)
    return page


def test_hostile_markdown_of_an_answer_stays_text(visitor: Callable[..., Visit]):
    made = visitor()
    page = show_answer(made, HOSTILE)
    box = page.locator(".answer-text")
    expect(box).to_contain_text("<script>globalThis.owned = 1</script>")
    elements = "script, style, form, input, iframe, img, svg, button, b, [onclick], [onmouseover]"
    expect(box.locator(elements)).to_have_count(0)
    links = box.locator("a").evaluate_all("(all) => all.map((a) => [new URL(a.href).origin, a.rel, a.target])")
    assert links
    assert all(each == ["https://evil.example", "noopener noreferrer nofollow", "_blank"] for each in links)
    expect(box).to_contain_text("far (evil.example)")  # where it leads is read before it is followed
    assert page.evaluate("Boolean(globalThis.owned)") is False
    assert made.foreign == []
    made.complaints[:] = [each for each in made.complaints if "/sessions/" not in each]  # the server knows of none


@pytest.mark.parametrize("sign", list(DEEP))
def test_ten_megabytes_of_nesting_are_shown(visitor: Callable[..., Visit], sign: str):
    page = visitor().enter()
    text = DEEP[sign]
    repeated = "async ([sign, length]) => { const text = sign.repeat(length / sign.length);"
    script = RENDER.replace("async (text) => {", repeated)
    assert page.evaluate(script, [text, BYTES]) < 400_000
    expect(page.get_by_role("button", name="Show more")).to_contain_text("characters left")


def test_every_word_is_shown_once_and_where_it_stands(visitor: Callable[..., Visit]):
    chance = random.Random(3)
    texts = ["".join(chance.choices(SIGNS, k=chance.randrange(1, 60))) for _ in range(600)]
    found = visitor().enter().evaluate(LEAVES, texts)
    for text, leaves in zip(texts, found, strict=True):
        assert all(0 <= start <= end <= len(text) for start, end in leaves), text
        assert all(end <= start for (_, end), (start, _) in pairwise(leaves)), (text, leaves)
        shown = "".join(text[start:end] for start, end in leaves)
        assert [each for each in shown if each in "abc"] == [each for each in text if each in "abc"], (text, shown)


def test_blocks_and_words_are_rendered(visitor: Callable[..., Visit]):
    page = visitor().enter()
    text = (
        "# Log\n\nThe **keeper** of *the* `light`.\nHe said ~~no~~ nothing \\*yet\\*.\n\n"
        "1. One\n2. Two\n   - deep\n\n> Quoted\n\n| Ship | Year |\n|---|---|\n| Orion \\| Vega | 1911 |\n\n"
        "```py\nx = [1](2)\n```\n\n---\nsnake_case_name and 2 * 3 * 4"
    )
    page.evaluate(RENDER, text)
    box = page.locator("#rendered")
    for selector, words in {
        "[role=heading]": "Log", "strong": "keeper", "em": "the", "p code": "light", "del": "no",
        "ol > li >> nth=0": "One", "ol ul li": "deep", "blockquote": "Quoted", "th >> nth=1": "Year",
        "td >> nth=0": "Orion | Vega", "pre code": "x = [1](2)\n",
    }.items():  # fmt: skip
        expect(box.locator(selector)).to_have_text(words)
    expect(box.locator("hr")).to_have_count(1)
    expect(box).to_contain_text("nothing *yet*.")
    expect(box).to_contain_text("snake_case_name and 2 * 3 * 4")


LOG = (
    "# Harbour log \U0001f30a\n\nThe **keeper** of the harbour is *Tom Reed*.\n\n"
    "| Ship | Captain |\n|---|---|\n| Orion | Ada Marsh |\n| Vega | Ruth Penrose |\n\n"
    "1. The Orion came in at ten.\n2. The Vega sank in May.\n\n```\nlog 17: light out\n```\n"
)


@pytest.fixture(scope="module", autouse=True)
def log(served: Served) -> None:
    assert served.add(id="log.md", text=LOG)["state"] == "done"


@pytest.mark.parametrize(
    ("quotation", "marked"),
    [
        ("**keeper** of the harbour is *Tom", ["keeper", " of the harbour is ", "Tom"]),
        ("Orion | Ada", ["Orion", "Ada"]),
        ("ten.\n2. The Vega", ["ten.", "The Vega"]),
        ("17: light", ["17: light"]),
        ("log \U0001f30a\n\nThe", ["log \U0001f30a", "The"]),
    ],
)
def test_a_quotation_is_marked_in_a_rendered_document(visitor: Callable[..., Visit], quotation: str, marked: list[str]):
    start = LOG.index(quotation)
    page = visitor().enter(link("novel", "doc", id="log.md", start=start, end=start + len(quotation)))
    expect(page.locator("mark.current").first).to_be_in_viewport()
    assert page.locator("mark.current").all_text_contents() == marked
    page.get_by_role("button", name="As written").click()
    expect(page.locator("mark.current")).to_have_count(1)
    assert page.evaluate("document.querySelector('mark.current').textContent") == quotation
    page.reload()
    expect(page.get_by_role("button", name="As written")).to_have_attribute("aria-pressed", "true")


def test_signs_alone_are_found_by_their_block(visitor: Callable[..., Visit]):
    start = LOG.index("|---|---|")
    page = visitor().enter(link("novel", "doc", id="log.md", start=start, end=start + 9))
    expect(page.locator(".holds table")).to_be_in_viewport()
    expect(page.locator(".holds")).to_be_focused()
