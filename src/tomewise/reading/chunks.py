"""Chunks: runs of passages of one document, each as long as a model reads at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tomewise.types import DocumentId, Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Passages of one document in document order. `tokens` is the sum of their sizes."""

    document: DocumentId
    passages: tuple[Passage, ...]
    tokens: int


def make_chunks(passages: Sequence[Passage], sizes: Sequence[int], size: int) -> list[Chunk]:
    """Runs of passages of at most `size` tokens; a passage that is longer is a chunk alone. No chunk has two documents.

    `passages` are in document order; `sizes` are their tokens, with whatever is shown around each. Because a chunk
    keeps its passages, what a model quotes from it is cited to the character.
    """
    chunks: list[Chunk] = []
    run: list[Passage] = []
    used = 0
    for passage, tokens in zip(passages, sizes, strict=True):
        if run and (passage.document != run[0].document or used + tokens > size):
            chunks.append(Chunk(document=run[0].document, passages=tuple(run), tokens=used))
            run, used = [], 0
        run.append(passage)
        used += tokens
    if run:
        chunks.append(Chunk(document=run[0].document, passages=tuple(run), tokens=used))
    return chunks
