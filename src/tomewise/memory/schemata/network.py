"""The network of one level: which vertices are linked, and how strongly (CAM, section 4.1.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 4096  # vertices on each side of one matrix product: 64 MB of cosines
_SHARE_LINKED = 0.9  # of the passages that have a link where the threshold is chosen from their similarities
_ANY_SCORE = -4.0  # below every score


@dataclass(frozen=True, slots=True)
class LinkRules:
    """When two passages are linked; names as in the paper, equation 2.

    A passage is linked to its `k` best partners with a score of at least `theta`. The score of passages of one document
    is alpha times the cosine, plus 1 - alpha times a Gaussian of their distance in passages with the width `sigma`.
    Across documents, where positions mean nothing, the score is the cosine (a deviation). `theta` None is chosen so
    that 9 of 10 passages have a link.
    """

    alpha: float = 0.7
    sigma: float = 1.0
    k: int = 10
    theta: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Passages:
    """The vertices of the lowest level: unit vectors (n, dimensions), documents as numbers (n,) and positions (n,)."""

    vectors: NDArray[np.float32]
    documents: NDArray[np.int64]
    positions: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Undirected links, each once with a < b, sorted by a, then b: `a` and `b` int64, `weights` float64."""

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def from_pairs(cls, a: NDArray[np.int64], b: NDArray[np.int64], weights: NDArray[np.float64]) -> Links:
        """Links of pairs in any order and direction. Of equal pairs the first one counts."""
        low, high = np.minimum(a, b), np.maximum(a, b)
        order = np.lexsort((high, low))
        low, high, weights = low[order], high[order], weights[order]
        is_first = find_changes(low, high)
        return cls(low[is_first], high[is_first], weights[is_first])


@dataclass(frozen=True, eq=False)
class Network:
    """Links in compressed rows: the neighbours of vertex v are `neighbours[starts[v]:starts[v + 1]]`, ascending.

    A position in `neighbours` is called a slot. `reverse` is, for the slot of u at v, the slot of v at u.
    """

    starts: NDArray[np.int64]
    neighbours: NDArray[np.int64]

    @classmethod
    def from_links(cls, vertices: int, links: Links) -> Network:
        """The network of these links over `vertices` vertices."""
        owners = np.concatenate((links.a, links.b))
        neighbours = np.concatenate((links.b, links.a))
        order = np.lexsort((neighbours, owners))
        starts = np.zeros(vertices + 1, np.int64)
        np.cumsum(np.bincount(owners, minlength=vertices), out=starts[1:])
        return cls(starts, neighbours[order])

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The vertex of each slot."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @cached_property
    def reverse(self) -> NDArray[np.int64]:
        """The slot of the opposite direction, for each slot."""
        return np.lexsort((self.owners, self.neighbours))


def find_links(passages: Passages, known: Links, fresh: NDArray[np.int64], rules: LinkRules) -> tuple[Links, float]:
    """Find the links of the `fresh` passages; returns them and the threshold.

    `known` are the links among the other passages; `fresh` is ascending. A known passage gets a link to a fresh one if
    either ranks the other among its k best. No known link is dropped. The threshold is that of `rules`, or the one that
    the scores of these passages suggest.
    """
    from tomewise.memory.schemata.kernels import offer_scores

    best, partners = _start_lists(len(passages.vectors), known, rules.k)
    least = _ANY_SCORE if rules.theta is None else rules.theta
    is_fresh = np.zeros(len(passages.vectors), np.bool_)
    is_fresh[fresh] = True
    others = np.flatnonzero(~is_fresh)
    shape = passages.documents, passages.positions, rules.alpha, rules.sigma, np.float32(least)
    for start in range(0, len(fresh), _BLOCK):
        rows = fresh[start : start + _BLOCK]
        vectors = passages.vectors[rows]
        for source, first in ((fresh, start), (others, 0)):
            for at in range(first, len(source), _BLOCK):
                columns = source[at : at + _BLOCK]
                on_diagonal = source is fresh and at == start
                cosines = vectors @ passages.vectors[columns].T
                offer_scores(cosines, rows, columns, on_diagonal, *shape, best, partners)
    theta = _choose_threshold(best) if rules.theta is None else rules.theta
    owners = np.repeat(np.arange(len(best)), rules.k)
    found, scores = partners.ravel(), best.ravel()
    is_link = (found >= 0) & (scores >= np.float32(theta))
    is_link &= is_fresh[owners] | is_fresh[np.maximum(found, 0)]
    a, b = owners[is_link], found[is_link]
    return Links.from_pairs(a, b, scores[is_link].astype(np.float64)), theta


def _start_lists(vertices: int, known: Links, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The k best known partners of each vertex, and their scores."""
    best = np.full((vertices, k), _ANY_SCORE, np.float32)
    partners = np.full((vertices, k), -1, np.int64)
    owners = np.concatenate((known.a, known.b))
    others = np.concatenate((known.b, known.a))
    weights = np.concatenate((known.weights, known.weights))
    order = np.lexsort((others, -weights, owners))
    owners, others, weights = owners[order], others[order], weights[order]
    ranks = np.arange(len(owners)) - np.searchsorted(owners, owners)
    kept = ranks < k
    best[owners[kept], ranks[kept]] = weights[kept]
    partners[owners[kept], ranks[kept]] = others[kept]
    return best, partners


def _choose_threshold(best: NDArray[np.float32]) -> float:
    """The threshold that 9 of 10 passages reach with their best partner, in hundredths."""
    reached = best[best[:, 0] > _ANY_SCORE, 0]
    if not len(reached):
        return 0.0
    return round(float(np.floor(np.quantile(reached, 1 - _SHARE_LINKED) * 100)) / 100, 2)


def count_isolated(network: Network) -> int:
    """How many vertices have no link."""
    return int(np.count_nonzero(np.diff(network.starts) == 0))


def match_pairs(
    known_a: NDArray[np.int64], known_b: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each pair, the place of the equal known pair, or -1. Known pairs are distinct; no number is negative."""
    if not len(known_a) or not len(a):
        return np.full(len(a), -1, np.int64)
    known, wanted = _number_pairs(known_a, known_b, a, b)
    order = np.argsort(known)
    at = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return np.where(known[at] == wanted, at, -1)


def _number_pairs(
    known_a: NDArray[np.int64], known_b: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One number for each pair: equal pairs have equal numbers."""
    width = 1 + int(max(known_b.max(), b.max()))
    if (1 + int(max(known_a.max(), a.max()))) * width >= 1 << 63:
        every, places = np.unique(np.concatenate((known_a, known_b, a, b)), return_inverse=True)
        ends = [len(known_a), 2 * len(known_a), 2 * len(known_a) + len(a)]
        known_a, known_b, a, b = np.split(places.astype(np.int64), ends)
        width = len(every)
    return known_a * width + known_b, a * width + b


def find_changes(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these sorted pairs differ from the pair before."""
    is_new = np.ones(len(a), np.bool_)
    is_new[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return is_new
