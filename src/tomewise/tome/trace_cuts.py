"""Keep the record of a trace small: each piece of evidence is stored once, and a large record is cut step by step.

A loop finds the same pieces again and again: of the 190 in a trace of `comorag`, 79 differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]
_Shorten: TypeAlias = Callable[[Record], None]
_LONG, _SHORT = 200, 80  # characters that stay of a text that is cut
_LAST = 3  # events whose details stay longest: the answer with the working memory behind it, and what follows


def share_pieces(record: Record) -> None:
    """Move the pieces of evidence of all events to the list `pieces`, each once.

    The `evidence` of an event becomes empty, and the event gets `shared`: an index and a score for each of its pieces.
    Evidence of another form stays.
    """
    indices: dict[str, int] = {}
    record["pieces"] = []
    for event in record["events"]:
        evidence = event["detail"].get("evidence")
        if isinstance(evidence, list) and all(map(_is_piece, evidence)):
            event["shared"] = [_share(piece, record["pieces"], indices) for piece in evidence]
            event["detail"]["evidence"] = []


def restore_events(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events with their evidence, also of records of earlier versions, which share no pieces."""
    pieces = record.get("pieces", ())
    for event in record["events"]:
        fields = {name: value for name, value in event.items() if name != "shared"}
        if "shared" in event:
            evidence = [{**pieces[index], "score": score} for index, score in event["shared"]]
            fields["detail"] = {**event["detail"], "evidence": evidence}
        yield fields


def cut_to_fit(record: Record, most_bytes: int) -> list[str]:
    """Shorten the record, at first what matters least, until it has at most `most_bytes` bytes of JSON.

    Returns what was cut, in words.
    """
    cut: dict[str, str] = {}  # what, and how it was cut last

    def describe() -> list[str]:
        return [f"{what}{how}" for what, how in cut.items()]

    text = json.dumps(record)
    for what, how, shorten in _CUTS:
        if len(text) + len(json.dumps({"cut": describe()})) <= most_bytes:
            break
        shorten(record)
        before, text = text, json.dumps(record)
        if text != before:
            cut[what] = how
    return describe()


def _is_piece(piece: Any) -> bool:
    return isinstance(piece, dict) and {"node", "score", "text"} <= piece.keys()


def _share(piece: Record, pieces: list[Record], indices: dict[str, int]) -> list[Any]:
    fields = {name: value for name, value in piece.items() if name != "score"}
    key = json.dumps(fields, sort_keys=True)
    if key not in indices:
        indices[key] = len(pieces)
        pieces.append(fields)
    return [indices[key], piece["score"]]


def _shorten_evidence(record: Record, length: int = _LONG) -> None:
    for piece in record["pieces"]:
        piece["text"] = _shorten(piece["text"], length)


def _shorten_evidence_more(record: Record) -> None:
    _shorten_evidence(record, _SHORT)


def _drop_evidence_texts(record: Record) -> None:
    for piece in record["pieces"]:
        piece["text"] = ""


def _shorten_details(record: Record) -> None:
    for event in record["events"]:
        event["detail"] = _shorten(event["detail"])


def _drop_evidence(record: Record) -> None:
    record["pieces"] = []
    for event in record["events"]:
        event["detail"].pop("evidence", None)
        event.pop("shared", None)


def _drop_first_details(record: Record) -> None:
    for event in record["events"][:-_LAST]:
        event["detail"] = {}


def _drop_details(record: Record) -> None:
    for event in record["events"]:
        event["detail"] = {}


def _drop_events(record: Record) -> None:
    record["events"] = []


def _drop_citations(record: Record) -> None:
    record["citations"] = []


def _shorten_answer(record: Record) -> None:
    record["answer"], record["missing"] = _shorten(record["answer"]), _shorten(record["missing"])


def _shorten(value: Any, length: int = _LONG) -> Any:
    """Plain data with every long text in it cut."""
    if isinstance(value, str):
        return value if len(value) <= length else value[: length - 1] + "…"
    if isinstance(value, dict):
        return {key: _shorten(item, length) for key, item in value.items()}
    return [_shorten(item, length) for item in value] if isinstance(value, list) else value


_CUTS: tuple[tuple[str, str, _Shorten], ...] = (
    ("texts of evidence", f" after {_LONG} characters", _shorten_evidence),
    ("texts of events", f" after {_LONG} characters", _shorten_details),
    ("texts of evidence", f" after {_SHORT} characters", _shorten_evidence_more),
    ("texts of evidence", "", _drop_evidence_texts),
    ("evidence of events", "", _drop_evidence),
    ("details of events", f", except the last {_LAST}", _drop_first_details),
    ("details of events", "", _drop_details),
    ("events", "", _drop_events),
    ("citations", "", _drop_citations),
    ("the answer", f" after {_LONG} characters", _shorten_answer),
)
