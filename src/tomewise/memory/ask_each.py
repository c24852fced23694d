"""Ask a model about many nodes side by side; one bad reply does not spoil the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from tomewise.concurrency import side_by_side
from tomewise.errors import BadReply, BudgetExceeded, ModelError, ModelUnavailable, Refused
from tomewise.language.places import use_own_queue
from tomewise.language.repairs import count_refusal
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
    return await run_each(inputs, lambda role_input: model.ask(role, role_input), report, label)


async def run_each(
    inputs: Mapping[K, T], run: Callable[[T], Awaitable[R]], report: Report, label: str
) -> Replies[K, R]:
    """`ask_each` for any coroutine function instead of one ask."""
    replies: Replies[K, R] = Replies()
    budget_errors: list[BudgetExceeded] = []
    free_slots = asyncio.Semaphore(_MOST_AT_ONCE)
    done = 0

    async def run_one(key: K, item: T) -> tuple[K, R | None]:
        nonlocal done
        output: R | None = None
        try:
            output = await run(item)
        except BudgetExceeded as error:
            budget_errors.append(error)
            return key, None
        except ModelUnavailable:
            raise
        except ModelError as error:
            if isinstance(error, BadReply | Refused):
                count_refusal()
            replies.failed[key] = str(error)
        finally:
            free_slots.release()
        done += 1
        report(Progress(label=label, done=done, total=len(inputs)))
        return key, output

    tasks: list[asyncio.Task[tuple[K, R | None]]] = []
    with use_own_queue():
        async with side_by_side() as group:
            for number, (key, item) in enumerate(inputs.items()):
                await free_slots.acquire()
                if budget_errors:
                    break
                tasks.append(group.create_task(run_one(key, item)))
                if number % _STARTS_BEFORE_PAUSE == 0:
                    await asyncio.sleep(0)  # lets requests leave before all of them are prepared
    if budget_errors:
        raise budget_errors[0]
    replies.update((key, output) for key, output in (task.result() for task in tasks) if output is not None)
    return replies
