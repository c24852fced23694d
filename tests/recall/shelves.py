"""A retriever that is scripted, for tests of what searches with it, and texts to search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tomewise.types import Evidence, Scope

SCENES = (
    "Ada kept the light on the rock.",
    "The keeper trimmed the lamp at night.",
    "Tom sold a boat in the harbour.",
    "The harbour froze that winter.",
    "A judge heard the case of the boat.",
    "The clerk wrote the verdict down.",
)


class Shelves:
    """Gives what stands under a query, else `ground`, and notes the queries, limits and scopes that it was asked."""

    def __init__(self, found: Mapping[str, Sequence[Evidence]], ground: Sequence[Evidence] = ()) -> None:
        self.asked: list[str] = []
        self.limits: list[int] = []
        self.scopes: list[Scope | None] = []
        self._found = found
        self._ground = ground

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        self.asked.append(query)
        self.limits.append(limit)
        self.scopes.append(within)
        return list(self._found.get(query, self._ground))[:limit]


def make_pieces(nodes: Iterable[str], best: float = 1.0, layer: str = "passages") -> list[Evidence]:
    """A piece of evidence for each node, whose text is its name, each a tenth below the one before."""
    return [
        Evidence(id=node, layer=layer, text=node, score=best - rank / 10, sources=(node,))
        for rank, node in enumerate(nodes)
    ]


def join_nodes(found: Iterable[Evidence]) -> str:
    return "".join(piece.id for piece in found)
