"""What embedders share: one vector of length one for each distinct text, and a tokenizer that counts all tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import numpy as np

from tomewise.errors import BadReply
from tomewise.types import Embedder

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

Vectors: TypeAlias = "NDArray[np.float32]"
"""The vectors of texts, a row each: (texts, dimensions)."""
CHARACTERS_PER_TOKEN = 20
Part = TypeVar("Part")
Done = TypeVar("Done")


class _EmbedsDistinct(Embedder, Protocol):
    def _embed_distinct(self, texts: list[str]) -> Vectors:
        """Vectors of any length."""


class UnitRows:
    """The base of embedders whose `_embed_distinct` computes vectors of any length, of distinct texts."""

    def embed(self: _EmbedsDistinct, texts: Sequence[str]) -> Vectors:
        """One vector of length one for each text, in their order: (len(texts), dimensions).

        Each text is first cut to `CHARACTERS_PER_TOKEN * max_tokens` characters, so that a text of megabytes is not
        tokenised as a whole; if its tokens are longer on average (long runs of white space), its end is lost. Lone
        surrogates become question marks. Raises BadReply when the vectors have another shape or a length that is zero
        or not finite.
        """
        dimensions = self.dimensions
        rows: dict[str, int] = {}
        most = self.max_tokens * CHARACTERS_PER_TOKEN
        order = [rows.setdefault(text[:most].encode("utf-8", "replace").decode(), len(rows)) for text in texts]
        if not order:
            return np.zeros((0, dimensions), np.float32)
        vectors = np.asarray(self._embed_distinct(list(rows)), np.float32)
        if vectors.shape != (len(rows), dimensions):
            raise BadReply(f"{len(rows)} texts in {dimensions} dimensions were embedded as shape {vectors.shape}")
        return normalise_rows(vectors)[order]


def normalise_rows(vectors: Vectors) -> Vectors:
    """The vectors scaled to length one, row by row. Raises BadReply when a row is zero or not finite."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise BadReply("the embedder gave a vector that is zero or not finite: try another embedder")
    unit: Vectors = (vectors / lengths[:, None]).astype(np.float32)
    return unit


def run_at_once(work: Callable[[Part], Done], parts: Sequence[Part], threads: int) -> list[Done]:
    """What the work makes of each part, on so many threads (one part needs none). After an error no other begins."""
    if len(parts) == 1:
        return [work(parts[0])]
    pool = ThreadPoolExecutor(threads)
    try:
        return [future.result() for future in [pool.submit(work, part) for part in parts]]
    finally:
        pool.shutdown(cancel_futures=True)


def read_tokenizer(serialised: str) -> Tokenizer:
    """A tokenizer without truncation and padding, so that it counts all tokens of a text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(serialised)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
