"""Endpoints that list and read: tomes, documents and their texts."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tomewise.errors import UnknownName, suggest
from tomewise.place import as_plain_data, describe_place
from tomewise.server.bodies import MOST_ID, NewTome
from tomewise.server.library import OpenTome
from tomewise.server.paging import MOST_START, PAGE, Limit, Start, make_page
from tomewise.server.service import Wanted
from tomewise.store.contract import Store
from tomewise.store.records import DocumentRecord
from tomewise.tome.foresight import foresee_removal
from tomewise.tome.reports import contents_json
from tomewise.tome.tome import Tome

router = APIRouter(prefix="/api/tomes", tags=["tomes"])
_MOST_CHARACTERS = 100_000  # of a text in one reply
Id = Annotated[str, Query(min_length=1, max_length=MOST_ID)]


@router.get("")
async def list_tomes(
    service: Wanted, after: Annotated[str, Query(max_length=MOST_ID)] = "", limit: Limit = PAGE
) -> dict[str, Any]:
    """The tomes that are served, sorted by name."""
    names = await asyncio.to_thread(service.library.names)
    rest = [name for name in names if name > after]
    return {"tomes": rest[:limit], "total": len(names), "next": rest[limit - 1] if len(rest) > limit else None}


@router.post("", status_code=201)
async def make_tome(body: NewTome, service: Wanted) -> dict[str, Any]:
    """Make an empty tome in the folder of the server."""
    await service.library.create(body.name, body.embedder, body.passage_tokens)
    return await show_tome(body.name, service)


@router.get("/{tome}")
async def show_tome(tome: str, service: Wanted) -> dict[str, Any]:
    """What `tome show --json` prints, with the first documents, the systems that are ready, and the layers that lag."""
    return await asyncio.to_thread(_show, tome, await service.library.find(tome))


@router.get("/{tome}/documents")
async def list_documents(
    tome: str, service: Wanted, after: Annotated[str, Query(max_length=MOST_ID)] = "", limit: Limit = PAGE
) -> dict[str, Any]:
    """The documents of a tome, sorted by id."""
    opened = await service.library.open(tome)
    records = await asyncio.to_thread(lambda: contents_json(opened.store)["documents"])
    return make_page("documents", [_clean(record) for record in records], "id", after, limit)


@router.get("/{tome}/document")
async def show_document(tome: str, id: Id, service: Wanted, start: Start = 0, limit: Limit = PAGE) -> dict[str, Any]:
    """The record of a document, by its exact id, with its passages from position `start` on."""
    store = (await service.library.open(tome)).store
    return await asyncio.to_thread(_show_document, store, id, start, limit)


@router.delete("/{tome}/document")
async def remove_document(tome: str, id: Id, service: Wanted) -> dict[str, Any]:
    """Forget a document, by its exact id, and everything that rests on it alone."""
    opened = await service.library.open(tome)
    record = await asyncio.to_thread(find_record, id, opened.store)
    return asdict(await opened.aremove(record))


@router.get("/{tome}/text")
async def read_text(
    tome: str,
    id: Id,
    service: Wanted,
    start: Start = 0,
    end: Annotated[int | None, Query(ge=0, le=MOST_START)] = None,
) -> dict[str, Any]:
    """A slice of the text of a document, at most 100,000 characters, and the places of its passages."""
    store = (await service.library.open(tome)).store
    return await asyncio.to_thread(_read_slice, store, id, start, end)


def _show(name: str, known: OpenTome) -> dict[str, Any]:
    contents = contents_json(known.tome.store)
    page = make_page("documents", [_clean(record) for record in contents.pop("documents")], "id", "", PAGE)
    lag: Counter[str] = Counter()
    built = set(known.tome.store.builds())
    for layers in known.readiness.find_lag().values():
        lag |= Counter({layer: count for layer, count in layers.items() if layer in built})
    return {**contents, "tome": name, **page, "ready": known.readiness.list_ready(), "lag": dict(lag)}


def _clean(record: dict[str, Any]) -> dict[str, Any]:
    """The record without the path of the file that it came from."""
    return {**record, "source": PurePath(record["source"]).name}


def _read_slice(store: Store, id: str, start: int, end: int | None) -> dict[str, Any]:
    record = find_record(id, store)
    last = min(start + _MOST_CHARACTERS, record.characters if end is None else end)
    piece = store.text_between(id, start, last)
    return {
        "id": id,
        "title": record.title,
        "start": start,
        "end": start + len(piece),
        "characters": record.characters,
        "text": piece,
        "passages": [
            {
                "position": passage.position,
                "start": passage.start,
                "end": passage.end,
                "place": describe_place(passage.place),
            }
            for passage in store.passages_between(id, start, start + len(piece)).values()
        ],
    }


def _show_document(store: Store, id: str, start: int, limit: int) -> dict[str, Any]:
    record = find_record(id, store)
    passages = [passage for passage in store.passages_of([id]).values() if passage.position >= start]
    return {
        **_clean(asdict(record)),
        "passages": [
            {
                "id": passage.id,
                "position": passage.position,
                "start": passage.start,
                "end": passage.end,
                "place": as_plain_data(passage.place),
                "text": passage.text,
            }
            for passage in passages[:limit]
        ],
        "total": record.passages,
        "next": passages[limit].position if len(passages) > limit else None,
    }


def find_record(id: str, store: Store) -> DocumentRecord:
    """The record of the document with this id. Raises UnknownName, which suggests the id of the nearest name."""
    try:
        return store.record(id)
    except UnknownName:
        raise UnknownName(f"no document {id!a} in {store.address}: {_suggest(id, store)}") from None


def _suggest(name: str, store: Store) -> str:
    """As `tome.inputs.suggest_document`, but here only an id finds a document: a title or file name does not."""
    records = store.documents()
    ids = {record.title: record.id for record in records if record.title}
    ids |= {record.id.rsplit("/", 1)[-1]: record.id for record in records}
    near = ids.get(name)
    hint = f"did you mean {near!r}? " if near else suggest(name, {record.id for record in records})
    return f"{hint}GET .../documents lists the ids"


@router.get("/{tome}/removal")
async def show_removal(
    tome: str, id: Annotated[str, Query(min_length=1, max_length=MOST_ID)], service: Wanted
) -> dict[str, Any]:
    """What would go with a document: its passages, the nodes of each layer, and the answers of sessions.

    `paid` counts the nodes that rest on replies of a model, by the names of the models; the extractive one is free.
    """
    opened = await service.library.open(tome)
    return await asyncio.to_thread(_foresee, opened, id)


def _foresee(tome: Tome, id: str) -> dict[str, Any]:
    store = tome.store
    find_record(id, store)
    gone = {passage.id for passage in store.passages_of([id]).values()}
    answers = sum(not gone.isdisjoint(turn.passages) for record in tome.sessions() for turn in record.turns)
    return {"document": id, **asdict(foresee_removal([id], store)), "session_answers": answers}
