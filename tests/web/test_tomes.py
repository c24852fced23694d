"""Tomes in a browser: filled, renamed, exported, imported, deleted; documents searched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.server.served import Served
from tests.web.conftest import serve_library
from tests.web.pages import DROP, Visit, expect, link

if TYPE_CHECKING:
    from playwright.sync_api import Page


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
