"""Wrappers around embedders: their base, and a cache of the last queries.

Several searches for the same query embed it once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from tomewise.types import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

_CACHE_SIZE = 256  # texts


class ForwardingEmbedder:
    """The properties of the inner embedder; a wrapper adds `embed`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def inner(self) -> Embedder:
        return self._embedder

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


class CachedEmbedder(ForwardingEmbedder):
    """An embedder with a cache for calls with a single text.

    Calls with several texts bypass the cache, because the last digits of a vector can depend on the other texts of the
    call.
    """

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._cache: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()  # callers with the same text at the same time wait for the first one

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) != 1:
            return self._embedder.embed(texts)
        with self._lock:
            row = self._cache.pop(texts[0], None)
            if row is None:
                row = self._embedder.embed(texts)
                row.flags.writeable = False
            self._cache[texts[0]] = row
            if len(self._cache) > _CACHE_SIZE:
                self._cache.popitem(last=False)
            return row
