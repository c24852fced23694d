"""Endpoints that list and read: tomes, documents and their texts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query

from tomewise.errors import UsageError
from tomewise.outgoing.passage_models import DocumentEntry, Slice
from tomewise.outgoing.report_models import Entity, RemoveReport
from tomewise.server.bodies import MOST_ID
from tomewise.server.choosing import choose_naming
from tomewise.server.library import OpenTome
from tomewise.server.named_documents import find_passage, find_record, find_span
from tomewise.server.operations import Family, Tool
from tomewise.server.paging import MOST_START, PAGE, Limit, Start, make_page
from tomewise.server.replies import (
    DocumentReply,
    DocumentsInFolders,
    LayerEntry,
    Overview,
    RemovalReply,
    SuggestedQuestion,
    SuggestedQuestions,
    TomeList,
    TomeReply,
)
from tomewise.server.service import Wanted
from tomewise.store.lookups import read_record, read_setting
from tomewise.store.records import BUILDS
from tomewise.tome.entities import describe_entity, find_entity
from tomewise.tome.foresight import foresee_removal
from tomewise.tome.holdings import describe_contents
from tomewise.tome.reports import describe_slice
from tomewise.tome.scopes import parse_condition
from tomewise.tome.tome import Tome
from tomewise.types import Scope

family = Family("/api/tomes", "tomes")
_MOST_CHARACTERS = 100_000  # of a text in one reply
_LONGEST_NAME = 5000
_MOST_NAMES = 500  # of folders and of fields in a list of documents
Passage = Annotated[str, Query(max_length=MOST_ID, description="The id of a passage, instead of a document.")]
DocumentName = Annotated[str, Query(max_length=_LONGEST_NAME, description="The name or id of a document.")]
Condition = Annotated[str, Query(min_length=1, max_length=500)]
Conditions = Annotated[list[Condition] | None, Query(max_length=100, description="Tests such as `year>=1911`.")]


@family.get("")
async def list_tomes(
    service: Wanted, after: Annotated[str, Query(max_length=MOST_ID)] = "", limit: Limit = PAGE
) -> TomeList:
    """The tomes that are served, sorted by name."""
    sizes = await asyncio.to_thread(service.library.measure)
    rest = [name for name in sizes if name > after]
    return TomeList(
        tomes=rest[:limit],
        sizes={name: sizes[name] for name in rest[:limit]},
        total=len(sizes),
        next=rest[limit - 1] if len(rest) > limit else None,
    )


@family.get("/{tome}")
async def show_tome(tome: str, service: Wanted) -> TomeReply:
    """What `tome show --json` prints, with the first documents, the systems that are ready, and the layers that lag."""
    found = await service.library.find(tome)
    return await asyncio.to_thread(_show, tome, found, is_owned=service.library.is_owned(tome))


@family.get("/{tome}/documents", tool=Tool(name="list_documents", title="List documents"), reply=DocumentsInFolders)
async def list_documents(
    tome: str,
    service: Wanted,
    q: Annotated[str, Query(max_length=MOST_ID, description="A part of the title or id.")] = "",
    folder: Annotated[str, Query(max_length=_LONGEST_NAME, description="This folder and those below it.")] = "",
    where: Conditions = None,
    after: Annotated[str, Query(max_length=MOST_ID)] = "",
    limit: Limit = PAGE,
) -> dict[str, Any]:
    """The documents of a tome, sorted by id: the id of a file is its path relative to the folder that was added.

    `folders` counts those that fit `q` and `where` by the folder that they are in, and names 500 folders at most.
    """
    opened = await service.library.open(tome)
    entries = await asyncio.to_thread(_find_entries, opened, q, where or ())
    folders = Counter(_find_folder(entry.id) for entry in entries)
    fields = sorted({name for entry in entries for name in entry.metadata})[:_MOST_NAMES]
    inside = f"{folder.rstrip('/')}/" if folder else ""
    page = make_page("documents", [entry for entry in entries if entry.id.startswith(inside)], "id", after, limit)
    return {**page, "folders": dict(sorted(folders.items())[:_MOST_NAMES]), "fields": fields}


@family.get("/{tome}/document")
async def show_document(
    tome: str, document: DocumentName, service: Wanted, start: Start = 0, limit: Limit = PAGE
) -> DocumentReply:
    """The record of a document, by its exact id, with its passages from position `start` on."""
    opened = await service.library.open(tome)
    return await asyncio.to_thread(_show_document, opened, document, start, limit)


@family.delete(
    "/{tome}/document", errors=("locked",), tool=Tool(name="remove_document", title="Remove a document", destroys=True)
)
async def remove_document(tome: str, document: DocumentName, service: Wanted) -> RemoveReport:
    """Forget a document, by its exact id, and everything that rests on it alone."""
    opened = await service.library.open(tome)
    record = await asyncio.to_thread(find_record, document, opened)
    naming = choose_naming(opened)  # as long as the document is there
    return RemoveReport.of(await opened.aremove(record), naming)


@family.get("/{tome}/removal")
async def show_removal(tome: str, document: DocumentName, service: Wanted) -> RemovalReply:
    """What would go with a document: its passages, the nodes of each layer, and the answers of sessions.

    `paid` counts the nodes that rest on replies of a model, by the names of the models; the extractive one is free.
    """
    opened = await service.library.open(tome)
    return await asyncio.to_thread(_foresee, opened, document)


@family.get("/{tome}/text", tool=Tool(name="read", title="Read a document"))
async def read_text(
    tome: str,
    service: Wanted,
    document: DocumentName = "",
    passage: Passage = "",
    neighbours: Annotated[int, Query(ge=0, le=20, description="So many passages around the passage too.")] = 0,
    start: Start = 0,
    end: Annotated[int | None, Query(ge=0, le=MOST_START)] = None,
) -> Slice:
    """A part of a document, or a passage with its neighbours: at most 100,000 characters, and the passages in it."""
    opened = await service.library.open(tome)
    return await asyncio.to_thread(_read_slice, opened, document, passage, neighbours, (start, end))


@family.get("/{tome}/overview", tool=Tool(name="overview", title="What a tome holds"))
async def show_overview(tome: str, service: Wanted) -> Overview:
    """What a tome holds: its size, its memory layers, the fields of its metadata."""
    return await asyncio.to_thread(describe_overview, tome, await service.library.open(tome))


@family.get("/{tome}/entity", errors=("not_built",), tool=Tool(name="entity", title="Facts about an entity"))
async def show_entity(
    tome: str,
    name: Annotated[str, Query(min_length=1, max_length=MOST_ID)],
    service: Wanted,
    start: Start = 0,
    limit: Limit = PAGE,
) -> Entity:
    """The facts about an entity, its neighbours and the passages that name it, of each `limit` from `start` on.

    Where no entity has this name, `similar` are the names that contain its words.
    """
    opened = await service.library.open(tome)
    found = await asyncio.to_thread(find_entity, name, opened.store)
    return describe_entity(found, choose_naming(opened), start=start, limit=limit)


@family.get("/{tome}/suggestions")
async def suggest_questions(
    tome: str, service: Wanted, limit: Annotated[int, Query(ge=1, le=20)] = 6
) -> SuggestedQuestions:
    """Questions to begin with, from the names, headings and titles of a tome. No model is asked."""
    opened = await service.library.open(tome)
    found = await asyncio.to_thread(opened.suggest_questions, limit)
    return SuggestedQuestions(questions=[SuggestedQuestion.of(each) for each in found])


def _find_entries(tome: Tome, part: str, where: Sequence[str]) -> list[DocumentEntry]:
    """The documents with this part in their title or id that pass all these tests."""
    scope = Scope(where=tuple(map(parse_condition, where))) if where else None
    naming, wanted = choose_naming(tome), part.casefold()
    entries = [DocumentEntry.of(record, naming) for record in tome.store.documents(scope)]
    return [entry for entry in entries if wanted in f"{entry.title}\n{entry.id}".casefold()]


def _find_folder(id: str) -> str:
    """The folder of a document; empty for an id without one."""
    return id.rpartition("/")[0]


def _show(name: str, known: OpenTome, *, is_owned: bool) -> TomeReply:
    contents = describe_contents(known.tome.store, known.tome.model_name, choose_naming(known.tome))
    page = make_page("documents", contents.documents, "id", "", PAGE)
    lag: Counter[str] = Counter()
    built = set(known.tome.store.notes(BUILDS))
    for backlog in known.readiness.find_backlogs().values():
        lag |= Counter({layer: count for layer, count in backlog.counts.items() if layer in built})
    readiness = known.readiness
    more = {
        "tome": name,
        "is_owned": is_owned,
        "ready": readiness.list_ready(),
        "lagging": readiness.list_lagging(),
        "lag": lag,
    }
    return TomeReply.of({**dict(contents), **page, **more})


def describe_overview(name: str, book: Tome) -> Overview:
    """The sizes, layers and metadata fields of a tome. Names no place where it is kept."""
    store, records = book.store, book.documents()
    return Overview(
        tome=name,
        embedder=read_setting(store, "embedder") or "",
        passage_tokens=int(read_setting(store, "passage_tokens") or 0),
        documents=len(records),
        passages=sum(record.passages for record in records),
        characters=sum(record.characters for record in records),
        fields=sorted({field for record in records for field in record.metadata}),
        layers=[LayerEntry.of(counts, layer=layer) for layer, counts in store.layers().items()],
    )


def _read_slice(tome: Tome, document: str, passage: str, neighbours: int, span: tuple[int, int | None]) -> Slice:
    if bool(document) == bool(passage):
        raise UsageError("name either a document or a passage to read")
    start, end = span
    if passage:
        key, found = find_passage(passage, tome.store)
        record, (start, end) = read_record(tome.store, found.document), find_span(key, neighbours, tome.store)
    else:
        record = find_record(document, tome)
    last = min(start + _MOST_CHARACTERS, record.characters if end is None else end)
    return describe_slice(record, start, last, tome.store, choose_naming(tome))


def _show_document(tome: Tome, id: str, start: int, limit: int) -> DocumentReply:
    record = find_record(id, tome)
    passages = [passage for passage in tome.store.passages(documents=[record.id]).values() if passage.position >= start]
    following = passages[limit].position if len(passages) > limit else None
    more = {"passages": passages[:limit], "total": record.passages, "next": following}
    return DocumentReply.of(record, choose_naming(tome), **more)


def _foresee(tome: Tome, id: str) -> RemovalReply:
    store, document = tome.store, find_record(id, tome).id
    gone = {passage.id for passage in store.passages(documents=[document]).values()}
    answers = sum(not gone.isdisjoint(turn.passages) for record in tome.sessions() for turn in record.turns)
    foresight = foresee_removal([document], store)
    return RemovalReply.of(foresight, choose_naming(tome), document=document, session_answers=answers)
