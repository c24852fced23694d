"""Which parts of the texts are read in order, how long they may be, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Any

from tomewise.errors import UsageError
from tomewise.language.wrapped import find_name, find_room, find_window
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import load_passages, measure_texts
from tomewise.recall.flat import Everything
from tomewise.types import In, Passage, PassageId, Question, Retriever, Role

_ALL = 10**9  # passages
_LEAST = 1_000  # tokens that each call needs for what grows while a text is read
_SURE = 0.8  # of the window: models count tokens in their own way


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A run of passages, as long as a model reads at once: in document order, also of several documents.

    `tokens` is the sum of their sizes.
    """

    passages: tuple[Passage, ...]
    tokens: int = 0


async def find_chunks(desk: Desk, question: Question, size: int, first: Retriever | None = None) -> list[Chunk]:
    """The chunks of all documents in the question's scope, of at most `size` tokens, in document order.

    With a search, those come first whose best passage ranks highest in it.
    """
    found = await Everything(desk.store).retrieve(question.text, _ALL, within=question.within)
    chunks = await asyncio.to_thread(cut_chunks, desk, [piece.id for piece in found], size)
    if first is None or len(chunks) < 2:
        return chunks
    ranked = await first.retrieve(question.text, len(found), within=question.within)
    sources = dict.fromkeys(source for piece in ranked for source in piece.sources)
    ranks = {source: rank for rank, source in enumerate(sources)}
    return sorted(chunks, key=lambda chunk: min(ranks.get(each.id, len(ranks)) for each in chunk.passages))


def cut_chunks(desk: Desk, wanted: Iterable[PassageId], size: int, most: int | None = None) -> list[Chunk]:
    """The chunks of these passages, in document order; with `most`, of the first that fit into so many tokens."""
    passages = list(load_passages(desk.store, wanted).values())
    sizes = measure_texts([passage.content for passage in passages], desk.count)
    totals = zip(passages, sizes, accumulate(sizes), strict=True)
    sized = [(passage, tokens) for passage, tokens, total in totals if most is None or total <= most]
    sized.sort(key=lambda pair: (pair[0].document, pair[0].position))
    return make_chunks([passage for passage, _ in sized], [tokens for _, tokens in sized], size)


def make_chunks(passages: Sequence[Passage], sizes: Sequence[int], size: int) -> list[Chunk]:
    """Runs of passages of at most `size` tokens; a passage that is longer is a chunk alone.

    `passages` are in document order; `sizes` are their tokens, with whatever is shown around each. Neighbouring
    documents share a chunk. Because a chunk keeps its passages, each is shown under the heading of its own document,
    and what a model quotes is cited to the character, in one passage.
    """
    chunks: list[Chunk] = []
    for passage, tokens in zip(passages, sizes, strict=True):
        if chunks and chunks[-1].tokens + tokens <= size:
            last = chunks.pop()
            chunks.append(Chunk(passages=(*last.passages, passage), tokens=last.tokens + tokens))
        else:
            chunks.append(Chunk(passages=(passage,), tokens=tokens))
    return chunks


def measure_room(desk: Desk, role: Role[In, Any], empty: In, beside: int) -> int:
    """The tokens of text for which a call has room, beside its `empty` input and `beside` tokens more.

    Raises UsageError, with the window that is needed, if these are fewer than 1,000.
    """
    used = desk.model.count_input_tokens(role, empty) + beside
    room = int(_SURE * find_room(desk.model, role)) - used
    window, name = find_window(desk.model, role), find_name(desk.model, role)
    needed = window + ceil((_LEAST - room) / _SURE)
    if needed > window:
        raise UsageError(
            f"{name} takes {window:,} tokens, too few to read a text part by part, which needs "
            f"{needed:,}: let its server accept more (Ollama: OLLAMA_CONTEXT_LENGTH), set `window` if it does already, "
            "or name another model"
        )
    return room
