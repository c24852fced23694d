"""Estimate the tokens of prompts and replies before asking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from tomewise.language.usage import estimate_tokens
from tomewise.language.wrapped import find_abilities, find_name
from tomewise.memory.step_reports import report_step
from tomewise.store.contract import Store
from tomewise.types import Cost, Estimate, In, LanguageModel, Out, Role

_SAMPLE_SIZE = 160  # inputs, evenly spread: their mean length is within a few percent of the mean of all
_AT_ONCE = 64  # inputs whose tokens are counted before the event loop has a turn: some 10 ms
T = TypeVar("T")


@dataclass(frozen=True)
class Typical:
    """The usual length of a reply: `base` tokens, plus `share` tokens for each token of its text."""

    base: float
    share: float


async def estimate_reply_tokens(
    store: Store,
    model: LanguageModel,
    role: Role[In, Out],
    typical: Typical,
    inputs: Sequence[In],
) -> int:
    """Estimate the output tokens of one reply per input.

    A model without cost plays a sample of the inputs. For other models the mean length of their replies in this
    tome counts. Without such replies the typical length of the role counts.
    """
    if (length := await estimate_from_sample(model, role, inputs)) is not None:
        return length
    mean = store.calls.mean_reply_bytes(role.name, find_name(model, role))
    if mean is not None:
        return round(len(inputs) * mean / 4)
    # The text that a reply is about stands under one of these names.
    texts = (getattr(each, "text", "") or " ".join(getattr(each, "texts", ())) for each in inputs)
    return round(sum(typical.base + typical.share * estimate_tokens(text) for text in texts))


async def estimate_from_sample(model: LanguageModel, role: Role[In, Out], inputs: Sequence[In]) -> int | None:
    """Estimate the output tokens of one reply per input from a sample; None unless the model plays without cost."""
    sample = inputs[:: max(1, len(inputs) // _SAMPLE_SIZE)]
    measure = find_abilities(model, role).measure_reply
    if measure is None or not sample:
        return None
    return round(sum([await measure(role, each) for each in sample]) * len(inputs) / len(sample))


def estimate_thoughts(model: LanguageModel, role: Role[In, Any], calls: int) -> int:
    """The tokens that the model writes before the replies of so many calls."""
    return calls * find_abilities(model, role).thoughts


async def estimate_asks(
    layer: str, model: LanguageModel, role: Role[In, Any], inputs: Sequence[In], output_tokens: float
) -> Estimate:
    """The estimate of a layer that asks a role about each of these inputs; `output_tokens` are those of all replies."""
    return Estimate(
        layer=layer,
        model=find_name(model, role),
        cost=Cost(
            calls=len(inputs),
            input_tokens=await sum_tokens(inputs, partial(model.count_input_tokens, role)),
            output_tokens=int(output_tokens) + estimate_thoughts(model, role, len(inputs)),
        ),
    )


async def sum_tokens(inputs: Sequence[T], count: Callable[[T], int]) -> int:
    """The input tokens of all calls; `count` counts those of one. Other work of the event loop goes on meanwhile."""
    total = 0
    for start in range(0, len(inputs), _AT_ONCE):
        report_step("calls estimated", start, len(inputs))
        total += sum(map(count, inputs[start : start + _AT_ONCE]))
        await asyncio.sleep(0)
    report_step("calls estimated", len(inputs), len(inputs))
    return total
