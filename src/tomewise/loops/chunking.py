"""Which parts of the texts a relay reads, how long they may be, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Any, Literal

from tomewise.errors import UsageError
from tomewise.language.wrapped import find_name, find_room, find_window
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import load_passages, measure_texts
from tomewise.recall.flat import Everything
from tomewise.types import Evidence, In, Passage, PassageId, Question, Retriever, Role

Order = Literal["document", "relevance"]
_ALL = 10**9  # passages
LEAST_TOKENS = 1_000  # tokens of a chunk, and of a ledger
_SURE = 0.8  # of the window: models count tokens in their own way


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A run of passages, as long as a model reads at once: in document order, also of several documents.

    `tokens` is the sum of their sizes.
    """

    passages: tuple[Passage, ...]
    tokens: int


@dataclass(frozen=True, eq=False)
class Chunking:
    """Cuts the documents of a question's scope into chunks.

    `size` is in tokens; a chunk is smaller where the model's window has room for less. Order by relevance reads the
    chunks first whose best passage ranks highest in the search for the question. `recall` is that search, and the one
    for what a reading reads again or shows beside its notes.
    """

    desk: Desk
    size: int
    order: Order = "document"
    recall: Retriever | None = None

    async def find_chunks(self, question: Question, room: int) -> list[Chunk]:
        """The chunks of all documents in the question's scope, in the order in which they are read.

        `room` is how many tokens of text a call can show.
        """
        found = await Everything(self.desk.store).retrieve(question.text, _ALL, within=question.within)
        chunks = await asyncio.to_thread(self.cut_chunks, [piece.id for piece in found], room)
        if self.order == "document" or self.recall is None or len(chunks) < 2:
            return chunks
        ranked = await self.recall.retrieve(question.text, len(found), within=question.within)
        return _sort_by_relevance(chunks, ranked)

    def cut_chunks(self, wanted: Sequence[PassageId], room: int, most: int | None = None) -> list[Chunk]:
        """The chunks of these passages, in document order; with `most`, of the first that fit into so many tokens."""
        passages = list(load_passages(self.desk.store, wanted).values())
        sizes = measure_texts([passage.content for passage in passages], self.desk.count)
        sized = list(zip(passages, sizes, strict=True))
        if most is not None:
            totals = accumulate(sizes)
            sized = [pair for pair, total in zip(sized, totals, strict=True) if total <= most]
        sized.sort(key=lambda pair: (pair[0].document, pair[0].position))
        return make_chunks([passage for passage, _ in sized], [size for _, size in sized], min(self.size, room))


@dataclass(frozen=True, slots=True)
class FreeTokens:
    """The tokens that a call of `role` has for what grows while a text is read, and how many it needs at least."""

    role: Role[Any, Any]
    tokens: int
    least: int = LEAST_TOKENS

    @classmethod
    def measure(
        cls, desk: Desk, role: Role[In, Any], empty: In, *, beside: int = 0, least: int = LEAST_TOKENS
    ) -> FreeTokens:
        """The room beside the prompt with an `empty` input, and beside so many tokens more."""
        used = desk.model.count_input_tokens(role, empty) + beside
        return cls(role, int(_SURE * find_room(desk.model, role)) - used, least)


def check_windows(desk: Desk, rooms: Sequence[FreeTokens]) -> None:
    """Raise UsageError if the window of a role's model is too small, with the window that is needed."""
    needed, role = max((_find_needed_window(room, desk), room.role.name, room.role) for room in rooms)[::2]
    window = find_window(desk.model, role)
    if needed > window:
        raise UsageError(
            f"{find_name(desk.model, role)} takes {window:,} tokens, too few to read a text part by part, which needs "
            f"{needed:,}: let its server accept more (Ollama: OLLAMA_CONTEXT_LENGTH), set `window` if it does already, "
            "or name another model"
        )


def _sort_by_relevance(chunks: Sequence[Chunk], ranked: Sequence[Evidence]) -> list[Chunk]:
    """Chunks by the rank of their best passage; those without a ranked passage come last, in document order."""
    ranks: dict[PassageId, int] = {}
    for rank, piece in enumerate(ranked):
        for source in piece.sources:
            ranks.setdefault(source, rank)

    def find_rank(chunk: Chunk) -> int:
        return min(ranks.get(passage.id, len(ranked)) for passage in chunk.passages)

    return sorted(chunks, key=find_rank)


def _find_needed_window(room: FreeTokens, desk: Desk) -> int:
    return find_window(desk.model, room.role) + ceil((room.least - room.tokens) / _SURE)


def make_chunks(passages: Sequence[Passage], sizes: Sequence[int], size: int) -> list[Chunk]:
    """Runs of passages of at most `size` tokens; a passage that is longer is a chunk alone.

    `passages` are in document order; `sizes` are their tokens, with whatever is shown around each. Neighbouring
    documents share a chunk. Because a chunk keeps its passages, each is shown under the heading of its own document,
    and what a model quotes is cited to the character, in one passage.
    """
    chunks: list[Chunk] = []
    run: list[Passage] = []
    used = 0
    for passage, tokens in zip(passages, sizes, strict=True):
        if run and used + tokens > size:
            chunks.append(Chunk(passages=tuple(run), tokens=used))
            run, used = [], 0
        run.append(passage)
        used += tokens
    if run:
        chunks.append(Chunk(passages=tuple(run), tokens=used))
    return chunks
