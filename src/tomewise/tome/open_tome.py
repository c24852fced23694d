"""What an open tome is made of, which its verbs and its objects share; and what makes a verb."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from tomewise.errors import TomewiseError
from tomewise.tome.damaged import raise_cause
from tomewise.tome.sync import LoopThread
from tomewise.tome.traces import Traces

# What a tome works with is imported where it is first used: who only looks at a tome does not wait for it.
if TYPE_CHECKING:
    from tomewise.language.prompts import Prompts
    from tomewise.settings import Settings
    from tomewise.store.contract import Store
    from tomewise.systems.kit import Kit
    from tomewise.tome.questions import Questions
    from tomewise.types import Embedder, LanguageModel


class OpenTome:
    """The store, the model, the embedder and the settings of an open tome, and the thread of its plain methods.

    `size` is that of passages, and of their overlap, in tokens.
    """

    def __init__(
        self,
        store: Store,
        model: LanguageModel,
        embedder: Embedder,
        prompts: Prompts,
        size: tuple[int, int],
        settings: Settings,
    ) -> None:
        self.store = store
        self.model = model
        self.embedder = embedder
        self.size = size
        self.settings = settings
        self.current = settings.current
        self.thread = LoopThread()
        self.traces = Traces(store, settings.trace_bytes, lambda: self.kit)
        self._prompts = prompts

    @cached_property
    def kit(self) -> Kit:
        """The store, model and embedder from which systems are wired. The model's replies are kept in the store."""
        from tomewise.language.budget import BudgetPerWork, StopAtFailures
        from tomewise.language.cached import Cached
        from tomewise.systems.kit import Kit

        model = BudgetPerWork(StopAtFailures(self.model, self.settings.max_failures))
        return Kit(self.store, Cached(model, self._prompts, self.store.calls), self.embedder)

    @cached_property
    def questions(self) -> Questions:
        """What answers questions, with systems that it keeps ready."""
        from tomewise.tome.questions import Questions

        return Questions(self.kit, self.traces, self.settings)


class PartOfTome:
    """What has verbs over an open tome. `plain` makes their plain twins."""

    def __init__(self, opened: OpenTome) -> None:
        self._opened = opened

    @property
    def store(self) -> Store:
        """The store, for people who write their own parts."""
        return self._opened.store

    @property
    def _thread(self) -> LoopThread:
        return self._opened.thread


P = ParamSpec("P")
T = TypeVar("T")
Owner = TypeVar("Owner", bound=PartOfTome)


def names_damage(
    work: Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]]:
    """The method, with the same around it as `explain_damage`; the search runs in a thread, since it may take long."""

    @wraps(work)
    async def work_and_explain(self: Owner, /, *given: P.args, **named: P.kwargs) -> T:
        try:
            return await work(self, *given, **named)
        except TomewiseError:
            raise
        except Exception as error:
            await asyncio.to_thread(raise_cause, error, self.store)
            raise

    return work_and_explain


def plain(work: Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Owner, P], T]:
    """The plain twin of an asynchronous method, with its parameters and its docstring: `ask = plain(aask)`.

    Like `LoopThread.run`, the twin also works inside a running event loop. It checks the store first.
    """

    @wraps(work)
    def run(self: Owner, /, *given: P.args, **named: P.kwargs) -> T:
        self.store.check()
        # By name: a subclass may have a method of its own.
        begun: Coroutine[Any, Any, T] = getattr(self, work.__name__)(*given, **named)
        return self._thread.run(begun)

    run.__name__ = work.__name__.removeprefix("a")
    run.__qualname__ = work.__qualname__.removesuffix(work.__name__) + run.__name__
    return run


def plain_stream(
    begin: Callable[Concatenate[Owner, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Owner, P], Generator[T, None, None]]:
    """The plain twin of a method that makes an asynchronous generator: `stream = plain_stream(astream)`."""

    @wraps(begin)
    def run(self: Owner, /, *given: P.args, **named: P.kwargs) -> Generator[T, None, None]:
        self.store.check()
        items = begin(self, *given, **named)

        async def advance() -> T:
            return await anext(items)

        try:
            with contextlib.suppress(StopAsyncIteration):
                while True:
                    yield self._thread.run(advance())
        finally:
            self._thread.run(items.aclose())

    run.__name__ = begin.__name__.removeprefix("a")
    return run
