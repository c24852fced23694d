"""Uploads in a browser: stopped, left alone, and sent again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.served import Served, serve
from tests.web.conftest import make_library
from tests.web.pages import Visit, expect, link

DROP = """(names) => {
  const transfer = new DataTransfer();
  for (const name of names) {
    transfer.items.add(new File([`The boat of ${name} came in at ten.`], name, {type: "text/plain"}));
  }
  document.body.dispatchEvent(new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer: transfer}));
}"""


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Served]:
    make_library(tmp_path / "lib")
    with serve(tmp_path, "--root", "lib") as running:
        yield running


def test_an_upload_goes_on_in_sight_and_sends_the_rest_after_a_stop(visitor: Callable[..., Visit], fresh: Served):
    made = visitor(fresh.url)
    page = made.enter(link("novel"))
    expect(page.get_by_role("link", name="keeper.txt")).to_be_visible()
    page.route("**/documents", lambda route: None)  # the server says nothing
    page.evaluate(DROP, ["one.txt", "two.txt"])
    expect(page.get_by_text("Sending 2 files")).to_be_visible()
    page.evaluate(DROP, ["three.txt"])
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
