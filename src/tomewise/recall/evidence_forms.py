"""Evidence in other forms than passages: passages with their gists, or triples (CogitoRAG, equation 19, table 12)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tomewise.calls import CallCount, read_calls
from tomewise.memory.gists import GistsLayer
from tomewise.recall.entity_graph import make_fact
from tomewise.recall.ranking import PlainSearch, rank_nodes
from tomewise.recall.rewriting import list_content_words
from tomewise.store.contract import Readable
from tomewise.store.lookups import find_derived, find_keys, find_nearest, name_sources
from tomewise.text.sentences import split_sentences
from tomewise.types import Embedder, Evidence, Retriever, Scope

GIST_LINE = "Gist of this passage:"  # tells a model where the passage ends, since only the passage may be quoted


@dataclass(frozen=True)
class WithGists:
    """Adds to each passage of `retriever` its gist, below a line that says so.

    A gist with the same words as its passage is left out.

    With `only_new_sentences`, only the sentences of a gist that add something to the passage are shown (not in the
    paper). A sentence adds nothing if one sentence of the passage has all its words; stop words do not count.
    """

    retriever: Retriever
    store: Readable
    only_new_sentences: bool = False

    @property
    def calls(self) -> CallCount:
        return read_calls(self.retriever)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """Passages with their gists; a passage without a gist is returned as it is."""
        passages = await self.retriever.retrieve(query, limit, within=within)
        return await asyncio.to_thread(self._add_gists, passages)

    def _add_gists(self, passages: Sequence[Evidence]) -> list[Evidence]:
        keys = find_keys(self.store, (passage.id for passage in passages))
        made = find_derived(self.store, keys.values(), f"made-of:{GistsLayer.name}")
        nodes = self.store.nodes_at({key for group in made.values() for key in group})
        found = []
        for passage in passages:
            own = made[keys[passage.id]] if passage.id in keys else []
            # A gist may have been removed after the search.
            gists = sorted((nodes[key] for key in own if key in nodes), key=lambda gist: gist.id)
            found.append(replace(passage, text=self._join(passage.text, [gist.text for gist in gists])))
        return found

    def _join(self, passage: str, gists: Sequence[str]) -> str:
        if self.only_new_sentences:
            gists = [select_new_sentences(gist, passage) for gist in gists]
        added = [f"{GIST_LINE}\n{gist}" for gist in gists if gist and gist.split() != passage.split()]
        return "\n\n".join((passage, *added))


@dataclass(frozen=True)
class SelectedFacts(PlainSearch):
    """The `most` facts nearest to the question, in place of passages (CogitoRAG, table 12, "Triples-as-Carrier").

    Each fact is one piece of evidence, and its sources are all passages that state it, in a scope all of those within.
    Scores are cosines.
    """

    store: Readable
    embedder: Embedder
    graph: str
    most: int

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        space, limit = f"facts:{self.graph}", min(limit, self.most)
        found = find_nearest(self.store, space, self.embedder.embed([query])[0], limit, within)
        cosines, nodes = rank_nodes(self.store, found.keys, found.cosines.astype(np.float64), limit)
        sources = name_sources(self.store, cosines, space, within)
        return [
            make_fact(nodes[key].id, nodes[key].text, sources[key], score=cosine) for key, cosine in cosines.items()
        ]


def select_new_sentences(gist: str, passage: str) -> str:
    """The sentences of a gist that add something to its passage, see `WithGists`."""
    passage_words = [frozenset(list_content_words(sentence.text)) for sentence in split_sentences(passage)]
    new_sentences = []
    for sentence in split_sentences(gist):
        words = frozenset(list_content_words(sentence.text))
        if words and not any(words <= sentence_words for sentence_words in passage_words):
            new_sentences.append(sentence.text)
    return " ".join(new_sentences)
