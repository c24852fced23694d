"""How far the memory layers of a system lag behind the documents, and what would bring them up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tomewise.errors import MissingDependency
from tomewise.memory.building import Backlog, estimate, find_backlog
from tomewise.memory.grounds import find_grounds
from tomewise.memory.mapped import MappedLayer
from tomewise.recall.flat import Dense
from tomewise.store.records import BUILDS
from tomewise.systems.pricing import price_estimates
from tomewise.types import Cost, DocumentId, Estimate, Lagging, PassageId, Question, Scope

if TYPE_CHECKING:
    from tomewise.store.contract import Store
    from tomewise.systems.kit import Kit
    from tomewise.types import Layer, Passage

_SHOWN = 20  # documents that are named
_NEAREST = 3  # passages; one of these that a layer does not know is nearer than what it knows
_MOST_PRICED = 500  # passages; the tokens of more take seconds to count


@dataclass(frozen=True, slots=True)
class _State:
    """What was found at one state of the memory. `unknown` are the passages that a layer has yet to take in, by key."""

    version: object
    backlog: Backlog
    unknown: Mapping[int, Passage]
    estimates: Sequence[Estimate] = ()


class LagFinder:
    """Says how far these layers lag. What it found is kept until the memory changes. May be used by several questions.

    `name` is that of the system whose build brings them up to date.
    """

    def __init__(self, kit: Kit, name: str, layers: Sequence[Layer]) -> None:
        self._kit = kit
        self._name = name
        self._layers = layers
        self._state: _State | None = None

    def find_lag(self, *, current: bool) -> Mapping[str, int]:
        """The layers without which nobody can answer, with how many nodes each has yet to take in.

        These are the ones that were never built, and with `current` all that are not up to date.
        """
        backlog = self._read().backlog
        return {name: count for name, count in backlog.counts.items() if current or name in backlog.unbuilt}

    async def describe(self, question: Question | None = None) -> Lagging | None:
        """How far the memory lags in the scope of a question; None if it is up to date there. Calls no model."""
        state = await asyncio.to_thread(self._read)
        # A removal takes nothing else from a layer of single passages.
        removed = state.backlog.removed.difference(
            layer.name for layer in self._layers if isinstance(layer, MappedLayer)
        )
        layers = tuple(name for name, keys in state.backlog.new_keys.items() if keys or name in removed)
        scope = question.within if question else None
        unknown = await asyncio.to_thread(_select, state.unknown, scope, self._kit.store)
        if not unknown and not removed:
            return None
        documents: dict[DocumentId, None] = dict.fromkeys(passage.document for passage in unknown.values())
        estimates, unpriced = await self._price(state, layers)
        return Lagging(
            layers=layers,
            documents=tuple(documents)[:_SHOWN],
            count=len(documents),
            passages=len(unknown),
            nearer=bool(unknown) and await self._is_near(question, {each.id for each in unknown.values()}),
            removed=bool(removed),
            system=self._name,
            cost=sum((each.cost for each in price_estimates(estimates, self._kit.model)), Cost()),
            unpriced=unpriced,
        )

    def _read(self) -> _State:
        store = self._kit.store
        version = (store.versions(["vectors/passages"]), store.notes(BUILDS))
        state = self._state
        if state is None or state.version != version:
            backlog = find_backlog(self._layers, store)
            self._state = state = _State(version, backlog, _find_passages(backlog, store))
        return state

    async def _price(self, state: _State, layers: Sequence[str]) -> tuple[Sequence[Estimate], tuple[str, ...]]:
        """What a build of the layers of single passages would use, and the other layers that lag."""
        mapped = [layer for layer in self._layers if isinstance(layer, MappedLayer)]
        if len(state.unknown) > _MOST_PRICED:
            return (), tuple(layers)
        if mapped and not state.estimates:
            try:
                state = replace(state, estimates=await estimate(mapped, self._kit.store))
            except MissingDependency:  # a build would say so; what is built answers without it
                return (), tuple(layers)
            self._state = state
        priced = {layer.name for layer in mapped}
        return state.estimates, tuple(name for name in layers if name not in priced)

    async def _is_near(self, question: Question | None, unknown: set[PassageId]) -> bool:
        if question is None:
            return False
        search = Dense(self._kit.store, self._kit.embedder)
        found = await search.retrieve(question.text, _NEAREST, within=question.within)
        return any(piece.id in unknown for piece in found)


def _find_passages(backlog: Backlog, store: Store) -> Mapping[int, Passage]:
    """The passages that a layer has yet to take in, by key, in the order of the documents."""
    keys = set[int]().union(*backlog.new_keys.values())
    passages = store.passages(keys)
    by_layer: dict[str, list[int]] = {}
    for key, node in store.nodes_at(keys.difference(passages)).items():
        by_layer.setdefault(node.layer, []).append(key)
    grounds = {
        ground
        for layer, nodes in by_layer.items()
        for below in find_grounds(store, nodes, layer).values()
        for ground in below
    }
    passages |= store.passages(grounds.difference(passages))
    return dict(sorted(passages.items(), key=lambda item: (item[1].document, item[1].position)))


def _select(passages: Mapping[int, Passage], within: Scope | None, store: Store) -> Mapping[int, Passage]:
    """Those of the passages that are within a scope."""
    among = store.keys_within(within)
    return passages if among is None else {key: passages[key] for key in among.tolist() if key in passages}
