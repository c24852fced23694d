"""From scores to evidence: all retrievers rank in this way."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from numpy.typing import NDArray

from tomewise.calls import NO_CALLS
from tomewise.store.contract import Texts
from tomewise.store.nearest import DECIMALS, find_top
from tomewise.types import Evidence, Node, NodeId, Passage, PassageId, Rewrite, Scope

T = TypeVar("T")
Measure: TypeAlias = Callable[[Sequence[Evidence]], list[int]]
"""Gives the tokens that each piece takes in a prompt."""
NO_REWRITES: Mapping[int, Rewrite] = MappingProxyType({})


class PlainSearch(ABC):
    """A search that calls no model. It runs in a thread, since it reads the store."""

    calls = NO_CALLS

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best pieces of evidence within the scope, best first."""
        return await asyncio.to_thread(self._search, query, limit, within)

    @abstractmethod
    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]: ...


def pair_scores(keys: NDArray[Any], scores: NDArray[Any]) -> dict[int, float]:
    """The scores (n,) by keys (n,)."""
    return dict(zip(keys.tolist(), scores.tolist(), strict=True))


def rank_keys(scores: Mapping[int, float], nodes: Mapping[int, Node | Passage], limit: int) -> list[int]:
    """The `limit` best of those that still exist, ties by id."""
    known = [key for key in scores if key in nodes]
    return sorted(known, key=lambda key: (-round(scores[key], DECIMALS), nodes[key].id))[:limit]


def rank_nodes(
    store: Texts, keys: NDArray[Any], scores: NDArray[Any], limit: int
) -> tuple[dict[int, float], dict[int, Node]]:
    """The scores of the `limit` best nodes that still exist, best first, ties by id; and the nodes."""
    best = find_top(scores, limit)
    nearest = pair_scores(keys[best], scores[best].round(DECIMALS))
    nodes = store.nodes_at(nearest)
    return {key: nearest[key] for key in rank_keys(nearest, nodes, limit)}, nodes


def name_in_order(keys: Iterable[int], passages: Mapping[int, Passage]) -> tuple[PassageId, ...]:
    """The ids of these passages in document order; those that were removed since are left out."""
    found = (passages[key] for key in keys if key in passages)
    return tuple(passage.id for passage in sorted(found, key=lambda passage: (passage.document, passage.position)))


def rank_evidence(found: Iterable[Evidence], limit: int | None = None) -> list[Evidence]:
    """The `limit` best pieces, ties by id."""
    return sorted(found, key=lambda piece: (-piece.score, piece.id))[:limit]


def rank_passages(
    store: Texts, keys: NDArray[Any], scores: NDArray[Any], limit: int, rewrites: Mapping[int, Rewrite] = NO_REWRITES
) -> list[Evidence]:
    """The `limit` best passages as evidence, ties by id. `rewrites` has the keys of those that a rewrite brought."""
    best = find_top(scores, limit)
    nearest = dict(zip(keys[best].tolist(), scores[best].tolist(), strict=True))
    found = (
        as_evidence(passage, round(nearest[key], DECIMALS), rewrites.get(key))
        for key, passage in store.passages(nearest).items()
    )
    return rank_evidence(found, limit)


def as_evidence(passage: Passage, score: float, rewrite: Rewrite | None = None) -> Evidence:
    """A passage as evidence."""
    return Evidence(
        id=passage.id,
        layer="passages",
        text=passage.text,
        score=score,
        sources=(passage.id,),
        title=passage.title,
        place=passage.place,
        rewrite=rewrite,
    )


def mark_brought(found: Sequence[Evidence], rewrite: Rewrite) -> list[Evidence]:
    """The evidence with the question that brought it, unless another one did."""
    return [piece if piece.rewrite else replace(piece, rewrite=rewrite) for piece in found]


def drop_repeats(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Each piece once, where it comes first."""
    unique: dict[NodeId, Evidence] = {}
    for piece in evidence:
        unique.setdefault(piece.id, piece)
    return list(unique.values())


def score_by_place(ranked: Sequence[Evidence], limit: int) -> list[Evidence]:
    """The first `limit` pieces, each with 1 / place as its score."""
    return [replace(piece, score=1 / place) for place, piece in enumerate(ranked[:limit], start=1)]


def take_fitting(pieces: Sequence[Evidence], room: int, measure: Measure) -> list[Evidence]:
    """The first pieces, up to the first one without room."""
    return [piece for piece, used in zip(pieces, accumulate(measure(pieces)), strict=True) if used <= room]


def take_turns(lists: Sequence[Sequence[T]]) -> Iterator[T]:
    """The first of each list, then the second of each, and so on."""
    deepest = max(map(len, lists), default=0)
    return (pieces[rank] for rank in range(deepest) for pieces in lists if rank < len(pieces))
