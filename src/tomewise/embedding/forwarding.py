"""A wrapper around an embedder that forwards everything but `embed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tomewise.types import Embedder

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class ForwardingEmbedder:
    """The properties of the inner embedder; a wrapper adds its own `embed`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def max_tokens(self) -> int:
        return self._embedder.max_tokens

    @property
    def tokenizer(self) -> Tokenizer:
        return self._embedder.tokenizer
