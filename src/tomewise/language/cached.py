"""Replies that are not asked for twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pydantic import ValidationError

from tomewise.errors import BadReply, ModelError
from tomewise.language.prompts import Prompts
from tomewise.language.reply import schema_text
from tomewise.types import LanguageModel

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role

_Running: TypeAlias = tuple[asyncio.AbstractEventLoop, str, str]


class CallCache(Protocol):
    """Where replies are kept, as JSON. A reply is durable when `put` returns; it takes the place of an earlier one.

    `since` is a mark: with one, `get` knows only the replies that were put under that mark.
    """

    async def get(self, key: str, *, since: str = "") -> str | None: ...

    async def put(self, key: str, *, role: str, model: str, reply: str, since: str = "") -> None: ...

    async def drop(self, key: str) -> None: ...


_since: ContextVar[str] = ContextVar("tomewise_since", default="")


@contextmanager
def ask_anew(since: str) -> Iterator[None]:
    """Have `Cached` ask for what it is asked inside, also by tasks started inside, but for replies under this mark.

    Whatever was kept from before goes, also where no new reply comes in its place. An empty mark changes nothing.
    """
    token = _since.set(since)
    try:
        yield
    finally:
        _since.reset(token)


class Cached:
    """Asks the model only what the cache does not hold; equal asks that run side by side are one call.

    The key covers the role, its prompt as rendered by `prompts`, the model's name, the input and the output's schema:
    a change of any of these asks anew. Only outputs that fit their type and that the role accepts are kept; one that
    no longer does is asked for again. A reply from the cache is reported to no meter.
    """

    def __init__(self, model: LanguageModel, prompts: Prompts, calls: CallCache) -> None:
        self._model = model
        self._prompts = prompts
        self._calls = calls
        self._running: dict[_Running, asyncio.Future[Any]] = {}

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def window(self) -> int:
        return self._model.window

    def key(self, role: Role[In, Out], given: In) -> str:
        """The key of an ask: 64 hexadecimal digits."""
        parts = (
            role.name,
            self._prompts.render(role, given),
            self._model.name,
            given.model_dump_json(),
            schema_text(role.output),
        )
        digest = sha256()
        for part in parts:
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
        return digest.hexdigest()

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model."""
        key = self.key(role, given)
        running = (asyncio.get_running_loop(), key, _since.get())
        while (other := self._running.get(running)) is not None:
            await asyncio.wait([other])
            if not other.cancelled():  # else whoever asked gave up, and the next one asks in its place
                output: Out = other.result()
                return output.model_copy(deep=True)
        future = self._running[running] = running[0].create_future()
        try:
            output = await self._fetch(key, role, given)
        except asyncio.CancelledError:
            future.cancel()
            raise
        except Exception as error:
            future.set_exception(error)
            future.exception()  # seen: it may be that nobody else waits
            raise
        else:
            future.set_result(output)
            return output
        finally:
            del self._running[running]

    def reckon(self, role: Role[In, Out], given: In) -> int:
        return self._model.reckon(role, given)

    async def rehearse(self, role: Role[In, Out], given: In) -> int | None:
        """Output tokens of the reply, where the model costs nothing to ask; None where it does."""
        inner = getattr(self._model, "rehearse", None)
        return None if inner is None else await inner(role, given)

    async def close(self) -> None:
        """Closes the model, where it has something to close."""
        if closing := getattr(self._model, "close", None):
            await closing()

    async def _fetch(self, key: str, role: Role[In, Out], given: In) -> Out:
        since = _since.get()
        kept = await self._calls.get(key, since=since)
        if kept is not None:
            try:
                return role.accept(given, role.output.model_validate_json(kept))
            except (ValidationError, BadReply):
                pass  # written by a version whose output looked different or was not checked: a miss
        try:
            output = role.accept(given, await self._model.ask(role, given))
        except ModelError:
            if since:
                await self._calls.drop(key)
            raise
        reply = output.model_dump_json()
        await self._calls.put(key, role=role.name, model=self._model.name, reply=reply, since=since)
        return output
