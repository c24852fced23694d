"""The HTTP client below the providers' clients: it adapts requests, bounds what a server may send, repairs completions.

What belongs to another protocol than Chat Completions passes unchanged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import httpx2

from tomewise.concurrency import take_turn
from tomewise.language.completion_repair import ChunkRepair, ErrorInReply, repair_completion

LONGEST_BODY = 8 * 2**20  # bytes of one response, after decompression
CONNECT_SECONDS = 10.0
_LONGEST_ADDRESS = 200  # characters of the address of a redirect that are shown
_LONG = 100_000  # bytes from which a body is repaired in a thread
_BODY_HEADERS = ("content-length", "content-encoding", "transfer-encoding")
_EVENTS = "text/event-stream"
STATUS = "tomewise-status"  # the header with the status of a reply that holds an error in place of a completion
Adapt: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]  # the body of a request


class ResponseTooLong(Exception):
    """A server sent more than `LONGEST_BODY`."""


@dataclass(eq=False)
class NotAReply(Exception):
    """What answered is not the server of a model, and another attempt will not change that.

    `is_elsewhere` is True if it named another address.
    """

    what: str
    is_elsewhere: bool = False


class BoundedClient(httpx2.AsyncClient):
    """Sends requests as `adapt` makes them, bounds each response to `LONGEST_BODY`, and repairs a completion in it.

    `model` replaces a missing name. A response is read whole, unless a stream of events was asked for and came. If a
    whole completion comes instead of the stream, it becomes a stream of one event: it is paid for. An error that comes
    with the status of success gets the status that it names.
    """

    def __init__(
        self, limit: int, model: str, adapt: Adapt, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        super().__init__(
            limits=httpx2.Limits(max_connections=limit, max_keepalive_connections=limit, keepalive_expiry=60.0),
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),  # `Client.exchange` bounds the whole request
            transport=transport,
        )
        self._model = model
        self._adapt = adapt

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """As the method of httpx2, with the bound and the repair. Raises `ResponseTooLong` and `NotAReply`."""
        if request.headers.get("content-type") == "application/json":
            request = self._change(request)
        response = await super().send(request, stream=True, **options)
        if stream and response.is_success and response.headers.get("content-type", "").startswith(_EVENTS):
            return _rewrite(response, stream=_RepairedEvents(response, self._model))
        try:
            body = b"".join([piece async for piece in _read_pieces(response)])
        finally:
            await response.aclose()
        _check_reply(response, body)
        await take_turn()  # to parse a reply takes milliseconds
        repaired = None
        if response.is_success:
            repair = partial(repair_completion, body, self._model, as_stream=stream)
            try:
                repaired = await asyncio.to_thread(repair) if len(body) > _LONG else repair()
            except ErrorInReply as error:
                response.headers[STATUS], response.status_code = str(response.status_code), error.status
                return _rewrite(response, "application/json", content=json.dumps({"error": error.words}).encode())
        if repaired is None:
            return _rewrite(response, content=body)
        return _rewrite(response, _EVENTS if stream else "application/json", content=repaired)

    def _change(self, request: httpx2.Request) -> httpx2.Request:
        """The request with the body that the server takes."""
        headers = httpx2.Headers(request.headers)
        headers.pop("content-length", None)
        body = json.dumps(self._adapt(json.loads(request.content))).encode()
        return httpx2.Request(request.method, request.url, headers=headers, content=body, extensions=request.extensions)


def _rewrite(response: httpx2.Response, content_type: str | None = None, **body: Any) -> httpx2.Response:
    """The response with another body. Its content type stays if none is given."""
    headers = httpx2.Headers(response.headers)
    for name in _BODY_HEADERS:
        headers.pop(name, None)
    if content_type:
        headers["content-type"] = content_type
    return httpx2.Response(
        response.status_code, headers=headers, request=response.request, extensions=response.extensions, **body
    )


async def _read_pieces(response: httpx2.Response) -> AsyncIterator[bytes]:
    length = 0
    async for piece in response.aiter_bytes():
        length += len(piece)
        if length > LONGEST_BODY:
            raise ResponseTooLong(f"more than {LONGEST_BODY:,} bytes")
        yield piece


def _check_reply(response: httpx2.Response, body: bytes) -> None:
    """Raise `NotAReply` for a redirect, which is not followed, for an empty reply and for a page of HTML."""
    if 300 <= response.status_code < 400:
        address = response.headers.get("location", "")
        raise NotAReply(f"a redirect to {address[:_LONGEST_ADDRESS]}" if address else "a redirect", is_elsewhere=True)
    if not response.is_success:
        return
    # Some servers send blank lines, for minutes, until the model replies.
    start = body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start:
        raise NotAReply(f"an empty reply (status {response.status_code})")
    if start.startswith(b"<"):
        raise NotAReply("a page of HTML")


class _RepairedEvents(httpx2.AsyncByteStream):
    """The events of a response, as they come whole; a chunk of a chat completion is repaired.

    Raises `RemoteProtocolError` if the server hangs up before the reply ends.
    """

    def __init__(self, response: httpx2.Response, model: str) -> None:
        self._response = response
        self._chunks = ChunkRepair(model)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        event: list[bytes] = []
        async for line in _read_lines(self._response):
            if line:
                event.append(line)
            elif event:
                yield self._finish(event)
                event = []
        if self._chunks.is_cut:
            raise httpx2.RemoteProtocolError("the server hung up before the reply ended")
        yield self._chunks.write_end()

    async def aclose(self) -> None:
        await self._response.aclose()

    def _finish(self, event: list[bytes]) -> bytes:
        """The bytes of one event."""
        data = b"\n".join(line[5:].removeprefix(b" ") for line in event if line.startswith(b"data:"))
        repaired = self._chunks.repair(data) if data else None
        return b"\n".join(event) + b"\n\n" if repaired is None else repaired


async def _read_lines(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The lines of a response, which end in CR, LF or both, and an empty one at the end.

    A line or its end may be cut between two pieces.
    """
    begun: list[bytes] = []
    after_return = False
    async for piece in _read_pieces(response):
        if after_return:
            piece = piece.removeprefix(b"\n")
        after_return = piece.endswith(b"\r")
        for line in piece.splitlines(keepends=True):
            begun.append(line.rstrip(b"\r\n"))
            if line.endswith((b"\r", b"\n")):
                yield b"".join(begun)
                begun = []
        await asyncio.sleep(0)  # a server may send without a pause: let other work and a cancellation through
    yield b"".join(begun)
    yield b""
