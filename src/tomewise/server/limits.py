"""Bounds on what a client sends, and on how many questions are answered at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tomewise.server.error_replies import HttpError, make_refusal

_ESCAPED = 12  # bytes of one character in JSON where it is written as two escapes of \uXXXX
_AROUND = 1_000_000  # bytes for the other fields

MOST_ADDED = 2_000_000  # characters of a text to add
MCP_BYTES = _ESCAPED * MOST_ADDED + _AROUND  # of a request
JSON_BYTES = 4_000_000  # of a body that is not an upload
IDLE_SECONDS = 30.0  # between two pieces of a body
_DRAIN_SECONDS = 2.0
_DOCUMENTS, _IMPORT = "/documents", "/import"  # where uploads go
JSON, FORM, LINES = "application/json", "multipart/form-data", "application/jsonl"


class BodyLimits:
    """Refuses bodies of another type than JSON, too large ones, and those that do not go on arriving.

    `multipart/form-data` is for documents alone: a page of another address can send a form without being asked.
    """

    def __init__(self, app: ASGIApp, max_upload: int) -> None:
        self._app = app
        self._max_upload = max_upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        path = scope["path"]
        limit = self._find_limit(path)
        left = limit
        whole = False

        async def receive_within() -> Message:
            nonlocal left, whole
            if whole:
                return await receive()  # waits for the client to leave
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    message = await receive()
            except TimeoutError:
                raise HttpError("slow", f"nothing arrived for {IDLE_SECONDS:g} seconds: send again") from None
            left -= len(message.get("body", b""))
            if left < 0:
                raise _refuse_size(path, limit)
            whole = not message.get("more_body", False)
            return message

        async def send_and_close(message: Message) -> None:
            if whole or not _has_body(headers):
                await send(message)
            elif message["type"] == "http.response.start":
                MutableHeaders(scope=message)["connection"] = "close"
                await send(message)
            else:
                await send({**message, "more_body": True})
                if not message.get("more_body", False):
                    await _drain(headers, receive)
                    await send({"type": "http.response.body", "body": b""})

        if fault := _find_fault(headers, path, limit):
            await make_refusal(fault, path)(scope, receive, send_and_close)
            return
        await self._app(scope, receive_within, send_and_close)

    def _find_limit(self, path: str) -> int:
        if path.endswith((_DOCUMENTS, _IMPORT)):
            return self._max_upload
        return MCP_BYTES if path.startswith("/mcp") else JSON_BYTES


def _find_fault(headers: Headers, path: str, limit: int) -> HttpError | None:
    kinds = (JSON, FORM) if path.endswith(_DOCUMENTS) else (LINES,) if path.endswith(_IMPORT) else (JSON,)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in kinds and (_has_body(headers) or kind):
        return HttpError("media_type", f"the body must be {' or '.join(kinds)}, not {kind[:60] or 'of no type'!a}")
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        return _refuse_size(path, limit)
    return None


async def _drain(headers: Headers, receive: Receive) -> None:
    """Read on for a while after a refusal: a client that still sends when we close would not see the reply."""
    if "expect" in headers:  # it waits for our word before it sends anything
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while (await receive()).get("more_body", False):
                pass


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") not in ("", "0") or "transfer-encoding" in headers


def _refuse_size(path: str, limit: int) -> HttpError:
    """The refusal of a body that is too large, with what helps at that path."""
    is_upload = path.endswith((_DOCUMENTS, _IMPORT))
    remedy = "send fewer or smaller files, or start the server with a larger --max-upload" if is_upload else "send less"
    return HttpError("too_large", f"the body has more than {limit:,} bytes: {remedy}")


class QuestionQueue:
    """Lets some questions run at once and some wait."""

    def __init__(self, running: int, waiting: int) -> None:
        self._most = running + waiting
        self._inside = 0
        self._running = asyncio.Semaphore(running)

    @contextmanager
    def admit(self) -> Iterator[asyncio.Semaphore]:
        """A place for one question, which runs inside the semaphore. Raises HttpError 429 where too many wait."""
        if self._inside >= self._most:
            raise HttpError(
                "busy", "too many questions wait already: ask again in a few seconds", headers={"retry-after": "5"}
            )
        self._inside += 1
        try:
            yield self._running
        finally:
            self._inside -= 1

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Wait for the turn of a question, which runs inside. Raises HttpError 429 where too many wait."""
        with self.admit() as running:
            async with running:
                yield
