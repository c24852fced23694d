"""Evidence in other forms than passages: passages with their gists, or triples (CogitoRAG, equation 19, table 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tomewise.memory.gists import GistsLayer
from tomewise.recall.entity_graph import make_fact
from tomewise.recall.ranking import PlainSearch, rank_nodes
from tomewise.store.contract import Readable
from tomewise.store.lookups import find_derived, find_keys, find_nearest, name_sources
from tomewise.types import Embedder, Evidence, Scope

GIST_LINE = "Gist of this passage:"  # tells a model where the passage ends, since only the passage may be quoted


def pair_with_gists(store: Readable, passages: Sequence[Evidence]) -> list[Evidence]:
    """Each passage with its gist below a line that says so (CogitoRAG, equation 19); as it is if it has none."""
    keys = find_keys(store, (passage.id for passage in passages))
    made = find_derived(store, keys.values(), f"made-of:{GistsLayer.name}")
    gists = store.nodes_at({key for group in made.values() for key in group})
    added = {
        node: "".join(f"\n\n{GIST_LINE}\n{gists[key].text}" for key in made[own] if key in gists)
        for node, own in keys.items()
    }
    return [replace(passage, text=passage.text + added.get(passage.id, "")) for passage in passages]


@dataclass(frozen=True)
class SelectedFacts(PlainSearch):
    """The facts nearest to the question, in place of passages (CogitoRAG, table 12, "Triples-as-Carrier").

    Each fact is one piece of evidence, and its sources are all passages that state it, in a scope all of those within.
    Scores are cosines.
    """

    store: Readable
    embedder: Embedder
    graph: str

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        space = f"facts:{self.graph}"
        found = find_nearest(self.store, space, self.embedder.embed([query])[0], limit, within)
        cosines, nodes = rank_nodes(self.store, found.keys, found.cosines.astype(np.float64), limit)
        sources = name_sources(self.store, cosines, space, within)
        return [
            make_fact(nodes[key].id, nodes[key].text, sources[key], score=cosine) for key, cosine in cosines.items()
        ]
