"""A recipe: passages by their openings, each with the sentences retold from its facts."""

from __future__ import annotations

from dataclasses import replace

import tomewise.parts as tw
from tomewise_harbour.retriever import Words, find_openings


class WithRetold:
    """Adds to each passage what was retold from its facts."""

    calls = tw.CallCount("0", 0)

    def __init__(self, retriever: tw.Retriever, kit: tw.Kit) -> None:
        self._retriever, self._store = retriever, kit.store

    async def retrieve(self, query: str, limit: int, *, within: tw.Scope | None = None) -> list[tw.Evidence]:
        """The passages that the other retriever finds."""
        found = await self._retriever.retrieve(query, limit, within=within)
        return [replace(piece, text="\n".join([piece.text, *self._find_sentences(piece)])) for piece in found]

    def _find_sentences(self, piece: tw.Evidence) -> list[str]:
        keys = {found.key for found in self._store.find([piece.id]).values()}
        for space in ("seen-in:facts:passages-triples", "made-of:retold"):
            keys = set(self._store.edges_at([space], keys, "b")[:, 0].astype(int).tolist())
        return sorted(node.text for node in self._store.nodes_at(keys).values())


def harbour(kit: tw.Kit, *, limit: tw.Limit = 5, words: Words = 50) -> tw.System:
    """The recipe of `harbour`."""
    recall = WithRetold(find_openings(kit, words=words).retriever, kit)
    return tw.answer_once(kit, recall, tw.make_layers(kit, "retold"), limit=limit)


SUMMARY = "Answer from passages and from what was retold of their facts."
HARBOUR = tw.SystemDeclaration(recipe=harbour, summary=SUMMARY, kind="one search", ablations={"briefly": {"words": 5}})
