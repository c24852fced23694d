"""What a notebook shows: bars, answers with their quotations in place, tables, and short texts of objects."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest

from tomewise.notebook_display import show_bars
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Document, Event, Evidence, Progress, Quote, Statement

EVIL = "<script>alert(1)</script> & \"quoted\" 'text'"
ALLOWED = {
    "div", "p", "b", "ol", "li", "mark", "small", "table", "caption", "thead", "tbody", "tr", "th", "td", "progress",
}  # fmt: skip


class Checker(HTMLParser):
    """Collects the texts of well-formed HTML, which has no other tags than ours."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in ALLOWED, tag
        assert all(name in ("value", "max") for name, _ in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(html: str | None) -> str:
    assert html is not None
    return "".join(Checker(html).texts)


def make_answer(**fields: Any) -> Answer:
    text = f"{'before ' * 40}{EVIL} the clerk did{' after' * 40}"
    start = text.index("the clerk did")
    evidence = Evidence(id="p1", layer="passages", text=text, score=0.5, sources=("p1",))
    where = {"document": "/d/a.txt", "passage": "p1", "position": 2, "start": start, "end": start + 13}
    citation = Quote(**where, text="the clerk did", title=EVIL)
    values: dict[str, Any] = {
        "text": EVIL,
        "statements": (Statement(text=EVIL, quotes=(citation,)),),
        "evidence": (evidence,) * 50,
        "system": "hybrid",
    }
    return Answer(**values | fields)


def test_an_answer_has_its_quotations_in_their_place() -> None:
    html = make_answer(missing=EVIL, claimed="partly", choice="A")._repr_html_()
    text = read(html)
    assert f"A. {EVIL}" in text
    assert "<mark>the clerk did</mark> after after" in html
    assert f"{EVIL}, part 3" in text
    assert f"Missing: {EVIL}" in text
    assert len(html) < 3000


def test_a_short_text_stands_for_a_large_object() -> None:
    answer = make_answer(events=(Event(name="x", detail={"text": "x" * 9999}),) * 99)
    for thing in (answer, Document(id="d", text="x" * 99_999, title="t" * 999)):
        assert repr(thing).startswith(f"{type(thing).__name__}('")
        assert len(repr(thing)) < 400


def test_a_tome_shows_its_layers_and_documents(tome: Tome) -> None:
    report = tome.add(*(Document(id=f"d{number}", text="The tide turned.", title=EVIL) for number in range(30)))
    assert repr(report) == "AddReport(added=30, passages=30)"
    text = read(tome._repr_html_())
    assert text.count(EVIL) == 20
    assert "30 documents, of which 10 are not shown" in text
    assert "passages30" in text
    assert len(repr(tome)) < 300


# ---------------------------------------------------------------- bars


@dataclass
class Shown:
    """What stands below a cell, each state of it."""

    states: list[str] = field(default_factory=list)

    def display(self, html: str, *, display_id: bool) -> Shown:
        assert display_id
        self.update(html)
        return self

    def update(self, html: str) -> None:
        read(html)
        self.states.append(html)


@pytest.fixture(name="cell")
def open_notebook(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """A notebook as IPython's kernel has it."""
    shown = Shown()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown.display, HTML=str))
    return shown


def test_bars_show_how_far_the_work_is(cell: Shown) -> None:
    with show_bars(None) as report:
        report(Progress(label=EVIL, done=1, total=4))
        report(Progress(label="b", done=4, total=4))
        assert '<progress value="1" max="4">' in cell.states[-1]
        assert f"{EVIL}: 1 of 4, 0 s left" in read(cell.states[-1])
        for done in range(10_000):
            report(Progress(label="c", done=done))
    assert len(cell.states) < 100, "not every step is drawn"
    assert cell.states[-1] == "", "nothing is left"


def test_work_in_a_notebook_shows_bars_unless_it_is_told_where_to_report(cell: Shown, tome: Tome) -> None:
    document = Document(id="d", text="The tide turned.")
    seen: list[Progress] = []
    tome.add(document, on_progress=seen.append)
    assert seen
    assert cell.states == []
    tome.remove("d")
    tome.add(document)
    assert any("passages embedded" in state for state in cell.states)
    assert cell.states[-1] == ""
