"""What axe, which checks a page for accessibility, finds on one."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
# Beside the guidelines themselves, what axe counts as good practice.
_RULES = (
    "{resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}"
)


def list_faults(page: Page) -> list[str]:
    """What axe finds, with the elements. The page must have run `AXE`."""
    found = page.evaluate(f"async () => (await axe.run(document, {_RULES})).violations")
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]
