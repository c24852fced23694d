"""The nodes, vectors and edges that extractions add to a graph, prepared first and written in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

import numpy as np

from tomewise.memory.edge_rows import split_rows
from tomewise.memory.graph.extraction import Extraction, Fact, Mention
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.contract import Readable, Vectors, Write
from tomewise.store.lookups import find_keys
from tomewise.store.nearest import Pairs, find_close_pairs
from tomewise.types import Node, NodeId, PassageId, content_id

_SYNONYM = 0.8  # least cosine of the names of synonyms (HippoRAG 2)
_SHORT_NAME = 2  # names of at most this many letters and digits are too vague to have synonyms (HippoRAG 2)


# The extraction from one text, and the passages that the text was made from.
SourcedExtraction: TypeAlias = tuple[tuple[PassageId, ...], Extraction]


class GraphRows:
    """The rows of one update. `gather` comes first, then `list_texts`, `find_synonyms` with their vectors, `write`."""

    def __init__(self, store: Readable, names: GraphNames) -> None:
        self._store = store
        self._names = names
        self._shared: list[list[Node]] = []  # all entities, all facts
        self._fresh: list[list[Node]] = []  # entities, facts and mentions that the store does not have yet
        self._synonyms: list[tuple[NodeId, NodeId, float]] = []

    def gather(self, extractions: Sequence[SourcedExtraction]) -> None:
        """Gather equal entities and facts with all their passages, and find the new ones."""
        found: dict[NodeId, Node] = {}
        seen: dict[NodeId, dict[PassageId, None]] = {}
        mentions: dict[str, list[Node]] = {}  # by entity
        for passages, extraction in extractions:
            for node in (*map(self._make_entity, extraction.entities), *map(self._make_fact, extraction.facts)):
                found.setdefault(node.id, node)
                seen.setdefault(node.id, {}).update(dict.fromkeys(passages))
            for mention in extraction.mentions:
                mentions.setdefault(mention.entity, []).append(self._make_mention(mention, passages))
        shared = [replace(node, sources=tuple(seen[name])) for name, node in found.items()]
        layers = (self._names.entities, self._names.facts)
        self._shared = [[node for node in shared if node.layer == layer] for layer in layers]
        groups = (*self._shared, list(chain.from_iterable(mentions.values())))
        known = find_keys(self._store, (node.id for node in chain.from_iterable(groups)))
        self._fresh = [[node for node in nodes if node.id not in known] for nodes in groups]

    def list_texts(self) -> list[list[str]]:
        """List the texts to embed: those of new entities, of new facts, of new mentions."""
        return [[format_fact(node) for node in nodes] for nodes in self._fresh]

    def find_synonyms(self, vectors: Vectors) -> None:
        """Find the synonyms of the new entities among each other and among the stored ones; `vectors` are theirs."""
        chosen = [row for row, node in enumerate(self._fresh[0]) if _is_telling(node)]
        if not chosen:
            return
        rows = vectors[chosen]
        fresh = {row: self._fresh[0][at].id for row, at in enumerate(chosen)}
        self._synonyms += _name_pairs(find_close_pairs(rows, _SYNONYM), fresh, fresh)
        pairs = self._store.alike(self._names.entities, rows, _SYNONYM)
        nodes = self._store.nodes_at(np.unique(pairs.neighbours).tolist())
        others = {key: node.id for key, node in nodes.items() if _is_telling(node)}
        self._synonyms += _name_pairs(pairs, fresh, others)

    def write(self, change: Write, vectors: Sequence[Vectors]) -> int:
        """Write all rows; `vectors` are those of `list_texts()`. Returns how many nodes are new."""
        keys: dict[NodeId, int] = {}
        for nodes in self._shared:
            keys |= change.put_nodes(nodes, lifetime="any")
        keys |= change.put_nodes(self._fresh[2])
        spaces = (self._names.entities, self._names.facts, self._names.mentions)
        for space, nodes, rows in zip(spaces, self._fresh, vectors, strict=True):
            change.put_vectors(space, [keys[node.id] for node in nodes], rows)
        ends = [(node.id, *(self._names.entity(node.data[end]) for end in ("head", "tail"))) for node in self._fresh[1]]
        ground = {**keys, **find_keys(self._store, {end for a, b, _ in self._synonyms for end in (a, b)})}
        for space, edges in (
            (self._names.ends, [(fact, head, 0.0) for fact, head, _ in ends]),
            (self._names.ends, [(fact, tail, 1.0) for fact, head, tail in ends if head != tail]),
            (self._names.synonyms, self._synonyms),
            (
                self._names.mentioned,
                [(node.id, self._names.entity(node.data["entity"]), 1.0) for node in self._fresh[2]],
            ),
        ):
            change.put_edges(space, *split_rows((ground[a], ground[b], weight) for a, b, weight in edges))
        return sum(len(nodes) for nodes in self._fresh)

    def _make_entity(self, name: str) -> Node:
        return Node(id=self._names.entity(name), layer=self._names.entities, text=name, sources=())

    def _make_fact(self, fact: Fact) -> Node:
        return Node(id=self._names.fact(fact.key), layer=self._names.facts, text=fact.text, sources=(), data=fact.data)

    def _make_mention(self, mention: Mention, passages: tuple[PassageId, ...]) -> Node:
        data = {"entity": mention.entity, "name": mention.name}
        data |= {"type": mention.type, "description": mention.description}
        text = f"{mention.name}: {mention.description}" if mention.description else mention.name
        key = content_id("m", self._names.instance, *passages, *data.values())
        return Node(id=key, layer=self._names.mentions, text=text, sources=passages, data=data)


def find_synonyms(nodes: Mapping[int, Node], rows: Vectors) -> list[tuple[int, int, float]]:
    """All synonyms among the entities of a graph: pairs of keys, the smaller node id first, with their cosines.

    `rows` are the vectors of `nodes`, in their order.
    """
    chosen = {row: node.id for row, node in enumerate(nodes.values()) if _is_telling(node)}
    telling = dict(enumerate(chosen.values()))
    keys = {node.id: key for key, node in nodes.items()}
    pairs = _name_pairs(find_close_pairs(rows[list(chosen)], _SYNONYM), telling, telling)
    return [(keys[low], keys[high], cosine) for low, high, cosine in pairs]


def _name_pairs(
    pairs: Pairs, first: Mapping[int, NodeId], second: Mapping[int, NodeId]
) -> Iterator[tuple[NodeId, NodeId, float]]:
    """The pairs of which both ends have an id, the smaller id first, so that it does not depend on which came first."""
    for a, b, cosine in zip(pairs.new.tolist(), pairs.neighbours.tolist(), pairs.cosines.tolist(), strict=True):
        if a in first and b in second:
            low, high = sorted((first[a], second[b]))
            yield low, high, cosine


def _is_telling(entity: Node) -> bool:
    """Whether its name is long enough to have synonyms."""
    return sum(map(str.isalnum, entity.text)) > _SHORT_NAME


def format_fact(fact: Node) -> str:
    """Format a fact for embedding; other nodes have their text.

    A triple is formatted as a tuple of its three parts, as in HippoRAG 2: on MuSiQue recall@5 rose from 67.5 to 70.6.
    """
    parts = fact.data
    return str((parts["head"], parts["relation"], parts["tail"])) if "relation" in parts else fact.text
