"""Endpoints that list and read: tomes, documents and their texts."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tomewise.errors import UnknownName, suggest
from tomewise.outgoing.passage_models import DocumentEntry, Slice
from tomewise.outgoing.report_models import RemoveReport
from tomewise.server.bodies import MOST_ID, NewTome
from tomewise.server.choosing import choose_naming
from tomewise.server.library import OpenTome
from tomewise.server.paging import MOST_START, PAGE, Limit, Start, make_page
from tomewise.server.replies import DocumentList, DocumentReply, RemovalReply, TomeList, TomeReply
from tomewise.server.service import Wanted
from tomewise.store.records import DocumentRecord
from tomewise.tome.foresight import foresee_removal
from tomewise.tome.reports import describe_contents, describe_slice
from tomewise.tome.tome import Tome

router = APIRouter(prefix="/api/tomes", tags=["tomes"])
_MOST_CHARACTERS = 100_000  # of a text in one reply
Id = Annotated[str, Query(min_length=1, max_length=MOST_ID)]


@router.get("")
async def list_tomes(
    service: Wanted, after: Annotated[str, Query(max_length=MOST_ID)] = "", limit: Limit = PAGE
) -> TomeList:
    """The tomes that are served, sorted by name."""
    names = await asyncio.to_thread(service.library.names)
    rest = [name for name in names if name > after]
    return TomeList(tomes=rest[:limit], total=len(names), next=rest[limit - 1] if len(rest) > limit else None)


@router.post("", status_code=201)
async def make_tome(body: NewTome, service: Wanted) -> TomeReply:
    """Make an empty tome in the folder of the server."""
    await service.library.create(body.name, body.embedder, body.passage_tokens)
    return await show_tome(body.name, service)


@router.get("/{tome}")
async def show_tome(tome: str, service: Wanted) -> TomeReply:
    """What `tome show --json` prints, with the first documents, the systems that are ready, and the layers that lag."""
    return await asyncio.to_thread(_show, tome, await service.library.find(tome))


@router.get("/{tome}/documents", response_model=DocumentList)
async def list_documents(
    tome: str, service: Wanted, after: Annotated[str, Query(max_length=MOST_ID)] = "", limit: Limit = PAGE
) -> dict[str, Any]:
    """The documents of a tome, sorted by id: the id of a file is its path relative to the folder that was added."""
    opened = await service.library.open(tome)
    records = await asyncio.to_thread(opened.documents)
    naming = await asyncio.to_thread(choose_naming, opened)
    entries = [DocumentEntry.of(record, naming) for record in records]
    return make_page("documents", entries, "id", after, limit)


@router.get("/{tome}/document")
async def show_document(tome: str, id: Id, service: Wanted, start: Start = 0, limit: Limit = PAGE) -> DocumentReply:
    """The record of a document, by its exact id, with its passages from position `start` on."""
    opened = await service.library.open(tome)
    return await asyncio.to_thread(_show_document, opened, id, start, limit)


@router.delete("/{tome}/document")
async def remove_document(tome: str, id: Id, service: Wanted) -> RemoveReport:
    """Forget a document, by its exact id, and everything that rests on it alone."""
    opened = await service.library.open(tome)
    record = await asyncio.to_thread(find_record, id, opened)
    naming = choose_naming(opened)  # as long as the document is there
    return RemoveReport.of(await opened.aremove(record), naming)


@router.get("/{tome}/text")
async def read_text(
    tome: str,
    id: Id,
    service: Wanted,
    start: Start = 0,
    end: Annotated[int | None, Query(ge=0, le=MOST_START)] = None,
) -> Slice:
    """A slice of the text of a document, at most 100,000 characters, and the places of its passages."""
    opened = await service.library.open(tome)
    return await asyncio.to_thread(_read_slice, opened, id, start, end)


def _show(name: str, known: OpenTome) -> TomeReply:
    contents = describe_contents(known.tome.store, choose_naming(known.tome))
    page = make_page("documents", contents.documents, "id", "", PAGE)
    lag: Counter[str] = Counter()
    built = set(known.tome.store.builds())
    for layers in known.readiness.find_lag().values():
        lag |= Counter({layer: count for layer, count in layers.items() if layer in built})
    more = {"tome": name, "ready": known.readiness.list_ready(), "lag": lag}
    return TomeReply.of({**dict(contents), **page, **more})


def _read_slice(tome: Tome, id: str, start: int, end: int | None) -> Slice:
    record = find_record(id, tome)
    last = min(start + _MOST_CHARACTERS, record.characters if end is None else end)
    return describe_slice(record, start, last, tome.store, choose_naming(tome))


def _show_document(tome: Tome, id: str, start: int, limit: int) -> DocumentReply:
    record = find_record(id, tome)
    passages = [passage for passage in tome.store.passages_of([record.id]).values() if passage.position >= start]
    following = passages[limit].position if len(passages) > limit else None
    more = {"passages": passages[:limit], "total": record.passages, "next": following}
    return DocumentReply.of(record, choose_naming(tome), **more)


def find_record(id: str, tome: Tome) -> DocumentRecord:
    """The record of the document that goes out under this id, or that has it. Raises UnknownName with the nearest."""
    document = tome.document_names.read().find(id)
    if document is None:
        raise UnknownName(f"no document {id!a} in {tome.store.address}: {_suggest(id, tome)}")
    return tome.store.record(document)


def _suggest(name: str, tome: Tome) -> str:
    """As `tome.inputs.suggest_document`, but here only an id finds a document: a title or file name does not."""
    records, naming = tome.documents(), choose_naming(tome)
    ids = {record.title: naming(record.id) for record in records if record.title}
    ids |= {record.id.rsplit("/", 1)[-1]: naming(record.id) for record in records}
    near = ids.get(name)
    hint = f"did you mean {near!r}? " if near else suggest(name, {naming(record.id) for record in records})
    return f"{hint}GET .../documents lists the ids"


@router.get("/{tome}/removal")
async def show_removal(
    tome: str, id: Annotated[str, Query(min_length=1, max_length=MOST_ID)], service: Wanted
) -> RemovalReply:
    """What would go with a document: its passages, the nodes of each layer, and the answers of sessions.

    `paid` counts the nodes that rest on replies of a model, by the names of the models; the extractive one is free.
    """
    opened = await service.library.open(tome)
    return await asyncio.to_thread(_foresee, opened, id)


def _foresee(tome: Tome, id: str) -> RemovalReply:
    store, document = tome.store, find_record(id, tome).id
    gone = {passage.id for passage in store.passages_of([document]).values()}
    answers = sum(not gone.isdisjoint(turn.passages) for record in tome.sessions() for turn in record.turns)
    foresight = foresee_removal([document], store)
    return RemovalReply.of(foresight, choose_naming(tome), document=document, session_answers=answers)
