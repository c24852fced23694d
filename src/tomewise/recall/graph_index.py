"""The graph of entities and passages as arrays, built from the rows that a graph layer stored."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tomewise.extras import GRAPH, require_extra
from tomewise.memory.graph.fact_ends import join_fact_ends
from tomewise.recall.array_types import Flags, Keys, Vertices
from tomewise.recall.mentions import TitleLinks
from tomewise.recall.walk import CsrGraph, Walk
from tomewise.store.contract import SpaceRows, Spaces
from tomewise.store.lookups import read_vectors
from tomewise.store.records import PASSAGES

Links = Literal["facts", "extracted"]

_LEAST_KEPT = 100_000  # entries of a graph; the index of a smaller one is made in some milliseconds
_LONG, _INT, _FLOAT = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.float32)


@dataclass(frozen=True, eq=False)
class GraphIndex:
    """Entities are the vertices 0 to E - 1, passages E to E + P - 1, each in the order of their store keys.

    Entities are the ends of facts, or all that were extracted, as the links are (`GraphIndexes`).

    `heads` and `tails` (facts,) are the vertices of each fact's subject and object, in the order of the facts' keys.
    `spread` (E,) is the number of passages linked to each entity.
    """

    entities: Keys
    passages: Keys
    facts: Keys
    heads: Vertices
    tails: Vertices
    spread: Keys
    walk: Walk

    @cached_property
    def is_passage(self) -> Flags:
        """A flag for each vertex (E + P,)."""
        return np.arange(self.walk.graph.nodes) >= len(self.entities)

    def flag_passages(self, among: Keys | None) -> Flags:
        """A flag for each vertex: whether it is a passage with one of these keys, or any passage for None."""
        if among is None:
            return self.is_passage
        return np.append(np.zeros(len(self.entities), np.bool_), np.isin(self.passages, among))

    def encode(self) -> NDArray[np.int8]:
        """The index as bytes: how many entities, passages, facts and entries of the graph it has, and its arrays."""
        graph = self.walk.graph
        sizes = len(self.entities), len(self.passages), len(self.facts), len(graph.indices)
        keys = (np.array(sizes, _LONG), self.entities, self.passages, self.facts, self.spread)
        parts = (*keys, graph.indptr, graph.indices, self.heads, self.tails, graph.weights)
        return np.concatenate([np.ascontiguousarray(part).view(np.int8) for part in parts])

    @classmethod
    def decode(cls, content: NDArray[np.int8], restart: float) -> GraphIndex | None:
        """The index of these bytes; None if they are of none. A stranger may have written them, so they are checked."""
        start = 4 * _LONG.itemsize
        if len(content) < start:
            return None
        entities, passages, facts, entries = content[:start].view(_LONG).tolist()
        counts = (entities, passages, facts, entities, entities + passages + 1, entries, facts, facts, entries)
        kinds: tuple[np.dtype[Any], ...] = (*[_LONG] * 5, *[_INT] * 3, _FLOAT)
        sizes = (kind.itemsize * count for kind, count in zip(kinds, counts, strict=True))
        *begins, end = accumulate(sizes, initial=start)
        if min(entities, passages, facts, entries) < 0 or end != len(content):
            return None
        pieces = zip(np.split(content, begins)[1:], kinds, strict=True)
        arrays: list[NDArray[Any]] = [piece.view(kind).copy() for piece, kind in pieces]
        keys, passage_keys, fact_keys, spread, indptr, indices, heads, tails, weights = arrays
        graph = CsrGraph(indptr, indices, weights)
        is_sound = (
            graph.is_sound()
            and all(((sides >= 0) & (sides < entities)).all() for sides in (heads, tails))
            and all(_are_keys(each) for each in (keys, passage_keys, fact_keys))
            and (spread >= 0).all()
        )
        walk = Walk(graph, restart=restart)
        return cls(keys, passage_keys, fact_keys, heads, tails, spread, walk) if is_sound else None


class GraphIndexes:
    """The index of one graph. It is built again when the graph has changed: about 0.2 s for 500,000 edges.

    The first one that a process builds is kept beside the tome if its graph has `least_kept` entries, so that the next
    process reads it.

    `graph` is the instance, such as "passages-triples". `links` chooses the entities that are linked to a passage:
    those in its facts, as in HippoRAG 2, or all that were extracted from it. With "facts" names that are in no fact are
    no vertices, and have no synonyms. A fact's edge weighs the number of passages that state the fact, a link weighs 1,
    a synonym edge its cosine; parallel edges add up. `between` multiplies the edges between entities. 2 gives the
    weights of HippoRAG 2's released code, which stores each such edge in both directions. `titles` give links other
    weights than 1. These follow from the graph and the documents alone, so that they are kept too.
    """

    def __init__(
        self,
        store: Spaces,
        graph: str,
        *,
        links: Links = "facts",
        between: float = 1.0,
        restart: float = 0.5,
        titles: TitleLinks | None = None,
        least_kept: int = _LEAST_KEPT,
    ) -> None:
        self._store = store
        edges = (f"ends:{graph}", f"seen-in:facts:{graph}", f"seen-in:entities:{graph}", f"synonyms:{graph}")
        self._names = (*(f"edges/{space}" for space in edges), "vectors/passages")
        self._links = links
        self._between = between
        self._restart = restart
        self._titles = titles
        self._kept_name = f"vertices:{graph}:{links}:{between}" + (f":{titles.rule}" if titles else "")
        self._is_first = True
        self._least_kept = least_kept
        self._guard = threading.Lock()
        self._cache: tuple[Mapping[str, int], GraphIndex] | None = None

    def current(self) -> GraphIndex:
        """The index of what is stored now. Raises MissingDependency without the extra that walks need."""
        require_extra(GRAPH, "a walk over a graph")
        with self._guard:
            versions = self._store.versions(self._names)
            if self._cache is None or self._cache[0] != versions:
                self._cache = None  # frees the old index before the new one is built
                # A new thread each time reuses the heap of the last one. In a shared pool, each thread that has built
                # an index would keep 60 MB.
                with ThreadPoolExecutor(1, "graph-index") as thread:
                    self._cache = thread.submit(self._build).result()
            return self._cache[1]

    def _build(self) -> tuple[Mapping[str, int], GraphIndex]:
        is_first, self._is_first = self._is_first, False
        if is_first:
            versions = self._store.versions(self._names)
            content = self._store.find_kept(self._kept_name, versions)
            kept = None if content is None else GraphIndex.decode(content, self._restart)
            if kept is not None:
                stored = read_vectors(self._store, PASSAGES)  # all searches read these
                if stored.version == versions[self._names[-1]] and np.array_equal(stored.keys, kept.passages):
                    return versions, kept
        spaces = self._store.arrays(self._names)
        versions, index = {name: space.version for name, space in spaces.items()}, self._make(spaces)
        if is_first and len(index.walk.graph.indices) >= self._least_kept:
            self._store.keep(self._kept_name, versions, index.encode())
        return versions, index

    def _make(self, spaces: Mapping[str, SpaceRows]) -> GraphIndex:
        ends, *sources, synonyms = (spaces[name].rows.reshape(-1, 3) for name in self._names[:4])
        fact_sources, entity_sources = (rows.astype(np.int64) for rows in sources)
        alike, cosines = synonyms[:, :2].astype(np.int64), synonyms[:, 2]
        passages, joined = spaces["vectors/passages"].keys, join_fact_ends(ends)
        facts, by_facts = joined.keys, self._links == "facts"
        named = np.concatenate((joined.heads, joined.tails)) if by_facts else entity_sources[:, 0]
        entities = _list_distinct_keys(named)
        is_known = np.isin(alike, entities).all(axis=1)
        alike, cosines = alike[is_known], cosines[is_known]
        entity_at, passage_at, fact_at = map(_make_index_table, (entities, passages, facts))
        heads, tails = entity_at[joined.heads], entity_at[joined.tails]
        source_facts, source_passages = fact_at[fact_sources[:, 0]], passage_at[fact_sources[:, 1]]
        if by_facts:
            links = _list_distinct_links(heads[source_facts], tails[source_facts], source_passages, len(passages))
        else:
            links = entity_at[entity_sources[:, 0]], passage_at[entity_sources[:, 1]]
        link_weights = np.ones(len(links[0]))
        if self._titles:
            link_weights = self._titles.weigh(entities[links[0]], passages[links[1]])
        source_counts = np.bincount(source_facts, minlength=len(facts)).astype(np.float64)
        is_edge = (source_counts > 0) & (heads != tails)
        size = len(entities) + len(passages)
        graph = CsrGraph.from_edges(
            size,
            np.concatenate((heads[is_edge], links[0], entity_at[alike[:, 0]])),
            np.concatenate((tails[is_edge], links[1] + np.int32(len(entities)), entity_at[alike[:, 1]])),
            np.concatenate((self._between * source_counts[is_edge], link_weights, self._between * cosines)),
        )
        return GraphIndex(
            entities=entities,
            passages=passages,
            facts=facts,
            heads=heads,
            tails=tails,
            spread=np.bincount(links[0], minlength=len(entities)),
            walk=Walk(graph, restart=self._restart),
        )


def _list_distinct_links(heads: Vertices, tails: Vertices, passages: Vertices, count: int) -> tuple[Vertices, Vertices]:
    """The pairs of an entity and a passage that states a fact of that entity, each once."""
    pairs = np.concatenate((heads, tails)).astype(np.int64) * count
    pairs += np.concatenate((passages, passages))
    pairs.sort()
    pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]]  # faster than np.unique, which hashes
    entities, linked_passages = np.divmod(pairs, max(1, count))
    return entities.astype(np.int32), linked_passages.astype(np.int32)


def _list_distinct_keys(keys: Keys) -> Keys:
    """The keys, each once and ascending. Keys are small whole numbers, so a table of flags replaces sorting."""
    is_present = np.zeros(int(keys.max(initial=-1)) + 1, np.bool_)
    is_present[keys] = True
    return np.flatnonzero(is_present)


def _are_keys(keys: Keys) -> bool:
    return bool((keys[1:] > keys[:-1]).all() and (keys[:1] >= 1).all())


def _make_index_table(keys: Keys) -> Vertices:
    """A table from key to place, for keys in ascending order."""
    table = np.full(int(keys.max(initial=-1)) + 1, -1, np.int32)
    table[keys] = np.arange(len(keys), dtype=np.int32)
    return table
