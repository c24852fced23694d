"""Which parts of the texts are read in order, and how long they may be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, inf
from typing import Any

from tomewise.errors import UsageError
from tomewise.language.wrapped import find_name, find_room, find_window
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import load_passages, measure_texts
from tomewise.types import In, Passage, PassageId, Role

_LEAST = 1_000  # tokens that each call needs for what grows while a text is read
_SURE = 0.8  # of the window: models count tokens in their own way


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of passages, as long as a model reads at once: in document order, also of several documents.

    `tokens` is the sum of their sizes.
    """

    passages: tuple[Passage, ...] = ()
    tokens: int = 0


def cut_chunks(desk: Desk, wanted: Iterable[PassageId], size: int, most: float = inf) -> list[Chunk]:
    """The chunks of these passages, in document order; with `most`, of the first that fit into so many tokens."""
    passages = list(load_passages(desk.store, wanted).values())
    sizes = measure_texts([passage.content for passage in passages], desk.count)
    totals = zip(passages, sizes, accumulate(sizes), strict=True)
    sized = [(passage, tokens) for passage, tokens, total in totals if total <= most]
    return make_chunks(sorted(sized, key=lambda pair: (pair[0].document, pair[0].position)), size)


def make_chunks(sized: Iterable[tuple[Passage, int]], size: int) -> list[Chunk]:
    """Runs of passages of at most `size` tokens; a passage that is longer is a chunk alone.

    `sized` are passages in document order with their tokens, and whatever is shown around each. Neighbouring documents
    share a chunk. Because a chunk keeps its passages, each is shown under the heading of its own document, and what a
    model quotes is cited to the character, in one passage.
    """
    chunks: list[Chunk] = []
    for passage, tokens in sized:
        begun = chunks.pop() if chunks and chunks[-1].tokens + tokens <= size else Chunk()
        chunks.append(Chunk((*begun.passages, passage), begun.tokens + tokens))
    return chunks


def measure_room(desk: Desk, role: Role[In, Any], empty: In, beside: int) -> int:
    """The tokens of text for which a call has room, beside its `empty` input and `beside` tokens more.

    Raises UsageError, with the window that is needed, if these are fewer than 1,000.
    """
    used = desk.model.count_input_tokens(role, empty) + beside
    room = int(_SURE * find_room(desk.model, role)) - used
    if room < _LEAST:
        window = find_window(desk.model, role)
        raise UsageError(
            f"{find_name(desk.model, role)} takes {window:,} tokens, too few to read a text part by part, which needs "
            f"{window + ceil((_LEAST - room) / _SURE):,}: let its server accept more (Ollama: OLLAMA_CONTEXT_LENGTH), "
            "set `window` if it does already, or name another model"
        )
    return room
