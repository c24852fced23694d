"""What a tome works with. It imports much of Tomewise, so a tome makes it at the first use."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING

from tomewise.language.budget import BudgetPerWork
from tomewise.language.cached import Cached
from tomewise.language.failures import StopAtFailures
from tomewise.systems.kit import Kit
from tomewise.tome.questions import Questions

if TYPE_CHECKING:
    from tomewise.language.prompts import Prompts
    from tomewise.settings import Settings
    from tomewise.store.contract import Store
    from tomewise.tome.builds import Builds
    from tomewise.tome.contents import Contents
    from tomewise.tome.traces import Traces
    from tomewise.types import Embedder, LanguageModel


class Workshop:
    """The kit of a tome, and what asks, adds and builds with it.

    `model` is without a cache; `size` is that of passages, and of their overlap, in tokens.
    """

    def __init__(
        self,
        store: Store,
        model: LanguageModel,
        embedder: Embedder,
        prompts: Prompts,
        traces: Traces,
        size: tuple[int, int],
        settings: Settings,
    ) -> None:
        cached = Cached(BudgetPerWork(StopAtFailures(model, settings.max_failures)), prompts, store.calls)
        self.kit = Kit(store, cached, embedder)
        self.questions = Questions(self.kit, traces, settings.system)
        self._size = size
        self._settings = settings

    @cached_property
    def contents(self) -> Contents:
        """Adds and removes documents. It imports the readers, and `builds` the layers, which a question needs not."""
        from tomewise.reading.bounds import Bounds
        from tomewise.tome.contents import Contents

        stated = self._settings
        bounds = Bounds.of(**{each.name: getattr(stated, f"read_{each.name}") for each in fields(Bounds)})
        return Contents(self.kit, self._size, bounds)

    @cached_property
    def builds(self) -> Builds:
        """Builds layers."""
        from tomewise.tome.builds import Builds

        return Builds(self.kit)
