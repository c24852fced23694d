"""The formulas around the walk: where it starts (entity seeds) and how its result is scored (CogniRank).

Pure functions of arrays and ids; the caller numbers the entities. The facts that a question hits are given as `ends`,
int (facts, 2), the subject and the object of each fact, and `coverage`, int (facts, 2), the number of passages that
contain the subject and the object.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tomewise.recall.array_types import Floats, Keys

Id = TypeVar("Id", int, str)
Seeds = tuple[Keys, Floats]  # entities and their weights, highest weight first, ties by entity


def scale_scores(scores: ArrayLike, delta: float = 1e-12) -> Floats:
    """CogitoRAG, equation 17: (x - min) / (max - min + delta); equal scores become 0."""
    x = np.asarray(scores, dtype=np.float64)
    return (x - x.min()) / (x.max() - x.min() + delta) if x.size else x


def score_passages(diffusion: ArrayLike, cosines: ArrayLike, *, blend: float = 0.95) -> Floats:
    """CogitoRAG, equation 18: S(p) of each candidate passage; `blend`, the paper's epsilon, weighs the diffusion."""
    return blend * scale_scores(diffusion) + (1 - blend) * scale_scores(cosines)


def weigh_cogito_seeds(
    ends: ArrayLike, cosines: ArrayLike, coverage: ArrayLike, *, alpha: float = 2.0, beta: float = 1.0
) -> Seeds:
    """CogitoRAG, equations 13 to 15: the initial activation of each entity of the hit facts.

    The mean cosine of the entity's facts, times 1 + alpha (1 - exp(-beta hits)), divided by the number of passages that
    contain the entity. The paper does not define the case of negative cosines: here they count as 0. A fact whose
    subject and object are the same entity counts once.
    """
    ends_flat, passage_counts, facts = _flatten_ends(ends, coverage)
    # One row for each pair of entity and fact: the subject and the object may be the same entity.
    pairs, first = np.unique(np.stack((ends_flat, facts)), axis=1, return_index=True)
    entities, place = np.unique(pairs[0], return_inverse=True)
    clipped = np.maximum(np.asarray(cosines, dtype=np.float64), 0)
    hits = np.bincount(place)
    evidence = np.bincount(place, weights=clipped[pairs[1]]) / hits
    passages = np.zeros(entities.size)
    np.maximum.at(passages, place, passage_counts[first])
    return _sort_by_weight(entities, evidence * (1 + alpha * (1 - np.exp(-beta * hits))) / np.maximum(1, passages))


def weigh_hippo_seeds(ends: ArrayLike, scores: ArrayLike, coverage: ArrayLike, *, keep: int = 5) -> Seeds:
    """HippoRAG 2: the weight of each entity of the hit facts, for the `keep` entities of highest weight.

    Each time the entity is the subject or object of a fact gives the fact's score divided by the number of passages
    that contain the entity; the weight is the mean of these. A weight may be 0, where the released code fails.
    """
    ends_flat, passage_counts, facts = _flatten_ends(ends, coverage)
    parts = np.asarray(scores, dtype=np.float64)[facts] / np.maximum(1, passage_counts)
    entities, place = np.unique(ends_flat, return_inverse=True)
    best, weights = _sort_by_weight(entities, np.bincount(place, weights=parts) / np.bincount(place))
    return best[:keep], weights[:keep]


def merge_rankings(rankings: Sequence[Sequence[tuple[Id, float]]], limit: int) -> list[tuple[Id, float]]:
    """One ranking of at most `limit` ids from those of several sub-questions, each (id, score) best first.

    CogitoRAG's rule 2+2+1, for any number m of sub-questions. In turn, each sub-question gives its best id that is not
    yet taken, until each has given max(1, (limit - 1) // m) ids. The highest scores fill the remaining places. An id
    counts with its best score. The result is ordered by score, ties by id.
    """
    best: dict[Id, float] = {}
    for ranking in rankings:
        for node, score in ranking:
            best[node] = max(score, best.get(node, score))
    taken: dict[Id, None] = {}
    queues = [iter(ranking) for ranking in rankings]
    for _ in range(max(1, (limit - 1) // max(1, len(rankings)))):
        for queue in queues:
            fresh = next((node for node, _ in queue if node not in taken), None)
            if fresh is not None and len(taken) < limit:
                taken[fresh] = None
    rest = ((-score, node) for node, score in best.items() if node not in taken)
    taken.update((node, None) for _, node in heapq.nsmallest(limit - len(taken), rest))
    return sorted(((node, best[node]) for node in taken), key=lambda entry: (-entry[1], entry[0]))


def _flatten_ends(ends: ArrayLike, coverage: ArrayLike) -> tuple[Keys, Floats, Keys]:
    """For each end of each fact: the entity, the number of passages that contain it, and the fact."""
    entities = np.asarray(ends, dtype=np.int64).reshape(-1, 2)
    facts = np.repeat(np.arange(len(entities)), 2)
    return entities.ravel(), np.asarray(coverage, dtype=np.float64).ravel(), facts


def _sort_by_weight(entities: NDArray[Any], weights: Floats) -> Seeds:
    order = np.lexsort((entities, -weights))
    return entities[order], weights[order]
