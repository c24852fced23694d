"""Traces: how a question was answered, as a tome keeps it; numbered, and bounded in size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from tomewise.errors import UnknownName, UsageError
from tomewise.place import read_plain_data
from tomewise.tome.reports import as_json, event_json
from tomewise.tome.scopes import read_scope, scope_json
from tomewise.tome.trace_cuts import cut_to_fit, restore_events, share_pieces
from tomewise.types import Answer, Citation, Event, FromSession, Question, Spent, Usage

if TYPE_CHECKING:
    from tomewise.store.contract import Store

TRACE_BYTES = 50_000
LEAST_TRACE_BYTES = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """How a question was answered: `asked` at that time (ISO 8601, UTC), with the events and the usage of its answer.

    The answer has no `evidence`; its events say what was found. `cut` says what was left out to keep the trace small.
    """

    number: int
    asked: str
    question: Question
    answer: Answer
    cut: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The object that `tome log N --json` prints."""
        question = asdict(self.question) | {"within": scope_json(self.question.within)}
        events = [event_json(event) for event in self.answer.events]
        asked = {"number": self.number, "asked": self.asked, "question": question.pop("text"), **question}
        return {**asked, **as_json(self.answer), "events": events, "cut": list(self.cut)}


def check_trace_bytes(size: int) -> int:
    """The size unchanged. Raises UsageError for one that no trace fits into."""
    if size < LEAST_TRACE_BYTES:
        raise UsageError(f"trace_bytes is {size}: give {LEAST_TRACE_BYTES:,} or more, or no trace fits")
    return size


def make_record(question: Question, answer: Answer, most_bytes: int) -> dict[str, Any]:
    """What a tome keeps of an answer: a record of at most `most_bytes` bytes of JSON, plain data.

    Each piece of evidence is kept once. Where that is too large, the record is cut (see `tome.trace_cuts`); `cut` says
    how. The question is kept whole, however long it is, so that it can be asked again.
    """
    asked = {"options": question.options, "instructions": question.instructions, "force": question.force}
    within = scope_json(question.within)
    record: dict[str, Any] = {**as_json(answer), "events": [event_json(event) for event in answer.events]}
    share_pieces(record)
    cut = cut_to_fit(record, most_bytes)  # before the record is copied: it replaces lists of it
    return {**record, "cut": cut, **asked, "within": within}


def find_traces(store: Store, limit: int, before: int | None = None) -> list[Trace]:
    """The latest traces, newest first; with `before`, those with a lower number."""
    return [_read_trace(row) for row in store.traces(limit, before=before)]


def find_trace(number: int, store: Store) -> Trace:
    """The trace with this number. Raises UnknownName."""
    row = store.trace(number)
    if row is None:
        raise UnknownName(_explain_unknown(number, store))
    return _read_trace(row)


def delete_trace(number: int, store: Store) -> None:
    """Delete the trace with this number; no later trace gets that number. Raises UnknownName."""
    if not store.delete_trace(number):
        raise UnknownName(_explain_unknown(number, store))


def _explain_unknown(number: int, store: Store) -> str:
    return f"{store.address} holds no trace {number}: `tome log` lists the traces that it holds"


def _read_trace(row: Mapping[str, Any]) -> Trace:
    question = Question(
        text=row["question"],
        options=tuple(row.get("options", ())),
        instructions=row.get("instructions", ""),
        force=row.get("force", False),
        within=read_scope(row.get("within")),
    )
    known = {field.name for field in fields(Answer)} - {"evidence", "text", "citations", "events", "usage", "session"}
    answer = Answer(
        text=row["answer"],
        citations=tuple(_read_citation(citation) for citation in row["citations"]),
        events=tuple(Event(**event) for event in restore_events(row)),
        usage=_read_usage(row["usage"]),
        session=_read_origin(row.get("session")),
        **{name: row[name] for name in known if name in row},
    )
    cut = tuple(row.get("cut", ()))
    return Trace(number=row["number"], asked=row["asked"], question=question, answer=answer, cut=cut)


def _read_citation(fields: Mapping[str, Any]) -> Citation:
    return Citation(**{**fields, "place": read_plain_data(fields.get("place", {}))})


def _read_origin(fields: Mapping[str, Any] | None) -> FromSession | None:
    if fields is None:
        return None
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return FromSession(**{**fields, **lists})


def _read_usage(usage: Mapping[str, Any]) -> Usage:
    known = [field.name for field in fields(Spent) if field.name != "seconds"]

    def read_spent(values: Mapping[str, Any]) -> Spent:
        spent = {name: values[name] for name in known if name in values}
        return Spent(**spent, seconds=values["model_seconds"])

    return Usage(
        total=read_spent(usage),
        roles={role: read_spent(spent) for role, spent in usage["roles"].items()},
        model_seconds=usage["model_seconds"],
        own_seconds=usage["own_seconds"],
        depth=usage["depth"],
    )
