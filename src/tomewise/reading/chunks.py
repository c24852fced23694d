"""Chunks: runs of passages, each as long as a model reads at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tomewise.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Passages in document order, also of several documents. `tokens` is the sum of their sizes."""

    passages: tuple[Passage, ...]
    tokens: int


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
