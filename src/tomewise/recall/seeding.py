"""Where a walk over the graph starts: entities and passages with their weights."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tomewise.memory.graph.entities import normalise_name
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.cognirank import cogito_seeds, hippo_seeds
from tomewise.recall.graph_index import GraphIndex
from tomewise.recall.linking import Hits
from tomewise.recall.ranking import top
from tomewise.recall.similarity import cosines, known, known_with, scaled
from tomewise.types import Embedder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.sqlite.store import SqliteStore

Seeds = tuple["NDArray[np.int64]", "NDArray[np.float64]"]  # vertices, weights
_LONGEST = 10  # words of an entity's name that a question is searched for


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A question on its way to the graph."""

    text: str
    vector: NDArray[np.float32]
    hits: Hits


class Seeding(Protocol):
    """Weights for some vertices of the graph."""

    async def seeds(self, asked: Asked, index: GraphIndex) -> Seeds: ...


class HippoSeeds:
    """HippoRAG 2: entities of the hit facts by the mean score of their occurrences, rare ones more; the best `keep`."""

    def __init__(self, *, keep: int = 5) -> None:
        self._keep = keep

    async def seeds(self, asked: Asked, index: GraphIndex) -> Seeds:
        """See `cognirank.hippo_seeds`."""
        ends, places = _ends(asked.hits, index)
        return hippo_seeds(ends, asked.hits.scores[places], index.spread[ends], keep=self._keep)


class CogitoSeeds:
    """CogitoRAG, equations 13 to 15: entities of the hit facts by mean cosine, rewarded for being hit often."""

    def __init__(self, *, alpha: float = 2.0, beta: float = 1.0) -> None:
        self._alpha = alpha
        self._beta = beta

    async def seeds(self, asked: Asked, index: GraphIndex) -> Seeds:
        """See `cognirank.cogito_seeds`."""
        ends, places = _ends(asked.hits, index)
        return cogito_seeds(ends, asked.hits.cosines[places], index.spread[ends], alpha=self._alpha, beta=self._beta)


class MentionSeeds:
    """Ours: entities that the question names, rare ones more (weight 1 / passages they stand in).

    A name counts when it is a longest run of words of the question that is an entity, and holds a word other than the
    question's first that is capitalised or has a digit.
    """

    def __init__(self, store: SqliteStore, names: GraphNames, *, weight: float = 1.0) -> None:
        self._store = store
        self._names = names
        self._weight = weight

    async def seeds(self, asked: Asked, index: GraphIndex) -> Seeds:
        """No model is asked."""
        keys = np.array(sorted(await asyncio.to_thread(self._mentioned, asked.text)), np.int64)
        vertices = known(keys, index.entities)
        return vertices, self._weight / np.maximum(1, index.spread[vertices])

    def _mentioned(self, question: str) -> set[int]:
        words = _words(question)
        telling = [place for place, word in enumerate(words) if place and _is_telling(word)]
        runs = {
            (start, end): self._names.entity(normalise_name(" ".join(words[start:end])))
            for start in range(len(words))
            for end in range(start + 1, min(len(words), start + _LONGEST) + 1)
            if any(start <= place < end for place in telling)
        }
        keys = self._store.keys_of(set(runs.values()))
        found = [run for run, node in runs.items() if node in keys]
        longest = [run for run in found if not any(_within(run, other) for other in found)]
        return {keys[runs[run]] for run in longest}


class PassageSeeds:
    """Passages by their cosine with the question scaled over all, times `weight`; the best `keep` of them.

    HippoRAG 2 seeds every passage (its weight is 0.05); beyond the first few hundred the rest only adds a haze that is
    even everywhere and makes a local walk visit the whole graph.
    """

    def __init__(self, store: SqliteStore, *, weight: float = 0.05, keep: int = 200) -> None:
        self._store = store
        self._weight = weight
        self._keep = keep

    async def seeds(self, asked: Asked, index: GraphIndex) -> Seeds:
        """Cosines with the question."""
        nearest = partial(_nearest_passages, self._store, keep=self._keep)
        vertices, scores = await asyncio.to_thread(nearest, index, asked.vector)
        return vertices, self._weight * scores


