"""The systems of an open tome: assembled once, and checked against the memory before they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING

from tomewise.errors import NotBuilt
from tomewise.memory.building import find_lag
from tomewise.systems.spec import name_variant

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore
    from tomewise.systems.kit import Kit, System
    from tomewise.systems.spec import Variant
    from tomewise.types import Layer


class ReadySystems:
    """Keeps assembled systems, so that their indexes stay warm, and refuses those whose layers are not up to date."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._systems: dict[str, System] = {}
        self._checked_states: dict[str, object] = {}  # the state of the memory in which a system's layers were complete

    async def prepare(self, variant: Variant) -> System:
        """The system of a variant, ready to answer. Raises NotBuilt, and UsageError from the recipe."""
        key = f"{variant.system} {sorted(variant.settings.items())}"
        if key not in self._systems:
            self._systems[key] = variant.wire(self._kit)
        system, store = self._systems[key], self._kit.store
        if not store.holds_documents():
            raise NotBuilt(
                f"{store.path} holds no document yet: add one with `tome add --tome {quote(str(store.path))} PATH`"
            )
        if not system.layers:
            return system
        state = await asyncio.to_thread(_read_state, store)
        if self._checked_states.get(key) != state:
            await asyncio.to_thread(_check_layers, name_variant(variant.system, variant.settings), system.layers, store)
            self._checked_states[key] = state
        return system


def _read_state(store: SqliteStore) -> object:
    return store.version("vectors/passages"), store.builds()


def _check_layers(name: str, layers: Sequence[Layer], store: SqliteStore) -> None:
    if lag := find_lag(layers, store):
        reasons = ", ".join(f"{layer} ({_describe_lag(count)})" for layer, count in lag.items())
        command = f"tome build --tome {quote(str(store.path))} --system {quote(name)}"
        raise NotBuilt(f"{name} needs layers that are not up to date: {reasons}; run `{command}`")


def _describe_lag(count: int) -> str:
    return f"{count:,} to take in" if count else "something was removed"
