"""Endpoints for tomes: they are listed and read with their documents, made, renamed, deleted, and taken elsewhere.

Those that read a tome are plain functions, which FastAPI calls in threads.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import ClientDisconnect

from tomewise.errors import UsageError
from tomewise.server.bodies import MOST_ID, MOST_START, PAGE, After, Limit, NewName, NewTome, Start
from tomewise.server.error_replies import HttpError
from tomewise.server.library import ServedTome
from tomewise.server.limits import LINES
from tomewise.server.named_tomes import find_part
from tomewise.server.operations import FILE, Family, Tool
from tomewise.server.replies import (
    Deleted,
    DocumentReply,
    DocumentsInFolders,
    Overview,
    RemovalReply,
    SuggestedQuestions,
    TomeList,
    TomeReply,
    make_page,
)
from tomewise.server.service import Opened, Wanted
from tomewise.server.streaming import ClientLeft
from tomewise.store.address import TomeAddress
from tomewise.store.lookups import read_setting
from tomewise.store.records import BUILDS
from tomewise.tome.entities import Entity, find_entity
from tomewise.tome.holdings import LayerCounts, read_contents
from tomewise.tome.open_store import export_all
from tomewise.tome.outline import Outline, make_outline
from tomewise.tome.reports import RemoveReport, Slice, read_slice
from tomewise.tome.scopes import parse_condition
from tomewise.tome.tome import Tome
from tomewise.types import Scope

family = Family("/api/tomes", "tomes")
_MOST_CHARACTERS = 100_000  # of a text in one reply
_LONGEST_NAME = 5000
_MOST_NAMES = 500  # of folders and of fields in a list of documents
_PIECE = 65_536  # characters that are sent at once
_SENT = {"requestBody": {"required": True, "content": {LINES: {"schema": FILE}}}}
Passage = Annotated[str, Query(max_length=MOST_ID, description="The id of a passage, instead of a document.")]
Part = Annotated[str, Query(max_length=_LONGEST_NAME, description='"page 3", "chapter NAME" or "lines 1-20".')]
AnyDocument = Annotated[str, Query(max_length=_LONGEST_NAME, description="The name or id of a document.")]
DocumentName = Annotated[AnyDocument, Query(min_length=1)]
Condition = Annotated[str, Query(min_length=1, max_length=500)]
Conditions = Annotated[list[Condition] | None, Query(max_length=100, description="Tests such as `year>=1911`.")]


@family.get("")
def list_tomes(service: Wanted, after: After = "", limit: Limit = PAGE) -> TomeList:
    """The tomes that are served, sorted by name."""
    sizes = service.library.measure()
    rest = [name for name in sizes if name > after]
    return TomeList(
        tomes=rest[:limit],
        sizes={name: sizes[name] for name in rest[:limit]},
        total=len(sizes),
        next=rest[limit - 1] if len(rest) > limit else None,
    )


@family.get("/{tome}", reply=TomeReply)
async def show_tome(tome: str, service: Wanted) -> dict[str, Any]:
    """What `tome show --json` prints, with the first documents, the systems that are ready, and the layers that lag."""
    found = await service.library.find(tome)
    return await asyncio.to_thread(_show, tome, found, is_owned=service.library.is_owned(tome))


@family.get("/{tome}/documents", tool=Tool(name="list_documents", title="List documents"), reply=DocumentsInFolders)
def list_documents(
    opened: Opened,
    q: Annotated[str, Query(max_length=MOST_ID, description="A part of the title or id.")] = "",
    folder: Annotated[str, Query(max_length=_LONGEST_NAME, description="This folder and those below it.")] = "",
    where: Conditions = None,
    after: After = "",
    limit: Limit = PAGE,
) -> dict[str, Any]:
    """The documents of a tome, sorted by id: the id of a file is its path relative to the folder that was added.

    `folders` counts those that fit `q` and `where` by the folder that they are in, and names 500 folders at most.
    """
    scope = Scope(where=tuple(map(parse_condition, where))) if where else None
    wanted = q.casefold()
    found: list[dict[str, Any]] = opened.documents.names.hide(opened.store.documents(scope))
    entries = [entry for entry in found if wanted in f"{entry['title']}\n{entry['id']}".casefold()]
    folders = Counter(entry["id"].rpartition("/")[0] for entry in entries)
    fields = sorted({name for entry in entries for name in entry["metadata"]})[:_MOST_NAMES]
    inside = f"{folder.rstrip('/')}/" if folder else ""
    page = make_page("documents", [entry for entry in entries if entry["id"].startswith(inside)], "id", after, limit)
    return {**page, "folders": dict(sorted(folders.items())[:_MOST_NAMES]), "fields": fields}


@family.get("/{tome}/document", reply=DocumentReply)
def show_document(opened: Opened, document: DocumentName, start: Start = 0, limit: Limit = PAGE) -> Any:
    """The record of a document, by its exact id, with its passages from position `start` on."""
    record = opened.documents.names.find(document)
    passages = [
        passage for passage in opened.store.passages(documents=[record.id]).values() if passage.position >= start
    ]
    following = passages[limit].position if len(passages) > limit else None
    page = {"document": record, "passages": passages[:limit], "total": record.passages, "next": following}
    return opened.documents.names.hide(page)


@family.delete(
    "/{tome}/document",
    reply=RemoveReport,
    errors=("locked",),
    tool=Tool(name="remove_document", title="Remove a document", destroys=True),
)
async def remove_document(opened: Opened, document: DocumentName) -> Any:
    """Forget a document, by its exact id, and everything that rests on it alone."""
    record = await asyncio.to_thread(opened.documents.names.find, document)
    names = await asyncio.to_thread(opened.documents.names.read)  # as long as the document is there
    return names.hide(await opened.aremove(record))


@family.get("/{tome}/removal", reply=RemovalReply)
def show_removal(opened: Opened, document: DocumentName) -> Any:
    """What would go with a document: its passages, the nodes of each layer, and the answers of sessions.

    `paid` counts the nodes that rest on replies of a model, by the names of the models; the extractive one is free.
    """
    record = opened.documents.names.find(document)
    gone = {passage.id for passage in opened.store.passages(documents=[record.id]).values()}
    answers = sum(not gone.isdisjoint(turn.passages) for each in opened.sessions for turn in each.turns)
    foresight = opened.documents.foresee_removal(record).to_dict()
    return opened.documents.names.hide({"document": record.id, **foresight, "session_answers": answers})


@family.get("/{tome}/text", reply=Slice, tool=Tool(name="read", title="Read a document"))
def read_text(
    opened: Opened,
    service: Wanted,
    document: AnyDocument = "",
    passage: Passage = "",
    neighbours: Annotated[int, Query(ge=0, le=20, description="So many passages around the passage too.")] = 0,
    start: Start = 0,
    end: Annotated[int | None, Query(ge=0, le=MOST_START)] = None,
    part: Part = "",
    scope: Annotated[str, Query(max_length=MOST_ID, description="The id of an open scope, which notes this.")] = "",
) -> Any:
    """A part of a document, or a passage with its neighbours: at most 100,000 characters, and the passages in it."""
    view = service.scopes.find(opened, scope) if scope else opened
    names = view.documents.names
    record, (start, end) = find_part(document, (start, end), passage, neighbours, view, names.find, part)
    last = min(start + _MOST_CHARACTERS, record.characters if end is None else end)
    read = read_slice(record, start, last, view.store)
    view.note_slice(read)
    return names.hide(read)


@family.get("/{tome}/outline", reply=Outline, tool=Tool(name="outline", title="Outline of a document"))
def show_outline(opened: Opened, document: DocumentName) -> Any:
    """How a document is laid out: its headings, pages, speakers and lengths."""
    record = opened.documents.names.find(document)
    return opened.documents.names.hide(make_outline(record, opened.store))


@family.get("/{tome}/overview", tool=Tool(name="overview", title="What a tome holds"))
def show_overview(tome: str, opened: Opened) -> Overview:
    """What a tome holds: its size, its memory layers, the fields of its metadata."""
    return describe_overview(tome, opened)


@family.get(
    "/{tome}/entity", reply=Entity, errors=("not_built",), tool=Tool(name="entity", title="Facts about an entity")
)
def show_entity(
    name: Annotated[str, Query(min_length=1, max_length=MOST_ID)],
    opened: Opened,
    start: Start = 0,
    limit: Limit = PAGE,
) -> Any:
    """The facts about an entity, its neighbours and the passages that name it, of each `limit` from `start` on.

    Where no entity has this name, `similar` are the names that contain its words.
    """
    return opened.documents.names.hide(find_entity(name, opened.store).page(start, limit))


@family.get("/{tome}/suggestions")
def suggest_questions(opened: Opened, limit: Annotated[int, Query(ge=1, le=20)] = 6) -> SuggestedQuestions:
    """Questions to begin with, from the names, headings and titles of a tome. No model is asked."""
    return SuggestedQuestions(questions=opened.memory.suggest_questions(limit))


@family.post(
    "",
    status=201,
    reply=TomeReply,
    errors=("unknown_name", "store", "missing_dependency", "disk_full"),
    changes=True,
)
async def make_tome(body: NewTome, service: Wanted) -> dict[str, Any]:
    """Make an empty tome in the folder of the server."""
    await service.library.create(body.name, body.embedder, body.passage_tokens)
    return await show_tome(body.name, service)


@family.post("/{tome}/rename", reply=TomeReply, errors=("locked",), changes=True)
async def rename_tome(tome: str, body: NewName, service: Wanted) -> dict[str, Any]:
    """Give a tome of the server's folder another name. Refused while a question or a job works on it."""
    await service.rename_tome(tome, body.name)
    return await show_tome(body.name, service)


