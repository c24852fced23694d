"""What a build or a question would use, before anything is spent: calls, tokens, dollars, and seconds of the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tomewise.calls import CallCount, read_calls
from tomewise.errors import ModelError, ModelUnavailable, UsageError
from tomewise.events import make_event
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.price_list import find_price
from tomewise.language.roles import ANSWER
from tomewise.language.spec import ModelSpec
from tomewise.language.wrapped import Wrapped, find_abilities, find_name, list_models
from tomewise.loops.at_once import Whole
from tomewise.loops.escalate import Escalate
from tomewise.loops.relay import InOrder
from tomewise.run import change_run
from tomewise.systems.recipe_settings import list_settings
from tomewise.systems.registry import Variant, choose_variant
from tomewise.types import Cost, Estimate, Event, LanguageModel, Limit, Loop, Pace, Question, Role

if TYPE_CHECKING:
    from tomewise.systems.kit import Kit, System

Bound: TypeAlias = Literal["", "at most", "at least"]
Foreseen: TypeAlias = tuple[Role[Any, Any], int, int]
"""A role, so many calls of it, and the tokens that they read together."""
_MOST_PLAYED, _SECONDS = 40, 10.0  # calls that are played for one price, and how long
_READING = 45.0  # seconds that a call of a slow model may take to read evidence; rules stand beside it
_USUAL_REPLY = 256  # tokens
_CONTEXTS = (4_500, 3_000, 2_000, 1_200)  # few, so that another measurement rarely makes another prompt


async def price_question(wire: Callable[[Kit], System], kit: Kit, question: Question) -> tuple[Cost, Bound]:
    """What a question to a system would use, and whether it may be less or more.

    Of a loop that reads in order, or all at once, the text counts once, and what stands beside it in each call. Any
    other one is played without a model, with the prompts that the model would read; where it may make more calls than
    it makes so, each counts as the longest. Replies have their mean length in this tome; without enough of them, a
    usual one. Of a loop that chooses by its first reply, that reply counts, and may be all.
    """
    played: list[Foreseen] = []
    rules = ExtractiveModel(kit.embedder)

    async def play(model: LanguageModel, role: Role[Any, Any], given: Any) -> Any:
        played.append((role, 1, model.count_input_tokens(role, given)))
        if len(played) >= (limit or _MOST_PLAYED):
            raise ModelUnavailable("nothing that follows would count")
        return await rules.ask(role, given)

    wired = wire(replace(kit, model=Wrapped(kit.model, play))).loop
    loop = find_first(wired)
    limit = read_calls(loop).most
    if isinstance(wired, Escalate) and (size := await wired.find_size(question, wired.short)):
        return price_answers(kit, size), "at least"
    if isinstance(loop, Whole | InOrder) and (cost := await loop.measure(question)):
        by_parts = loop.by_parts if isinstance(loop, Whole) else loop
        if by_parts is not loop and cost.calls == 1:
            return price_answers(kit, cost), ""
        return _sum_costs([(by_parts.make_empty_call(question)[0], cost.calls, cost.input_tokens)], kit), "at most"
    with change_run(meters=(), used=None, listener=None), suppress(ModelError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            async for _ in loop.run(question):
                pass
    costs = [_sum_costs([each], kit) for each in played]
    if not limit or limit <= len(played) or not played:
        return sum(costs, Cost()), "" if loop is wired else "at least"
    return sum([max(costs, key=lambda cost: cost.tokens)] * int(limit), Cost()), "at most"


def find_first(loop: Loop) -> Loop:
    """The loop that makes the first call: of one that chooses, its last quick one, which needs no memory."""
    return loop.quick[-1].loop if isinstance(loop, Escalate) else loop


def price_answers(kit: Kit, cost: Cost) -> Cost:
    """The cost of calls like those of the answering role, with replies as long as they usually are."""
    return _sum_costs([(ANSWER, cost.calls, cost.input_tokens)], kit)


def _sum_costs(foreseen: Iterable[Foreseen], kit: Kit) -> Cost:
    """What these calls cost, one after the other."""
    total = Cost()
    for role, calls, read in foreseen:
        name, abilities = find_name(kit.model, role), find_abilities(kit.model, role)
        mean = kit.store.calls.mean_reply_bytes(role.name, name)
        written = min(role.output_tokens, _USUAL_REPLY) if mean is None else mean / 4
        cost = Cost(calls=calls, input_tokens=read, output_tokens=round(calls * (written + abilities.thoughts)))
        total += complete_cost(cost, name, _find_pace(kit.model, role))
    return total


def _find_pace(model: LanguageModel, role: Role[Any, Any] | None = None) -> Pace | None:
    """That of calls which wait for one another, as those of a question do."""
    pace = find_abilities(model, role).pace
    return pace and replace(pace, beside=1)


def complete_cost(cost: Cost, name: str, pace: Pace | None) -> Cost:
    """What a model would cost with its dollars, None where they are unknown, and its seconds, 0 where they are."""
    return replace(cost, dollars=_find_price(name, cost), model_seconds=pace.foresee(cost) if pace else 0.0)


def price_estimates(estimates: Iterable[Estimate], model: LanguageModel) -> tuple[Estimate, ...]:
    """The estimates with their dollars and seconds, see `complete_cost`."""
    paces = {each.name: find_abilities(each).pace for each in list_models(model)}
    return tuple(replace(each, cost=complete_cost(each.cost, each.model, paces.get(each.model))) for each in estimates)


def _find_price(model: str, cost: Cost) -> float | None:
    if not cost.calls or model == EXTRACTIVE:
        return 0.0
    if not model or "," in model:  # not known which of its calls are whose
        return None
    try:
        spec = ModelSpec.parse(model)
    except UsageError:  # a model of a plugin, or of the caller's own
        return None
    return find_price(spec, cost.input_tokens, cost.output_tokens)


def keeps(limit: Limit, cost: Cost) -> bool:
    """Whether a price is within a limit; one that is not known, as of a model of one's own, counts as none."""
    return limit.holds(replace(cost, dollars=cost.dollars or 0.0))


def is_cheap(limit: Limit, calls: CallCount, model: LanguageModel) -> bool:
    """Whether even the longest prompts keep the limit, so that nothing has to be counted."""
    most = 1_000 if calls.most is None else int(calls.most)
    longest = Cost(calls=most, input_tokens=most * model.window, output_tokens=most * _USUAL_REPLY)
    return all(keeps(limit, complete_cost(longest, each.name, _find_pace(each))) for each in list_models(model))


def fit_context(variant: Variant, model: LanguageModel) -> tuple[Variant, list[Event]]:
    """The variant, and `context lowered` if it shows less evidence than usual, unless its settings say how much.

    That is where a model on a machine of one's own reads for longer than 45 seconds what it would be shown.
    """
    pace = find_abilities(model, ANSWER).pace
    if pace is None or pace.beside > 1 or "context" in variant.settings:
        return variant, []
    setting = list_settings(variant.declaration.recipe).get("context")
    usual = setting.default if setting else None
    readable = pace.reads * _READING
    context = next((each for each in _CONTEXTS if each <= readable), _CONTEXTS[-1])
    if not isinstance(usual, int) or usual <= max(readable, context):
        return variant, []
    event = make_event("context lowered", context=context, usual=usual, reads=round(pace.reads, 1))
    return choose_variant(variant, {"context": context}), [event]
