"""Pictures in a real browser: drawn, walked through by keyboard, and nothing of a text runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import igraph
import pytest
from tests.drawing.browser import Drawn
from tests.drawing.pictures import IMAGE, SCRIPT, make_graph, make_hostile
from tests.web.pages import launch

from tomewise.drawing.page import write_page
from tomewise.pictures import Group, Picture, PictureLink, PictureNode

FOCUSED = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"


@pytest.fixture(scope="module")
def window() -> Iterator[Drawn]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, launch(playwright) as browser:
        yield Drawn(browser.new_page())


@pytest.fixture
def page(tmp_path: Path, window: Drawn):
    def show(picture: Picture, **how) -> Drawn:
        (tmp_path / "page.html").write_text(write_page(picture), encoding="utf-8")
        window.open(tmp_path / "page.html", **how)
        assert window.complaints == []
        assert all(url.startswith("file:") for url in window.requests)
        return window

    return show


def test_keys_walk_open_and_close(page):
    shown = page(make_graph(30))
    shown.run("document.querySelector('.tp-save button:last-child').focus()")
    shown.press("Tab")
    first = shown.run(FOCUSED)
    assert first.startswith("Points: M0 ")
    shown.press("Tab")
    assert shown.run(FOCUSED).startswith("Entities: the entity number 1")
    places = [shown.run(FOCUSED)]
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
        shown.press(key)
        places.append(shown.run(FOCUSED))
    assert len(set(places)) > 1
    shown.press("Enter")
    assert shown.run("document.querySelector('.tp-details').hidden") is False
    assert "It was said." in shown.run("document.querySelector('.tp-details').textContent")
    assert "Once upon a time." in shown.run("document.querySelector('.tp-details').textContent")
    shown.press("Escape")
    assert shown.run("document.querySelector('.tp-details').hidden") is True
    assert shown.run(FOCUSED) == places[-1]


def test_hostile_texts_are_shown_and_nothing_runs(page):
    shown = page(make_hostile())
    shown.run("document.querySelector('.tp-node').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert shown.run("document.title") == SCRIPT
    assert shown.run("document.querySelector('h1').textContent") == SCRIPT
    assert shown.run("document.querySelectorAll('img').length") == 0
    assert IMAGE in shown.run("document.querySelector('.tp-details').textContent")
    assert shown.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_does_not_scroll_sideways(page, scheme):
    shown = page(make_graph(30), width=360, height=720, scheme=scheme)
    assert shown.run("document.documentElement.scrollWidth") == 360
    paper = shown.run("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(251, 250, 247)", "dark": "rgb(22, 24, 28)"}[scheme]


def test_a_tree_folds_and_unfolds(page):
    nodes = tuple(PictureNode(id=str(place), label=f"node {place}", group="g") for place in range(200))
    links = tuple(PictureLink(source=str((place - 1) // 12), target=str(place)) for place in range(1, 200))
    shown = page(Picture(kind="tree", title="T", nodes=nodes, links=links, groups=(Group(id="g", label="G"),)))
    drawn = "document.querySelectorAll('.tp-node').length"
    assert shown.run(drawn) == 13
    shown.run("document.querySelectorAll('.tp-node')[1].focus()")
    shown.press(" ")
    assert shown.run(drawn) == 25
    assert shown.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert shown.run("document.querySelectorAll('.tp-list tbody tr').length") == 200


SAVE = """async () => {
  const texts = [];
  URL.createObjectURL = (blob) => { texts.push(blob.text()); return "#"; };
  for (const button of document.querySelectorAll(".tp-save button")) button.click();
  return await Promise.all(texts);
}"""  # what the buttons save: SVG, JSON, GraphML


def test_a_drawing_can_be_saved_in_three_forms(page, tmp_path: Path):
    drawing, data, graphml = page(make_graph(30)).run(SAVE)
    assert drawing.startswith("<svg")
    assert "class=" not in drawing
    assert json.loads(data) == make_graph(30).to_dict()
    (tmp_path / "saved.graphml").write_text(graphml, encoding="utf-8")
    graph = igraph.Graph.Read_GraphML(str(tmp_path / "saved.graphml"))
    assert (graph.vcount(), graph.ecount(), graph.is_directed()) == (30, len(make_graph(30).links), False)
    assert graph.vs["name"] == [node.id for node in make_graph(30).nodes]
    assert graph.vs[0]["group"] == "Points"


def test_graphml_of_hostile_texts_is_well_formed(page, tmp_path: Path):
    nodes = tuple(
        PictureNode(id=id, label=f"{SCRIPT} \x00\x1b ]]>", group="g", text=IMAGE, facts=facts)
        for id, facts in (("a", {"count": 3, "id": "<x>"}), (SCRIPT, {"count": "many"}))
    )
    links = (PictureLink(source="a", target=SCRIPT, label=IMAGE),)
    tree = Picture(kind="tree", title="T", nodes=nodes, links=links, groups=(Group(id="g", label=IMAGE),))
    *_, graphml = page(tree).run(SAVE)
    (tmp_path / "saved.graphml").write_text(graphml, encoding="utf-8")
    graph = igraph.Graph.Read_GraphML(str(tmp_path / "saved.graphml"))
    assert graph.is_directed()
    assert graph.vs["name"] == ["a", SCRIPT]
    assert graph.vs["label"][0] == f"{SCRIPT} \ufffd\ufffd ]]>"
    assert (graph.vs["count"], graph.vs["fact id"][0]) == (["3", "many"], "<x>")
    assert graph.es["label"] == [IMAGE]
