"""Endpoints for pictures: what a layer or the working memory behind an answer looks like, as data."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tomewise.pictures import LIMIT
from tomewise.server.bodies import MOST_ID
from tomewise.server.service import Wanted
from tomewise.server.traces import check_number

router = APIRouter(prefix="/api/tomes/{tome}", tags=["pictures"])
_MOST_HOPS = 20


@router.get("/pictures")
async def list_pictures(tome: str, service: Wanted) -> dict[str, Any]:
    """The layers that can be drawn, sorted by name: all that are built."""
    opened = await service.library.open(tome)
    return {"layers": await asyncio.to_thread(lambda: sorted(opened.store.builds()))}


@router.get("/pictures/{layer:path}")
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
    return (await asyncio.to_thread(draw)).as_json()


@router.get("/traces/{number}/picture")
async def draw_trace(tome: str, number: int, service: Wanted) -> dict[str, Any]:
    """The working memory behind a stored answer as a picture."""
    opened = await service.library.open(tome)
    return (await asyncio.to_thread(opened.draw_trace, check_number(number))).as_json()
