"""What carries the answer: passages alone, passages with their gists, or triples (CogitoRAG, equation 19, table 12)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tomewise.language.sentences import split_sentences
from tomewise.language.stop_words import STOP
from tomewise.memory.graph.entities import normalise_name
from tomewise.recall.linking import Hits, Linking
from tomewise.types import Embedder, Evidence, Retriever

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore


class WithGists:
    """Each passage found, followed by the gist that was made of it. A gist equal to its passage is not shown again.

    With `added`, only those sentences of a gist are shown that add something: whose words, stop words apart, are not
    all in one sentence of the passage (ours).
    """

    def __init__(self, retriever: Retriever, store: SqliteStore, *, layer: str = "gists", added: bool = False) -> None:
        self._retriever = retriever
        self._store = store
        self._layer = layer
        self._added = added

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """Passages with gists; a passage without one stands alone."""
        found = await self._retriever.retrieve(query, limit)
        return await asyncio.to_thread(self._paired, found)

    def _paired(self, found: Sequence[Evidence]) -> list[Evidence]:
        gists = texts_made_of(self._store, found, f"made-of:{self._layer}")
        return [replace(piece, text=self._pair(piece.text, gists[piece.node])) for piece in found]

    def _pair(self, passage: str, gists: Sequence[str]) -> str:
        shown = [added(gist, passage) for gist in gists] if self._added else gists
        return "\n\n".join((passage, *(gist for gist in shown if gist and not _are_equal(gist, passage))))


class SelectedFacts:
    """In place of passages, the facts that the question selects (CogitoRAG, table 12, "Triples-as-Carrier").

    One piece of evidence a fact, with all the passages that state it. `linking` decides which facts, and how many.
    """

    def __init__(self, store: SqliteStore, embedder: Embedder, linking: Linking, graph: str) -> None:
        self._store = store
        self._embedder = embedder
        self._linking = linking
        self._layer = f"facts:{graph}"

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """The `limit` first facts; scores are cosines."""
        (vector,) = await asyncio.to_thread(self._embedder.embed, [query])
        hits = await self._linking.hits(query, vector)
        return await asyncio.to_thread(self._evidence, hits, limit)

    def _evidence(self, hits: Hits, limit: int) -> list[Evidence]:
        keys = hits.keys[:limit].tolist()
        nodes, below = self._store.nodes_at(keys), self._store.sources(keys, self._layer)
        passages = self._store.passages({key for some in below.values() for key in some})
        return [
            Evidence(
                node=nodes[key].id,
                layer="facts",
                text=text,
                score=round(cosine, 6),
                sources=tuple(passages[one].id for one in below[key] if one in passages),
            )
            for key, text, cosine in zip(keys, hits.texts[:limit], hits.cosines[:limit].tolist(), strict=True)
            if key in nodes  # one may have been removed since
        ]


def added(gist: str, passage: str) -> str:
    """The sentences of a gist whose words, stop words apart, are not all in one sentence of its passage."""
    said = [_words(sentence.text) for sentence in split_sentences(passage)]
    kept = [sentence.text for sentence in split_sentences(gist) if _adds(_words(sentence.text), said)]
    return " ".join(kept)


def _adds(words: frozenset[str], said: Sequence[frozenset[str]]) -> bool:
    return bool(words) and not any(words <= there for there in said)


def _words(text: str) -> frozenset[str]:
    return frozenset(normalise_name(text).split()) - STOP


def _are_equal(one: str, other: str) -> bool:
    return one.split() == other.split()


def texts_made_of(store: SqliteStore, found: Sequence[Evidence], space: str) -> dict[str, list[str]]:
    """For each piece of evidence that is a passage, the texts of the nodes made of it, ordered by id."""
    keys = store.keys_of(piece.node for piece in found)
    above = store.made_of(keys.values(), space)
    nodes = store.nodes_at({key for some in above.values() for key in some})
    texts: dict[str, list[str]] = defaultdict(list)
    for node, key in keys.items():
        there = [nodes[up] for up in above[key] if up in nodes]  # one may have been removed since
        texts[node] = [made.text for made in sorted(there, key=lambda made: made.id)]
    return texts
