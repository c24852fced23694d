"""A recipe: passages by their openings, each with the sentences retold from its facts."""

from __future__ import annotations

from dataclasses import replace

from tomewise.parts import CallCount, Count, Evidence, Kit, Retriever, Scope, System, answer_once, make_layers
from tomewise_harbour.retriever import find_openings


class WithRetold:
    """Adds to each passage what was retold from its facts."""

    calls = CallCount("0", 0)

    def __init__(self, retriever: Retriever, kit: Kit) -> None:
        self._retriever = retriever
        self._store = kit.store

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The passages that the other retriever finds."""
        found = await self._retriever.retrieve(query, limit, within=within)
        return [replace(piece, text="\n".join([piece.text, *self._find_sentences(piece)])) for piece in found]

    def _find_sentences(self, piece: Evidence) -> list[str]:
        keys = self._store.keys_of([piece.node]).values()
        for space in ("seen-in:facts:passages-triples", "made-of:retold"):
            keys = {key for derived in self._store.find_derived(keys, space).values() for key in derived}
        return sorted(node.text for node in self._store.nodes_at(keys).values())


def harbour(kit: Kit, *, limit: Count = 5, words: Count = 50) -> System:
    """Answer from passages and from what was retold of their facts."""
    recall = WithRetold(find_openings(kit, words=words).retriever, kit)
    return answer_once(kit, recall, limit, 6000, make_layers(kit, "retold"))
