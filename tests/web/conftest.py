"""A browser, a served library and a visitor for the tests of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.server.served import Served, serve

from tomewise.tome.tome import Tome
from tomewise.types import Document

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from tests.language.openai_server import OpenAIServer
    from tests.web.pages import Visit

KEEPER = (
    "Ada Marsh put out the light at nine. Tom Reed, the keeper of the harbour, saw it from the quay. "
    "Ada Marsh met Tom Reed at the harbour in May. The clerk forged the letter, and Ada Marsh knew nothing of it."
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright
    from tests.web.pages import launch

    with sync_playwright() as playwright:
        opened = launch(playwright)
        yield opened
        opened.close()


def make_library(folder: Path) -> None:
    """A folder with one tome, whose memory is built, and which was asked some questions."""
    folder.mkdir()
    with Tome.open(folder / "novel.tome", embedder="hash") as tome:
        tome.add(Document(id="keeper.txt", text=KEEPER), Document(id="notes/safe.txt", text="It is in the safe."))
        tome.build("comorag")
        tome.ask("Who put out the light?", system="comorag")
        tome.ask("Who put out the light?", system="hybrid")
        tome.ask("Who forged the letter?", system="hybrid")


@contextmanager
def serve_library(folder: Path, *words: str, model: OpenAIServer | None = None, **environment: str) -> Iterator[Served]:
    """Serve such a library, with a model at this server."""
    make_library(folder / "lib")
    if model is not None:
        words = ("--model", "openai:own", "--base-url", model.url, *words)
        environment = {"OPENAI_API_KEY": "sk-nobody-sees-this-0123456789", **environment}
    with serve(folder, "--root", "lib", *words, **environment) as running:
        yield running


@pytest.fixture(scope="module", name="served")
def serve_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_library(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.fixture
def visitor(browser: Browser, served: Served) -> Iterator[Callable[..., Visit]]:
    """Makes visitors of the served library. Whatever they do, nothing may complain or leave the address."""
    from tests.web.pages import visit

    with ExitStack() as stack:
        made: list[Visit] = []

        def make(site: str = served.url, **how) -> Visit:
            made.append(stack.enter_context(visit(browser, site, **how)))
            return made[-1]

        yield make
        for each in made:
            assert each.complaints == []
            assert each.foreign == []
