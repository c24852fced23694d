"""Endpoints for traces, how questions were answered, and for sessions."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any

from fastapi import Query

from tomewise.errors import TomewiseError, UnknownName, suggest
from tomewise.outgoing.answer_models import Session, Trace
from tomewise.pictures import LIMIT, Picture, list_nodes
from tomewise.server.bodies import MOST_ID
from tomewise.server.choosing import choose_naming
from tomewise.server.named_documents import name_event
from tomewise.server.operations import Family
from tomewise.server.paging import PAGE, Limit, make_page
from tomewise.server.replies import (
    Deleted,
    EvidenceText,
    EvidenceTexts,
    LayerList,
    ListedTrace,
    SessionList,
    SessionRow,
    TraceList,
)
from tomewise.server.service import Wanted
from tomewise.store.records import BUILDS, SESSIONS
from tomewise.tome.drawings import read_texts
from tomewise.tome.session import list_notes
from tomewise.tome.tome import Tome

family = Family("/api/tomes/{tome}", "traces")
_MOST_HOPS = 20
_MOST_NUMBER = 2**62
_MOST_CHARACTERS = 2_000_000  # of all texts of evidence in one reply


@family.get("/traces")
async def list_traces(
    tome: str,
    service: Wanted,
    before: Annotated[int, Query(ge=1)] = _MOST_NUMBER,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
    q: Annotated[str, Query(max_length=MOST_ID, description="Words, all in the question or the answer.")] = "",
) -> TraceList:
    """The latest questions with their answers, newest first; `next` is the `before` of the following page.

    `drawable` says whether the system that answered has a working memory, which `.../traces/N/picture` draws.
    """
    opened = await service.library.open(tome)
    return await asyncio.to_thread(_list_traces, opened, min(before, _MOST_NUMBER), limit, q)


@family.get("/traces/{number}")
async def show_trace(tome: str, number: int, service: Wanted) -> Trace:
    """One trace, whole: what `tome log N --json` prints."""
    opened = await service.library.open(tome)
    trace = await asyncio.to_thread(opened.trace, check_number(number))
    shown = trace.describe(choose_naming(opened))
    return shown.model_copy(update={"events": [name_event(event, opened) for event in shown.events]})


@family.get("/traces/{number}/evidence")
async def list_evidence(tome: str, number: int, service: Wanted) -> EvidenceTexts:
    """The evidence of a trace by its id, as the tome has it now: a trace keeps short texts, and no place in a document.

    What was removed is left out, and so is what is more than 2,000,000 characters in all.
    """
    opened = await service.library.open(tome)
    return await asyncio.to_thread(_list_evidence, opened, check_number(number))


@family.delete("/traces/{number}", errors=("locked",))
async def delete_trace(tome: str, number: int, service: Wanted) -> Deleted:
    """Delete a trace. Its number is not used again."""
    opened = await service.library.open(tome)
    await asyncio.to_thread(opened.delete_trace, check_number(number))
    return Deleted(deleted=number)


@family.get("/sessions", reply=SessionList)
async def list_sessions(
    tome: str, service: Wanted, after: Annotated[str, Query(max_length=MOST_ID)] = "", limit: Limit = PAGE
) -> dict[str, Any]:
    """The sessions, sorted by name."""
    opened = await service.library.open(tome)
    records = await asyncio.to_thread(opened.sessions)
    rows = [SessionRow.of(record) for record in records]
    return make_page("sessions", rows, "name", after, limit)


@family.get("/sessions/{name:path}")
async def show_session(tome: str, name: str, service: Wanted) -> Session:
    """One session, whole: what `tome sessions NAME --json` prints."""
    opened = await service.library.open(tome)
    return await asyncio.to_thread(_show_session, name, opened)


@family.delete("/sessions/{name:path}", errors=("locked",))
async def delete_session(tome: str, name: str, service: Wanted) -> Deleted:
    """Delete a session. One that is answering a question is locked."""
    opened = await service.library.open(tome)
    await asyncio.to_thread(opened.delete_session, name)
    return Deleted(deleted=name)


def check_number(number: int) -> int:
    """The number of a trace, unchanged. Raises UnknownName for one that no trace can have, nor a store take."""
    if not 0 < number < _MOST_NUMBER:
        raise UnknownName(f"no trace {number} here: GET .../traces lists the traces")
    return number


def _list_traces(tome: Tome, before: int, limit: int, matching: str) -> TraceList:
    traces, naming = tome.traces(limit + 1, before=before, matching=matching), choose_naming(tome)
    rows = [trace.describe(naming) for trace in traces[:limit]]
    drawable = {system: _is_drawable(system, tome) for system in {row.system for row in rows}}
    shown = [ListedTrace.of(row, drawable=drawable[row.system]) for row in rows]
    return TraceList(traces=shown, next=rows[-1].id if len(traces) > limit else None)


def _list_evidence(tome: Tome, number: int) -> EvidenceTexts:
    found: dict[str, EvidenceText] = {}
    room, naming = _MOST_CHARACTERS, choose_naming(tome)
    for node, piece in read_texts(list_nodes(tome.trace(number).answer.events), tome.store):
        room -= len(piece.text)
        if room < 0:
            break
        found[node] = EvidenceText.of(piece, naming)
    return EvidenceTexts(evidence=found)


def _is_drawable(system: str, tome: Tome) -> bool:
    try:
        tome.check_drawing(system)
    except TomewiseError:  # it has no working memory, or is not installed any more
        return False
    return True


def _show_session(name: str, tome: Tome) -> Session:
    record = tome.session(name).read()
    if record is None:
        near = suggest(name, tome.store.note_names(SESSIONS))
        raise UnknownName(f"{tome.store.address} holds no session {name!a}: {near}GET .../sessions lists them")
    return record.describe(list_notes(record, tome.kit), choose_naming(tome))


@family.get("/pictures")
async def list_pictures(tome: str, service: Wanted) -> LayerList:
    """The layers that can be drawn, sorted by name: all that are built."""
    opened = await service.library.open(tome)
    return LayerList(layers=await asyncio.to_thread(lambda: sorted(opened.store.notes(BUILDS))))


@family.get("/pictures/{layer:path}", reply=Picture)
async def draw_layer(
    tome: str,
    layer: str,
    service: Wanted,
    around: Annotated[str, Query(max_length=MOST_ID)] = "",
    hops: Annotated[int, Query(ge=1, le=_MOST_HOPS)] = 1,
    limit: int = LIMIT,
    trace: int | None = None,
) -> dict[str, Any]:
    """A layer as a picture. `trace` highlights what an answer used; `around` and `hops` choose a part of a graph."""
    opened = await service.library.open(tome)
    number = None if trace is None else check_number(trace)
    draw = partial(opened.draw_layer, layer, around=around, hops=hops, limit=limit, trace=number)
    return (await asyncio.to_thread(draw)).as_json(choose_naming(opened))


@family.get("/traces/{number}/picture", reply=Picture)
async def draw_trace(tome: str, number: int, service: Wanted) -> dict[str, Any]:
    """The working memory behind a stored answer as a picture."""
    opened = await service.library.open(tome)
    return (await asyncio.to_thread(opened.draw_trace, check_number(number))).as_json(choose_naming(opened))
