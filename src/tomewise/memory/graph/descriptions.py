"""Descriptions of the entities of a relations graph, merged from the descriptions in each passage."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tomewise.language.roles import MERGE_DESCRIPTIONS, DescriptionsIn
from tomewise.memory.ask_each import run_each
from tomewise.memory.graph.relations import merge_descriptions
from tomewise.types import LanguageModel, Node, NodeId, Report, content_id

if TYPE_CHECKING:
    from tomewise.memory.graph.graph_names import GraphNames
    from tomewise.store.contract import Readable
    from tomewise.store.write_contract import Write

SUMMARISED_FROM = 2000  # merged descriptions of this many characters (about 500 tokens) are summarised by a model
_BATCH_SIZE = 24_000  # characters of descriptions that one call summarises


@dataclass(frozen=True, slots=True)
class EntityDescription:
    """An entity with the descriptions of all passages: `text` is their summary, or one description per line."""

    name: str
    type: str
    text: str


def describe_entities(store: Readable, names: GraphNames, entities: Iterable[int]) -> dict[int, EntityDescription]:
    """Describe the entities with these node keys; entities without mentions are left out.

    Takes the most frequent name and type (ties: the first in the alphabet) and the distinct descriptions, sorted. Only
    the current mentions count, so that the descriptions of a removed passage are left out at once. A summary is
    removed with any of the mentions that it was made from.
    """
    mentions_by_entity = _read_mentions(store, names, entities)
    keys = [key for mentions in mentions_by_entity.values() for key in mentions]
    summaries = _read_summaries(store, names, keys)
    found = {}
    for entity, mentions in mentions_by_entity.items():
        summary = next((summaries[key] for key in mentions if key in summaries), None)
        text = summary.text if summary else merge_descriptions([node.data["description"] for node in mentions.values()])
        kind = _find_most_frequent(node.data["type"] for node in mentions.values())
        found[entity] = EntityDescription(
            _find_most_frequent(node.data["name"] for node in mentions.values()), kind, text
        )
    return found


@dataclass(frozen=True, slots=True)
class SummaryChanges:
    """Summaries to write, the keys of the summaries they replace, and notes on failures."""

    nodes: Sequence[Node] = ()
    stale: Sequence[int] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Entity:
    """The mentions of one entity by id, with the key of its summary if it has one."""

    mentions: dict[NodeId, Node] = field(default_factory=dict)
    summary: int | None = None
    changed: bool = False

    @property
    def descriptions(self) -> list[str]:
        return sorted({node.data["description"] for node in self.mentions.values()} - {""})


class Descriptions:
    """Keeps the summaries of long descriptions up to date."""

    def __init__(self, store: Readable, model: LanguageModel, names: GraphNames) -> None:
        self._store = store
        self._model = model
        self._names = names

    async def merge(self, fresh: Mapping[str, Sequence[Node]], report: Report, *, everything: bool) -> SummaryChanges:
        """Summarise the long descriptions of entities that gained the mentions `fresh` (by normalised name).

        With `everything`, all entities with long descriptions that lack a summary are summarised too.
        """
        entities = self._gather_entities(None if everything else fresh.keys())
        for name, nodes in fresh.items():
            known = entities.setdefault(name, _Entity())
            known.changed = any(node.id not in known.mentions for node in nodes)
            known.mentions.update((node.id, node) for node in nodes)
        due = {
            name: entity
            for name, entity in entities.items()
            if (entity.changed or entity.summary is None) and len("\n".join(entity.descriptions)) >= SUMMARISED_FROM
        }
        replies = await run_each(due, self._summarise, report, f"descriptions of {self._names.layer} merged")
        stale = [entity.summary for entity in entities.values() if entity.changed and entity.summary is not None]
        notes = tuple(f"not summed up: {name!r}: {reason}" for name, reason in replies.failed.items())
        return SummaryChanges([self._make_node(due[name], text) for name, text in replies.items()], stale, notes)

    def write(self, change: Write, changes: SummaryChanges) -> None:
        """Write the summaries; their mentions must be in the store already."""
        change.remove_nodes(changes.stale)
        change.put_nodes(changes.nodes)

    def _gather_entities(self, wanted: Collection[str] | None) -> dict[str, _Entity]:
        """Gather the current mentions of the wanted entities (None: all entities), with their summaries."""
        if wanted is not None and not wanted:
            return {}
        keys = None
        if wanted is not None:
            keys = list(self._store.keys_of(self._names.entity(name) for name in wanted).values())
        mentions_by_entity = _read_mentions(self._store, self._names, keys)
        mention_keys = [key for mentions in mentions_by_entity.values() for key in mentions]
        summaries = _read_summaries(self._store, self._names, mention_keys)
        found: dict[str, _Entity] = defaultdict(_Entity)
        for mentions in mentions_by_entity.values():
            for key, node in mentions.items():
                entity = found[node.data["entity"]]
                entity.mentions[node.id] = node
                entity.summary = summaries[key].key if key in summaries else entity.summary
        return dict(found)

    async def _summarise(self, entity: _Entity) -> str:
        name = _find_most_frequent(node.data["name"] for node in entity.mentions.values())
        texts = entity.descriptions
        while True:
            parts = list(_split_into_parts(texts))
            texts = [await self._ask_for_summary(name, part) for part in parts]
            if len(texts) == 1:
                return texts[0]

    async def _ask_for_summary(self, name: str, descriptions: list[str]) -> str:
        descriptions_input = DescriptionsIn(name=name, descriptions=descriptions)
        return (await self._model.ask(MERGE_DESCRIPTIONS, descriptions_input)).summary[: _BATCH_SIZE // 4]

    def _make_node(self, entity: _Entity, text: str) -> Node:
        mentions = tuple(sorted(entity.mentions))
        key = content_id("n", self._names.instance, *mentions)
        return Node(id=key, layer=self._names.descriptions, text=text, sources=mentions)


@dataclass(frozen=True, slots=True)
class _Summary:
    key: int
    text: str


def _read_mentions(store: Readable, names: GraphNames, entities: Iterable[int] | None) -> dict[int, dict[int, Node]]:
    """Read the mention nodes of each entity, by entity key and mention key, in the order of `entities` (None: all)."""
    if entities is not None:
        wanted = list(dict.fromkeys(entities))
        edges = store.neighbours(names.mentioned, wanted)[:, :2].astype(np.int64)
        found: dict[int, dict[int, Node]] = {key: {} for key in wanted}
    else:
        edges = store.edges(names.mentioned).rows[:, :2].astype(np.int64)
        found = {key: {} for key in np.unique(edges[:, 1]).tolist()}
    nodes = store.nodes_at(edges[:, 0].tolist())
    for mention, entity in edges.tolist():
        found[entity][mention] = nodes[mention]
    return {entity: mentions for entity, mentions in found.items() if mentions}


def _read_summaries(store: Readable, names: GraphNames, mentions: Collection[int]) -> dict[int, _Summary]:
    """Read the summary that was made from each mention, by the key of the mention."""
    edges = store.neighbours(f"made-of:{names.descriptions}", mentions)[:, :2].astype(np.int64)
    texts = {key: node.text for key, node in store.nodes_at(edges[:, 0].tolist()).items()}
    return {mention: _Summary(key, texts[key]) for key, mention in edges.tolist()}


def _split_into_parts(texts: Iterable[str]) -> Iterable[list[str]]:
    """Split texts into parts for one call each; a part has two texts or more, so that each round has fewer texts."""
    part: list[str] = []
    size = 0
    for text in texts:
        if len(part) > 1 and size + len(text) > _BATCH_SIZE:
            yield part
            part, size = [], 0
        part.append(text)
        size += len(text)
    if part:
        yield part


def _find_most_frequent(names: Iterable[str]) -> str:
    """Find the most frequent name that is not empty; ties go to the first in the alphabet."""
    counts = Counter(name for name in names if name)
    return min(counts, key=lambda name: (-counts[name], name), default="")
