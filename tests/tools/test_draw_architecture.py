"""The picture of rooms and imports."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import tomewise
from tools import draw_architecture

PAGE = "before\n<!-- rooms -->\nold\n<!-- /rooms -->\nafter\n"


def test_an_arrow_that_a_longer_path_implies_is_left_out() -> None:
    picture = draw_architecture.draw({"top": {"middle", "low"}, "middle": {"low"}, "low": set()})
    assert picture == "```mermaid\nflowchart TD\n    middle --> low\n    top --> middle\n```\n"


def test_a_room_without_arrows_has_one_line() -> None:
    picture = draw_architecture.draw({"top": {"low"}, "low": set(), "alone": set()})
    assert sorted(picture.splitlines()[2:-1]) == ["    alone", "    top --> low"]


def test_a_circle_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"circle: (a -> b -> a|b -> a -> b)"):
        draw_architecture.draw({"a": {"b"}, "b": {"a"}})


def test_the_picture_names_every_room_and_draws_each_arrow_once() -> None:
    files = Path(tomewise.__file__).parent.iterdir()
    rooms = {path.stem for path in files if path.suffix == ".py" or (path / "__init__.py").exists()} - {"__init__"}
    lines = draw_architecture.draw(draw_architecture.read_imports()).splitlines()[2:-1]
    assert set(re.findall(r"\w+", "\n".join(lines))) == rooms
    assert len(lines) == len(set(lines))


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
    assert page.read_text() == PAGE.replace("old\n", "```mermaid\nflowchart TD\n    top --> low\n```\n")
    monkeypatch.setattr(sys, "argv", ["draw", "--check"])
    assert draw_architecture.main() == 0


def test_a_page_without_a_place_for_the_picture_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("no place\n")
    monkeypatch.setattr(draw_architecture, "PAGE", page)
    monkeypatch.setattr(draw_architecture, "read_imports", lambda: {"alone": set()})
    monkeypatch.setattr(sys, "argv", ["draw", "--check"])
    with pytest.raises(SystemExit, match="0 places for the picture"):
        draw_architecture.main()
