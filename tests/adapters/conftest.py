"""A tome of two documents that retrievers search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tomewise.tome.tome import Tome

LOG = "# Night\n\n## Chapter 2\n\nThe keeper, Ada Marsh, put out the light at nine."
LETTER = "The doctor forged a letter. Nobody asked him why."


@pytest.fixture
def book(here: Path) -> Iterator[Tome]:
    (here / "log.md").write_text(LOG)
    (here / "letter.txt").write_text(LETTER)
    with Tome.open(here / "a.tome", embedder="hash") as made:
        made.add("log.md", "letter.txt")
        yield made
