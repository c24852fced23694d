"""The body of a streamed reply, event by event: odd chunks of Chat Completions are repaired (see `envelope`).

Events of other protocols pass unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx2

from tomewise.language.envelope import ChunkRepair

_LINE_ENDS = b"\r\n"


class EventStream(httpx2.AsyncByteStream):
    """Passes the events of a response on, as they come whole.

    `pieces` are the bytes of the response as the network brings them: an event, a line or a character may be cut
    between two of them. Raises `RemoteProtocolError` if the server hangs up before the reply ends.
    """

    def __init__(self, response: httpx2.Response, pieces: AsyncIterator[bytes], chunks: ChunkRepair) -> None:
        self._response = response
        self._pieces = pieces
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines = _Lines()
        event: list[bytes] = []
        async for piece in self._pieces:
            ready = bytearray()
            for line in lines.split(piece):
                if line:
                    event.append(line)
                elif event:
                    ready += self._finish(event)
                    event = []
            if ready:
                yield bytes(ready)
            await asyncio.sleep(0)  # a server may send without a pause: let other work and a cancellation through
        if rest := [*event, *filter(None, [lines.rest])]:
            yield self._finish(rest)
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


class _Lines:
    """Splits pieces of bytes into lines that end in CR, LF or both. `rest` is a last line without an end."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._after_return = False

    @property
    def rest(self) -> bytes:
        return b"".join(self._begun)

    def split(self, piece: bytes) -> Iterator[bytes]:
        """The lines that this piece ends."""
        if self._after_return:
            piece = piece.removeprefix(b"\n")  # the second half of a line end that was cut
        self._after_return = piece.endswith(b"\r")
        for line in piece.splitlines(keepends=True):
            self._begun.append(line.rstrip(_LINE_ENDS))
            if line.endswith((b"\r", b"\n")):
                yield self.rest
                self._begun = []
