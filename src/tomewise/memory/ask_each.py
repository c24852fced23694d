"""Asking a model about many nodes side by side, where one bad reply must not spoil the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from tomewise.concurrency import side_by_side
from tomewise.errors import BadReply, BudgetExceeded, ModelError, ModelUnavailable, Refused
from tomewise.language.places import use_own_queue
from tomewise.language.repairs import count_refusal
from tomewise.types import In, LanguageModel, Out, Progress, Report, Role

_ON_THE_WAY = 1024  # asks at a time: more than any provider serves, and few enough to hold their prompts in memory
_BEGUN = 16  # asks begun between two chances for requests to leave
K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R")


class Replies(dict[K, R], Generic[K, R]):
    """Outputs by key, in the order of the inputs; `failed` holds the reasons of those that are missing."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: dict[K, str] = {}


async def ask_each(
    model: LanguageModel, role: Role[In, Out], inputs: Mapping[K, In], report: Report, label: str
) -> Replies[K, Out]:
    """Ask one role about each input, all at once within the model's limit.

    A reply that fails for good is recorded and left out. Raises ModelUnavailable at once, and BudgetExceeded when the
    calls under way have ended, since they are paid for: both would meet every further call as well. What was replied
    until then is in the cache of calls.
    """
    return await play_each(inputs, lambda given: model.ask(role, given), report, label)


async def play_each(
    inputs: Mapping[K, T], play: Callable[[T], Awaitable[R]], report: Report, label: str
) -> Replies[K, R]:
    """`ask_each` with any coroutine function in place of one ask."""
    replies: Replies[K, R] = Replies()
    refused: list[BudgetExceeded] = []
    room = asyncio.Semaphore(_ON_THE_WAY)
    done = 0

    async def one(key: K, given: T) -> tuple[K, R | None]:
        nonlocal done
        output: R | None = None
        try:
            output = await play(given)
        except BudgetExceeded as error:
            refused.append(error)
            return key, None
        except ModelUnavailable:
            raise
        except ModelError as error:
            if isinstance(error, BadReply | Refused):
                count_refusal()
            replies.failed[key] = str(error)
        finally:
            room.release()
        done += 1
        report(Progress(label=label, done=done, total=len(inputs)))
        return key, output

    tasks: list[asyncio.Task[tuple[K, R | None]]] = []
    with use_own_queue():
        async with side_by_side() as group:
            for number, (key, given) in enumerate(inputs.items()):
                await room.acquire()
                if refused:
                    break
                tasks.append(group.create_task(one(key, given)))
                if number % _BEGUN == 0:
                    await asyncio.sleep(0)  # else no request leaves before all are prepared
    if refused:
        raise refused[0]
    replies.update((key, output) for key, output in (task.result() for task in tasks) if output is not None)
    return replies
