"""The systems of an open tome: assembled once, and checked against the memory before they answer."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from tomewise.errors import NotBuilt, UsageError
from tomewise.memory.building import find_lag
from tomewise.systems.kit import System
from tomewise.systems.registry import Choice, Variant, choose_variant
from tomewise.tome.fixed_settings import check_embedder

if TYPE_CHECKING:
    from tomewise.store.contract import Store
    from tomewise.systems.kit import Kit
    from tomewise.types import Layer


def choose_system(choice: Choice | System, settings: Mapping[str, Any] | None) -> tuple[str, Variant | System]:
    """The name for answers, and the system itself or the variant to wire. Raises UnknownName, UsageError."""
    if not isinstance(choice, System):
        variant = choose_variant(choice, settings)
        return variant.label, variant
    if settings:
        raise UsageError(f"a System is wired already and takes no settings ({', '.join(settings)}): pass its recipe")
    return f"{type(choice.loop).__name__} (a System)", choice


_MOST_KEPT = 16  # assembled systems; a server is asked for any settings


class ReadySystems:
    """Keeps the latest assembled systems with their warm indexes, and refuses those whose layers are not up to date."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._systems: OrderedDict[tuple[object, ...], System] = OrderedDict()  # the latest used one last
        # The state of the memory in which the layers of a system were complete.
        self._checked_states: dict[tuple[object, ...], object] = {}

    def wire(self, choice: Variant | System) -> System:
        """The system, whether or not its layers are built. Raises UsageError from the recipe."""
        return choice if isinstance(choice, System) else self._find_or_wire(_make_key(choice), choice)

    async def prepare(self, choice: Variant | System) -> System:
        """The system, ready to answer. Raises NotBuilt, and UsageError from the recipe."""
        store = self._kit.store
        await asyncio.to_thread(check_embedder, store, self._kit.embedder)
        if isinstance(choice, System):
            _refuse_empty(store)
            await asyncio.to_thread(_check_layers, choice, choice.layers, store)
            return choice
        key = _make_key(choice)
        system = self._find_or_wire(key, choice)
        _refuse_empty(store)
        if not system.layers:
            return system
        state = await asyncio.to_thread(_read_state, store)
        if self._checked_states.get(key) != state:
            await asyncio.to_thread(_check_layers, choice, system.layers, store)
            self._checked_states[key] = state
        return system

    def _find_or_wire(self, key: tuple[object, ...], choice: Variant) -> System:
        if key not in self._systems:
            self._systems[key] = choice.wire(self._kit)
        self._systems.move_to_end(key)
        if len(self._systems) > _MOST_KEPT:
            oldest, _ = self._systems.popitem(last=False)
            self._checked_states.pop(oldest, None)
        return self._systems[key]


def _make_key(choice: Variant) -> tuple[object, ...]:
    return choice.system, choice.recipe, repr(sorted(choice.settings.items()))


def _refuse_empty(store: Store) -> None:
    if not store.holds_documents():
        raise NotBuilt(
            f"{store.address} holds no document yet: add one with `tome add --tome {quote(store.address)} PATH`"
        )


def _read_state(store: Store) -> object:
    return store.versions(["vectors/passages"]), store.builds()


def _check_layers(choice: Variant | System, layers: Sequence[Layer], store: Store) -> None:
    if not (lag := find_lag(layers, store)):
        return
    reasons = ", ".join(f"{layer} ({_describe_lag(count)})" for layer, count in lag.items())
    if isinstance(choice, Variant) and choice.recipe is None:
        name = choice.label
        remedy = f"run `tome build --tome {quote(store.address)} --system {quote(name)}`"
    else:
        name = choice.label if isinstance(choice, Variant) else "this System"
        remedy = "call `Tome.build` with its recipe"
    raise NotBuilt(f"{name} needs layers that are not up to date: {reasons}; {remedy}")


def _describe_lag(count: int) -> str:
    return f"{count:,} to take in" if count else "something was removed"
