"""Order the first passages so that together they hold more of the question's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tomewise.language.extractive.words import stem
from tomewise.language.stop_words import STOP
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.store.lookups import read_vectors
from tomewise.store.records import PASSAGES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import Readable

Ranking = tuple["NDArray[np.int64]", "NDArray[np.float64]"]  # keys (n,) and scores (n,) from 0 up, best first
_LEAST = np.finfo(np.float64).tiny  # in place of a score of 0, which has no logarithm


class Coverage:
    """Ours: the best `reach` passages are chosen again, one after another, by score and by new words of the question.

    The next passage is that with the greatest log(score / best score) + `weight` * sum of idf(w), over the content
    words w of the question that it holds and no chosen passage does. idf(w) = log(1 + P / (1 + df(w))), where df(w) of
    P passages hold w, scaled to sum 1 over the question. What holds a word is what the lexical index finds by it.
    """

    def __init__(self, store: Readable, *, weight: float = 1.0, reach: int = 30) -> None:
        self._store = store
        self._weight = weight
        self._reach = reach

    def reorder(self, question: str, rankings: Sequence[Ranking]) -> list[Ranking]:
        """Several rankings for one question, each best first, in their new order.

        The new scores are relative to the first one's. The index is asked once for each word.
        """
        words = list_distinct_words(question) if self._weight else []
        reached = np.unique(np.concatenate([keys[: self._reach] for keys, _ in rankings]))
        holders = self._store.find_holders(words, reached)
        holds = np.array([np.isin(reached, found) for _, found in holders], np.bool_).reshape(-1, len(reached))
        passages = len(read_vectors(self._store, PASSAGES).keys)
        weights = self._weight * weigh_words([count for count, _ in holders], passages)
        return [
            self._choose(ranking, holds[:, np.searchsorted(reached, ranking[0][: self._reach])], weights)
            for ranking in rankings
        ]

    def _choose(self, ranking: Ranking, holds: NDArray[np.bool_], weights: NDArray[np.float64]) -> Ranking:
        keys, scores = ranking
        scores = np.maximum(scores / scores[0], _LEAST)
        order, values = choose_covering(np.log(scores[: self._reach]), holds, weights)
        values = np.concatenate((np.exp(values), scores[self._reach :]))
        return np.concatenate((keys[order], keys[self._reach :])), values / values[0]


def weigh_words(counts: Sequence[int], passages: int) -> NDArray[np.float64]:
    """The idf of words that so many of the `passages` hold, scaled to sum 1."""
    idf = np.log(1 + passages / (1 + np.array(counts, np.float64)))
    return np.asarray(idf / idf.sum()) if len(idf) else idf


def choose_covering(
    scores: NDArray[np.float64], holds: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The order in which passages are chosen, and the value of each at that moment, which never rises.

    `scores` (n,) are logarithms, `holds` (w, n) says which passage holds which word, `weights` (w,) is of words.
    """
    left = np.ones(len(scores), np.bool_)
    open_weights = weights.copy()
    order, values = [], []
    for _ in range(len(scores)):
        worth = np.where(left, scores + open_weights @ holds, -np.inf)
        best = int(worth.argmax())
        order.append(best)
        values.append(float(worth[best]))
        left[best] = False
        open_weights[holds[:, best]] = 0
    return np.array(order, np.int64), np.array(values)


def list_distinct_words(question: str) -> list[str]:
    """The content words of a question, one for each stem."""
    return list({stem(word): word for word in normalise_name(question).split() if word not in STOP}.values())
