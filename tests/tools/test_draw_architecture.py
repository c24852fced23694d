"""The table of rooms and imports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import draw_architecture

PAGE = "before\n<!-- rooms -->\nold\n<!-- /rooms -->\nafter\n"


def test_the_page_is_written_and_then_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr(draw_architecture, "PAGE", page)
    monkeypatch.setattr(draw_architecture, "read_imports", lambda: {"top": {"low"}, "low": set()})

    def draw(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["draw", *words])
        return draw_architecture.main()

    page.write_text("no place\n")
    with pytest.raises(SystemExit, match="0 places for the table"):
        draw("--check")
    page.write_text(PAGE)
    assert draw("--check") == 1
    assert "differs from the code" in capsys.readouterr().out
    assert page.read_text() == PAGE
    assert draw() == 0
    new = "| room | imports |\n| --- | --- |\n| `low` | nothing |\n| `top` | `low` |\n"
    assert page.read_text() == PAGE.replace("old\n", new)
    assert draw("--check") == 0
