"""Asks of a language model that the workers of a pool carry out. The limit, the budgets and the meters stay here."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tomewise.cluster.pool_worker import Ask, Failed, Reply
from tomewise.cluster.worker_parts import ModelParts
from tomewise.cluster.worker_pool import WorkerPool
from tomewise.concurrency import wait_through
from tomewise.errors import UsageError
from tomewise.language.call_slots import CallSlots
from tomewise.language.choose_model import EXTRACTIVE, ModelOrName, find_provider
from tomewise.language.price_list import find_price
from tomewise.language.prompts import Prompts
from tomewise.language.spec import PROVIDERS, ModelSpec
from tomewise.language.together import split_batch_role
from tomewise.language.usage import Bill, announce_request
from tomewise.language.wrapped import find_abilities, find_name
from tomewise.run import Request, count_replies, record_fallback, report_call
from tomewise.types import Cost

if TYPE_CHECKING:
    from tomewise.settings import Settings
    from tomewise.types import In, LanguageModel, Out, Role

_REQUESTS = 2  # an ask and its repair
_numbers = count()  # of asks in this process, so that one can be given up


class PooledAsks:
    """A wrapper that asks workers, which have made the same model; for inside of the cache and the budgets.

    At most `limit` asks of a model run at a time, over all workers; an ask is one request at a time. A budget reserves
    an ask together with its repair; further tries after failures of the network count when they come back. An answer
    comes whole: it is not streamed. Asks that the model calls quick are asked in this process. An ask that is cancelled
    has ended on its worker before the caller goes on.
    """

    def __init__(self, pool: WorkerPool, limit: int) -> None:
        self._pool = pool
        self._limit = limit
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, CallSlots]] = WeakKeyDictionary()

    async def __call__(self, model: LanguageModel, role: Role[In, Out], given: In) -> Out:
        """The role's output. Raises TomewiseError: that of the worker's model, or one for a worker that was lost."""
        if find_abilities(model, role).is_quick(role, given):
            return await model.ask(role, given)
        asked = perf_counter()
        name = find_name(model, role)
        single, size = split_batch_role(role)
        slots = self._slots.setdefault(asyncio.get_running_loop(), defaultdict(partial(CallSlots, self._limit)))
        async with slots[name].take():
            tokens = model.count_input_tokens(role, given)
            request = Request(tokens, role.output_tokens, partial(_find_price, name), most=_REQUESTS)
            async with announce_request(request) as bill:
                bound = bill.most if bill.most < _REQUESTS else 0
                ask = Ask(number=next(_numbers), role=single, size=size, given=given, most=bound)
                reply = await self._send(ask, bill, asked)
        if isinstance(reply.output, Failed):
            raise reply.output.error
        return role.output.model_validate_json(reply.output)

    async def _send(self, ask: Ask, bill: Bill, asked: float) -> Reply:
        """The reply of a worker, whose calls are billed and reported, also where the caller was cancelled."""
        result = self._pool.submit("ask", ask)
        reply: asyncio.Future[Reply] = asyncio.wrap_future(result)
        try:
            return await asyncio.shield(reply)
        except asyncio.CancelledError:
            self._pool.give_up(result, "give_up", ask.number)
            await wait_through(reply)
            raise
        finally:
            if reply.done() and reply.exception() is None:  # no reply yet: the caller's coroutine was closed
                bill.spent = sum((call.spent for call in reply.result().calls), Cost())
                _report_calls(reply.result(), asked)


def _report_calls(reply: Reply, asked: float) -> None:
    """Report the calls that a worker's meter saw, at times of this process: the reply came when the ask ended there.

    The first calls began when the caller asked, even if the ask then waited for a slot (see `report_call`).
    """
    shift = perf_counter() - reply.ended
    first = min((call.started for call in reply.calls), default=0.0)
    for call in reply.calls:
        started = asked if call.started == first else max(asked, call.started + shift)
        report_call(replace(call, started=started, ended=max(started, call.ended + shift)))
    count_replies(repaired=reply.repaired, refused=reply.refused)
    for kind, times in reply.fallbacks.items():
        record_fallback(kind, times)


def _find_price(name: str, input_tokens: int, output_tokens: int) -> float | None:
    """Dollars for tokens of a model; None if the price is unknown."""
    if name.startswith(EXTRACTIVE):
        return 0.0
    provider, colon, _ = name.partition(":")
    return find_price(ModelSpec.parse(name), input_tokens, output_tokens) if colon and provider in PROVIDERS else None


def make_model_parts(
    model: ModelOrName,
    models: Mapping[str, ModelOrName] | None,
    prompts: Prompts,
    api_key: str | None,
    settings: Settings,
    *,
    short_answers: bool = False,
) -> ModelParts:
    """What workers make their model of. Raises UsageError for a key that was given as an argument."""
    if api_key is not None:
        raise UsageError("`api_key` is not sent to workers: set the variable of the key on every machine instead")
    parts = ModelParts(
        model=model,
        models=dict(models or {}),
        base_url=settings.base_url,
        limit=settings.limit,
        timeout=settings.timeout,
        window=settings.window,
        server=settings.server,
        prompts=prompts.read_own(),
        short_answers=short_answers,
    )
    home = find_provider(parts.model, parts.models)
    address = next((spec.address for spec in parts.list_specs() if spec.provider == home), None)
    return replace(parts, base_url=address)  # of this process, not of a variable that a worker may have
