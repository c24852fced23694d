"""An embedder that remembers the last queries: several searches for one probe embed it once."""

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

_KEPT = 256  # texts


class CachedEmbedder:
    """As the embedder, but the vector of a text asked for alone is kept for a while.

    Several texts together are passed on as they are: the last digits of a vector hang on what is embedded beside it.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._turn = Lock()  # so that whoever asks for the same text at the same time waits for it

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

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) != 1:
            return self._embedder.embed(texts)
        with self._turn:
            row = self._kept.pop(texts[0], None)
            if row is None:
                row = self._embedder.embed(texts)
                row.flags.writeable = False
            self._kept[texts[0]] = row
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return row
