"""Endpoints for traces: how questions were answered. Sessions and pictures have their places here, still empty."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, NoReturn

from fastapi import APIRouter, Query

from tomewise.server.errors import HttpError
from tomewise.server.service import Wanted

router = APIRouter(prefix="/api/tomes/{tome}", tags=["traces"])
_MOST_NUMBER = 2**62


@router.get("/traces")
async def list_traces(tome: str, service: Wanted, limit: Annotated[int, Query(ge=1, le=200)] = 20) -> dict[str, Any]:
    """The latest questions with their answers, newest first."""
    opened = await service.library.open(tome)
    traces = await asyncio.to_thread(opened.traces, limit)
    rows = [trace.as_json() for trace in traces]
    return {"traces": [{name: value for name, value in row.items() if name != "events"} for row in rows]}


@router.get("/traces/{number}")
async def show_trace(tome: str, number: int, service: Wanted) -> dict[str, Any]:
    """One trace, whole: what `tome log N --json` prints."""
    opened = await service.library.open(tome)
    return (await asyncio.to_thread(opened.trace, _bound(number))).as_json()


@router.delete("/traces/{number}")
async def delete_trace(tome: str, number: int, service: Wanted) -> dict[str, Any]:
    """Delete a trace. Its number is not used again."""
    opened = await service.library.open(tome)
    await asyncio.to_thread(opened.delete_trace, _bound(number))
    return {"deleted": number}


@router.get("/sessions", include_in_schema=False, response_model=None)
@router.get("/sessions/{rest:path}", include_in_schema=False, response_model=None)
async def list_sessions(tome: str, rest: str = "") -> NoReturn:
    """The place of sessions."""
    raise HttpError(404, "unknown_name", "this version of the server serves no sessions: ask without one")


@router.get("/pictures", include_in_schema=False, response_model=None)
@router.get("/pictures/{rest:path}", include_in_schema=False, response_model=None)
async def list_pictures(tome: str, rest: str = "") -> NoReturn:
    """The place of pictures."""
    raise HttpError(404, "unknown_name", "this version of the server draws no pictures: GET the tome lists its layers")


def _bound(number: int) -> int:
    return number if 0 < number < _MOST_NUMBER else 0  # a larger number does not fit into a store, and names no trace
