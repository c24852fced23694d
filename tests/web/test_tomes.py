"""Tomes in a browser: filled, renamed, exported, imported, deleted; documents and history searched; graphs read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.server.served import Served
from tests.web.conftest import serve_library
from tests.web.pages import DROP, Visit, expect, link

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    with serve_library(tmp_path) as running:
        yield running


def act(page: Page, tome: str, word: str) -> None:
    page.get_by_label(f"Actions for {tome}").click()
    page.get_by_role("menuitem", name=word).click()


def test_a_tome_is_renamed_exported_imported_and_deleted(visitor: Callable[..., Visit], own: Served, tmp_path: Path):
    page = visitor(own.url).enter("#/")
    expect(page.locator(".tome")).to_contain_text("2 documents")
    act(page, "novel", "Rename")
    page.get_by_role("textbox", name="Name").fill("a/b")
    expect(page.get_by_text("Use up to 64 letters")).to_be_visible()
    page.get_by_role("textbox", name="Name").fill("harbour")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("link", name="harbour", exact=True)).to_be_visible()

    page.get_by_label("Actions for harbour").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Export").click()
    file = tmp_path / "harbour.jsonl"
    download.value.save_as(file)
    assert file.stat().st_size > 1000

    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import…").click()
    chooser.value.set_files(file)
    page.get_by_role("textbox", name="Name").fill("copy")
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="copy")).to_be_visible()
    expect(page.get_by_role("link", name="keeper.txt")).to_be_visible()

    act(page, "copy", "Delete")
    button = page.get_by_role("button", name="Delete for good")
    expect(button).to_be_disabled()
    page.get_by_label("Write its name").fill("harbour")
    expect(button).to_be_disabled()
    page.get_by_label("Write its name").fill("copy")
    button.click()
    expect(page.get_by_role("heading", name="Library")).to_be_visible()
    expect(page.locator(".tome")).to_have_count(1)
    assert own.http.get("/api/tomes").json()["tomes"] == ["harbour"]


def test_documents_are_found_by_name_folder_and_text(visitor: Callable[..., Visit]):
    page = visitor().enter(link("novel"))
    expect(page.locator("tbody tr")).not_to_have_count(0)
    page.get_by_label("Folder").select_option("notes")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("link", name="safe.txt")).to_be_visible()
    page.get_by_label("Folder").select_option("")
    page.get_by_label("Find by title").fill("keep")
    expect(page.get_by_role("link", name="safe.txt")).to_have_count(0)
    page.get_by_label("Find by title").fill("forged the letter")
    expect(page.get_by_text("No title or name has these words.")).to_be_visible()
    page.get_by_label("Find by title").press("Enter")
    passage = page.get_by_role("region", name="Passages about").locator(".quote").first
    expect(passage).to_contain_text("The clerk forged the letter")
    passage.get_by_role("link").click()
    expect(page.locator("mark.current")).to_contain_text("The clerk forged the letter")
    expect(page).to_have_url(re.compile("id=keeper.txt"))


def test_history_is_searched(visitor: Callable[..., Visit]):
    page = visitor().enter(link("novel", "history"))
    box = page.get_by_label("Find in questions and answers")
    box.fill("forged letter")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("link", name="Who forged the letter?")).to_be_visible()
    box.fill("nowhere-to-be-found")
    expect(page.get_by_text("No question or answer has all of these words.")).to_be_visible()
    box.fill("")
    expect(page.get_by_role("link", name="Who put out the light?").first).to_be_visible()


def test_an_entity_has_a_page_and_links_say_what_they_mean(visitor: Callable[..., Visit]):
    page = visitor().enter(link("novel", "memory"))
    expect(page.locator(".tp-node").first).to_be_visible()
    node = page.locator(".tp-node", has_text="ada marsh").first
    node.focus()
    expect(page.locator(".tp-words text").first).to_be_visible()
    node.press("Enter")
    page.get_by_role("link", name="All facts and passages").click()
    expect(page.locator("h1")).to_have_text("ada marsh")
    expect(page.locator(".entity-facts li").first).to_contain_text("ada marsh")
    expect(page.locator(".quote").first).to_contain_text("Ada Marsh")
    page.locator(".neighbours a").first.click()
    expect(page.locator("h1")).not_to_have_text("ada marsh")
    page.go_back()
    page.get_by_role("link", name="Draw what is around it").click()
    expect(page.locator(".tp-node").first).to_be_visible()


def test_rows_that_were_read_belong_to_one_entity(visitor: Callable[..., Visit]):
    def reply(route: Route) -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        (name,), start = query["name"], int(query.get("start", ["0"])[0])
        facts = [{"text": f"{name} {start}", "graph": "g"}]
        counts = {"facts": 2, "passages": 0, "neighbours": 0}
        empty: dict[str, list[str]] = {"similar": [], "passages": [], "neighbours": []}
        route.fulfill(json={"name": name, "kind": "", "facts": facts, "counts": counts, **empty})

    made = visitor()
    made.page.route("**/entity?*", reply)
    page = made.enter(link("novel", "entity", name="ada"))
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".entity-facts li")).to_have_text(["ada 0", "ada 1"])
    made.go(link("novel", "entity", name="tom"))
    expect(page.locator(".entity-facts li")).to_have_text(["tom 0"])


def test_to_ask_about_an_entity_keeps_what_was_chosen_and_written(visitor: Callable[..., Visit]):
    made = visitor()
    page = made.enter(link("novel", "ask"))
    page.locator("select.system").select_option("naive")
    page.locator("#question").fill("Tell me more.")
    for _ in range(2):  # the second time it stands there already
        made.go(link("novel", "entity", name="ada marsh"))
        page.get_by_role("link", name="Ask about it").click()
        expect(page.locator("#question")).to_have_value("Tell me more.\nWhat is told about ada marsh?")
        expect(page.locator("select.system")).to_have_value("naive")


def test_drafts_follow_a_tome_to_its_new_name_and_end_with_it(visitor: Callable[..., Visit], own: Served):
    made = visitor(own.url)
    page = made.enter(link("novel", "ask"))
    page.locator("select.system").select_option("naive")
    page.locator("#question").fill("Who put out")
    page.evaluate("location.hash = '#/t/novel/compare?question=Who+was+it'")
    page.get_by_role("button", name="Ask both").click()
    answers = page.locator("article.turn[aria-busy=false] .answer")
    expect(answers).to_have_count(2)
    page.evaluate("location.hash = '#/'")
    act(page, "novel", "Rename")
    page.get_by_role("textbox", name="Name").fill("harbour")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("link", name="harbour", exact=True)).to_be_visible()
    page.evaluate("location.hash = '#/t/harbour/ask'")
    expect(page.locator("#question")).to_have_value("Who put out")
    expect(page.locator("select.system")).to_have_value("naive")
    page.evaluate("location.hash = '#/t/harbour/compare'")
    expect(answers).to_have_count(2)
    page.evaluate("location.hash = '#/'")
    act(page, "harbour", "Delete")
    page.get_by_label("Write its name").fill("harbour")
    page.get_by_role("button", name="Delete for good").click()
    expect(page.locator(".tome")).to_have_count(0)
    own.post("/api/tomes", {"name": "harbour"}).raise_for_status()
    own.add("/api/tomes/harbour/documents", id="new.txt", text="Zoe kept the coin.")
    page.evaluate("location.hash = '#/t/harbour/compare'")
    expect(page.get_by_text("Its answer comes here.")).to_have_count(2)
    expect(answers).to_have_count(0)
    page.evaluate("location.hash = '#/t/harbour/ask'")
    expect(page.locator("#question")).to_have_value("")


def test_folders_are_cut_from_ids_as_they_are(visitor: Callable[..., Visit]):
    page = visitor().enter()
    found = page.evaluate(
        """async () => (await import("./assets/sources.js")).listFolders(
          {"": 1, "notes": 2, "notes/old": 3, "https://example.org/x": 4, "/srv/files": 5})"""
    )
    site = {"https:": 4, "https://example.org": 4, "https://example.org/x": 4}
    assert dict(found) == {"/srv": 5, "/srv/files": 5, **site, "notes": 5, "notes/old": 3}
    assert found == sorted(found)


def test_a_job_names_what_goes_on_and_is_never_full_while_it_works(visitor: Callable[..., Visit]):
    page = visitor().enter()
    shown = page.evaluate(
        """async () => {
      const {html, render} = await import("./assets/parts.js");
      const {JobCard} = await import("./assets/build.js");
      const created = new Date().toISOString();
      const nothing = {error: null, report: null, usage: null};
      const base = {id: "1", tome: "novel", kind: "build", system: "comorag", created, ...nothing};
      const made = {label: "vectors", done: 2, total: 8};
      const done = {label: "characters cut", done: 9, total: 9};
      const draw = (job) => {
        const box = document.body.appendChild(document.createElement("div"));
        render(html`<${JobCard} job=${{...base, ...job}} put=${() => {}} />`, box);
        const bars = [...box.querySelectorAll("progress")];
        return [box.innerText, bars.map((bar) => [bar.getAttribute("aria-label"), bar.position])];
      };
      return [
        draw({state: "running", progress: [done, made], doing: made}),
        draw({state: "running", progress: [done], doing: null}),
        draw({state: "running", progress: [done], doing: done}),
        draw({state: "failed", progress: [done], doing: null, failed: 33, reason: "The model refused every call."}),
      ];
    }"""
    )
    (first, bars), (_, unknown), (_, full), (failed, none) = shown
    assert bars == [["vectors", 0.25]]
    assert "Done: characters cut (9)" in first
    assert unknown[0][1] == -1, "a bar that only moves"
    assert full[0][1] == -1
    assert none == []
    assert re.search(r"33 failures:\s+The model refused every call", failed)


def test_an_upload_goes_on_in_sight_and_sends_the_rest_after_a_stop(visitor: Callable[..., Visit], own: Served):
    made = visitor(own.url)
    page = made.enter(link("novel"))
    expect(page.get_by_role("link", name="keeper.txt")).to_be_visible()
    page.route("**/documents", lambda route: None)  # the server says nothing
    page.evaluate(DROP, dict.fromkeys(("one.txt", "two.txt"), "The boat came in at ten."))
    expect(page.get_by_text("Sending 2 files")).to_be_visible()
    page.evaluate(DROP, {"three.txt": "The boat came in at eleven."})
    expect(page.get_by_text("Sending 3 files")).to_be_visible()

    page.get_by_role("link", name="History", exact=True).click()
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    page.get_by_role("link", name="Overview", exact=True).click()
    expect(page.get_by_text("Sending 3 files")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("3 files not sent.")).to_be_visible()

    page.unroute("**/documents")
    page.get_by_role("button", name="Send the rest").click()
    for name in ("one.txt", "two.txt", "three.txt"):
        expect(page.get_by_role("link", name=name)).to_be_visible()
    expect(page.get_by_text("not sent.")).to_have_count(0)
