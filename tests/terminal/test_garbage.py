"""What runs for long searches for garbage as often as Python does; a short command seldom."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tomewise import Tome
from tomewise.server import listening
from tomewise.terminal.garbage import collect_rarely
from tomewise.terminal.program import run


@pytest.fixture
def usual() -> Iterator[tuple[int, int, int]]:
    found = gc.get_threshold()
    collect_rarely()
    yield found
    gc.set_threshold(*found)


@pytest.fixture
def tome(tmp_path: Path) -> str:
    (tmp_path / "tide.md").write_text("The tide turned at noon.", encoding="utf-8")
    with Tome.open(tmp_path / "a.tome", embedder="hash") as opened:
        opened.add(tmp_path / "tide.md")
    return str(tmp_path / "a.tome")


def test_a_short_command_searches_seldom(tome: str, usual: tuple[int, int, int]) -> None:
    assert run(["-m", tome, "show"]) == 0
    assert gc.get_threshold()[0] > usual[0]


def test_a_build_searches_as_usual(tome: str, usual: tuple[int, int, int]) -> None:
    assert run(["-m", tome, "build", "--system", "hybrid"]) == 0
    assert gc.get_threshold() == usual


def test_a_server_searches_as_usual(tome: str, usual: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int, int]] = []
    monkeypatch.setattr(listening, "serve", lambda *_, **__: seen.append(gc.get_threshold()))
    assert run(["serve", tome]) == 0
    assert seen == [usual]
