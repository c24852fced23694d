"""Take the pictures of the page that `docs/screenshots/` holds: every view, light, dark and narrow, and its states.

PYTHONPATH=. python tools/take_screenshots.py [NAME...]    # all, or those whose names begin so; needs a Chromium
"""

from __future__ import annotations

import io
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from playwright.sync_api import sync_playwright
from tests.language.openai_server import Behaviour, OpenAIServer, fail_with, stream_with
from tests.server.served import Served, serve
from tests.web.pages import NARROW, expect, launch, link, visit

from tomewise.evaluate.experiment import Experiment
from tomewise.reading.read import NamedFile
from tomewise.sample import STORY, read_questions
from tomewise.tome.tome import Tome
from tomewise.types import Document, Quote

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER = Path(__file__).parent.parent / "docs" / "screenshots"
WINDOW = (1120, 780)
LOOKS: dict[str, tuple[tuple[int, int], Any]] = {
    "": (WINDOW, "light"),
    "-dark": (WINDOW, "dark"),
    "-narrow": (NARROW, "light"),
}
TOME = "slack-water"
SHELF = "harbour"
LOG = """# Harbour log, 1911

The **keeper** of the light is *Tom Reed*. He writes down what comes in.

| Ship | Came in | Captain |
|---|---|---|
| Orion | 4 May | Ada Marsh |
| Vega | 9 May | Ruth Penrose |

1. The Orion brought a new lamp, at the price of nine pounds.
2. The Vega brought nothing but the news that the mill was sold.

> Nobody saw the light go out.
"""
DOCUMENTS = (
    Document(id="log.md", title="Harbour log", text=LOG, metadata={"year": 1911}),
    Document(id="letters/marsh.txt", text="Ada Marsh put out the light at nine.", metadata={"year": 1911}),
    Document(id="letters/penrose.txt", text="Ruth Penrose paid the price of the lamp.", metadata={"year": 1912}),
    Document(id="letters/old/reed.txt", text="Tom Reed came to the harbour as a boy.", metadata={"year": 1880}),
    Document(id="mill.txt", text="The clerk sold the mill, and forged the letter about it."),
)
UNKNOWN = "Zebulon Quill"


def do_nothing(page: Page) -> None:
    """Leave the view as it is."""


@dataclass(frozen=True)
class View:
    """A view: its address, what shows that it is complete, and what is done there before the picture is taken."""

    name: str
    address: str
    complete: str
    act: Callable[[Page], None] = do_nothing


