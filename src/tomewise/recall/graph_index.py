"""The graph of entities and passages as arrays, made from what a graph layer stored."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from sqlalchemy import select

from tomewise.recall.csr import CsrGraph
from tomewise.recall.similarity import live_keys
from tomewise.recall.walk import Walk
from tomewise.store.sqlite.schema import spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.sqlite.mirror import Columns
    from tomewise.store.sqlite.store import SqliteStore

Links = Literal["facts", "extracted"]


@dataclass(frozen=True, slots=True, eq=False)
class GraphIndex:
    """Entities are the vertices 0 to E - 1, passages E to E + P - 1, each in the order of their store keys.

    `heads` and `tails` (facts,) give the entity at either end of each fact, in the order of the facts' keys; `spread`
    (E,) in how many passages each entity stands; `is_passage` (E + P,) tells the vertices apart.
    """

    entities: NDArray[np.int64]
    passages: NDArray[np.int64]
    facts: NDArray[np.int64]
    heads: NDArray[np.int32]
    tails: NDArray[np.int32]
    spread: NDArray[np.int64]
    is_passage: NDArray[np.bool_]
    walk: Walk


class GraphIndexes:
    """The index of one graph, made anew only when the graph has changed, which takes about 0.2 s for 500,000 edges.

    `graph` is the instance, such as "passages-triples". `links` says which entities are tied to a passage: those that
    its facts name, as HippoRAG 2 has it, or all that were extracted from it. Edges between entities weigh as many
    passages as state the fact, links 1, synonyms their cosine; parallel edges add up. `between` multiplies the edges
    between entities: 2 is what HippoRAG 2's released code comes to, which holds each of them in both directions.
    """

    def __init__(
        self, store: SqliteStore, graph: str, *, links: Links = "facts", between: float = 1.0, restart: float = 0.5
    ) -> None:
        self._store = store
        self._ends = f"edges/ends:{graph}"
        self._stated = f"edges/seen-in:facts:{graph}"
        self._found = f"edges/seen-in:entities:{graph}"
        self._alike = f"edges/synonyms:{graph}"
        self._links = links
        self._between = between
        self._restart = restart
        self._guard = threading.Lock()
        self._made: tuple[Mapping[str, int], GraphIndex] | None = None

    def current(self) -> GraphIndex:
        """The index of what is stored now."""
        with self._guard:
            versions = self._versions()
            if self._made is None or self._made[0] != versions:
                self._made = None  # so that two need not be in memory
                # In a thread of its own, whose heap the next takes over: each of a pool's would in time keep 60 MB.
                with ThreadPoolExecutor(1, "graph-index") as thread:
                    self._made = thread.submit(self._of, versions).result()
            return self._made[1]

    def _of(self, versions: dict[str, int]) -> tuple[Mapping[str, int], GraphIndex]:
        columns = self._columns(versions)
        return {name: held.version for name, held in columns.items()}, self._make(columns)

    def _versions(self) -> dict[str, int]:
        """The versions of all that the index is made of, at one moment."""
        names = (self._ends, self._stated, self._found, self._alike, "vectors/passages")
        with self._store.reading() as connection:
            rows = connection.execute(select(spaces.c.space, spaces.c.version).where(spaces.c.space.in_(names)))
            return dict.fromkeys(names, 0) | {row[0]: row[1] for row in rows}

    def _columns(self, versions: dict[str, int]) -> dict[str, Columns]:
        """What is stored, all of one moment: a writer may come between the reading of two spaces."""
        while True:
            columns = {name: self._column(name) for name in versions}
            if all(held.version == versions[name] for name, held in columns.items()):
                return columns
            versions = self._versions()

    def _column(self, name: str) -> Columns:
        kind, space = name.split("/", 1)
        return self._store.vectors(space) if kind == "vectors" else self._store.edges(space)

    def _make(self, columns: Mapping[str, Columns]) -> GraphIndex:
        ends, stated, found, alike = (_rows(columns[name]) for name in (*self._spaces(),))
        passages, entities, facts = (
            live_keys(columns["vectors/passages"]),
            _distinct(found[:, 0]),
            _distinct(ends[:, 0]),
        )
        entity_at, passage_at, fact_at = _places(entities), _places(passages), _places(facts)
        heads, tails = _ends(fact_at[_keys(ends[:, 0])], entity_at[_keys(ends[:, 1])], ends[:, 2] == 1, len(facts))
        in_fact, in_passage = fact_at[_keys(stated[:, 0])], passage_at[_keys(stated[:, 1])]
        if self._links == "facts":
            ties = _once(heads[in_fact], tails[in_fact], in_passage, len(passages))
        else:
            ties = entity_at[_keys(found[:, 0])], passage_at[_keys(found[:, 1])]
        stating = np.bincount(in_fact, minlength=len(facts)).astype(np.float64)
        told = (stating > 0) & (heads != tails)
        size = len(entities) + len(passages)
        graph = CsrGraph.from_edges(
            size,
            np.concatenate((heads[told], ties[0], entity_at[_keys(alike[:, 0])])),
            np.concatenate((tails[told], ties[1] + np.int32(len(entities)), entity_at[_keys(alike[:, 1])])),
            np.concatenate((self._between * stating[told], np.ones(len(ties[0])), self._between * alike[:, 2])),
        )
        return GraphIndex(
            entities=entities,
            passages=passages,
            facts=facts,
            heads=heads,
            tails=tails,
            spread=np.bincount(ties[0], minlength=len(entities)),
            is_passage=np.arange(size) >= len(entities),
            walk=Walk(graph, restart=self._restart),
        )

    def _spaces(self) -> tuple[str, str, str, str]:
        return self._ends, self._stated, self._found, self._alike


def _ends(
    facts: NDArray[np.int32], entities: NDArray[np.int32], is_tail: NDArray[np.bool_], count: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Head and tail of each fact. A fact that ties an entity to itself is stored with one end."""
    heads = np.full(count, -1, np.int32)
    tails = np.full(count, -1, np.int32)
    heads[facts[~is_tail]] = entities[~is_tail]
    tails[facts[is_tail]] = entities[is_tail]
    return np.where(heads < 0, tails, heads), np.where(tails < 0, heads, tails)


