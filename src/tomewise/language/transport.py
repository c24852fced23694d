"""The HTTP client below the providers' clients: it bounds what a server may send, and repairs odd envelopes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import httpx2

from tomewise.concurrency import take_turn

LONGEST_BODY = 8 * 2**20  # bytes of one response, after decompression
CONNECT_SECONDS = 10.0
_LONG = 100_000  # bytes from which a body is repaired in a thread
_BODY_HEADERS = ("content-length", "content-encoding", "transfer-encoding", "content-type")

Repair: TypeAlias = Callable[[bytes], bytes | None]


class ResponseTooLong(Exception):
    """A server sent more than `LONGEST_BODY`."""


class BoundedClient(httpx2.AsyncClient):
    """Reads each response whole, up to `LONGEST_BODY`, and passes the body of a successful one to `repair`.

    `repair` returns the JSON to use instead, or None to leave the response as it is.
    """

    def __init__(
        self, limit: int, repair: Repair | None = None, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        super().__init__(
            limits=httpx2.Limits(max_connections=limit, max_keepalive_connections=limit, keepalive_expiry=60.0),
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),  # `Connection.send` bounds the whole request
            transport=transport,
        )
        self._repair = repair

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """As the method of httpx2, with the bound and the repair. Raises `ResponseTooLong`."""
        response = await super().send(request, stream=True, **options)
        try:
            body = await _read(response)
        finally:
            await response.aclose()
        await take_turn()  # to parse a reply takes milliseconds
        repaired = await self._repair_body(body) if response.is_success else None
        headers = httpx2.Headers(response.headers)
        for name in _BODY_HEADERS if repaired else _BODY_HEADERS[:-1]:  # without a repair the content type stays
            headers.pop(name, None)
        if repaired is not None:
            headers["content-type"] = "application/json"
        return httpx2.Response(
            response.status_code,
            headers=headers,
            content=body if repaired is None else repaired,
            request=request,
            extensions=response.extensions,
        )

    async def _repair_body(self, body: bytes) -> bytes | None:
        if self._repair is None:
            return None
        return await asyncio.to_thread(self._repair, body) if len(body) > _LONG else self._repair(body)


async def _read(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > LONGEST_BODY:
            raise ResponseTooLong(f"more than {LONGEST_BODY:,} bytes")
    return bytes(body)