def main(names: Sequence[str]) -> None:
    """Take the pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = launch(playwright)
        with serve_empty(Path(name) / "empty") as empty:
            take(browser, empty, EMPTY, names)
            empty.post("/api/tomes", {"name": TOME})
            take(browser, empty, NEW, names)
        with serve_model(Path(name) / "model") as slow:
            take(browser, slow, ASKED, names)
        with serve_full(Path(name) / "full") as (full, experiment, quoted):
            take(browser, full, list_views(experiment, quoted), names)
            take_gone(browser, full, names)
        browser.close()


@contextmanager
def serve_empty(folder: Path) -> Iterator[Served]:
    """A server without a tome."""
    (folder / "lib").mkdir(parents=True)
    with serve(folder, "--root", "lib") as running:
        yield running


@contextmanager
def serve_model(folder: Path) -> Iterator[Served]:
    """A server with the sample, whose model refuses a question about UNKNOWN and answers others by half."""
    (folder / "lib").mkdir(parents=True)
    with Tome.open(folder / "lib" / f"{TOME}.tome", embedder="hash") as tome:
        tome.add(NamedFile(STORY, "story.md"))
    with OpenAIServer(reply) as model:
        offered = ("--offer", "openai:gpt-4o", "--offer", "extractive")
        words = ("--root", "lib", "--model", "openai:gpt-4o-mini", *offered, "--base-url", model.url)
        with serve(folder, *words, OPENAI_API_KEY="k") as running:
            yield running


def reply(request: dict[str, Any]) -> Behaviour:
    """What the model of `serve_model` does with a request."""
    if UNKNOWN in request["messages"][-1]["content"]:
        return fail_with(401, "Incorrect API key provided.")
    start = '{"reasoning": "", "resolved": true, "supported": "full", "answer": "An advertisement for a sheep-dip'
    return stream_with(start, finish=None, done=False, hold=True)


@contextmanager
def serve_full(folder: Path) -> Iterator[tuple[Served, str, Quote]]:
    """A server with the sample, built and asked, the name of an experiment, and a quotation of question 2."""
    (folder / "lib").mkdir(parents=True)
    asked = {each.id: each.question for each in read_questions()}
    with Tome.open(folder / "lib" / f"{TOME}.tome") as tome:
        tome.add(NamedFile(STORY, "story.md"))
        for system in ("comorag", "hgmem", "cam"):
            tome.build(system)
        tome.ask(asked["f3"])
        quoted = tome.ask(asked["f2"], system="comorag").quotes[0]
        for question, system in {"f2": "hgmem", "n2": "hybrid", "f6": "naive", "f7": "comorag", "f8": "raptor"}.items():
            tome.ask(asked[question], system=system)
    with Tome.open(folder / "lib" / f"{SHELF}.tome") as tome:
        tome.add(*DOCUMENTS)
    results = Experiment(["naive", "hybrid", "raptor"], out=folder / "evals", questions=12).run()
    with serve(folder, "--root", "lib", "--evaluations", "evals", TOMEWISE_EMBEDDER="bundled") as running:
        yield running, results.about.name, quoted


def open_first_event(page: Page) -> None:
    """Unfold the trace, and its first event."""
    page.locator(".event summary").first.click()
    page.mouse.move(0, 0)


def write_question(page: Page, question: str = "") -> None:
    """Ask a question, or that of the sample which an advertisement answers."""
    wanted = question or next(each.question for each in read_questions() if each.id == "f2")
    page.locator("[placeholder^='Ask']").first.fill(wanted)
    page.keyboard.press("Enter")


def ask_question(page: Page) -> None:
    """Ask the sample's question, and wait for the answers."""
    write_question(page)
    expect(page.locator(".answer-text").first).to_be_visible(timeout=90_000)
    expect(page.locator("[aria-busy=true]")).to_have_count(0, timeout=90_000)


def watch_answer(page: Page) -> None:
    """Ask, and unfold the trace while the answer is written."""
    write_question(page)
    expect(page.locator(".draft")).to_be_visible(timeout=60_000)
    page.locator(".trace summary").first.click()
    page.mouse.move(0, 0)


def ask_unknown(page: Page) -> None:
    """Ask a question that the model refuses."""
    write_question(page, f"Who is {UNKNOWN}?")
    expect(page.locator(".notice.error")).to_be_visible(timeout=60_000)


def choose_sources(page: Page) -> None:
    """Open the window of sources, and choose a folder."""
    page.get_by_role("button", name="Sources:").click()
    page.get_by_label(re.compile("^letters/ ")).check()


def open_settings(page: Page) -> None:
    """Show the systems, each with a line."""
    page.get_by_role("button", name="Settings").click()


def open_models(page: Page) -> None:
    """Show the models that the server offers."""
    page.locator("button.model").click()


def delete_tome(page: Page) -> None:
    """Show what is asked before a tome is deleted."""
    page.get_by_label(f"Actions for {SHELF}").click()
    page.get_by_role("menuitem", name="Delete").click()


def search_texts(page: Page) -> None:
    """Search the texts of the documents."""
    box = page.get_by_label("Find by title")
    box.fill("the price of the lamp")
    box.press("Enter")
    expect(page.locator(".card .quote").first).to_be_visible(timeout=60_000)


def open_node(page: Page) -> None:
    """Show the details of a node of a drawing."""
    page.locator(".tp-node").nth(3).press("Enter")


def open_shortcuts(page: Page) -> None:
    """Show the keys."""
    page.locator("h1").first.press("?")


EMPTY = [
    View("library-empty", "#/", ".empty"),
    View("evaluations-empty", "#/evaluations", ".empty"),
]
NEW = [
    View("tome-empty", link(TOME), ".empty"),
    View("memory-empty", link(TOME, "memory"), ".empty"),
    View("history-empty", link(TOME, "history"), ".empty"),
]
ASKED = [
    View("draft", link(TOME, "ask"), "[placeholder^='Ask']", watch_answer),
    View("failed", link(TOME, "ask"), "[placeholder^='Ask']", ask_unknown),
    View("models", link(TOME, "ask"), "[placeholder^='Ask']", open_models),
]


