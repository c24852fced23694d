"""The systems of an open tome: assembled once, and checked against the memory before they answer."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

from tomewise.errors import NotBuilt, UsageError
from tomewise.systems.kit import System
from tomewise.systems.lag import LagFinder
from tomewise.systems.registry import Choice, Variant, choose_variant
from tomewise.tome.fixed_settings import check_embedder

if TYPE_CHECKING:
    from tomewise.store.contract import Store
    from tomewise.systems.kit import Kit


def choose_system(choice: Choice | System, settings: Mapping[str, Any] | None) -> tuple[str, Variant | System]:
    """The name for answers, and the system itself or the variant to wire. Raises UnknownName, UsageError."""
    if not isinstance(choice, System):
        variant = choose_variant(choice, settings)
        return variant.label, variant
    if settings:
        raise UsageError(f"a System is wired already and takes no settings ({', '.join(settings)}): pass its recipe")
    return f"{type(choice.loop).__name__} (a System)", choice


_MOST_KEPT = 16  # assembled systems; a server is asked for any settings


@dataclass(frozen=True, slots=True)
class ReadySystem:
    """An assembled system, and what says how far its memory lags."""

    system: System
    lag: LagFinder


class ReadySystems:
    """Keeps the latest assembled systems with their warm indexes, and refuses those whose layers are not built."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._systems: OrderedDict[tuple[object, ...], ReadySystem] = OrderedDict()  # the latest used one last

    def wire(self, choice: Variant | System) -> ReadySystem:
        """The system, whether or not its layers are built. Raises UsageError from the recipe."""
        if isinstance(choice, System):
            return ReadySystem(choice, LagFinder(self._kit, "", choice.layers))
        key = (choice.system, choice.recipe, repr(sorted(choice.settings.items())))
        if key not in self._systems:
            system = choice.wire(self._kit)
            self._systems[key] = ReadySystem(system, LagFinder(self._kit, choice.label, system.layers))
        self._systems.move_to_end(key)
        if len(self._systems) > _MOST_KEPT:
            self._systems.popitem(last=False)
        return self._systems[key]

    async def prepare(self, choice: Variant | System, *, strict: bool) -> ReadySystem:
        """The system, ready to answer. Raises NotBuilt, and UsageError from the recipe.

        Memory that lags is refused with `strict` alone; memory that was never built always.
        """
        store = self._kit.store
        await asyncio.to_thread(check_embedder, store, self._kit.embedder)
        ready = self.wire(choice)
        if not store.holds_documents():
            where = quote(store.address)
            raise NotBuilt(f"{store.address} holds no document yet: add one with `tome add --tome {where} PATH`")
        if ready.system.layers and (lag := await asyncio.to_thread(ready.lag.find_lag, strict=strict)):
            raise NotBuilt(_explain_lag(choice, lag, store, strict=strict))
        return ready


def _explain_lag(choice: Variant | System, lag: Mapping[str, int], store: Store, *, strict: bool) -> str:
    reasons = ", ".join(f"{layer} ({_describe_lag(count)})" for layer, count in lag.items())
    if isinstance(choice, Variant) and choice.recipe is None:
        name = choice.label
        remedy = f"run `tome build --tome {quote(store.address)} --system {quote(name)}`"
    else:
        name = choice.label if isinstance(choice, Variant) else "this System"
        remedy = "call `Tome.build` with its recipe"
    return f"{name} needs layers that are not {'up to date' if strict else 'built'}: {reasons}; {remedy}"


def _describe_lag(count: int) -> str:
    return f"{count:,} to take in" if count else "something was removed"
