"""The rows of a space that are nearest to a query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
Vectors = NDArray[np.float32]

# The last bits of a sum of floats depend on the row's position; ties must not depend on them.
DECIMALS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Nearest:
    """The nearest rows of a space, in no order: keys (n,), cosines (n,), and the lowest cosine of all rows searched."""

    keys: Keys
    cosines: Vectors
    lowest: float

    def scale(self) -> NDArray[np.float64]:
        """The cosines scaled to 0..1 over all rows searched; if all of these are equal, 1, or 0 where they are 0."""
        cosines: NDArray[np.float64] = self.cosines.astype(np.float64)
        highest = float(cosines.max(initial=self.lowest))
        if self.lowest == highest:
            return np.ones_like(cosines) if highest else np.zeros_like(cosines)
        return np.asarray((cosines - self.lowest) / (highest - self.lowest))


def select_nearest(keys: Keys, cosines: Vectors, limit: int) -> Nearest:
    """The `limit` nearest of the rows under these keys, and all that tie with the last of them."""
    best = find_top(cosines, limit)
    return Nearest(keys[best], cosines[best], float(cosines.min()) if len(cosines) else 0.0)


def find_top(scores: NDArray[np.floating], limit: int) -> NDArray[np.intp]:
    """Positions of the `limit` best scores and of all scores that tie with the last of these, in no order."""
    if limit >= len(scores):
        return np.arange(len(scores))
    if limit <= 0:
        return np.empty(0, np.intp)
    least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    return np.flatnonzero(scores >= least - 10.0**-DECIMALS)
