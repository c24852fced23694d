"""What an open tome is made of; its verbs and its objects (`documents`, `memory`, `sessions`, `traces`) share it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

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
        self.current = getattr(settings, "current", False)
        self.thread = LoopThread()
        self.traces = Traces(store, settings.trace_bytes, lambda: self.kit)
        self._prompts = prompts

    @cached_property
    def kit(self) -> Kit:
        """The store, model and embedder from which systems are wired. The model's replies are kept in the store."""
        from tomewise.language.budget import BudgetPerWork
        from tomewise.language.cached import Cached
        from tomewise.language.failures import StopAtFailures
        from tomewise.systems.kit import Kit

        model = BudgetPerWork(StopAtFailures(self.model, self.settings.max_failures))
        return Kit(self.store, Cached(model, self._prompts, self.store.calls), self.embedder)

    @cached_property
    def questions(self) -> Questions:
        """What answers questions, with systems that it keeps ready."""
        from tomewise.tome.questions import Questions

        return Questions(self.kit, self.traces, self.settings)


class PartOfTome:
    """What has verbs over an open tome. `sync.plain` makes their plain twins."""

    def __init__(self, opened: OpenTome) -> None:
        self._opened = opened

    @property
    def store(self) -> Store:
        """The store, for people who write their own parts."""
        return self._opened.store

    @property
    def _thread(self) -> LoopThread:
        return self._opened.thread
