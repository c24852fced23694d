"""Traces: how a question was answered, as a tome keeps it; numbered, and bounded in size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from tomewise.errors import StoreError, UnknownName, UsageError
from tomewise.events import restore_event
from tomewise.tome.damaged import skip_damaged
from tomewise.tome.reports import as_json, event_json
from tomewise.tome.scopes import scope_json
from tomewise.tome.trace_cuts import cut_to_fit, restore_events, share_pieces
from tomewise.types import Answer, Question

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
    """The latest traces, newest first; with `before`, those with a lower number. A damaged one is left out, with a
    warning."""
    numbers = store.trace_numbers(limit, before=before)
    return skip_damaged(numbers, lambda number: _read_trace(row) if (row := store.trace(number)) else None)


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
    """The trace of a row. Raises StoreError for a damaged one."""
    question = {name: row[name] for name in ("options", "instructions", "force", "within") if name in row}
    try:
        made = {"text": row["answer"], "events": list(restore_events(row)), "usage": _read_usage(row["usage"])}
        known = {field.name for field in fields(Answer)} - {"evidence", *made}
        trace: Trace = _make_checker().validate_python(
            {
                "number": row["number"],
                "asked": row["asked"],
                "question": {**question, "text": row["question"]},
                "answer": {**{name: row[name] for name in known if name in row}, "citations": row["citations"], **made},
                "cut": row.get("cut", ()),
            }
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        problem, number = str(error).splitlines()[0], row["number"]
        raise StoreError(
            f"the row {number} of the table traces is damaged ({problem}): delete it with `tome log {number} --delete`"
        ) from None
    return replace(trace, answer=replace(trace.answer, events=tuple(map(restore_event, trace.answer.events))))


@cache
def _make_checker() -> TypeAdapter[Trace]:
    return TypeAdapter(Trace)  # only now, since it takes a while to make


def _read_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    def read_spent(values: Mapping[str, Any]) -> dict[str, Any]:
        return {**values, "seconds": values["model_seconds"]}

    return {**usage, "total": read_spent(usage), "roles": {role: read_spent(s) for role, s in usage["roles"].items()}}
