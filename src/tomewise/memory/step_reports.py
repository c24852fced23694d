"""Report the progress of steps that have no `report`: an estimate, or a computation in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import Any, TypeVar

from tomewise.language.forwarding import find_name
from tomewise.run import change_run, current_run
from tomewise.types import Cost, Estimate, In, LanguageModel, Progress, Report, Role

_AT_ONCE = 64  # inputs whose tokens are counted before the event loop has a turn: some 10 ms
T = TypeVar("T")


@contextmanager
def watch_steps(report: Report) -> Iterator[None]:
    """Report the steps inside this context, also those of threads that start inside; all from this event loop."""
    loop, loop_thread = asyncio.get_running_loop(), get_ident()

    def tell(progress: Progress) -> None:
        if get_ident() == loop_thread:
            report(progress)
        else:
            loop.call_soon_threadsafe(report, progress)

    with change_run(on_progress=tell):
        yield


def report_step(label: str, done: int, total: int) -> None:
    """Report the progress of a step, if `watch_steps` is active."""
    current_run().on_progress(Progress(label=label, done=done, total=total))


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
            output_tokens=int(output_tokens),
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
