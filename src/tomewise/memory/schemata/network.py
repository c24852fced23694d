"""The network of one level: which vertices are linked, and how strongly (CAM, section 4.1.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

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
    """The vertices of the lowest level: documents as numbers (n,) and positions (n,).

    The unit vector of vertex v is `vectors[rows[v]]`, so that the vectors of a tome need no copy.
    """

    vectors: NDArray[np.float32]
    rows: NDArray[np.int64]
    documents: NDArray[np.int64]
    positions: NDArray[np.int64]

    def select(self, vertices: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of these vertices; no copy if they are stored in one run."""
        rows = self.rows[vertices]
        if (rows[1:] - rows[:-1] == 1).all():
            return self.vectors[rows[0] : rows[0] + len(rows)]
        return self.vectors[rows]


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
        # A stable sort of numbers takes runs that are sorted as they are: links come in a few of them.
        order = np.argsort(low * (1 + int(high.max(initial=0))) + high, kind="stable")
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
    reverse: NDArray[np.int64]

    @classmethod
    def from_links(cls, vertices: int, links: Links) -> Network:
        """The network of these links over `vertices` vertices."""
        from tomewise.memory.schemata.kernels import fill_rows

        smaller = np.bincount(links.b, minlength=vertices)
        starts = np.zeros(vertices + 1, np.int64)
        np.cumsum(smaller + np.bincount(links.a, minlength=vertices), out=starts[1:])
        neighbours, reverse = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
        fill_rows(links.a, links.b, starts, smaller, neighbours, reverse)
        return cls(starts, neighbours, reverse)

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The vertex of each slot."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def find_links(passages: Passages, known: Links, fresh: NDArray[np.int64], rules: LinkRules) -> tuple[Links, float]:
    """Find the links of the `fresh` passages; returns them and the threshold.

    `known` are the links among the other passages; `fresh` is ascending. A known passage gets a link to a fresh one if
    either ranks the other among its k best. No known link is dropped. The threshold is that of `rules`, or the one that
    the scores of these passages suggest.
    """
    from tomewise.memory.schemata.kernels import offer_scores

    best, partners = _start_lists(len(passages.rows), known, rules.k)
    least = _ANY_SCORE if rules.theta is None else rules.theta
    is_fresh = np.zeros(len(passages.rows), np.bool_)
    is_fresh[fresh] = True
    others = np.flatnonzero(~is_fresh)
    shape = passages.documents, passages.positions, rules.alpha, rules.sigma, np.float32(least)
    for start in range(0, len(fresh), _BLOCK):
        rows = fresh[start : start + _BLOCK]
        vectors = passages.select(rows)
        for source, first in ((fresh, start), (others, 0)):
            for at in range(first, len(source), _BLOCK):
                columns = source[at : at + _BLOCK]
                on_diagonal = source is fresh and at == start
                cosines = vectors @ passages.select(columns).T
                offer_scores(cosines, rows, columns, on_diagonal, *shape, best, partners)
    theta = _choose_threshold(best) if rules.theta is None else rules.theta
    is_link = (partners >= 0) & (best >= np.float32(theta))
    is_link &= is_fresh[:, None] | is_fresh[partners]
    a, indices = np.nonzero(is_link)
    return Links.from_pairs(a, partners[a, indices], best[a, indices].astype(np.float64)), theta


def _start_lists(vertices: int, known: Links, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The k best known partners of each vertex, and their scores."""
    from tomewise.memory.schemata.kernels import offer_links

    best = np.full((vertices, k), _ANY_SCORE, np.float32)
    partners = np.full((vertices, k), -1, np.int64)
    offer_links(known.a, known.b, known.weights, best, partners)
    return best, partners


def _choose_threshold(best: NDArray[np.float32]) -> float:
    """The threshold that 9 of 10 passages reach with their best partner, in hundredths."""
    reached = best[best[:, 0] > _ANY_SCORE, 0]
    if not len(reached):
        return 0.0
    return round(float(np.floor(np.quantile(reached, 1 - _SHARE_LINKED) * 100)) / 100, 2)


def count_linked(links: Links) -> int:
    """How many vertices have a link."""
    is_linked = np.zeros(1 + int(links.b.max(initial=-1)), np.bool_)
    is_linked[links.a] = is_linked[links.b] = True
    return int(np.count_nonzero(is_linked))


def match_pairs(
    known_a: NDArray[np.int64], known_b: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each pair, the index of the equal known pair, or -1. Known pairs are distinct; no number is negative."""
    indices = np.full(len(a), -1, np.int64)
    if not len(known_a) or not len(a):
        return indices
    width = 1 + int(known_b.max())
    # Only pairs that may be known get a number: labels of new clusters are so large that the numbers would not fit.
    comparable = np.flatnonzero((a <= known_a.max()) & (b < width))
    known, wanted = known_a * width + known_b, a[comparable] * width + b[comparable]
    order = np.argsort(known, kind="stable")  # takes sorted runs as they are: pairs are stored in a few of them
    known = known[order]
    found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    indices[comparable] = np.where(known[found] == wanted, order[found], -1)
    return indices


def find_changes(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these sorted pairs differ from the pair before."""
    is_new = np.ones(len(a), np.bool_)
    is_new[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return is_new


def describe_network(networks: Sequence[Mapping[str, Any]]) -> str:
    """Settings, share of isolated passages, clusters by level, and calls of the networks of one or several tomes.

    A network is what `SchemataLayer` records under that name. All of them have the same settings, but each its own
    threshold.
    """
    first = networks[0]
    thresholds = sorted({network["theta"] for network in networks})
    theta = f"{thresholds[0]:g}" + (f" to {thresholds[-1]:g}" if len(thresholds) > 1 else "")
    passages = sum(network["passages"] for network in networks)
    isolated = sum(network["isolated"] for network in networks)
    levels = [sum(counts) for counts in zip_longest(*(network["clusters"] for network in networks), fillvalue=0)]
    clusters = f"clusters by level {', '.join(f'{count:,}' for count in levels)}" if levels else "no clusters"
    calls = f"the last batch asked for {sum(network.get('calls', 0) for network in networks):,} summaries"
    settings = f"alpha {first['alpha']:g}, sigma {first['sigma']:g}, theta {theta}, k {first['k']}"
    return f"{settings}; {isolated / max(1, passages):.1%} of {passages:,} passages isolated; {clusters}; {calls}"
