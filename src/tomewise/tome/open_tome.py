"""What an open tome is made of, which its verbs and its objects share; how it is opened, and what makes a verb."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import cached_property, wraps
from os import PathLike
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from tomewise.errors import TomewiseError
from tomewise.language.wrapped import Wrapped
from tomewise.settings import Settings
from tomewise.store.address import find_tome_address
from tomewise.tome.arguments import check_part, make_question, read_prompts
from tomewise.tome.damaged import raise_cause
from tomewise.tome.fixed_settings import find_embedder, fix_settings
from tomewise.tome.open_store import delete_empty_store, exists, open_store
from tomewise.tome.sync import LoopThread
from tomewise.tome.traces import Traces
from tomewise.types import Question, Scope

# What a tome works with is imported where it is first used: who only looks at a tome does not wait for it.
if TYPE_CHECKING:
    from tomewise.cluster.worker_pool import WorkerPool
    from tomewise.language.prompts import Prompts
    from tomewise.store.contract import Store
    from tomewise.systems.kit import Kit
    from tomewise.tome.questions import Questions
    from tomewise.types import Embedder, LanguageModel

_OF_MODEL = ("api_key", "base_url", "limit", "timeout", "window", "server")


@dataclass(frozen=True, eq=False, repr=False)
class OpenTome:
    """The store, the model, the embedder and the settings of an open tome, and the thread of its plain methods."""

    store: Store
    model: LanguageModel
    embedder: Embedder
    prompts: Prompts
    size: tuple[int, int]
    """That of passages, and of their overlap, in tokens."""
    settings: Settings
    pool: WorkerPool | None = None
    """The workers that it uses, if it has any."""
    thread: LoopThread = field(default_factory=LoopThread, init=False)
    traces: Traces = field(init=False)

    def __post_init__(self) -> None:
        """Make the traces, which have a lock: one for all threads."""
        object.__setattr__(self, "traces", Traces(self.store, self.settings.trace_bytes))

    @cached_property
    def kit(self) -> Kit:
        """The store, model and embedder from which systems are wired. The model's replies are kept in the store."""
        from tomewise.language.budget import ask_within_run, stop_after
        from tomewise.language.cached import Cache
        from tomewise.systems.kit import Kit

        model = Wrapped(
            self.model,
            Cache(self.prompts, self.store.calls),
            ask_within_run,
            stop_after(self.settings.max_failures),
        )
        return Kit(self.store, model, self.embedder)

    @cached_property
    def questions(self) -> Questions:
        """What answers questions, with systems that it keeps ready."""
        from tomewise.tome.questions import Questions

        return Questions(self.kit, self.traces, self.settings)


def open_parts(
    path: str | PathLike[str] | Store | None,
    own_model: str | LanguageModel,
    own_embedder: str | Embedder | None,
    settings: Settings,
    *,
    read_only: bool,
    create: bool,
) -> OpenTome:
    """The store at `path`, or one that is made there, with its embedder and its model. See `Tome.open`.

    What was opened or made is closed and deleted again after an error.
    """
    from tomewise.language.choose_model import choose_model, limit_spending

    prompts = read_prompts(settings)
    unfilled = pool = None  # what this makes, and workers
    if isinstance(path, str | PathLike | None):
        place = find_tome_address(settings.tome if path is None else path)
        create &= not read_only
        if create and not exists(place):
            unfilled = place
        store = open_store(place, create=create, read_only=read_only)
    else:
        check_part("path", path, "snapshot", "a path or a Store")
        store = path
    try:
        embedder = find_embedder(store, own_embedder, settings.embedder_base_url)
        size = fix_settings(store, embedder, settings.passage_tokens, settings.overlap)
        if settings.on:
            from tomewise.cluster.pooled_model import make_model_parts
            from tomewise.cluster.worker_pool import open_pool

            pool = open_pool(
                embedder,
                make_model_parts(own_model, settings.models, prompts, settings.api_key, settings),
                settings.workers,
                by_name=own_embedder is None or isinstance(own_embedder, str),
                start_seconds=settings.start_seconds,
            )
        model = choose_model(
            own_model,
            settings.models,
            embedder=embedder,
            prompts=prompts,
            **{name: getattr(settings, name) for name in _OF_MODEL},
        )
        if pool is not None:
            from tomewise.cluster.pooled_embedder import PooledEmbedder
            from tomewise.cluster.pooled_model import PooledAsks

            model, embedder = Wrapped(model, PooledAsks(pool, settings.limit)), PooledEmbedder(embedder, pool)
        model = limit_spending(model, settings.budget)
    except BaseException:
        if pool is not None:
            pool.close()
        store.close()
        if unfilled is not None:
            delete_empty_store(unfilled)
        raise
    return OpenTome(store, model, embedder, prompts, size, settings, pool)


class PartOfTome:
    """What has verbs over an open tome, or the part of it `within` a scope. `plain` makes plain twins of the verbs."""

    def __init__(self, opened: OpenTome, within: Scope | None = None) -> None:
        self._opened = opened
        self.scope = within
        """What it is narrowed to; None for the whole."""

    @property
    def store(self) -> Store:
        """The store, for people who write their own parts."""
        return self._opened.store

    def _make_question(self, question: str | Question, **more: Any) -> Question:
        settings = self._opened.settings
        return make_question(
            question, self.scope, current=settings.current, only_supported=settings.only_supported, **more
        )


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
        return self._opened.thread.run(begun)

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
                    yield self._opened.thread.run(advance())
        finally:
            if self._opened.thread.runs:  # its end has closed this as well
                self._opened.thread.run(items.aclose())

    run.__name__ = begin.__name__.removeprefix("a")
    return run
