"""An embedder that cuts long lists of texts into blocks and lets the workers of a pool embed these."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np

from tomewise.cluster.worker_pool import WorkerPool
from tomewise.embedding.cached_embedder import ForwardingEmbedder
from tomewise.types import Embedder

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 256  # texts
_AHEAD = 2  # blocks for each worker: one that it embeds, and one that is there when it has ended
_FEWEST = 32  # texts of a list that is sent; fewer are embedded here sooner than they travel


class PooledEmbedder(ForwardingEmbedder):
    """The rows of `embedder`, made by workers that have the same one.

    A list of texts is cut into blocks of about equal length, at most 256 texts each. Short lists, such as queries, are
    embedded in this process. Rows may differ from those of one machine in the last bits, as they do between machines.
    """

    def __init__(self, embedder: Embedder, pool: WorkerPool) -> None:
        super().__init__(embedder)
        self._pool = pool

    @property
    def embeds_apart(self) -> bool:
        """As the embedder, see `CachedEmbedder`."""
        return bool(getattr(self._embedder, "embeds_apart", False))

    @property
    def texts_at_once(self) -> int:
        """The texts of a list that keeps all workers busy."""
        return _AHEAD * BLOCK * max(1, self._pool.size)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) < _FEWEST:
            return self._embedder.embed(texts)
        rows = np.empty((len(texts), self.dimensions), np.float32)
        most = self.texts_at_once // BLOCK
        under_way: list[tuple[NDArray[np.intp], Future[NDArray[np.float32]]]] = []
        for block in cut_blocks(texts, most):
            if len(under_way) == most:
                places, found = under_way.pop(0)
                rows[places] = found.result()
            under_way.append((block, self._pool.submit("embed", [texts[place] for place in block])))
        for places, found in under_way:
            rows[places] = found.result()
        return rows


def cut_blocks(texts: Sequence[str], parts: int) -> list[NDArray[np.intp]]:
    """The places of the texts in blocks of texts of about equal length, the longest first.

    Blocks have equal sizes, at most `BLOCK`; there is one for each part if there are texts enough.
    """
    count = max(-(-len(texts) // BLOCK), min(parts, len(texts) // _FEWEST))
    return np.array_split(np.argsort([-len(text) for text in texts], kind="stable"), count)
