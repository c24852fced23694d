"""What events say: the summary line, and evidence as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from tomewise.place import as_plain_data
from tomewise.types import Event, Evidence

_LONGEST = 300  # characters of one value in a summary


def list_facts(**facts: object) -> str:
    """A summary line of named values, as "probe: who, layer: tree". Empty values are left out, long ones are cut."""
    shown = {name.replace("_", " "): value for name, value in facts.items() if value not in (None, "")}
    return ", ".join(f"{name}: {shorten(value)}" for name, value in shown.items())


def shorten(value: object, length: int = _LONGEST) -> str:
    """The value as one line of at most `length` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def make_retrieval_event(name: str, evidence: Sequence[Evidence], found: Sequence[Evidence], step: int = 0) -> Event:
    """The event of evidence that is shown to the model, out of what was found; the rest was cut for want of room."""
    counts = {"found": len(found), "cut": len(found) - len(evidence)}
    detail = {"evidence": as_event_detail(evidence), **counts}
    return Event(name=name, step=step, summary=list_facts(**counts), detail=detail)


def make_stop_event(reason: str, step: int) -> Event:
    """The event that says why a loop goes no further."""
    return Event(name="stopped", step=step, summary=list_facts(reason=reason), detail={"reason": reason})


def as_event_detail(evidence: Sequence[Evidence]) -> list[dict[str, object]]:
    """Evidence as an event holds it; `rewrite` only where a rewritten question brought it."""
    return [
        {
            "node": piece.node,
            "layer": piece.layer,
            "score": piece.score,
            "title": piece.title,
            "place": as_plain_data(piece.place),
            "text": piece.text,
            **({"rewrite": asdict(piece.rewrite)} if piece.rewrite else {}),
        }
        for piece in evidence
    ]
