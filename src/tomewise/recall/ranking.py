"""From scores to evidence: all retrievers rank passages in this way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from tomewise.store.nearest import DECIMALS
from tomewise.types import Evidence, Passage, Rewrite

if TYPE_CHECKING:
    from tomewise.store.contract import Texts

T = TypeVar("T")


def rank_passages(
    store: Texts,
    keys: Sequence[int],
    scores: Iterable[float],
    limit: int,
    rewrites: Mapping[int, Rewrite] = MappingProxyType({}),
) -> list[Evidence]:
    """The `limit` best passages as evidence, ties by id. `rewrites` has the keys of those that a rewrite brought."""
    passages = store.passages(keys)
    found = [
        as_evidence(passages[key], round(float(score), DECIMALS), rewrites.get(key))
        for key, score in zip(keys, scores, strict=True)
        if key in passages
    ]
    return sorted(found, key=lambda evidence: (-evidence.score, evidence.node))[:limit]


def as_evidence(passage: Passage, score: float, rewrite: Rewrite | None = None) -> Evidence:
    """A passage as evidence."""
    return Evidence(
        node=passage.id,
        layer="passages",
        text=passage.text,
        score=score,
        sources=(passage.id,),
        title=passage.title,
        place=passage.place,
        rewrite=rewrite,
    )


def take_turns(lists: Sequence[Sequence[T]]) -> Iterator[T]:
    """The first of each list, then the second of each, and so on."""
    deepest = max(map(len, lists), default=0)
    return (pieces[rank] for rank in range(deepest) for pieces in lists if rank < len(pieces))
