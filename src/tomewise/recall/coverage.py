"""Order the first passages so that together they hold more of the question's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tomewise.language.extractive.words import stem
from tomewise.language.stop_words import STOP
from tomewise.memory.graph.entities import normalise_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import Words


class Coverage:
    """Ours: the best `reach` passages are chosen again, one after another, by score and by new words of the question.

    The next passage is that with the greatest log(score / best score) + `weight` * sum of idf(w), over the content words
    w of the question that it holds and no chosen passage does. idf(w) = log(1 + P / (1 + df(w))), where df(w) of P
    passages hold w, scaled to sum 1 over the question. What holds a word is what the lexical index finds by it.
    """

    def __init__(self, store: Words, *, weight: float = 1.0, reach: int = 30) -> None:
        self._store = store
        self._weight = weight
        self._reach = reach

    def reorder(
        self, question: str, keys: NDArray[np.int64], scores: NDArray[np.float64], passages: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Passages and their new scores, best first: those given, which are best first too, out of so many `passages`.

        The new scores are relative to that of the first.
        """
        first = keys[: self._reach]
        words = list_distinct_words(question) if self._weight else []
        holders = self._store.find_holders(words, np.sort(first))
        weights = self._weight * weigh_words([count for count, _ in holders], passages)
        holds = np.array([np.isin(first, found) for _, found in holders], np.bool_).reshape(-1, len(first))
        order, values = choose_covering(np.log(scores[: self._reach] / scores[0]), holds, weights)
        values = np.concatenate((np.exp(values), scores[self._reach :] / scores[0]))
        return np.concatenate((first[order], keys[self._reach :])), values / values[0]


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
