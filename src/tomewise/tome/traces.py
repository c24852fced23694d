"""Traces: how a question was answered, as a tome keeps it; numbered, and bounded in size."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Any, TypeAlias

from tomewise.errors import StoreError, UnknownName
from tomewise.run import warn_unkept
from tomewise.store.contract import Store
from tomewise.tome.arguments import check_type, read_integer
from tomewise.tome.damaged import skip_damaged
from tomewise.types import Answer, DocumentId, Event, Noun, Question, read_plain, write_plain
from tomewise.types.plain import describe_invalid, map_texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(Noun):
    """How a question was answered."""

    number: int
    """Its number in the tome, from 1; a number is not used again."""
    asked: str
    """When, in UTC (ISO 8601)."""
    question: Question
    """The question as it was asked."""
    answer: Answer
    """The answer with its events and cost, without `evidence` and `nearest`: the events say what was found."""
    events: tuple[Event, ...] = ()
    """What happened on the way, in order; the answer has them too."""
    cut: tuple[str, ...] = ()
    """What was left out to keep the trace small."""


def make_record(question: Question, answer: Answer, most_bytes: int) -> Record:
    """What a tome keeps of an answer: a record of at most `most_bytes` bytes of JSON, plain data.

    Each piece of evidence is kept once. Where that is too large, the record is cut (see `cut_to_fit`); `cut` says
    how. The question is kept whole, however long it is, so that it can be asked again.
    """
    # A search finds the nearest passages again, and the scope is that of the question, unless its names narrowed it.
    kept = replace(answer, nearest=(), within=None if answer.within == question.within else answer.within)
    record: Record = {**write_plain(kept), "events": write_plain(kept.events)}
    record["quoted"] = answer.words if answer.only_quotes else ""  # for a search, beside `text`
    share_pieces(record)
    return record | {"cut": cut_to_fit(record, most_bytes), "question": write_plain(question)}


class Traces:
    """The traces of a tome: how its questions were answered. Each is kept in at most `most_bytes` bytes."""

    def __init__(self, store: Store, most_bytes: int) -> None:
        self._store = store
        self._most_bytes = most_bytes
        self._lock = Lock()  # without it SQLite makes competing writers sleep longer than writing a trace takes

    def __getitem__(self, number: int) -> Trace:
        """One trace by its number. Raises UnknownName."""
        number = _read_number(number)
        row = self._store.trace(number)
        if row is None:
            raise UnknownName(self._explain_unknown(number))
        return _read_trace(row)

    def __delitem__(self, number: int) -> None:
        """Delete a trace. Its number is not used again. Raises UnknownName, StoreError."""
        number = _read_number(number)
        with self._lock:
            if not self._store.delete_trace(number):
                raise UnknownName(self._explain_unknown(number))

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self._store.trace(number) is not None

    def __iter__(self) -> Iterator[Trace]:
        """All of them, newest first. See `latest`."""
        return iter(self.latest(None))

    def latest(self, limit: int | None = 20, *, before: int | None = None, matching: str = "") -> list[Trace]:
        """How the latest questions were answered, newest first; with `before`, those with a lower number.

        With `matching`, those whose question and answer together hold all its words. Without a limit, all of them. A
        damaged one is left out, with a warning.
        """
        limit = None if limit is None else read_integer("limit", limit, "a whole number")
        check_type("matching", matching, str, "a text")
        numbers = self._store.trace_numbers(limit, before=before, matching=matching)
        return skip_damaged(numbers, lambda number: _read_trace(row) if (row := self._store.trace(number)) else None)

    def save(self, question: Question, answer: Answer) -> int | None:
        """The number of the trace, None where it was not kept."""
        if self._store.read_only:
            return None
        record = make_record(question, answer, self._most_bytes)
        asked = datetime.now(UTC).isoformat()
        try:
            with self._lock:
                return self._store.save_trace(asked=asked, question=question.text, record=record)
        except StoreError as error:
            warn_unkept(error)
            return None

    def _explain_unknown(self, number: int) -> str:
        return f"{self._store.address} holds no trace {number}: `tome log` lists the traces that it holds"


def list_resting(store: Store, documents: Collection[DocumentId]) -> tuple[int, ...]:
    """The numbers of the traces whose answers quote one of these documents."""
    traces = Traces(store, 0) if documents else ()
    return tuple(each.number for each in traces if any(quote.document in documents for quote in each.answer.quotes))


def _read_number(number: object) -> int:
    return read_integer("number", number, "the number of a trace")


def _read_trace(row: Mapping[str, Any]) -> Trace:
    """The trace of a row. Raises StoreError for a damaged one."""
    try:
        answer = {**row, "events": list(restore_events(row)), "trace": row["number"]}
        about = {name: row[name] for name in ("number", "asked", "question", "cut")}
        trace = read_plain(Trace, {**about, "answer": answer})
        answer_within = replace(trace.answer, within=trace.answer.within or trace.question.within)
        return replace(trace, answer=answer_within, events=trace.answer.events)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        problem, number = describe_invalid(error), row["number"]
        raise StoreError(
            f"the row {number} of the table traces is damaged ({problem}): delete it with `tome log {number} --delete`"
        ) from None


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
        if isinstance(evidence, list) and all(
            isinstance(piece, dict) and {"id", "score", "text"} <= piece.keys() for piece in evidence
        ):
            event["shared"] = shared = []
            for piece in evidence:
                fields = {name: value for name, value in piece.items() if name != "score"}
                key = json.dumps(fields, sort_keys=True)
                if key not in indices:
                    indices[key] = len(record["pieces"])
                    record["pieces"].append(fields)
                shared.append([indices[key], piece["score"]])
            event["detail"]["evidence"] = []


def restore_events(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events with their evidence."""
    pieces = record["pieces"]
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
    ways: dict[str, str] = {}  # what, and how it was cut last
    cut: list[str] = []
    text = json.dumps(record)
    for what, how, shorten in _CUTS:
        if len(text) + len(json.dumps({"cut": cut})) <= most_bytes:
            break
        shorten(record)
        before, text = text, json.dumps(record)
        if text != before:
            ways[what] = how
            cut = [f"{name}{way}" for name, way in ways.items()]
    return cut


