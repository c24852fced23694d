"""Ask a model about many nodes side by side; one bad reply does not spoil the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from tomewise.concurrency import run_side_by_side
from tomewise.errors import BadReply, BudgetExceeded, ModelError, Refused
from tomewise.language.together import catch_failure
from tomewise.memory.proving import ask_proved
from tomewise.run import change_run, count_replies
from tomewise.types import In, LanguageModel, Out, Progress, Report, Role

_MOST_AT_ONCE = 1024  # more than any provider serves at a time, and few enough to hold their prompts in memory
_STARTS_BEFORE_PAUSE = 16  # asks that start before the event loop may send requests
K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R")


class Replies(dict[K, R], Generic[K, R]):
    """Outputs by key, in the order of the inputs; `failed` holds the reason for each key that is missing."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: dict[K, str] = {}


async def ask_each(
    model: LanguageModel, role: Role[In, Out], inputs: Mapping[K, In], report: Report, label: str
) -> Replies[K, Out]:
    """Ask one role about each input, all at once within the model's limit.

    A reply that fails for good is recorded and left out. Raises ModelUnavailable at once. Raises BudgetExceeded after
    the running calls have ended, because these are paid for. Every further call would fail in the same way. The replies
    that came before the error are in the cache of calls.
    """
    return await run_each(inputs, lambda role_input: ask_proved(model, role, role_input), report, label)


async def run_each(
    inputs: Mapping[K, T], run: Callable[[T], Awaitable[R]], report: Report, label: str
) -> Replies[K, R]:
    """`ask_each` for any coroutine function instead of one ask."""

    async def run_alone(items: Sequence[T]) -> list[R | ModelError]:
        return [await catch_failure(run(items[0]))]

    return await run_groups(inputs, [[key] for key in inputs], run_alone, report, label)


async def run_groups(
    inputs: Mapping[K, T],
    groups: Iterable[Sequence[K]],
    run: Callable[[Sequence[T]], Awaitable[Sequence[R | ModelError]]],
    report: Report,
    label: str,
) -> Replies[K, R]:
    """`run_each` for a coroutine function that takes the inputs of a group at once.

    `run` returns one result for each input, in order: an error for an input that failed for good.
    """
    results: dict[K, R | ModelError] = {}
    budget_errors: list[BudgetExceeded] = []
    free_slots = asyncio.Semaphore(_MOST_AT_ONCE)
    if inputs:
        report(Progress(label=label, done=0, total=len(inputs)))

    async def run_one(keys: Sequence[K]) -> None:
        try:
            found = await run([inputs[key] for key in keys])
        except BudgetExceeded as error:
            budget_errors.append(error)
            return
        finally:
            free_slots.release()
        count_replies(refused=sum(isinstance(result, BadReply | Refused) for result in found))
        results.update(zip(keys, found, strict=True))
        report(Progress(label=label, done=len(results), total=len(inputs)))

    with change_run(queue=object()):
        async with run_side_by_side() as tasks:
            for number, keys in enumerate(groups):
                await free_slots.acquire()
                if budget_errors:
                    break
                tasks.create_task(run_one(keys))
                if number % _STARTS_BEFORE_PAUSE == 0:
                    await asyncio.sleep(0)  # lets requests leave before all of them are prepared
    if budget_errors:
        raise budget_errors[0]
    replies: Replies[K, R] = Replies()
    for key in inputs:
        result = results[key]
        if isinstance(result, ModelError):
            replies.failed[key] = str(result)
        else:
            replies[key] = result
    return replies
