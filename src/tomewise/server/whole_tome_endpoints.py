"""Endpoints for whole tomes: make, rename and delete one, and take it elsewhere and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import ClientDisconnect

from tomewise.errors import UsageError
from tomewise.server.bodies import NewName, NewTome
from tomewise.server.error_replies import HttpError
from tomewise.server.limits import LINES
from tomewise.server.operations import FILE, Family
from tomewise.server.replies import Deleted, TomeReply
from tomewise.server.service import Wanted
from tomewise.server.streaming import ClientLeft
from tomewise.server.tome_endpoints import show_tome
from tomewise.store.address import Place
from tomewise.tome.open_store import export_all

family = Family("/api/tomes", "tomes")
_PIECE = 65_536  # characters that are sent at once
_SENT = {"requestBody": {"required": True, "content": {LINES: {"schema": FILE}}}}


@family.post("", status=201, errors=("unknown_name", "store", "missing_dependency", "disk_full"), changes=True)
async def make_tome(body: NewTome, service: Wanted) -> TomeReply:
    """Make an empty tome in the folder of the server."""
    await service.library.create(body.name, body.embedder, body.passage_tokens)
    return await show_tome(body.name, service)


@family.post("/{tome}/rename", errors=("locked",), changes=True)
async def rename_tome(tome: str, body: NewName, service: Wanted) -> TomeReply:
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


@family.post("/{tome}/import", status=201, more=_SENT, errors=("missing_dependency", "disk_full"), changes=True)
async def import_tome(tome: str, request: Request, service: Wanted) -> TomeReply:
    """Make a new tome of what an export gave. The lines may come from anyone: they are checked as by `tome import`."""
    try:
        await service.library.fill(tome, "the export", request.stream(), service.options.seconds)
    except ClientDisconnect:
        raise ClientLeft from None
    except TimeoutError:
        seconds = service.options.seconds
        raise HttpError("slow", f"the export did not arrive within {seconds:g} seconds: send it again") from None
    return await show_tome(tome, service)


def _join_lines(path: Place) -> Iterator[bytes]:
    lines: list[str] = []
    size = 0
    for line in export_all(path):
        lines.append(line)
        size += len(line)
        if size >= _PIECE:
            yield "\n".join([*lines, ""]).encode()
            lines, size = [], 0
    yield "\n".join([*lines, ""]).encode() if lines else b""
