"""What runs on each worker of a pool: it embeds texts and asks a model, and touches no tome. It needs no Ray."""

from __future__ import annotations

import asyncio
import errno
import os
import pickle
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from tomewise.cluster.worker_parts import WorkerFacts, WorkerParts, describe_here, embed_rows
from tomewise.embedding.cached_embedder import CachedEmbedder
from tomewise.errors import BadReply, BudgetExceeded, PartError, TomewiseError, UsageError
from tomewise.language.reply import describe_problems
from tomewise.language.together import make_batch_role
from tomewise.language.wrapped import find_abilities
from tomewise.plugins import find_fault
from tomewise.run import ModelCall, Request, change_run, meter
from tomewise.types import Cost, Embedder, LanguageModel, Role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failed:
    """An error that a worker sends back as a value: Ray would give it another class and another message."""

    error: TomewiseError
    machine: str

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """The error as one of `errors.py`: a class of a package may not survive the way, or not be there."""
        machine = socket.gethostname()
        error = find_fault(error) or _explain_full_disk(error)
        for kind in type(error).__mro__:
            if issubclass(kind, TomewiseError) and kind.__module__ == TomewiseError.__module__:
                return cls(kind(str(error)), machine)
        line = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return cls(PartError(f"a part failed on {machine} ({line}): mend it, or use another one"), machine)

    def locate(self) -> Failed:
        """The same with the machine before its message."""
        return replace(self, error=type(self.error)(f"the worker on {self.machine}: {self.error}"))


async def attempt(work: Callable[..., Awaitable[T]], *given: Any) -> T | Failed:
    """What comes of the work, or its error: also one that would end the process, which would never say so."""
    try:
        return await work(*given)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - the driver raises it
        return Failed.of(error)