@family.delete("/{tome}", errors=("locked",))
async def delete_tome(
    tome: str, confirm: Annotated[str, Query(max_length=100, description="The name again.")], service: Wanted
) -> Deleted:
    """Delete a tome of the server's folder with its jobs, for good. Refused while a question or a job works on it."""
    service.library.find_path(tome)
    if confirm != tome:
        raise UsageError(f"confirm is not the name of the tome: to delete it, send confirm={quote(tome)}")
    await service.delete_tome(tome)
    return Deleted(deleted=tome)


@family.get("/{tome}/export", sends=LINES, errors=("locked",))
async def export_tome(tome: str, service: Wanted) -> StreamingResponse:
    """All that a tome holds, as `tome export --all` prints it, for `tome import` and `.../import`.

    That includes the ids of documents as they are stored: for files of the server they are its paths.
    """
    await service.library.open(tome)

    async def send() -> AsyncIterator[bytes]:
        with service.library.hold(tome):
            async with asyncio.timeout(service.options.seconds):  # a client that does not read holds the tome
                async for piece in iterate_in_threadpool(_join_lines(service.library.find_path(tome))):
                    yield piece

    name = quote(f"{tome}.jsonl", safe="")
    return StreamingResponse(
        send(), media_type=LINES, headers={"content-disposition": f"attachment; filename*=UTF-8''{name}"}
    )


