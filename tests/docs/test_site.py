"""The finished site: what it loads, how wide and how heavy its pages are, whether everybody can read it."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from tests.texts import REPOSITORY
from tests.web.pages import NARROW, WIDE, Visit, expect, launch, visit
from tools.docs.build import read_config
from tools.docs.check_site import list_nav

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
RULES = (
    "{resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}"
)
# The theme adds elements and fades colours in after it has loaded; docs/javascripts/site.js mends the elements then.
MENDED = """() => {
  const parts = [...document.querySelectorAll(".drawing, .md-typeset__scrollwrap, pre > code")];
  const names = [...document.querySelectorAll("nav")].map(nav => nav.getAttribute("aria-label"));
  const scroll = parts.filter(part => part.scrollWidth > part.clientWidth);
  const still = document.getAnimations().every(each => each.playState !== "running");
  const named = new Set(names).size === names.length && !names.includes(null);
  return still && named && scroll.every(part => part.tabIndex === 0);
}"""
MOST_BYTES = 150_000  # of a page, compressed, without pictures and the index of the search
PICTURES = (".webp", ".svg", ".png", "search.json")
# One of each kind of page.
KINDS = (
    "",
    "install/",
    "systems/",
    "systems/comorag/",
    "how-to/serve/",
    "architecture/",
    "reference/commands/ask/",
    "reference/limits/",
    "reference/http/",
    "reference/python/tomewise/",
)


# What users look for, and the pages that answer it: one of them has to be among the first three.
class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Path:
    """The folder of the site as it is now."""
    pytest.importorskip("zensical", reason="install the dependency group docs")
    words = [sys.executable, "-m", "tools.docs.build"]
    ran = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return REPOSITORY / "build" / "site"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = launch(playwright)
        yield opened
        opened.close()


@pytest.fixture
def visitor(browser: Browser, address: str) -> Iterator[Callable[..., Visit]]:
    """Makes visitors of the site. No page may complain or ask anybody else."""
    with ExitStack() as stack:
        made: list[Visit] = []

        def make(size: tuple[int, int] = WIDE, scheme: str = "light") -> Visit:
            made.append(stack.enter_context(visit(browser, address, size, scheme)))
            return made[-1]

        yield make
        for each in made:
            assert not each.foreign, each.foreign
            assert not each.complaints, each.complaints


def list_pages() -> list[str]:
    """The addresses of all pages."""
    return [re.sub(r"(^|/)index$", r"\1", name.removesuffix(".md")) for name in list_nav(read_config()["nav"])]


def enter(made: Visit, page: str) -> Page:
    made.page.goto(f"{made.site}/{page}")
    expect(made.page.locator("article h1").first).to_be_visible()
    return made.page


by_scheme = pytest.mark.parametrize("scheme", ["light", "dark"])


@by_scheme
def test_every_page_is_small_and_fits_a_phone(visitor: Callable[..., Visit], site: Path, scheme: str) -> None:
    made = visitor(NARROW, scheme)
    for name in list_pages():
        page = enter(made, f"{name}/" if name and not name.endswith("/") else name)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0], name
        loaded = {page.url, *page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")}
        size = sum(measure(site / urlsplit(url).path.lstrip("/")) for url in loaded if not url.endswith(PICTURES))
        assert size <= MOST_BYTES, f"{name}: {size:,} bytes"


@cache
def measure(path: Path) -> int:
    """The bytes of a file, or of the page in a folder, as a server sends them."""
    return len(gzip.compress((path / "index.html" if path.is_dir() else path).read_bytes()))


@by_scheme
@pytest.mark.parametrize("name", KINDS)
def test_axe_finds_nothing(visitor: Callable[..., Visit], name: str, scheme: str) -> None:
    made = visitor(NARROW if scheme == "dark" else WIDE, scheme)
    made.page.add_init_script(AXE)
    page = enter(made, name)
    page.wait_for_function(MENDED)
    found = page.evaluate(f"async () => (await axe.run(document, {RULES})).violations")
    assert not found, [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in found]


def test_every_page_has_a_twin_for_agents(site: Path) -> None:
    listed, whole = (site.joinpath(name).read_text(encoding="utf-8") for name in ("llms.txt", "llms-full.txt"))
    for name in list_pages():
        twin = f"{name.rstrip('/')}/index.md".lstrip("/")
        text = (site / twin).read_text(encoding="utf-8")
        assert text.startswith("# "), twin
        assert f"]({twin})" in listed
        assert text in whole
    comorag = (site / "systems/comorag/index.md").read_text(encoding="utf-8")
    assert "[Drawing: ComoRAG" in comorag
    assert "| `cycles` |" in comorag
    assert "--8<--" not in whole