class ExpandedPassageSeeds:
    """Ours: as `PassageSeeds`, each passage taking its best cosine over the question and its expansions.

    An expansion is the question with the entities of one of the `facts` best facts that it lacks put before it.
    """

    def __init__(
        self, store: SqliteStore, embedder: Embedder, *, weight: float = 0.05, keep: int = 200, facts: int = 3
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._weight = weight
        self._keep = keep
        self._facts = facts

    async def seeds(self, asked: Asked, index: GraphIndex) -> Seeds:
        """No model is asked; the expansions are embedded together."""
        return await asyncio.to_thread(self._seeds, asked, index)

    def _seeds(self, asked: Asked, index: GraphIndex) -> Seeds:
        vectors = asked.vector
        if expansions := self._expansions(asked, index):
            vectors = np.vstack((vectors, self._embedder.embed(expansions)))
        vertices, scores = _nearest_passages(self._store, index, vectors, keep=self._keep)
        return vertices, self._weight * scores

    def _expansions(self, asked: Asked, index: GraphIndex) -> list[str]:
        places = known(asked.hits.keys[: self._facts], index.facts)
        ends = [index.entities[[index.heads[place], index.tails[place]]].tolist() for place in places.tolist()]
        nodes = self._store.nodes_at({key for pair in ends for key in pair})
        said = f" {normalise_name(asked.text)} "
        expansions = []
        for pair in ends:
            names = [nodes[key].text for key in dict.fromkeys(pair) if key in nodes]  # one may have been removed since
            if lacking := [name for name in names if f" {name} " not in said]:
                expansions.append(" ".join((*lacking, asked.text)))
        return expansions


class SumOfSeeds:
    """Several seedings at once; what falls on one vertex adds up."""

    def __init__(self, parts: Sequence[Seeding]) -> None:
        self._parts = tuple(parts)

    async def seeds(self, asked: Asked, index: GraphIndex) -> Seeds:
        """All seeds; the walk adds up repeats."""
        found = await asyncio.gather(*(part.seeds(asked, index) for part in self._parts))
        return np.concatenate([vertices for vertices, _ in found]), np.concatenate([weights for _, weights in found])


def _ends(hits: Hits, index: GraphIndex) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Head and tail of each hit fact, (facts, 2), and which hits these are."""
    places, held = known_with(hits.keys, index.facts)
    return np.stack((index.heads[places], index.tails[places]), axis=1), held


def _nearest_passages(store: SqliteStore, index: GraphIndex, vectors: NDArray[np.float32], *, keep: int) -> Seeds:
    """The `keep` passages, and those that tie, of greatest cosine with any of the vectors, scaled over all."""
    keys, found = cosines(store.vectors("passages"), vectors)
    scores = found if found.ndim == 1 else found.max(axis=1)
    best = top(scores, keep)
    vertices, held = known_with(keys[best], index.passages)
    return vertices + len(index.entities), scaled(scores, best)[held]


def _words(question: str) -> list[str]:
    """The question cut where `normalise_name` puts a space, in its own case: `Wesson's` is two words, `team` one."""
    signs = (
        sign
        if sign.isalnum() or unicodedata.category(sign)[0] == "M"
        else ""
        if unicodedata.category(sign) == "Cf"
        else " "
        for sign in unicodedata.normalize("NFKC", question)
    )
    return "".join(signs).split()


def _is_telling(word: str) -> bool:
    return word[0].isupper() or any(sign.isdigit() for sign in word)


def _within(run: tuple[int, int], other: tuple[int, int]) -> bool:
    return run != other and other[0] <= run[0] and run[1] <= other[1]
