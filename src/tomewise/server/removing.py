"""Endpoint that says what goes with a document, so that a person can be asked before it is removed."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tomewise.memory.dependants import count_dependants
from tomewise.server.bodies import MOST_ID
from tomewise.server.exact_documents import find_record
from tomewise.server.service import Wanted
from tomewise.tome.tome import Tome

router = APIRouter(prefix="/api/tomes", tags=["tomes"])


@router.get("/{tome}/removal")
async def foresee_removal(
    tome: str, id: Annotated[str, Query(min_length=1, max_length=MOST_ID)], service: Wanted
) -> dict[str, Any]:
    """What would go with a document: its passages, the nodes of each layer, and the answers of sessions."""
    opened = await service.library.open(tome)
    return await asyncio.to_thread(_foresee, opened, id)


def _foresee(tome: Tome, id: str) -> dict[str, Any]:
    store = tome.store
    find_record(id, store)
    passages = store.passages_of([id])
    gone = {passage.id for passage in passages.values()}
    answers = sum(not gone.isdisjoint(turn.passages) for record in tome.sessions() for turn in record.turns)
    layers = count_dependants(list(passages), list(store.layers()), store)
    return {"document": id, "passages": len(passages), "layers": layers, "session_answers": answers}
