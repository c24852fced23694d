"""An installed Chromium, and one of its pages that keeps account of what it complains about and asks for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Page

_NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser() -> str | None:
    """The browser that TOMEWISE_BROWSER names, or an installed one."""
    return os.environ.get("TOMEWISE_BROWSER") or next(filter(None, map(shutil.which, _NAMES)), None)


class Drawn:
    """A page that shows drawings, one after another."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.complaints: list[str] = []  # what the console says
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(
        self, file: Path, width: int = 1280, height: int = 800, scheme: Literal["light", "dark"] = "light"
    ) -> None:
        """Open a file, and wait until its picture is drawn."""
        self._page.set_viewport_size({"width": width, "height": height})
        self._page.emulate_media(color_scheme=scheme)
        self.complaints.clear()
        self.requests.clear()
        self._page.goto(file.as_uri())
        self._page.wait_for_selector(".tp-tools", state="attached")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        return self._page.evaluate(script)

    def press(self, key: str) -> None:
        self._page.keyboard.press(key)