@family.post(
    "/{tome}/import",
    status=201,
    reply=TomeReply,
    more=_SENT,
    errors=("missing_dependency", "disk_full"),
    changes=True,
)
async def import_tome(tome: str, request: Request, service: Wanted) -> dict[str, Any]:
    """Make a new tome of what an export gave. The lines may come from anyone: they are checked as by `tome import`."""
    try:
        await service.library.fill(tome, "the export", request.stream(), service.options.seconds)
    except ClientDisconnect:
        raise ClientLeft from None
    except TimeoutError:
        seconds = service.options.seconds
        raise HttpError("slow", f"the export did not arrive within {seconds:g} seconds: send it again") from None
    return await show_tome(tome, service)


def _show(name: str, known: ServedTome, *, is_owned: bool) -> dict[str, Any]:
    tome = known.tome
    contents = tome.documents.names.hide(read_contents(tome.store, tome.model_name))
    page = make_page("documents", contents["documents"], "id", "", PAGE)
    lag: Counter[str] = Counter()
    built = set(tome.store.notes(BUILDS))
    for backlog in known.find_backlogs().values():
        lag |= Counter({layer: count for layer, count in backlog.counts.items() if layer in built})
    return {
        "contents": {**contents, "tome": name, "documents": page["documents"]},
        "total": page["total"],
        "next": page["next"],
        "is_owned": is_owned,
        "ready": known.list_ready(),
        "lagging": known.list_lagging(),
        "lag": lag,
    }


def describe_overview(name: str, tome: Tome) -> Overview:
    """The sizes, layers and metadata fields of a tome. Names no place where it is kept."""
    store, records = tome.store, tome.documents()
    return Overview(
        tome=name,
        embedder=read_setting(store, "embedder") or "",
        passage_tokens=int(read_setting(store, "passage_tokens") or 0),
        documents=len(records),
        passages=store.count_passages(),
        characters=sum(record.characters for record in records),
        fields=sorted({field for record in records for field in record.metadata}),
        layers={layer: LayerCounts(**counts) for layer, counts in store.layers().items()},
    )


def _join_lines(path: TomeAddress) -> Iterator[bytes]:
    piece = ""
    for line in export_all(path):
        piece += f"{line}\n"
        if len(piece) >= _PIECE:
            yield piece.encode()
            piece = ""
    yield piece.encode()
