"""What a visitor chooses stays: drafts, sources and systems outlive other views and a reload."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.server.served import Served, serve
from tests.web.conftest import KEEPER, make_library
from tests.web.pages import Visit, ask, expect, link, read_sent, wait_for_answers

from tomewise.tome.tome import Tome
from tomewise.types import Document

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module", autouse=True)
def shelf(served: Served) -> None:
    """A tome of five documents in two folders."""
    served.post("/api/tomes", {"name": "shelf"}).raise_for_status()
    texts = {
        "keeper.txt": (KEEPER, {"year": 1911}),
        "logs/one.txt": ("Tom Reed rang the bell at noon.", {"year": 1912}),
        "logs/two.txt": ("Ruth Penrose rang the bell at midnight.", {"year": 1913}),
        "logs/old/three.txt": ("Nobody rang the bell in the war.", {"year": 1899}),
        "coin.txt": ("Zoe kept the coin in a drawer.", {}),
    }
    body = {"documents": [{"id": id, "text": text, "metadata": more} for id, (text, more) in texts.items()]}
    job = served.post("/api/tomes/shelf/documents", body).json()
    assert served.wait_for_job(job["id"])["state"] == "done"


def choose_sources(page: Page, *names: str) -> None:
    page.get_by_role("button", name="Sources:").click()
    for name in names:
        page.get_by_role("dialog").get_by_label(re.compile(f"^{re.escape(name)}")).check()
    page.get_by_role("button", name=re.compile("^Use ")).click()


def test_keys_write_into_the_box_and_one_key_shortcuts_are_switched_off(visitor: Callable[..., Visit]):
    page = visitor().enter(link("shelf", "ask"))
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type("Who visits Scrooge first? g e")
    expect(page.locator("#question")).to_have_value("Who visits Scrooge first? g e")
    page.evaluate("location.hash = '#/'")
    expect(page.get_by_role("heading", name="Library")).to_be_visible()
    page.keyboard.press("?")
    page.get_by_label("Keys of letters and signs").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    expect(page.get_by_role("heading", name="Library")).to_be_visible()
    for key in ("?", "g", "e"):
        page.keyboard.press(key)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("heading", name="Library")).to_be_visible()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Keys of letters and signs").check()
    page.evaluate("location.hash = '#/t/shelf/history'")  # the keys do not lie over the next view
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_draft_its_sources_and_its_system_outlive_other_views_and_a_reload(visitor: Callable[..., Visit]):
    page = visitor().enter(link("shelf", "ask"))
    page.locator("#question").fill("Who rang the bell")
    page.locator("select.system").select_option("naive")
    choose_sources(page, "keeper.txt", "coin.txt")
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Instructions").fill("Be brief.")
    for leave in (lambda: page.get_by_role("link", name="History", exact=True).click(), page.reload):
        leave()
        expect(page.locator("main h1").first).not_to_have_text("Tomewise")
        page.get_by_role("navigation", name="Views of this tome").get_by_role("link", name="Ask", exact=True).click()
        expect(page.locator("#question")).to_have_value("Who rang the bell")
        expect(page.locator("select.system")).to_have_value("naive")
        expect(page.get_by_role("button", name="Sources: keeper.txt, coin.txt")).to_be_visible()
        expect(page.get_by_role("button", name="Settings (1)")).to_be_visible()
    body = read_sent(page, lambda: page.locator("#question").press("Enter"))
    assert body["documents"] == ["keeper.txt", "coin.txt"]
    assert (body["question"], body["system"], body["instructions"]) == ("Who rang the bell", "naive", "Be brief.")
    wait_for_answers(page, 1)
    expect(page.locator("#question")).to_have_value("")
    assert "documents" not in ask(page, "And who kept the coin?")  # the session holds them
    wait_for_answers(page, 2)
    page.get_by_role("link", name="New chat").click()
    expect(page.get_by_role("button", name="Sources: all")).to_be_visible()


def test_memory_that_lags_answers_and_offers_its_build(visitor: Callable[..., Visit], tmp_path: Path):
    make_library(tmp_path / "lib")
    with Tome.open(tmp_path / "lib" / "novel.tome", embedder="hash") as tome:
        tome.add(Document(id="news.txt", text="Ruth Penrose lit the light again at ten."))
    with serve(tmp_path, "--root", "lib") as served:
        page = visitor(served.url).enter(link("novel", "ask", system="comorag"))
        expect(page.locator(".composer-line")).to_contain_text("does not know the newest documents yet")
        ask(page, "Who lit the light again at ten?")
        wait_for_answers(page, 1)
        notice = page.locator(".notice", has_text="Answered from older memory.")
        expect(notice).to_contain_text("1 new document (news.txt)")
        notice.get_by_role("link", name="Bring it up to date").click()
        expect(page).to_have_url(re.compile(r"build\?system=comorag"))


def test_an_answer_says_which_files_were_not_read(visitor: Callable[..., Visit], tmp_path: Path):
    make_library(tmp_path / "lib")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("Ruth Penrose lit the light again at ten.")
    (tmp_path / "notes" / "b.txt").write_bytes(b"\0x")
    with Tome.open(tmp_path / "lib" / "novel.tome", embedder="hash") as tome:
        tome.add(tmp_path / "notes")
    with serve(tmp_path, "--root", "lib") as served:
        page = visitor(served.url).enter(link("novel", "ask"))
        ask(page, "Who lit the light again at ten?")
        wait_for_answers(page, 1)
        expect(page.locator(".answer")).to_contain_text("1 unread file (b.txt: is binary, not text)")


@pytest.mark.parametrize("view", ["constructor", "__proto__", "toString", "hasOwnProperty"])
def test_names_of_the_language_are_no_views(visitor: Callable[..., Visit], view: str):
    page = visitor().enter(f"#/t/__proto__/{view}")
    expect(page.get_by_role("heading", name="No view has this address")).to_be_visible()
