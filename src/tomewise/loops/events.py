"""What events say: the summary line, and evidence as plain data."""

from __future__ import annotations

from collections.abc import Sequence

from tomewise.place import as_plain_data
from tomewise.types import Evidence

_LONGEST = 300  # characters of one value in a summary


def list_facts(**facts: object) -> str:
    """A summary line of named values, as "probe: who, layer: tree". Empty values are left out, long ones are cut."""
    return ", ".join(f"{name}: {shorten(value)}" for name, value in facts.items() if value not in (None, ""))


def shorten(value: object, length: int = _LONGEST) -> str:
    """The value as one line of at most `length` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def describe_retrieval(evidence: Sequence[Evidence], found: Sequence[Evidence]) -> dict[str, object]:
    """What an event says of retrieved evidence: what is shown to the model, and how much was cut for want of room."""
    return {"evidence": as_event_detail(evidence), "found": len(found), "cut": len(found) - len(evidence)}


def as_event_detail(evidence: Sequence[Evidence]) -> list[dict[str, object]]:
    """Evidence as an event holds it."""
    return [
        {
            "node": piece.node,
            "layer": piece.layer,
            "score": piece.score,
            "title": piece.title,
            "place": as_plain_data(piece.place),
            "text": piece.text,
        }
        for piece in evidence
    ]
