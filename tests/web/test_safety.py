"""Texts of documents, models and files are shown as they are, and nothing of them runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from tests.server.served import TOKEN, Served, serve
from tests.web.pages import Visit, expect, link, visit

from tomewise.tome.tome import Tome
from tomewise.types import Document

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCRIPT = "<script>globalThis.owned=1</script>"
IMAGE = "<img src=x onerror=globalThis.owned=1>"
ADDRESS = "javascript:globalThis.owned=1"
TURNED = "\u202egnorw\u202c"
NAME = f"{IMAGE}{TURNED}.txt"
TEXT = (
    f"{SCRIPT} Ada {IMAGE} Marsh put out the light at nine, {TURNED}. "
    f"Ada Marsh met {ADDRESS} Reed at {IMAGE} Harbour in May."
)
OWNED = (
    "Boolean(globalThis.owned) || document.querySelector('main img, main script, main a[href^=javascript]') !== null"
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "lib").mkdir()
    with Tome.open(folder / "lib" / "bad.tome", embedder="hash") as tome:
        tome.add(Document(id=NAME, title=f"{SCRIPT} {ADDRESS}", text=TEXT))
        tome.build("comorag")
        for system in ("hybrid", "comorag"):
            tome.ask(f"Who put out the light? {IMAGE}", system=system)
    with serve(folder, "--root", "lib") as running:
        yield running


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        ("#/", "bad"),
        (link("bad"), f"{SCRIPT} {ADDRESS}"),
        (link("bad", "ask", system=f"hybrid{IMAGE}", question=IMAGE), f"hybrid{IMAGE}"),
        (link("bad", "compare", question=IMAGE), "Compare"),
        (link("bad", "build", system=IMAGE), f"There is no system “{IMAGE}”"),
        (link("bad", "doc", id=NAME, start=0, end=60), f"{SCRIPT} Ada {IMAGE} Marsh"),
        (link("bad", "doc", id=NAME, start=IMAGE, end=SCRIPT, trace=IMAGE), TEXT),
        (link("bad", "memory", layer="graph:passages-triples"), "harbour"),
        (link("bad", "memory", layer="graph:passages-triples", around=IMAGE), f"'{IMAGE}' is not an entity"),
        (link("bad", "memory", trace=2), "Fit"),
        (link("bad", "history"), f"Who put out the light? {IMAGE}"),
        (link("bad", "history/1"), f"Who put out the light? {IMAGE}"),
        (link("bad", "history", first=1, second=2), f"Who put out the light? {IMAGE}"),
        (link(IMAGE), "No tome of this name is served here"),
        (f"#/evaluations/{quote(IMAGE)}", IMAGE),
        (f"#/{quote(IMAGE)}", "No view has this address"),
    ],
)
def test_every_view_shows_hostile_texts(browser: Browser, hostile: Served, view: str, shown: str):
    with visit(browser, hostile.url) as made:
        page = made.enter(view)
        expect(page.locator("main")).to_contain_text(shown, use_inner_text=True)
        page.wait_for_load_state("networkidle")
        assert page.evaluate(OWNED) is False
        assert made.foreign == []
        assert [each for each in made.complaints if "404" not in each and "400" not in each] == []


def test_a_hostile_answer_and_its_drawing(visitor: Callable[..., Visit], hostile: Served):
    page = visitor(hostile.url).enter(link("bad", "ask"))
    page.get_by_role("textbox").first.fill(f"Who put out the light? {SCRIPT}")
    page.keyboard.press("Enter")
    expect(page.locator(".quote").first).to_contain_text("Ada")
    page.locator(".trace summary").first.click()
    page.locator(".event summary").first.click()
    assert page.evaluate(OWNED) is False
    page.goto(f"{hostile.url}/{link('bad', 'memory', layer='graph:passages-triples')}")
    expect(page.locator(".tp-node").first).to_be_visible()
    page.locator(".tp-node").first.press("Enter")
    expect(page.locator(".tp-details")).to_be_visible()
    assert page.evaluate(OWNED) is False


def follow_link(browser: Browser, served: Served, address: str, enters: bool):
    """What a browser shows after a click on a link in the page of another site."""
    context = browser.new_context()
    page = context.new_page()
    if enters:
        page.goto(f"{served.url}/?token={TOKEN}")
    html = f'<a href="{address}">quotation</a>'
    page.route("http://chat.example/", lambda route: route.fulfill(body=html, content_type="text/html"))
    page.goto("http://chat.example/")
    page.get_by_text("quotation").click()
    return page


def test_a_link_in_a_chat_client_opens_the_quotation(browser: Browser, served: Served):
    body = {"model": "novel/hybrid", "messages": [{"role": "user", "content": "Who put out the light?"}]}
    message = served.post("/v1/chat/completions", body).json()["choices"][0]["message"]
    address = message["annotations"][0]["url_citation"]["url"].replace("&", "&amp;")
    page = follow_link(browser, served, address, enters=True)
    expect(page.locator("mark.current")).to_contain_text("Ada Marsh")
    page.context.close()
    stranger = follow_link(browser, served, address, enters=False)
    expect(stranger.locator("h1")).to_have_text("Open the address that the server printed")
    expect(stranger.locator("mark")).to_have_count(0)
    stranger.context.close()
