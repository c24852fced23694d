"""The HTTP client below the providers' clients: it bounds what a server may send, and repairs odd envelopes.

Events of other protocols than Chat Completions pass unchanged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import httpx2

from tomewise.concurrency import take_turn

LONGEST_BODY = 8 * 2**20  # bytes of one response, after decompression
CONNECT_SECONDS = 10.0
_LONGEST_PLACE = 200  # characters of the address of a redirect that are shown
_LONG = 100_000  # bytes from which a body is repaired in a thread
_BODY_HEADERS = ("content-length", "content-encoding", "transfer-encoding")
_EVENTS = "text/event-stream"


class ResponseTooLong(Exception):
    """A server sent more than `LONGEST_BODY`."""


class NotAReply(Exception):
    """A server answered, and not as the server of a model does: that will not pass by itself.

    `is_elsewhere` says that it named another address.
    """

    def __init__(self, what: str, *, is_elsewhere: bool = False) -> None:
        super().__init__(what)
        self.is_elsewhere = is_elsewhere


class BoundedClient(httpx2.AsyncClient):
    """Bounds each response to `LONGEST_BODY`, and repairs a chat completion in it, for which it is asked as `model`.

    A response is read whole, unless it was asked for as a stream of events and is one. A server that sends a whole
    completion instead of the stream has been paid for it: it becomes a stream of one event.
    """

    def __init__(self, limit: int, model: str, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        super().__init__(
            limits=httpx2.Limits(max_connections=limit, max_keepalive_connections=limit, keepalive_expiry=60.0),
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),  # `Client.exchange` bounds the whole request
            transport=transport,
        )
        self._model = model

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """As the method of httpx2, with the bound and the repair. Raises `ResponseTooLong` and `NotAReply`."""
        response = await super().send(request, stream=True, **options)
        if stream and response.is_success and response.headers.get("content-type", "").startswith(_EVENTS):
            return _rewrite(response, stream=_RepairedEvents(response, self._model))
        try:
            body = b"".join([piece async for piece in _read_pieces(response)])
        finally:
            await response.aclose()
        _check_reply(response, body)
        await take_turn()  # to parse a reply takes milliseconds
        repaired = await self._repair(body, stream) if response.is_success else None
        if repaired is None:
            return _rewrite(response, content=body)
        return _rewrite(response, _EVENTS if stream else "application/json", content=repaired)

    async def _repair(self, body: bytes, stream: bool) -> bytes | None:
        repair = partial(repair_completion, body, self._model, as_stream=stream)
        return await asyncio.to_thread(repair) if len(body) > _LONG else repair()


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


def _check_reply(response: httpx2.Response, body: bytes) -> None:
    """Raise `NotAReply` for a redirect, which is not followed, for an empty reply and for a page of HTML."""
    if 300 <= response.status_code < 400:
        place = response.headers.get("location", "")
        raise NotAReply(f"a redirect to {place[:_LONGEST_PLACE]}" if place else "a redirect", is_elsewhere=True)
    if not response.is_success:
        return
    # Some servers send blank lines, for minutes, until the model replies.
    start = body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start:
        raise NotAReply(f"an empty reply (status {response.status_code})")
    if start.startswith(b"<"):
        raise NotAReply("a page of HTML")


async def _read_pieces(response: httpx2.Response) -> AsyncIterator[bytes]:
    length = 0
    async for piece in response.aiter_bytes():
        length += len(piece)
        if length > LONGEST_BODY:
            raise ResponseTooLong(f"more than {LONGEST_BODY:,} bytes")
        yield piece


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
        if event:
            yield self._finish(event)
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
    """The lines of a response, which end in CR, LF or both; a line or its end may be cut between two pieces."""
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


_MOST_TOKENS = 10**9  # of one call: a larger count is invalid
_DONE = b"[DONE]"  # the data of the last event of a stream
_THOUGHTS = ("reasoning", "reasoning_content")


def repair_completion(body: bytes, model: str, *, as_stream: bool = False) -> bytes | None:
    """The envelope as the protocol defines it; with `as_stream` as events, from a server that does not stream.

    None for a page, an error, or JSON that is not a chat completion.
    """
    envelope = _parse(body)
    if envelope is None:
        return None
    choice = _first(envelope["choices"])
    message = _message(choice.get("message"), between_calls="\n")
    if envelope.get("error") and not message["content"]:
        return None
    finish, usage = _text(choice.get("finish_reason")) or "stop", _usage(envelope.get("usage"))
    repaired = {"index": 0, "finish_reason": finish, "delta" if as_stream else "message": message}
    if not as_stream:
        return _write("chat.completion", envelope, model, [repaired], usage)
    chunk = _write("chat.completion.chunk", envelope, model, [repaired], usage)
    return _write_data(chunk) + _write_data(_DONE)


class ChunkRepair:
    """Repairs the chunks of one streamed reply.

    Some servers state the usage so far in every chunk: the last statement is kept, and written once at the end.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._usage: dict[str, Any] | None = None
        self._half = ""  # the first half of a character that is written as two escapes, cut between two chunks
        self._has_begun = False
        self._has_ended = False

    @property
    def is_cut(self) -> bool:
        """Whether chunks came, and neither a reason why the text ended nor the end of the stream."""
        return self._has_begun and not self._has_ended

    def repair(self, data: bytes) -> bytes | None:
        """The event for this data. None for an error, and for any other event than a chunk of a completion."""
        if data.strip() == _DONE:
            self._has_ended = True
            return self.write_end() + _write_data(_DONE)
        envelope = _parse(data)
        if envelope is None:
            return None
        choice = _first(envelope["choices"])
        delta = self._repair_delta(choice.get("delta"))
        if envelope.get("error") and not delta["content"]:
            return None
        self._usage = _usage(envelope.get("usage")) or self._usage
        finish = _text(choice.get("finish_reason")) or None
        self._has_begun = True
        self._has_ended = self._has_ended or finish is not None
        choices = [{"index": 0, "finish_reason": finish, "delta": delta}] if choice else []
        return _write_data(_write("chat.completion.chunk", envelope, self._model, choices, None))

    def write_end(self) -> bytes:
        """The chunk with the usage, once."""
        usage, self._usage = self._usage, None
        if usage is None:
            return b""
        return _write_data(_write("chat.completion.chunk", {}, self._model, [], usage))

    def _repair_delta(self, value: object) -> dict[str, Any]:
        """What a chunk adds."""
        delta = value if isinstance(value, dict) else {"content": value}
        content = delta.get("content")
        return _message({**delta, "content": self._join_halves(content)} if isinstance(content, str) else delta)

    def _join_halves(self, content: str) -> str:
        whole = (self._half + content).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        self._half = whole[-1:] if "\ud800" <= whole[-1:] <= "\udbff" else ""
        return whole[:-1] if self._half else whole


