"""Endpoint that says what goes with a document, so that a person can be asked before it is removed."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tomewise.server.bodies import MOST_ID
from tomewise.server.exact_documents import find_record
from tomewise.server.service import Wanted
from tomewise.tome.foresight import foresee_removal
from tomewise.tome.tome import Tome

router = APIRouter(prefix="/api/tomes", tags=["tomes"])


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
