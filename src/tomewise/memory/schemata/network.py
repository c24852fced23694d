"""The network of one level: which vertices are linked, and how strongly (CAM, section 4.1.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tomewise.memory.schemata.schemata_names import SchemataRules

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
BLOCK = 4096  # 64 MB of cosines
_NO_SCORE = -4.0  # below every score


@dataclass(frozen=True, eq=False)
class Passages:
    """The passages in document order: documents as numbers (n,) and positions (n,).

    The unit vector of passage v is `vectors[rows[v]]`, so that the vectors of a tome need no copy.
    """

    vectors: NDArray[np.float32]
    rows: Ints
    documents: Ints
    positions: Ints

    def select(self, vertices: Ints) -> NDArray[np.float32]:
        """The vectors of these vertices; no copy if they are stored in one run."""
        rows = self.rows[vertices]
        if (rows[1:] - rows[:-1] == 1).all():
            return self.vectors[rows[0] : rows[0] + len(rows)]
        return self.vectors[rows]

    def score(self, a: Ints, b: Ints, rules: SchemataRules) -> Floats:
        """The scores of these pairs."""
        from tomewise.memory.schemata.kernels import score_pairs

        shape = self.vectors, self.rows, self.documents, self.positions
        scores: Floats = score_pairs(a, b, *shape, rules.alpha, rules.sigma)
        return scores


@dataclass(frozen=True, eq=False)
class Links:
    """Undirected links, each once with a < b, sorted by a, then b: `a` and `b` int64, `weights` float64."""

    a: Ints
    b: Ints
    weights: Floats

    @classmethod
    def from_pairs(cls, a: Ints, b: Ints, weights: Floats) -> Links:
        """Links of pairs in any order and direction. Of equal pairs the first one counts."""
        codes = np.minimum(a, b) * (1 << 32) + np.maximum(a, b)
        codes, firsts = np.unique(codes, return_index=True)
        return cls(codes >> 32, codes & 0xFFFFFFFF, weights[firsts])

    def join(self, added: Links) -> Links:
        """These links and the `added` ones; of equal ones these."""
        fields = zip((self.a, self.b, self.weights), (added.a, added.b, added.weights), strict=True)
        return Links.from_pairs(*(np.concatenate(pair) for pair in fields))


@dataclass(frozen=True, eq=False)
class Network:
    """Links in compressed rows: the neighbours of vertex v are `neighbours[starts[v]:starts[v + 1]]`, ascending.

    A position in `neighbours` is called a slot. `reverse` is, for the slot of u at v, the slot of v at u.
    """

    starts: Ints
    neighbours: Ints
    reverse: Ints
    weights: Floats

    @classmethod
    def from_links(cls, vertices: int, links: Links) -> Network:
        """The network of these links over `vertices` vertices."""
        from tomewise.memory.schemata.kernels import fill_rows

        smaller = np.bincount(links.b, minlength=vertices)
        starts = np.zeros(vertices + 1, np.int64)
        np.cumsum(smaller + np.bincount(links.a, minlength=vertices), out=starts[1:])
        neighbours, reverse = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
        weights = np.empty(starts[-1])
        fill_rows(links.a, links.b, links.weights, starts, smaller, neighbours, reverse, weights)
        return cls(starts, neighbours, reverse, weights)

    @cached_property
    def owners(self) -> Ints:
        """The vertex of each slot."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


@dataclass(frozen=True, eq=False)
class Lists:
    """The k best partners of each passage (n, k), best first, then -1; of equal scores the first passage is better."""

    partners: Ints
    scores: Floats

    @classmethod
    def from_entries(cls, count: int, k: int, owners: Ints, partners: Ints, scores: Floats) -> Lists:
        """The lists of `count` passages that have these entries."""
        from tomewise.memory.schemata.kernels import fill_lists

        lists = cls(np.full((count, k), -1, np.int64), np.full((count, k), _NO_SCORE))
        fill_lists(owners, partners, scores, lists.scores, lists.partners)
        return lists

    def list_entries(self) -> tuple[Ints, Ints, Floats]:
        """All entries: owners, partners, scores."""
        owners, places = np.nonzero(self.partners >= 0)
        return owners, self.partners[owners, places], self.scores[owners, places]

    def link(self) -> Links:
        """The links between passages that list each other."""
        owners, partners, scores = self.list_entries()
        is_link = (self.partners[partners] == owners[:, None]).any(axis=1)
        return Links.from_pairs(owners[is_link], partners[is_link], scores[is_link])


def complete_lists(
    passages: Passages, lists: Lists, is_new: NDArray[np.bool_], rules: SchemataRules, block: int = BLOCK
) -> int:
    """Bring lists, in place, to what they are among all passages; returns how many lists were made.

    The lists of passages that are not new are exact among these, save for entries that left with their passages. A list
    that misses such an entry is made anew, as those of the new passages are; new passages enter the others. A matrix
    product has at most `block` vertices on each side; the lists do not depend on it.
    """
    from tomewise.memory.schemata.kernels import offer_scores

    known = len(is_new) - np.count_nonzero(is_new)
    is_open = is_new | ((lists.partners >= 0).sum(axis=1) < min(rules.k, known - 1))
    lists.partners[is_open], lists.scores[is_open] = -1, _NO_SCORE
    opened, others = np.flatnonzero(is_open), np.flatnonzero(~is_open)
    shape = is_open, is_new, passages.vectors, passages.rows, passages.documents, passages.positions
    for start in range(0, len(opened), block):
        rows = opened[start : start + block]
        vectors = passages.select(rows)
        for source, first in ((opened, start), (others, 0)):
            for at in range(first, len(source), block):
                columns = source[at : at + block]
                on_diagonal = source is opened and at == start
                cosines = vectors @ passages.select(columns).T
                offer_scores(
                    cosines, rows, columns, on_diagonal, *shape, rules.alpha, rules.sigma, lists.scores, lists.partners
                )
    return len(opened)


def describe_network(networks: Sequence[Mapping[str, Any]]) -> str:
    """Settings, clusters by level and calls of the networks of one or several tomes.

    A network is what `SchemataLayer` records under that name. All of them have the same settings.
    """
    first = networks[0]
    passages, outside, calls = (sum(network[name] for network in networks) for name in ("passages", "outside", "calls"))
    levels = [sum(counts) for counts in zip_longest(*(network["clusters"] for network in networks), fillvalue=0)]
    clusters = f"clusters by level {', '.join(f'{count:,}' for count in levels)}" if levels else "no clusters"
    theta = "" if first["theta"] is None else f", theta {first['theta']:g}"
    settings = f"alpha {first['alpha']:g}, sigma {first['sigma']:g}, k {first['k']}{theta}"
    return (
        f"{settings}; {passages:,} passages, {outside:,} in no cluster; {clusters}; the last build asked for {calls:,}"
    )
