"""Diffusion recall: from the facts a question hits, through the graph, to passages (HippoRAG 2; CogitoRAG, 3.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tomewise.errors import BadReply, Refused
from tomewise.fallbacks import NO_WALK, NOT_DECOMPOSED, record_fallback
from tomewise.language.roles import DECOMPOSE, DecomposeIn
from tomewise.recall.cognirank import cognirank, merge
from tomewise.recall.csr import CsrGraph
from tomewise.recall.graph_index import GraphIndex, GraphIndexes
from tomewise.recall.linking import Linking
from tomewise.recall.ranking import ranked, top
from tomewise.recall.seeding import Asked, Seeding
from tomewise.recall.similarity import cosines, cosines_at
from tomewise.recall.walk import Visited, Walk
from tomewise.types import Embedder, Evidence, LanguageModel, Retriever

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.sqlite.store import SqliteStore

Spreading = Callable[["GraphIndex", "NDArray[np.int64]", "NDArray[np.float64]"], Visited]


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """Passages that a question's walk came to, in no order: their keys, their masses as parts of the greatest (as they

    are tiny on a large graph), and the question's vector. None where no fact was hit.
    """

    keys: NDArray[np.int64]
    masses: NDArray[np.float64]
    vector: NDArray[np.float32]


def walked(index: GraphIndex, vertices: NDArray[np.int64], weights: NDArray[np.float64]) -> Visited:
    """The whole walk."""
    return index.walk.push(vertices, weights, among=index.is_passage)


def one_step(index: GraphIndex, vertices: NDArray[np.int64], weights: NDArray[np.float64]) -> Visited:
    """No diffusion (CogitoRAG, table 8): one step of equation 16, so that mass goes no further than one edge.

    A passage that is seeded keeps the share of its mass that the walk returns to its seeds; entities hand theirs on.
    """
    graph, restart = index.walk.graph, index.walk.restart
    mass = np.zeros(len(index.is_passage))
    own = index.is_passage[vertices]
    np.add.at(mass, vertices[own], restart * weights[own])
    entities, handed = vertices[~own], (1 - restart) * weights[~own]
    for vertex, weight in zip(entities.tolist(), handed.tolist(), strict=True):  # the ends of a few facts
        row = slice(graph.indptr[vertex], graph.indptr[vertex + 1])
        if row.start < row.stop:
            mass[graph.indices[row]] += weight * graph.weights[row] / graph.weights[row].sum()
    reached = np.flatnonzero(index.is_passage & (mass > 0))
    return Visited(reached.astype(np.int32), mass[reached].astype(np.float32))


class Diffusion:
    """Passages by the mass that a walk from the question's seeds brings them.

    Without any seed, where no fact was hit, passages are ranked by cosine alone. Where the walk reached fewer than
    were asked for, the nearest of the others follow.
    """

    def __init__(
        self,
        store: SqliteStore,
        embedder: Embedder,
        indexes: GraphIndexes,
        linking: Linking,
        seeding: Seeding,
        *,
        spreading: Spreading = walked,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._indexes = indexes
        self._linking = linking
        self._seeding = seeding
        self._spreading = spreading

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """The `limit` best passages; scores are masses relative to the best, cosine - 1 where no walk came."""
        reached = await self.spread(query)
        best = top(reached.masses, limit)
        return await asyncio.to_thread(_evidence, self._store, reached, reached.keys[best], reached.masses[best], limit)

    async def spread(self, query: str) -> Reached:
        """All passages that the walk from this question comes to; none is a fallback, as recall then goes by cosine."""
        reached = await self._reached(query)
        if not len(reached.keys):
            record_fallback(NO_WALK)
        return reached

    async def _reached(self, query: str) -> Reached:
        # The first question loads an embedder, an index and compiled code: side by side.
        (vector,), index, _ = await asyncio.gather(
            asyncio.to_thread(self._embedder.embed, [query]),
            asyncio.to_thread(self._indexes.current),
            asyncio.to_thread(_load_walk),
        )
        nowhere = Reached(np.empty(0, np.int64), np.empty(0), vector)
        hits = await self._linking.hits(query, vector)
        if not len(hits.keys):
            return nowhere
        vertices, weights = await self._seeding.seeds(Asked(query, vector, hits), index)
        if not weights.sum() > 0:
            return nowhere
        visited = await asyncio.to_thread(self._spreading, index, vertices, weights)
        if not visited.nodes.size:
            return nowhere
        masses = visited.values.astype(np.float64)
        return Reached(index.passages[visited.nodes - len(index.entities)], masses / masses.max(), vector)


class CogniRank:
    """Candidates of the diffusion, their mass blended with their cosine (CogitoRAG, equations 17 and 18).

    `blend` is the paper's epsilon; `candidates` the size of P_c, which the paper leaves open (200, as released).
    """

    def __init__(self, store: SqliteStore, diffusion: Diffusion, *, blend: float = 0.95, candidates: int = 200) -> None:
        self._store = store
        self._diffusion = diffusion
        self._blend = blend
        self._candidates = candidates

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """The `limit` best passages; scores are S(p), 0 to 1, and cosine - 1 where no walk came."""
        return await asyncio.to_thread(self._blended, await self._diffusion.spread(query), limit)

    def _blended(self, reached: Reached, limit: int) -> list[Evidence]:
        candidates = top(reached.masses, max(self._candidates, limit))
        keys, masses = reached.keys[candidates], reached.masses[candidates]
        held, scores = cosines_at(self._store.vectors("passages"), keys, reached.vector)
        blended = cognirank(masses[held], scores, blend=self._blend)
        best = top(blended, limit)
        return _evidence(self._store, reached, keys[held][best], blended[best], limit)


class Decomposed:
    """Recall by the parts of a question, merged so that each part keeps its place (CogitoRAG, section 3.3).

    The rule 2 + 2 + 1 for two parts and five passages, generalised; see `cognirank.merge`. A question that the model
    cannot take apart is asked whole.
    """

    def __init__(self, retriever: Retriever, model: LanguageModel, *, parts: int = 2) -> None:
        self._retriever = retriever
        self._model = model
        self._parts = parts

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """The `limit` best passages of all parts; each counts with its best score."""
        lists = await asyncio.gather(*(self._retriever.retrieve(part, limit) for part in await self._decomposed(query)))
        if len(lists) == 1:
            return lists[0]
        found = {piece.node: piece for some in reversed(lists) for piece in some}
        best = merge([[(piece.node, piece.score) for piece in some] for some in lists], limit)
        return [replace(found[node], score=score) for node, score in best]

    async def _decomposed(self, query: str) -> Sequence[str]:
        try:
            reply = await self._model.ask(DECOMPOSE, DecomposeIn(question=query, limit=self._parts))
        except (BadReply, Refused):
            record_fallback(NOT_DECOMPOSED)
            return [query]
        parts = list(dict.fromkeys(part for part in reply.subqueries if part))[: self._parts]
        return parts if len(parts) > 1 else [query]


@cache
def _load_walk() -> None:
    """Load what walks are compiled to, which takes half a second once, with the smallest walk there is."""
    Walk(CsrGraph.from_edges(2, [0], [1], [1.0])).push([0], [1.0])


def _evidence(
    store: SqliteStore, reached: Reached, keys: NDArray[np.int64], scores: NDArray[np.float64], limit: int
) -> list[Evidence]:
    """The best passages, and where they are fewer than `limit` the nearest of those not reached."""
    found = ranked(store, keys.tolist(), scores.tolist(), limit)
    if len(found) >= limit:
        return found
    every, near = cosines(store.vectors("passages"), reached.vector)
    if len(reached.keys):
        others = ~np.isin(every, reached.keys)
        every, near = every[others], near[others] - 1  # below whatever was reached
    best = top(near, limit - len(found))
    found += ranked(store, every[best].tolist(), near[best].tolist(), limit - len(found))
    return sorted(found, key=lambda piece: (-piece.score, piece.node))
