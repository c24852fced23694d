"""A server on 127.0.0.1 that speaks the Chat Completions protocol over real sockets. A test sets its behaviour.

    with OpenAIServer(lambda request: reply_with('{"cue": "..."}')) as server:
        ChatModel("openai:test", base_url=server.url)

It runs in a thread of its own, so it serves any event loop, thread or process. `open_chat` opens a model with it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from tests.patience import SOON

from tomewise.language import roles
from tomewise.language.chat import ChatModel
from tomewise.language.retry import Backoff
from tomewise.types import LanguageModel

CUE = "Mara hid it."
GIVEN = roles.FuseIn(question="Who hid the letter?", cues=["Mara held it last."])
FAST = Backoff(retries=2, first=0.01, longest=0.05)


@dataclass(frozen=True)
class Behaviour:
    """What to do with one request: wait `delay` seconds, then send `body`. With `cut`, send half of it and hang up.

    The delay ends early when `until` is set. A client that hangs up meanwhile is noted, and gets nothing.

    With `pieces` these are sent in place of the body, as a stream of events, each after `pause` seconds. With `cut`,
    hang up after them without the end of the stream; with `hold`, never end.
    """

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    until: threading.Event | None = None
    cut: bool = False
    pieces: Sequence[bytes] | None = None
    pause: float = 0.0
    hold: bool = False


def reply_with(content: str | None, *, finish: str = "stop", delay: float = 0.0, **message: Any) -> Behaviour:
    """A reply of the model, 100 tokens in and 20 out; `message` adds fields such as `refusal` or `tool_calls`."""
    body = {
        "id": "reply-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "test-model",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }
    return Behaviour(body, delay=delay)


GOOD = reply_with(json.dumps({"cue": CUE}))


def stream_with(
    *texts: str, finish: str | None = "stop", usage: bool = True, done: bool = True, size: int = 0, **options: Any
) -> Behaviour:
    """A streamed reply of the model in these texts, 100 tokens in and 20 out. With `size`, cut into so many bytes."""
    chunks = [make_chunk({"content": text}) for text in texts]
    if finish:
        chunks.append(make_chunk({}, finish))
    if usage:
        counts = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        chunks.append({**make_chunk({}), "choices": [], "usage": counts})
    events = [write_event(chunk) for chunk in chunks] + [b"data: [DONE]\n\n"] * done
    whole = b"".join(events)
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)] if size else events
    return Behaviour(None, pieces=pieces, **options)


def make_chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One chunk of a streamed reply."""
    return {
        "id": "reply-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "test-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def write_event(data: Any) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def fail_with(status: int, message: str = "as the test wants", **headers: str) -> Behaviour:
    """An error as the protocol words it. Underscores in the names of headers stand for hyphens."""
    body = {"error": {"message": message, "type": "error", "code": None}}
    return Behaviour(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


def in_turn(*behaviours: Behaviour) -> Callable[[dict[str, Any]], Behaviour]:
    """A handler with one behaviour for each request, in order; the last one stays for all later requests."""
    left = list(behaviours)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


@asynccontextmanager
async def open_chat(
    *behaviours: Behaviour, name: str = "openai:test", **options: Any
) -> AsyncIterator[tuple[ChatModel, OpenAIServer]]:
    """A model, and the server that it asks, which has one behaviour for each request or replies well to all."""
    with OpenAIServer(in_turn(*behaviours or (GOOD,))) as server:
        model = ChatModel(name, base_url=server.url, **{"backoff": FAST, **options})
        try:
            yield model, server
        finally:
            await model.close()


async def fuse(model: LanguageModel) -> str:
    """Ask the model for a cue."""
    return (await model.ask(roles.FUSE, GIVEN)).cue


async def cancel_when_asked(asking: asyncio.Task[Any], server: OpenAIServer) -> None:
    """Cancel what asks the model once its request has arrived: then it hangs up, and sends no further request."""
    assert await asyncio.to_thread(server.arrived.wait, SOON)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert await asyncio.to_thread(server.left.wait, SOON)
    await asyncio.sleep(0.5)
    assert len(server.requests) == 1


class OpenAIServer:
    """`handler` maps the JSON of a request to a Behaviour. The attributes record what happened."""

    def __init__(self, handler: Callable[[dict[str, Any]], Behaviour], *, port: int = 0) -> None:
        self.handler = handler
        self.requests: list[dict[str, Any]] = []
        self.pages: dict[str, Callable[[Any], Any]] = {}  # other paths: body to JSON, bytes or a Behaviour
        self.sent: list[dict[str, Any]] = []  # requests whose reply was sent whole
        self.keys: list[str] = []
        self.hosts: list[str] = []  # that other paths were asked for
        self.connections = 0
        self.at_once = self.most_at_once = 0
        self.arrived = threading.Event()  # set by the first request
        self.left = threading.Event()  # set when a client hangs up on a delayed reply, or on a stream
        self.url = ""
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close it; nothing happens where it is closed already."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def prompts(self) -> list[str]:
        """The last message of each request."""
        return [request["messages"][-1]["content"] for request in self.requests]

    async def _stop(self) -> None:
        # Accept no more, and let what was accepted start, before the server closes: Python 3.11 fails to start a
        # connection of a closed server (`Server._attach` asserts that it is open), and leaves its socket open.
        for listener in self._server.sockets:
            self._loop.remove_reader(listener.fileno())
        await _take_turns()
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)
        await _take_turns()  # a transport closes its socket in a later turn

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        if (task := asyncio.current_task()) is not None:
            self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        except asyncio.CancelledError:
            return
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its reply. False ends the connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        path = head.split()[1]
        if not path.endswith("/chat/completions"):
            page = self.pages[path](json.loads(body or "null")) if path in self.pages else None
            self.keys.append(headers.get("authorization", ""))
            self.hosts.append(headers["host"])
            if not isinstance(page, Behaviour):
                page = Behaviour(b"", 404) if page is None else Behaviour(page)
            _write(writer, replace(page, headers={**page.headers, "Connection": "close"}))
            await writer.drain()
            return False
        request = json.loads(body)
        self.requests.append(request)
        self.arrived.set()
        self.keys.append(headers.get("authorization", ""))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            behaviour = self.handler(request)
            if behaviour.delay and await self._leaves_within(behaviour, reader):
                return False
        finally:
            self.at_once -= 1
        if behaviour.pieces is not None:
            return await self._stream(request, behaviour, behaviour.pieces, reader, writer)
        _write(writer, behaviour)
        await writer.drain()
        if not behaviour.cut:
            self.sent.append(request)
        return not behaviour.cut

    async def _leaves_within(self, behaviour: Behaviour, reader: asyncio.StreamReader) -> bool:
        """Wait as long as the behaviour says, and note whether the client hangs up meanwhile."""
        leaving = asyncio.create_task(reader.read(1))
        end = self._loop.time() + behaviour.delay
        try:
            while not leaving.done() and (rest := end - self._loop.time()) > 0:
                if behaviour.until is not None and behaviour.until.is_set():
                    break
                await asyncio.wait([leaving], timeout=rest if behaviour.until is None else 0.05)
            if leaving.done():
                self.left.set()
                return True
            return False
        finally:
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)

    async def _stream(
        self,
        request: dict[str, Any],
        behaviour: Behaviour,
        pieces: Sequence[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """Send the pieces as they are, each in a chunk of HTTP. Notes when the client hangs up before the end."""
        leaving = asyncio.create_task(reader.read(1))
        try:
            writer.write(b"HTTP/1.1 200 Test\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for piece in pieces:
                await asyncio.sleep(behaviour.pause)
                writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                await writer.drain()
            if behaviour.hold:
                await leaving
                self.left.set()
                return False
            if behaviour.cut:
                return False
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            self.sent.append(request)
            return False
        except ConnectionError:  # the client hung up before it had read all that was sent
            self.left.set()
            return False
        finally:
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)


def _write(writer: asyncio.StreamWriter, behaviour: Behaviour) -> None:
    payload = behaviour.body if isinstance(behaviour.body, bytes) else json.dumps(behaviour.body).encode()
    lines = [f"HTTP/1.1 {behaviour.status} Test", f"Content-Length: {len(payload)}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in behaviour.headers.items()]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode()
    writer.write(head + (payload[: len(payload) // 2] if behaviour.cut else payload))


async def _take_turns() -> None:
    """Let the loop run what is due, and what follows from that.

    Accepting a connection takes four turns of the loop. They are counted, since on a busy machine any time may pass
    within one turn.
    """
    for _ in range(10):
        await asyncio.sleep(0)
