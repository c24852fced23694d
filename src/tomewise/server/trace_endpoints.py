"""Endpoints for traces, how questions were answered, and for sessions and pictures.

They are plain functions, which FastAPI calls in threads: they read tomes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import AfterValidator

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.pictures import LIMIT, Picture, list_nodes
from tomewise.server.bodies import MOST_ID, PAGE, After, Limit
from tomewise.server.openai_api import link_quote
from tomewise.server.operations import Family
from tomewise.server.replies import (
    Copies,
    Deleted,
    EvidenceTexts,
    LayerList,
    SessionList,
    TraceList,
    make_page,
)
from tomewise.server.service import Opened
from tomewise.store.records import BUILDS, SESSIONS
from tomewise.tome.drawings import read_texts
from tomewise.tome.session_memory import list_notes
from tomewise.tome.session_record import SessionRecord
from tomewise.tome.traces import Trace
from tomewise.types import Answer, read_plain
from tomewise.types.plain import describe_invalid
from tomewise.types.proof import list_quotes, write_markdown

family = Family("/api/tomes/{tome}", "traces")
_MOST_HOPS = 20
_MOST_NUMBER = 2**62
_MOST_CHARACTERS = 2_000_000  # of all texts of evidence in one reply


def _check_number(number: int) -> int:
    """The number of a trace, unchanged. Raises UnknownName for one that no trace can have, nor a store take."""
    if not 0 < number < _MOST_NUMBER:
        raise UnknownName(f"no trace {number} here: GET .../traces lists the traces")
    return number


Number = Annotated[int, AfterValidator(_check_number)]


@family.get("/traces", reply=TraceList)
def list_traces(
    opened: Opened,
    before: Annotated[int, Query(ge=1)] = _MOST_NUMBER,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
    q: Annotated[str, Query(max_length=MOST_ID, description="Words, all in the question or the answer.")] = "",
) -> dict[str, Any]:
    """The latest questions with their answers, newest first; `next` is the `before` of the following page."""
    traces = opened.traces.latest(limit + 1, before=min(before, _MOST_NUMBER), matching=q)
    shown = traces[:limit]
    rows = [replace(trace, events=()) for trace in shown]
    reply: dict[str, Any] = opened.documents.names.hide({"traces": rows})
    return {**reply, "next": shown[-1].number if len(traces) > limit else None}


@family.get("/traces/{number}", reply=Trace)
def show_trace(number: Number, opened: Opened) -> Any:
    """One trace, whole: what `tome log N --json` prints."""
    return opened.documents.names.hide(opened.traces[number])


@family.get("/traces/{number}/evidence", reply=EvidenceTexts)
def list_evidence(number: Number, opened: Opened) -> Any:
    """The evidence of a trace by its id, as the tome has it now: a trace keeps short texts, and no place in a document.

    What was removed is left out, and so is what is more than 2,000,000 characters in all.
    """
    found: dict[str, Any] = {}
    events = opened.traces[number].events
    room = _MOST_CHARACTERS
    for piece in read_texts(list_nodes(events), opened.store):
        room -= len(piece.text)
        if room < 0:
            break
        found[piece.id] = piece
    return opened.documents.names.hide({"evidence": found})


@family.post("/copies")
def copy_answer(tome: str, body: dict[str, Any], request: Request, opened: Opened) -> Copies:
    """An answer, as it was replied, in the forms in which it is pasted elsewhere."""
    try:
        answer = read_plain(Answer, body)
    except ValueError as error:
        raise UsageError(f"the body is not an answer of `/ask` ({describe_invalid(error)})") from None
    find = opened.documents.names.read().find
    ids = {quote.document: id for quote in list_quotes(answer) if (id := find(quote.document)) is not None}
    known = {record.id: record.metadata for record in opened.store.documents(list(ids.values()))}
    metadata = {name: known[id] for name, id in ids.items() if id in known}
    link = partial(link_quote, tome=tome, trace=answer.trace, address=str(request.base_url).rstrip("/"))
    return Copies(text=str(answer), markdown=write_markdown(answer, metadata, link))


@family.delete("/traces/{number}", errors=("locked",))
def delete_trace(number: Number, opened: Opened) -> Deleted:
    """Delete a trace. Its number is not used again."""
    del opened.traces[number]
    return Deleted(deleted=number)


@family.get("/sessions", reply=SessionList)
def list_sessions(opened: Opened, after: After = "", limit: Limit = PAGE) -> dict[str, Any]:
    """The sessions, sorted by name."""
    rows = [{"name": each.name, "system": each.system, "count": each.count} for each in opened.sessions]
    return make_page("sessions", rows, "name", after, limit)


@family.get("/sessions/{name:path}", reply=SessionRecord)
def show_session(name: str, opened: Opened) -> Any:
    """One session, whole: what `tome sessions NAME --json` prints."""
    record = opened.sessions[name].read()
    if record is None:
        near = suggest(name, opened.store.note_names(SESSIONS))
        raise UnknownName(f"{opened.store.address} holds no session {name!a}: {near}GET .../sessions lists them")
    return opened.documents.names.hide(replace(record, notes=list_notes(record, opened.kit)))


@family.delete("/sessions/{name:path}", errors=("locked",))
def delete_session(name: str, opened: Opened) -> Deleted:
    """Delete a session. One that is answering a question is locked."""
    del opened.sessions[name]
    return Deleted(deleted=name)


@family.get("/pictures")
def list_pictures(opened: Opened) -> LayerList:
    """The layers that can be drawn, sorted by name: all that are built."""
    return LayerList(layers=sorted(opened.store.notes(BUILDS)))


@family.get("/pictures/{layer:path}", reply=Picture)
def draw_layer(
    layer: str,
    opened: Opened,
    around: Annotated[str, Query(max_length=MOST_ID)] = "",
    hops: Annotated[int, Query(ge=1, le=_MOST_HOPS)] = 1,
    limit: int = LIMIT,
    trace: Number | None = None,
) -> Any:
    """A layer as a picture. `trace` highlights what an answer used; `around` and `hops` choose a part of a graph."""
    picture = opened.memory.draw(layer, around=around, hops=hops, limit=limit, trace=trace)
    return opened.documents.names.hide(picture)