def _attempt_here(work: Callable[..., T], *given: Any) -> T | Failed:
    """The same for a function that runs in a thread, where asyncio would wait for ever after a StopIteration."""
    try:
        return work(*given)
    except BaseException as error:  # noqa: BLE001 - the driver raises it
        return Failed.of(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a worker is asked: a role and its input. It travels as one argument, since Ray packs each one apart.

    `number` names it for `Worker.give_up`. `size` is that of a batch for the role, 0 for a single input. At most `most`
    requests are sent for it, as many as needed if it is 0.
    """

    number: int
    role: Role[Any, Any]
    size: int
    given: Any
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came of an ask: the output as JSON, or the error; and what the meter of the worker saw meanwhile.

    `fallbacks` counts them by kind. `calls` have times of the worker's own clock, and so has `ended`, of the whole ask.
    """

    output: str | Failed
    calls: tuple[ModelCall, ...]
    repaired: int
    refused: int
    fallbacks: Mapping[str, int]
    ended: float


class _Bound:
    """Lets so many requests pass, and refuses the next: no more were reserved in the budget of the driver."""

    def __init__(self, most: int) -> None:
        self._left = most

    async def reserve(self, request: Request) -> int:
        if not self._left:
            raise BudgetExceeded("the limit of calls is used up, so a reply was not repaired: raise it, or stop here")
        self._left -= 1
        return 1

    def settle(self, request: Request, spent: Cost) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What a worker has for work that was sent to it: `limit` bounds its model, `prompts` is the user's own folder."""

    embedder: Embedder
    model: LanguageModel
    prompts: Path | None
    limit: int


_REMEMBERED = 1000  # asks that were given up; each may still be on its way


class Worker:
    """One worker. A call returns its result, or `Failed`."""

    def __init__(self, parts: WorkerParts, threads: int) -> None:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # read by the embedder, Numba and the libraries below NumPy
        self._parts = parts
        self._turn = asyncio.Lock()  # two lists at a time would share the threads and end no earlier
        self._asks: dict[int, asyncio.Task[Any]] = {}  # that are under way, by their number
        self._given_up: deque[int] = deque(maxlen=_REMEMBERED)  # numbers

    @cached_property
    def _embedder(self) -> Embedder:
        return self._parts.make_embedder()

    @cached_property
    def _model(self) -> LanguageModel:
        return self._parts.model.make_model(CachedEmbedder(self._embedder))

    async def ask(self, ask: Ask) -> Reply:
        """Ask the model. An ask that is given up ends at once, with an error."""
        role = make_batch_role(ask.role, ask.size) if ask.size else ask.role
        permits = (_Bound(ask.most),) if ask.most else ()
        with meter() as seen, change_run(permits=permits):
            asking = self._asks[ask.number] = asyncio.create_task(attempt(self._ask, role, ask.given))
            if ask.number in self._given_up:  # long input waits longer on its way, so the word of the end was sooner
                asking.cancel()
            await asyncio.wait([asking])
            del self._asks[ask.number]
            try:
                output = asking.result()
            except asyncio.CancelledError:
                output = Failed.of(TomewiseError(self._explain_end(ask)))
        return Reply(
            output=output,
            calls=seen.calls,
            repaired=seen.repaired,
            refused=seen.refused,
            fallbacks=dict(seen.fallbacks),
            ended=perf_counter(),
        )

    async def _ask(self, role: Role[Any, Any], given: Any) -> str:
        """The output as JSON. Raises BadReply where it does not fit the role."""
        output = await self._model.ask(role, given)
        try:
            written: str = output.model_dump_json()
            role.output.model_validate_json(written)
        except (AttributeError, TypeError, ValueError) as error:
            problem = describe_problems(error) if isinstance(error, ValidationError) else error
            what = f"the reply of {self._model.name} for {role.name!r} is {type(output).__name__}"
            raise BadReply(f"{what}, which does not fit {role.output.__name__} ({problem}): mend the model") from error
        return written

    async def give_up(self, number: int) -> None:
        """End the ask of this number, under way or still to come: what asks a server hangs up."""
        self._given_up.append(number)
        if asking := self._asks.get(number):
            asking.cancel()

    def _explain_end(self, ask: Ask) -> str:
        """Why an ask was cancelled."""
        if ask.number in self._given_up:
            return "the ask was given up"
        return f"the model {self._model.name} cancelled an ask of {ask.role.name!r} itself: ask again, or correct it"

    async def run_group(self, sent: bytes, hub: Any) -> Failed | None:
        """Run `function(place, hub, work)`, which was pickled with its work, and is imported here."""
        result = await attempt(self._run_group, sent, hub)
        return result.locate() if result else None

    async def _run_group(self, sent: bytes, hub: Any) -> None:
        try:
            function, work = pickle.loads(sent)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"{error}: install the modules of all systems on every machine") from error
        parts, model = self._parts.model, self._model
        with TemporaryDirectory(prefix="tomewise-") as folder:
            prompts = parts.write_prompts(Path(folder))
            place = Workplace(embedder=self._embedder, model=model, prompts=prompts, limit=parts.limit)
            await function(place, hub, work)

    async def describe(self) -> WorkerFacts | Failed:
        """What this worker is. The embedder is loaded and the model prepared, so that what is wrong shows at once."""
        result = await attempt(self._describe)
        return result.locate() if isinstance(result, Failed) else result

    async def _describe(self) -> WorkerFacts | Failed:
        await _prepare(self._model)
        return await asyncio.to_thread(_attempt_here, describe_here, self._parts, self._embedder)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Failed:
        """The rows of these texts, shape (len(texts), dimensions)."""
        async with self._turn:
            return await asyncio.to_thread(_attempt_here, embed_rows, self._embedder, texts)


async def _prepare(model: LanguageModel) -> None:
    """Prepare a model. Raises UsageError where that fails."""
    try:
        await find_abilities(model).prepare()
    except TomewiseError:
        raise
    except Exception as error:  # a method of a package may raise anything
        raise UsageError(
            f"the model {model.name} could not be prepared ({type(error).__name__}: {error}): correct `prepare` of its "
            "abilities, which takes no arguments and is async"
        ) from error


def _explain_full_disk(error: BaseException) -> BaseException:
    """The error; one of Tomewise with the remedy in place of that of a full disk."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TomewiseError(f"{error.strerror}: make room there, or set TMPDIR to another folder where workers start")
    return error
