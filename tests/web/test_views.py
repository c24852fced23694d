"""Every view: accessible in light and dark, wide and narrow; and what happens when the server goes away."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.served import Served, serve
from tests.web.axe import AXE, list_faults
from tests.web.conftest import make_library
from tests.web.pages import NARROW, WIDE, Visit, expect, link

from tomewise.evaluate.experiment import Experiment


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, str]]]:
    """A server with all that can be shown, and the address of each view with what tells that it is complete."""
    folder = tmp_path_factory.mktemp("whole")
    make_library(folder / "lib")
    name = Experiment(["naive", "hybrid"], questions=2, out=folder / "evals", embedder="hash").run().about.name
    with serve(folder, "--root", "lib", "--evaluations", "evals") as running:
        running.post("/api/tomes/novel/ask", {"question": "Who put out the light?", "session": "harbour"})
        log = "# Log\n\n### Ships\n\n| Ship | Year |\n|---|---|\n| Orion | 1911 |\n\n- [a](https://example.org/)\n\n```\nx\n```\n"
        running.add(id="log.md", text=log)
        views = {
            "#/": ".tome",
            link("novel"): "table",
            link("novel", "build"): ".card table",
            link("novel", "ask"): "textarea, input",
            link("novel", "ask", session="harbour"): ".answer-text",
            link("novel", "compare"): "textarea, input",
            link("novel", "doc", id="keeper.txt", start=0, end=9): "mark",
            link("novel", "doc", id="log.md"): "td",
            link("novel", "memory"): ".tp-node",
            link("novel", "memory", trace=1): ".tp-node",
            link("novel", "entity", name="ada marsh"): ".neighbours",
            link("novel", "history"): "table",
            link("novel", "history/1"): ".answer-text",
            link("novel", "history", first=1, second=2): ".answer-text",
            "#/evaluations": "table",
            f"#/evaluations/{name}?baseline=naive&by=length": "h2 ~ .scroll",
            f"#/evaluations/{name}?question=f1&first=naive&second=hybrid": ".pieces",
            link("nothing"): ".empty",
            "#/nowhere": ".empty",
        }
        yield running, views


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_axe_finds_nothing(visitor: Callable[..., Visit], whole, scheme: str, size: tuple[int, int]):
    served, views = whole
    made = visitor(served.url, scheme=scheme, size=size)
    made.page.add_init_script(AXE)
    made.enter()
    faults = {}
    for view, complete in views.items():
        page = made.go(view)
        expect(page.locator(complete).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0], view
        if found := list_faults(page):
            faults[view] = found
    made.complaints[:] = [each for each in made.complaints if "404" not in each]  # of the tome that is not there
    assert faults == {}


def test_the_server_goes_and_comes_back(visitor: Callable[..., Visit], tmp_path: Path):
    make_library(tmp_path / "lib")
    with serve(tmp_path, "--root", "lib") as running:
        made = visitor(running.url)
        page = made.enter(link("novel"))
        expect(page.get_by_role("link", name="keeper.txt")).to_be_visible()
        running.end(signal.SIGTERM)
        page.get_by_role("link", name="History", exact=True).click()
        expect(page.get_by_text("The server does not answer.")).to_be_visible()
        with serve(tmp_path, "--root", "lib", "--port", str(running.port)):
            expect(page.get_by_text("The server does not answer.")).to_be_hidden()
            expect(page.get_by_role("row").nth(1)).to_be_visible()
    made.complaints[:] = [each for each in made.complaints if "Failed to load resource" not in each]


def test_a_view_that_fails_leaves_the_way_to_others(visitor: Callable[..., Visit]):
    made = visitor()
    made.page.route("**/traces/1", lambda route: route.fulfill(json={"system": "naive"}))
    page = made.enter(link("novel", "history/1"))
    expect(page.get_by_role("heading", name="This view could not be drawn")).to_be_visible()
    page.get_by_role("link", name="History", exact=True).click()
    expect(page.get_by_role("row").nth(1)).to_be_visible()


@pytest.mark.parametrize(
    ("view", "shown", "way"),
    [
        (link("novel", "doc", id="nothing.txt"), "No document of this name is here", "See the documents of novel"),
        (link("novel", "history/999"), "No question of this number is kept", "See the history"),
        ("#/evaluations/nothing", "No experiment of this name is here", "See all experiments"),
    ],
)
def test_what_is_not_there_is_told_with_a_way_on(visitor: Callable[..., Visit], view: str, shown: str, way: str):
    made = visitor()
    page = made.enter(view)
    expect(page.get_by_role("heading", name=shown)).to_be_visible()
    page.get_by_role("link", name=way).click()
    expect(page.get_by_role("heading", name=shown)).to_have_count(0)
    made.complaints[:] = [each for each in made.complaints if "404" not in each]