def list_views(experiment: str, quoted: Quote) -> list[View]:
    """Every view with something to show, and some that fail."""
    chosen = f"#/evaluations/{experiment}"
    span = {"id": quoted.document, "start": quoted.start, "end": quoted.end, "trace": 2}
    return [
        View("library", "#/", ".tome-layers .tag"),
        View("tome", link(TOME), "table"),
        View("build", link(TOME, "build", system="cogitorag"), ".card table"),
        View("misspelt", link(TOME, "build", system="comrag"), ".notice"),
        View("ask", link(TOME, "ask"), "[placeholder^='Ask']"),
        View("sources", link(SHELF, "ask"), "[placeholder^='Ask']", choose_sources),
        View("settings", link(TOME, "ask", system="comorag"), "[placeholder^='Ask']", open_settings),
        View("delete", "#/", ".tome-layers .tag", delete_tome),
        View("search", link(SHELF), "table", search_texts),
        View("rendered", link(SHELF, "doc", id="log.md", start=LOG.index("Orion |"), end=LOG.index("\n| Vega")), "td"),
        View("entity", link(TOME, "entity", name="miss thorle"), ".neighbours"),
        View("document", link(TOME, "doc", **span), "mark.current"),
        View("memory", link(TOME, "memory", layer="graph:passages-triples"), ".tp-node"),
        View("memory-node", link(TOME, "memory", layer="schemata"), ".tp-node", open_node),
        View("memory-answer", link(TOME, "memory", trace=2), ".tp-node"),
        View("history", link(TOME, "history"), "table"),
        View("trace", link(TOME, "history/2"), ".events", open_first_event),
        View("answers", link(TOME, "history", first=2, second=3), ".answer-text"),
        View("evaluations", "#/evaluations", "table"),
        View("evaluation", f"{chosen}?baseline=naive&by=type", ".tracks"),
        View("evaluation-question", f"{chosen}?question=f2&first=naive&second=raptor", ".pieces"),
        View("keys", link(TOME, "doc", id="story.md"), ".reader-text", open_shortcuts),
        View("missing", link(TOME, "doc", id="no such document"), ".empty"),
        View("declined", link(TOME, "history/1"), ".quotes"),
        # The last, since they add questions to those that other views show.
        View("answer", link(TOME, "ask", system="comorag"), "[placeholder^='Ask']", ask_question),
        View("compare", link(TOME, "compare"), "[placeholder^='Ask']", ask_question),
    ]


def take(browser: Browser, served: Served, views: Sequence[View], names: Sequence[str]) -> None:
    """Take each view in each look."""
    for view in views:
        if names and not view.name.startswith(tuple(names)):
            continue
        for suffix, (size, scheme) in LOOKS.items():
            with visit(browser, served.url, size, scheme) as made:
                made.enter()
                page = made.go(view.address)
                expect(page.locator(view.complete).first).to_be_visible(timeout=60_000)
                page.wait_for_load_state("networkidle")
                view.act(page)  # may begin an answer that goes on
                page.wait_for_timeout(500)  # for transitions
                save(page, f"{view.name}{suffix}")


def take_gone(browser: Browser, served: Served, names: Sequence[str]) -> None:
    """Take the state in which the server is gone. It ends the server."""
    if names and "gone" not in names:
        return
    with visit(browser, served.url, WINDOW) as made:
        page = made.enter(link(TOME))
        expect(page.locator("table").first).to_be_visible()
        served.end(signal.SIGTERM)
        page.get_by_role("link", name="History", exact=True).click()
        expect(page.get_by_text("The server does not answer.")).to_be_visible()
        save(page, "gone")


def save(page: Page, name: str) -> None:
    """Keep what the window shows."""
    picture = Image.open(io.BytesIO(page.screenshot()))
    picture.save(FOLDER / f"{name}.webp", quality=82, method=6)
    print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
