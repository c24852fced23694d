"""The table of rooms and imports."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import tomewise
from tools import draw_architecture

PAGE = "before\n<!-- rooms -->\nold\n<!-- /rooms -->\nafter\n"


def test_an_import_that_a_longer_path_implies_is_left_out() -> None:
    table = draw_architecture.write_table({"top": {"middle", "low"}, "middle": {"low"}, "low": set()})
    assert table.splitlines()[2:] == ["| `low` | nothing |", "| `middle` | `low` |", "| `top` | `middle` |"]


def test_a_circle_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"circle: (a -> b -> a|b -> a -> b)"):
        draw_architecture.write_table({"a": {"b"}, "b": {"a"}})


def test_the_table_has_a_row_for_every_room() -> None:
    files = Path(tomewise.__file__).parent.iterdir()
    rooms = {path.stem for path in files if path.suffix == ".py" or (path / "__init__.py").exists()} - {"__init__"}
    rows = draw_architecture.write_table(draw_architecture.read_imports()).splitlines()[2:]
    assert sorted(re.findall(r"^\| `(\w+)`", "\n".join(rows), re.MULTILINE)) == sorted(rooms)


def test_the_page_is_written_and_then_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    monkeypatch.setattr(draw_architecture, "PAGE", page)
    monkeypatch.setattr(draw_architecture, "read_imports", lambda: {"top": {"low"}, "low": set()})
    monkeypatch.setattr(sys, "argv", ["draw", "--check"])
    assert draw_architecture.main() == 1
    assert "differs from the code" in capsys.readouterr().out
    assert page.read_text() == PAGE
    monkeypatch.setattr(sys, "argv", ["draw"])
    assert draw_architecture.main() == 0
    assert page.read_text() == PAGE.replace(
        "old\n", "| room | imports |\n| --- | --- |\n| `low` | nothing |\n| `top` | `low` |\n"
    )
    monkeypatch.setattr(sys, "argv", ["draw", "--check"])
    assert draw_architecture.main() == 0


def test_a_page_without_a_place_for_the_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("no place\n")
    monkeypatch.setattr(draw_architecture, "PAGE", page)
    monkeypatch.setattr(draw_architecture, "read_imports", lambda: {"alone": set()})
    monkeypatch.setattr(sys, "argv", ["draw", "--check"])
    with pytest.raises(SystemExit, match="0 places for the table"):
        draw_architecture.main()
