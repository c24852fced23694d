"""The facts of a graph with the entities that they join."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.contract import Keys, Spaces
from tomewise.store.lookups import read_edges


@dataclass(frozen=True, eq=False)
class FactEnds:
    """The keys of facts with those of their two entities, shape (n,) each, in the order of the facts."""

    keys: Keys
    heads: Keys
    tails: Keys

    def list_rows(self) -> list[list[int]]:
        """The key, the head and the tail of each fact."""
        rows: list[list[int]] = np.column_stack((self.keys, self.heads, self.tails)).tolist()
        return rows

    def select_at(self, entities: Keys) -> FactEnds:
        """The facts of which one end is among these."""
        return self.select(np.isin(self.heads, entities) | np.isin(self.tails, entities))

    def select(self, kept: NDArray[np.bool_]) -> FactEnds:
        """The facts that have a flag (n,)."""
        return FactEnds(self.keys[kept], self.heads[kept], self.tails[kept])


def read_fact_ends(store: Spaces, names: GraphNames) -> FactEnds:
    """All facts of a graph."""
    return join_fact_ends(read_edges(store, names.ends).rows)


def join_fact_ends(rows: NDArray[np.float64]) -> FactEnds:
    """The facts of these edges of fact, entity, and 0 or 1. A fact that joins an entity with itself has one edge."""
    facts, entities = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
    # Keys are small whole numbers, so a table of both ends by fact replaces sorting.
    table = np.full((int(facts.max(initial=-1)) + 1, 2), -1)
    table.ravel()[2 * facts + (rows[:, 2] == 1)] = entities
    keys = np.flatnonzero((table[:, 0] >= 0) | (table[:, 1] >= 0))
    heads, tails = table[keys].T
    return FactEnds(keys, np.where(heads < 0, tails, heads), np.where(tails < 0, heads, tails))
