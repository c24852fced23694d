"""Texts that tests read: generated ones, and where the real ones stand when they are there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = REPOSITORY / ".." / "shared" / "data"
NOVEL = SHARED / "novels" / "gods_of_mars.txt"
MEETINGS = SHARED / "qmsum" / "test.jsonl"
needs_shared = pytest.mark.skipif(not (NOVEL.exists() and MEETINGS.exists()), reason="needs ../shared/data")

_WORDS = (
    "tide keeper lighthouse letter doctor clerk boat harbour winter lamp ledger storm rope cliff bell anchor "
    "captain widow garden map coin forged promised carried hid found lost burned answered waited"
).split()


def prose(seed: int, sentences: int = 40) -> str:
    """Text that differs from seed to seed and has paragraphs."""
    dice = random.Random(seed)
    lines = [" ".join(dice.choices(_WORDS, k=dice.randint(5, 14))).capitalize() + "." for _ in range(sentences)]
    return "".join(line + ("\n\n" if number % 5 == 4 else " ") for number, line in enumerate(lines)).strip()
