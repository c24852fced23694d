"""What a new user does, from the first file to the history and to the deleted tome."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.language.openai_server import OpenAIServer, reply_with
from tests.server.served import Served, serve
from tests.web.axe import AXE, list_faults
from tests.web.conftest import KEEPER
from tests.web.pages import DROP, NARROW, Visit, expect, read_sent

if TYPE_CHECKING:
    from playwright.sync_api import Page

LOG = "# Log\n\nThe **lamp** of the harbour was lit by *Ruth Penrose* at ten.\n"
FIVE = {
    "keeper.txt": KEEPER,
    "log.md": LOG,
    "mill.txt": "The mill was sold to a clerk in May.",
    "coin.txt": "Zoe kept the coin in a drawer.",
    "bell.txt": "Nobody rang the bell in the war.",
}
QUOTED = "was lit by *Ruth Penrose* at ten"
REPLY = {"supported": "full", "answer": "**Ruth Penrose**", "quotes": [{"label": "E1", "quote": QUOTED}]}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Served]:
    """A server without a tome."""
    (tmp_path / "lib").mkdir()
    with serve(tmp_path, "--root", "lib") as running:
        yield running


def press_until(page: Page, key: str, wanted: str, most: int = 60) -> None:
    """Press a key until the focus is on what an expression over the focused element `e` describes."""
    for _ in range(most):
        page.keyboard.press(key)
        if page.evaluate(f"(() => {{ const e = document.activeElement; return Boolean({wanted}); }})()"):
            return
    raise AssertionError(f"{most} times {key} did not reach {wanted}")


def focus_words(words: str) -> str:
    return f"e.textContent.trim().startsWith({words!r})"


def test_a_new_user_with_a_keyboard(visitor: Callable[..., Visit], fresh: Served):
    page = visitor(fresh.url).enter()
    press_until(page, "Tab", focus_words("Try the sample story"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="story.md")).to_be_visible(timeout=60_000)

    page.keyboard.press("g")
    page.keyboard.press("b")
    expect(page.get_by_role("link", name="raptor", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    press_until(page, "Tab", "e.textContent === 'raptor'")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=re.compile("Accept and build"))).to_be_enabled(timeout=90_000)
    press_until(page, "Tab", focus_words("Accept and build"))
    with page.expect_request("**/builds") as sent:
        page.keyboard.press("Enter")
    assert sent.value.post_data_json["accept"].endswith(", $0"), "a build that is free stays free"
    expect(page.get_by_role("link", name="Ask with raptor")).to_be_visible(timeout=90_000)

    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page.get_by_role("textbox", name="Question")).to_be_focused()
    page.keyboard.type("Who is the Master of the Tide House?")
    page.keyboard.press("Enter")
    expect(page.locator(".answer-text").first).to_contain_text("Everard Lisle")
    press_until(page, "Shift+Tab", "e.classList.contains('reference') && e.textContent === '1'")
    quotation = page.locator(".quote blockquote").first.text_content()
    page.keyboard.press("Enter")
    expect(page.locator("mark.current")).to_have_text(quotation or "-")
    expect(page.locator("mark.current")).to_be_focused()
    page.keyboard.press("n")
    page.keyboard.press("p")
    expect(page.locator("mark.current")).to_be_in_viewport()

    page.keyboard.press("g")
    page.keyboard.press("m")
    expect(page.locator(".tp-node").first).to_be_visible()
    expect(page.get_by_role("heading", name="Memory", level=1)).to_be_focused()
    press_until(page, "Tab", "e.classList.contains('tp-node')")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".tp-details")).to_be_visible()
    press_until(page, "Tab", "e.tagName === 'SUMMARY' || e.tagName === 'A'")
    page.keyboard.press("Escape")
    expect(page.locator(".tp-details")).to_be_hidden()

    press_until(page, "Shift+Tab", "e.closest('header.bar')")  # shortcuts rest inside of a drawing, as in a field
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.get_by_role("heading", name="History", level=1)).to_be_focused()
    expect(page.get_by_role("row").nth(1)).to_contain_text("Master of the Tide House")
    press_until(page, "Tab", "e.tagName === 'A' && e.textContent.includes('Tide House')")
    page.keyboard.press("Enter")
    expect(page.locator(".answer-text")).to_contain_text("Everard Lisle")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Stored question")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize(("size", "scheme"), [((1120, 780), "light"), (NARROW, "dark")])
def test_from_an_empty_library_to_a_deleted_tome(
    visitor: Callable[..., Visit], tmp_path: Path, size: tuple[int, int], scheme: str
):
    (tmp_path / "lib").mkdir()
    with (
        OpenAIServer(lambda _: reply_with(json.dumps(REPLY))) as model,
        serve(
            tmp_path,
            *("--root", "lib", "--model", "openai:own", "--offer", "openai:gpt-4o-mini", "--base-url", model.url),
            OPENAI_API_KEY="k",
        ) as served,
    ):
        made = visitor(served.url, size=size, scheme=scheme)
        made.page.add_init_script(AXE)
        page = made.enter()

        def check() -> None:
            assert list_faults(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0]

        check()
        page.evaluate(DROP, FIVE)
        page.get_by_label("Name").fill("harbour")
        page.keyboard.press("Enter")
        expect(page.locator("tbody tr")).to_have_count(5)
        check()

        page.get_by_role("button", name="Model: openai:own").click()
        page.get_by_role("radio", name="openai:gpt-4o-mini").focus()
        page.keyboard.press("Space")
        check()
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Model: openai:gpt-4o-mini")).to_be_visible()

        page.get_by_role("link", name="Ask", exact=True).first.click()
        expect(page.locator("#question")).to_be_focused()
        page.keyboard.type("Who lit the lamp of the harbour")
        press_until(page, "Tab", "e.textContent.startsWith('Sources')")
        page.keyboard.press("Enter")
        page.get_by_label(re.compile("^log.md")).focus()
        page.keyboard.press("Space")
        page.get_by_label(re.compile("^keeper.txt")).check()
        check()
        page.get_by_role("button", name="Use 2").press("Enter")

        page.get_by_role("link", name="History", exact=True).click()
        expect(page.get_by_role("heading", name="History")).to_be_visible()
        page.get_by_role("link", name="Ask", exact=True).first.click()
        expect(page.locator("#question")).to_have_value("Who lit the lamp of the harbour")
        expect(page.locator("#question")).to_be_focused()
        check()
        body = read_sent(page, lambda: page.keyboard.press("Enter"))
        assert (sorted(body["documents"]), body["model"]) == (["keeper.txt", "log.md"], "openai:gpt-4o-mini")
        expect(page.locator(".answer-text strong")).to_contain_text("Ruth Penrose")
        check()
        page.locator("a.reference").first.click()
        expect(page.locator("mark.current").first).to_be_in_viewport()
        assert page.locator("mark.current").all_text_contents() == ["was lit by ", "Ruth Penrose", " at ten"]
        check()

        page.get_by_role("link", name="Overview", exact=True).click()
        page.get_by_label("Actions for harbour").press("Enter")
        page.get_by_role("menuitem", name="Delete").press("Enter")
        check()
        page.keyboard.type("harbour")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Try the sample story")).to_be_visible()
        assert served.http.get("/api/tomes").json()["tomes"] == []