def _shorten_evidence(record: Record, length: int) -> None:
    for piece in record["pieces"]:
        piece["text"] = _shorten(piece["text"], length) if length else ""


def _shorten_details(record: Record) -> None:
    for event in record["events"]:
        event["detail"] = _shorten(event["detail"])


def _drop_evidence(record: Record) -> None:
    record["pieces"] = []
    for event in record["events"]:
        event["detail"].pop("evidence", None)
        event.pop("shared", None)


def _drop_details(record: Record, kept: int) -> None:
    """Empty the details of all events but so many, the last ones."""
    for event in record["events"][::-1][kept:]:
        event["detail"] = {}


def _drop_events(record: Record) -> None:
    record["events"] = []


def _drop_quotes(record: Record) -> None:
    for statement in record["statements"]:
        statement["quotes"] = []


def _shorten_answer(record: Record) -> None:
    record.update({name: _shorten(record[name]) for name in ("text", "quoted", "missing")})


def _shorten(value: Any, length: int = _LONG) -> Any:
    """Plain data with every long text in it cut."""
    return map_texts(value, lambda text, _: text if len(text) <= length else text[: length - 1] + "…")


_CUTS: tuple[tuple[str, str, _Shorten], ...] = (
    ("texts of evidence", f" after {_LONG} characters", partial(_shorten_evidence, length=_LONG)),
    ("texts of events", f" after {_LONG} characters", _shorten_details),
    ("texts of evidence", f" after {_SHORT} characters", partial(_shorten_evidence, length=_SHORT)),
    ("texts of evidence", "", partial(_shorten_evidence, length=0)),
    ("evidence of events", "", _drop_evidence),
    ("details of events", f", except the last {_LAST}", partial(_drop_details, kept=_LAST)),
    ("details of events", "", partial(_drop_details, kept=0)),
    ("events", "", _drop_events),
    ("quotes", "", _drop_quotes),
    ("the answer", f" after {_LONG} characters", _shorten_answer),
)
