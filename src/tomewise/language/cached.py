"""A cache of replies, so that the model is never asked for the same reply twice."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError

from tomewise.errors import BadReply, BudgetExceeded, KeepsFailing, ModelError, StoreError
from tomewise.language.forwarding import Forwarding
from tomewise.language.prompts import Prompts, render_once
from tomewise.language.reply import describe_output
from tomewise.language.roles import Batch
from tomewise.run import count_replies, current_run, warn_unkept
from tomewise.types import CallCache, In, LanguageModel, Out, Role

_ROOM_KEY = "0" * 64  # of no ask
_ROOM = 1024  # bytes for each reply
_LEAST_REPLIES, _MOST_REPLIES = 64, 4_096  # for which room is proven

_RunningAsk: TypeAlias = tuple[asyncio.AbstractEventLoop, str, str]  # the event loop, the key, the mark `since`


async def prove_room(calls: CallCache, count: int) -> None:
    """Prove that about so many replies can be kept, by keeping as many bytes for a moment. Raises StoreError."""
    size = _ROOM * min(max(count, _LEAST_REPLIES), _MOST_REPLIES)
    try:
        # Random, so that no database makes it smaller.
        await calls.keep(_ROOM_KEY, role="", model="", reply=json.dumps(token_urlsafe(size * 3 // 4)))
    finally:
        with suppress(StoreError):
            await calls.drop(_ROOM_KEY)


class Cached(Forwarding):
    """Asks the model only if the cache does not hold the reply. Equal asks that run at the same time share one call.

    They share its reply, or the error of the model. What ends one run, such as its budget, ends no other: then the next
    of them asks the model itself.

    The key covers the role, its prompt as rendered by `prompts`, the name of the role's model, the input and the
    output's schema: if one of these changes, the model is asked again. Only outputs that fit their type and that the
    role accepts are cached. If a cached reply no longer fits, the model is asked again. A reply from the cache is
    reported to no meter.

    In a run with a `fresh_mark`, only replies cached with this mark are used. A new reply replaces the earlier one,
    which is dropped if the model fails.

    A model that draws its replies at random (`Sampling`) is always asked. A reply that cannot be cached is used all the
    same, with a warning; in a run that `must_keep`, StoreError is raised.
    """

    def __init__(self, model: LanguageModel, prompts: Prompts, calls: CallCache) -> None:
        super().__init__(model)
        self._prompts = prompts
        self._calls = calls
        self._running: dict[_RunningAsk, asyncio.Future[Any]] = {}

    def make_key(self, role: Role[In, Out], given: In) -> str:
        """The key of an ask: 64 hexadecimal digits."""
        parts = (
            role.name,
            self._prompts.render(role, given),
            self.name_for(role),
            given.model_dump_json(),
            describe_output(role.output),
        )
        digest = sha256()
        for part in parts:
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
        return digest.hexdigest()

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """The output from the cache, or else from the model. The items of a batch are cached one by one, by `keep`."""
        if self.samples(role) or isinstance(given, Batch):
            return await self._model.ask(role, given)
        loop, mark = asyncio.get_running_loop(), current_run().fresh_mark
        with render_once():
            key = self.make_key(role, given)
            running_ask = (loop, key, mark)
            while (equal_ask := self._running.get(running_ask)) is not None:
                await asyncio.wait([equal_ask])
                if not equal_ask.cancelled():  # if it was cancelled or its run ended, this ask goes to the model itself
                    output: Out = equal_ask.result()
                    return output.model_copy(deep=True)
            future = self._running[running_ask] = loop.create_future()
            try:
                output = await self._fetch(key, role, given, mark)
            except (KeepsFailing, BudgetExceeded):
                raise
            except ModelError as error:
                future.set_exception(error)
                future.exception()  # asyncio warns about an error that nobody reads; this line reads it
                raise
            else:
                future.set_result(output)
                return output
            finally:
                future.cancel()  # does nothing where there is a result to share
                del self._running[running_ask]

    async def recall(self, role: Role[In, Out], given: In) -> Out | None:
        """The cached output of this ask; None without one, and for a model that draws its replies at random."""
        if self.samples(role):
            return None
        return await self._recall(self.make_key(role, given), role, given, current_run().fresh_mark)

    async def keep(self, role: Role[In, Out], given: In, output: Out) -> None:
        """Keep the output of this ask, unless the model draws its replies at random."""
        if not self.samples(role):
            await self._keep(self.make_key(role, given), role, output, current_run().fresh_mark)

    async def drop(self, role: Role[In, Out], given: In) -> None:
        """After an ask that failed with a `fresh_mark`: drop the earlier output, so that no later run uses it."""
        await self._drop(self.make_key(role, given), current_run().fresh_mark)

    async def _fetch(self, key: str, role: Role[In, Out], given: In, mark: str) -> Out:
        cached = await self._recall(key, role, given, mark)
        if cached is not None:
            return cached
        try:
            output = role.accept(given, await self._ask_model(key, role, given))
        except ModelError:
            await self._drop(key, mark)
            raise
        await self._keep(key, role, output, mark)
        return output

    async def _ask_model(self, key: str, role: Role[In, Out], given: In) -> Out:
        return await self._model.ask(role, given)

    def _read(self, key: str, role: Role[In, Out], text: str) -> Out:
        """The output in the text that the cache holds for this key. Raises ValidationError."""
        return role.output.model_validate_json(text)

    def _write(self, key: str, output: BaseModel) -> str:
        """The text that the cache shall hold for this key."""
        return output.model_dump_json()

    async def _recall(self, key: str, role: Role[In, Out], given: In, mark: str) -> Out | None:
        text = await self._calls.get(key, since=mark)
        if text is None:
            return None
        try:
            output = role.accept(given, self._read(key, role, text))
        except (ValidationError, BadReply):
            return None  # an older version of this program kept it, with other fields or fewer checks: ask again
        count_replies(kept=1)
        return output

    async def _keep(self, key: str, role: Role[In, Out], output: Out, mark: str) -> None:
        reply, model = self._write(key, output), self.name_for(role)
        try:
            await self._calls.keep(key, role=role.name, model=model, reply=reply, since=mark)
        except StoreError as error:
            _warn_or_raise(error)

    async def _drop(self, key: str, mark: str) -> None:
        if mark:
            try:
                await self._calls.drop(key)
            except StoreError as error:
                _warn_or_raise(error)


def _warn_or_raise(error: StoreError) -> None:
    """Warn of a reply that has no place: it is worth more than its place. A run that `must_keep` gets the error."""
    if current_run().must_keep:
        raise error
    warn_unkept(error)
