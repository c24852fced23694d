"""A page in a real browser that keeps account of what it complains about and whom it asks.

A module of tests that imports this one is skipped where Playwright or a Chromium is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import pytest
from tests.drawing.browser import find_browser
from tests.server.served import TOKEN

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

if find_browser() is None:
    pytest.skip("no Chromium: install one, or set TOMEWISE_BROWSER", allow_module_level=True)
expect = pytest.importorskip("playwright.sync_api", reason="install the dependency group browser").expect
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
DROP = """(texts) => {
  const transfer = new DataTransfer();
  for (const [name, text] of Object.entries(texts)) transfer.items.add(new File([text], name, {type: "text/plain"}));
  document.body.dispatchEvent(new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer: transfer}));
}"""  # drops files on the page
WIDE, NARROW = (1280, 860), (360, 740)
expect.set_options(timeout=60_000)


def launch(playwright: Playwright) -> Browser:
    """The browser of this machine; none is downloaded."""
    program = find_browser()
    assert program is not None
    return playwright.chromium.launch(executable_path=program, args=list(OPTIONS))


class Visit:
    """One page of a visitor. `complaints` is what its console printed, `foreign` which other addresses it asked."""

    def __init__(self, page: Page, site: str) -> None:
        self.page = page
        self.site = site
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        self.moved: list[tuple[str, int]] = []  # addresses with the bytes of their replies
        page.on("console", lambda message: self.complaints.append(f"{message.text} {message.location.get('url', '')}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("response", lambda reply: self.moved.append((reply.url, int(reply.headers.get("content-length", 0)))))
        page.on("request", lambda request: self._note(request.url))

    def enter(self, view: str = "#/") -> Page:
        """Open the address that the server printed, then a view."""
        self.page.goto(f"{self.site}/?token={TOKEN}")
        return self.go(view)

    def go(self, view: str) -> Page:
        """Open a view by its address, and wait until it has its heading in place of that of the frame."""
        self.page.goto(f"{self.site}/{view}")
        expect(self.page.locator("main h1").first).not_to_have_text("Tomewise")
        return self.page

    def _note(self, url: str) -> None:
        if urlsplit(url).scheme in ("http", "https") and not url.startswith(f"{self.site}/"):
            self.foreign.append(url)


@contextmanager
def visit(browser: Browser, site: str, size: tuple[int, int] = WIDE, scheme: Any = "light") -> Iterator[Visit]:
    """A visitor with a profile of its own."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    try:
        yield Visit(context.new_page(), site)
    finally:
        context.close()


def link(tome: str, view: str = "", **query: Any) -> str:
    """The address of a view."""
    path = f"#/t/{quote(tome, safe='')}" + (f"/{view}" if view else "")
    return path + (f"?{urlencode(query)}" if query else "")


def read_sent(page: Page, act: Callable[[], object]) -> dict[str, Any]:
    """What the page sends to be answered when this is done."""
    with page.expect_request("**/ask") as sent:
        act()
    body: dict[str, Any] = sent.value.post_data_json
    return body


def ask(page: Page, question: str) -> dict[str, Any]:
    """Ask with the form, and return what the page sent."""
    page.locator("#question").fill(question)
    return read_sent(page, lambda: page.keyboard.press("Enter"))


def wait_for_answers(page: Page, number: int) -> None:
    expect(page.locator("article.turn[aria-busy=false] .answer")).to_have_count(number)
