"""How near the entries of a working memory are to a question, as cosines of their texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tomewise.types import Embedder


class Nearness:
    """Compares texts with a question. Each text is embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed texts before `score`, for example while a model answers."""
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            self._vectors.update(zip(new, self._embedder.embed(new), strict=True))

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """The cosine of each text with the question, shape (n,)."""
        if not texts:
            return np.zeros(0, np.float32)
        self.prepare([question, *texts])
        return np.round(np.stack([self._vectors[text] for text in texts]) @ self._vectors[question], 6)