def _once(
    heads: NDArray[np.int32], tails: NDArray[np.int32], passages: NDArray[np.int32], count: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The pairs of entity and passage that facts make, each once."""
    pairs = np.concatenate((heads, tails)).astype(np.int64) * count
    pairs += np.concatenate((passages, passages))
    pairs.sort()
    pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]]  # faster than np.unique, which hashes
    entities, ending = np.divmod(pairs, max(1, count))
    return entities.astype(np.int32), ending.astype(np.int32)


def _rows(columns: Columns) -> NDArray[np.float64]:
    """The rows of a space of edges, in no order."""
    rows: NDArray[np.float64] = columns.stored_rows if columns.live is None else columns.stored_rows[columns.live]
    return rows.reshape(-1, 3)


def _keys(column: NDArray[np.float64]) -> NDArray[np.int64]:
    return column.astype(np.int64)


def _distinct(column: NDArray[np.float64]) -> NDArray[np.int64]:
    """The keys in a column, ascending. Keys are small whole numbers: no need to sort."""
    keys = _keys(column)
    there = np.zeros(int(keys.max(initial=-1)) + 1, np.bool_)
    there[keys] = True
    return np.flatnonzero(there)


def _places(keys: NDArray[np.int64]) -> NDArray[np.int32]:
    """A table from key to place, for keys in ascending order."""
    table = np.full(int(keys.max(initial=-1)) + 1, -1, np.int32)
    table[keys] = np.arange(len(keys), dtype=np.int32)
    return table
