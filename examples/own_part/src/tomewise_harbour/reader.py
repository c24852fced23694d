"""A reader of logbooks: files `.logbook`, one entry a line, `DATE | TEXT`; lines that begin with # are comments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tomewise.parts import Document, ReadingError


def read_logbook(path: Path) -> Iterator[Document]:
    """One document; its first date is its metadata."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip() and not line.startswith("#")]
    if not all(" | " in line for line in lines):
        raise ReadingError(f"{path} is not a logbook: write every line as DATE | TEXT")
    entries = [line.split(" | ", 1) for line in lines]
    text = "\n".join(f"{entry} ({date})" for date, entry in entries)
    yield Document(id=str(path), text=text, source=str(path), metadata={"begins": entries[0][0]} if entries else {})
