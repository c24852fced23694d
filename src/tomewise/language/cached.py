"""A cache of replies, so that the model is never asked for the same reply twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError

from tomewise.errors import BadReply, BudgetExceeded, KeepsFailing, ModelError, StoreError
from tomewise.language.prompts import Prompts
from tomewise.language.reply import describe_output
from tomewise.language.roles import Batch
from tomewise.language.wrapped import Wrapped, find_abilities, find_name
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


class Cache:
    """A wrapper that asks the model only if it holds no reply. Equal asks that run at the same time share one call.

    They share its reply, or the error of the model. What ends one run, such as its budget, ends no other: then the next
    of them asks the model itself.

    The key covers the role, the templates and tags of its prompt, the name of the role's model, the input and the
    output's schema: if one of these changes, the model is asked again. Only outputs that fit their type and that the
    role accepts are kept. If a reply no longer fits, the model is asked again. A reply from here is reported to no
    meter.

    In a run with a `fresh_mark`, only replies kept with this mark are used. A new reply replaces the earlier one, which
    is dropped if the model fails.

    A model that `samples` is always asked, and so is one about a batch, whose items `ask_together` keeps one by one. A
    reply that cannot be kept is used all the same, with a warning; in a run that `must_keep`, StoreError is raised.
    """

    keeps_batches = False
    """Whether it keeps the reply about a batch whole."""

    def __init__(self, prompts: Prompts, calls: CallCache) -> None:
        self._prompts = prompts
        self._calls = calls
        self._running: dict[_RunningAsk, asyncio.Future[Any]] = {}

    async def __call__(self, model: LanguageModel, role: Role[In, Out], given: In) -> Out:
        """The output that is kept, or else that of the model."""
        if (isinstance(given, Batch) and not self.keeps_batches) or find_abilities(model, role).samples:
            return await model.ask(role, given)
        loop = asyncio.get_running_loop()
        key = self.make_key(model, role, given)
        running_ask = (loop, key, current_run().fresh_mark)
        while (equal_ask := self._running.get(running_ask)) is not None:
            await asyncio.wait([equal_ask])
            if not equal_ask.cancelled():  # if it was cancelled or its run ended, this ask goes to the model itself
                output: Out = equal_ask.result()
                return output.model_copy(deep=True)
        future = self._running[running_ask] = loop.create_future()
        try:
            output = await self._fetch(key, model, role, given)
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

    def make_key(self, model: LanguageModel, role: Role[In, Out], given: In) -> str:
        """The key of an ask: 64 hexadecimal digits."""
        parts = (
            role.name,
            self._prompts.get_templates(role),
            *role.tags,
            find_name(model, role),
            given.model_dump_json(),
            describe_output(role.output),
        )
        digest = sha256()
        for part in parts:
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
        return digest.hexdigest()

    async def recall(self, key: str, role: Role[In, Out], given: In) -> Out | None:
        """The output that is kept for an ask, if there is one."""
        text = await self._calls.get(key, since=current_run().fresh_mark)
        if text is None:
            return None
        try:
            output = role.accept(given, self._read(key, role, text))
        except (ValidationError, BadReply):
            return None  # an older version of this program kept it, with other fields or fewer checks: ask again
        count_replies(kept=1)
        return output

    async def keep(self, key: str, model: LanguageModel, role: Role[In, Out], output: Out) -> None:
        """Keep the output of an ask."""
        named = {"role": role.name, "model": find_name(model, role), "reply": self._write(key, output)}
        with _keep_or_warn():
            await self._calls.keep(key, **named, since=current_run().fresh_mark)

    async def drop(self, key: str) -> None:
        """After an ask that failed with a `fresh_mark`: drop the earlier output, so that no later run uses it."""
        if current_run().fresh_mark:
            with _keep_or_warn():
                await self._calls.drop(key)

    async def _fetch(self, key: str, model: LanguageModel, role: Role[In, Out], given: In) -> Out:
        kept = await self.recall(key, role, given)
        if kept is not None:
            return kept
        try:
            output = role.accept(given, await self._ask(key, model, role, given))
        except ModelError:
            await self.drop(key)
            raise
        if getattr(output, "unfinished", ""):  # the next ask may have more room
            await self.drop(key)
        else:
            await self.keep(key, model, role, output)
        return output

    async def _ask(self, key: str, model: LanguageModel, role: Role[In, Out], given: In) -> Out:
        return await model.ask(role, given)

    def _read(self, key: str, role: Role[In, Out], text: str) -> Out:
        """The output in the text that is kept for this key. Raises ValidationError."""
        return role.output.model_validate_json(text)

    def _write(self, key: str, output: BaseModel) -> str:
        """The text to keep for this key."""
        return output.model_dump_json()


def find_cache(model: LanguageModel, role: Role[In, Out]) -> Cache | None:
    """The cache round a model. None without one, and where the model's replies to this role are not kept."""
    if not isinstance(model, Wrapped) or find_abilities(model, role).samples:
        return None
    return next((wrapper for wrapper in model.wrappers if isinstance(wrapper, Cache)), None)


@contextmanager
def _keep_or_warn() -> Iterator[None]:
    """Warn of a reply that has no place: it is worth more than its place. A run that `must_keep` gets the error."""
    try:
        yield
    except StoreError as error:
        if current_run().must_keep:
            raise
        warn_unkept(error)