def _parse(body: bytes) -> dict[str, Any] | None:
    """The envelope; None for anything but a JSON object with choices."""
    try:
        envelope = json.loads(body.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return envelope if isinstance(envelope, dict) and "choices" in envelope else None


def _write(
    kind: str, envelope: Mapping[str, Any], model: str, choices: list[dict[str, Any]], usage: dict[str, Any] | None
) -> bytes:
    repaired = {
        "id": _text(envelope.get("id")) or "none",
        "object": kind,
        "created": 0,
        "model": _text(envelope.get("model")) or model,
        "provider": _text(envelope.get("provider")) or "unknown",  # OpenRouter's client requires it
        "choices": choices,
        "usage": usage,
    }
    return json.dumps(repaired).encode()


def _write_data(data: bytes) -> bytes:
    """An event that holds this data."""
    return b"data: " + data + b"\n\n"


def _first(choices: object) -> Mapping[str, Any]:
    """The first choice that is an object, or an empty one."""
    candidates = choices if isinstance(choices, list) else [choices]
    return next((choice for choice in candidates if isinstance(choice, dict)), {})


def _message(value: object, between_calls: str = "") -> dict[str, Any]:
    """The message. Arguments of tools, although no tool was offered, are the text where it has no other."""
    message = value if isinstance(value, dict) else {"content": value}
    content = _content(message.get("content"))
    if not (content or "").strip():
        content = between_calls.join(_list_arguments(message)) or content
    thoughts = {name: _text(message[name]) for name in _THOUGHTS if isinstance(message.get(name), str)}
    return {"role": "assistant", "content": content, "refusal": _text(message.get("refusal")) or None, **thoughts}


def _content(value: object) -> str | None:
    """The text; a list of parts is joined. An object is the JSON of the reply that the server has already parsed."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if "type" not in value else _part(value)
    if isinstance(value, list):
        return "".join(map(_part, value)) or None
    return _text(value) or None


def _part(part: object) -> str:
    return _text(part.get("text")) if isinstance(part, dict) and part.get("type") == "text" else _text(part)


def _list_arguments(message: Mapping[str, Any]) -> list[str]:
    """The arguments of each call of a tool."""
    value = message.get("tool_calls")
    calls = value if isinstance(value, list) else []
    return list(filter(None, map(_arguments, [*calls, {"function": message.get("function_call")}])))


def _arguments(call: object) -> str:
    if not isinstance(call, dict):
        return ""
    for name, field in (("function", "arguments"), ("custom", "input")):
        part = call.get(name)
        if isinstance(part, dict) and (text := _content(part.get(field))):
            return text
    return ""


def _usage(value: object) -> dict[str, Any] | None:
    """The counts, also those of nested objects; None if neither input nor output tokens are counted."""
    if not isinstance(value, dict):
        return None
    usage: dict[str, Any] = {name: count for name in value if (count := _count(value[name])) is not None}
    usage |= {
        f"{name}_tokens_details": {key: count for key in details if (count := _count(details[key])) is not None}
        for name in ("prompt", "completion")
        if isinstance(details := value.get(f"{name}_tokens_details"), dict)
    }
    if not (usage.get("prompt_tokens") or usage.get("completion_tokens")):
        return None
    usage.setdefault("prompt_tokens", 0)
    usage.setdefault("completion_tokens", 0)
    return {**usage, "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"]}


def _count(value: object) -> int | None:
    """A number of tokens, also if it is a float; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_TOKENS:
        return None
    return int(value)


def _text(value: object) -> str:
    """The string without lone surrogates, which clients and databases reject; empty for any other value."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
