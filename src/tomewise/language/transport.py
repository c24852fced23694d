"""The HTTP client below the providers' own: a bound on what a server sends, and odd envelopes repaired."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import httpx2

LONGEST_BODY = 8 * 2**20  # bytes of one response, unpacked
CONNECT_SECONDS = 10.0
_LONG = 100_000  # bytes from which a body is repaired in a thread
_OF_THE_FORMER_BODY = ("content-length", "content-encoding", "transfer-encoding", "content-type")

Repair: TypeAlias = Callable[[bytes], bytes | None]


class ResponseTooLong(Exception):
    """A server sent more than `LONGEST_BODY`."""


class BoundedClient(httpx2.AsyncClient):
    """Reads each response whole, up to `LONGEST_BODY`, and has `repair` look at the body of a successful one.

    `repair` gives the JSON to go on with, or None to leave the response as it is.
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
        """As the client's own, but for the bound and the repair. Raises `ResponseTooLong`."""
        response = await super().send(request, stream=True, **options)
        try:
            body = await _read(response)
        finally:
            await response.aclose()
        repaired = await self._repaired(body) if response.is_success else None
        headers = httpx2.Headers(response.headers)
        for name in _OF_THE_FORMER_BODY[: None if repaired else -1]:
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

    async def _repaired(self, body: bytes) -> bytes | None:
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
