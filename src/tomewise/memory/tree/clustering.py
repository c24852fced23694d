"""Soft clustering of vectors in two stages, global then local (RAPTOR, section 3, "Clustering Algorithm").

Clusters hold positions in the input list, so that equal vectors stay separate. All random numbers are seeded, so that
the same vectors in the same order give the same clusters.

Gaussian mixtures with full covariances are fitted by expectation maximisation. This is our own, since scikit-learn
takes 14 s of processor time for the five hundred small mixtures of a novel, and this 0.5 s. The settings are the same:
a start from k-means, 1e-6 added to the diagonal of the covariances, an end once the mean log likelihood gains less than
1e-3, and 100 steps at most.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from math import isqrt
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tomewise.memory.step_reports import report_step

Array: TypeAlias = "NDArray[np.float64]"
Labels: TypeAlias = "NDArray[np.intp]"
_RIDGE = 1e-6
_GAIN = 1e-3
_STEPS = 100
_ROUNDS = 300  # of k-means


@dataclass(frozen=True)
class Fit:
    """A mixture fitted to points (n, d): posteriors (n, components), the log likelihood of all points, the BIC."""

    posteriors: Array
    likelihood: float
    bic: float


def find_best_fit(
    points: NDArray[np.floating[Any]], most: int, seed: int, watch: Callable[[int], None] = lambda _: None
) -> Fit:
    """Fit mixtures with 1 .. `most` components and return that with the least BIC; ties go to fewer components.

    `watch` gets the number of components before each fit.
    """
    rows = np.asarray(points, np.float64)
    rows = rows - rows.mean(axis=0)
    # Each draw depends only on the draws before it, so every mixture starts from the first of the same centres.
    centres = rows[draw_centres(rows, most, np.random.RandomState(seed))]
    fits = []
    for count in range(1, len(centres) + 1):
        watch(count)
        fits.append(fit(rows, group_points(rows, centres[:count])))
    return min(fits, key=lambda found: found.bic)


def fit(points: Array, labels: Labels) -> Fit:
    """Fit a mixture that starts from groups of points (n, d), one component per group. Centre the points first."""
    count, dimensions = points.shape
    products = (points[:, :, None] * points[:, None, :]).reshape(count, -1)  # of two coordinates, by point
    posteriors = (labels[:, None] == np.unique(labels)).astype(np.float64)
    likelihood = before = -np.inf
    for _ in range(_STEPS):
        sizes = posteriors.sum(axis=0) + 1e-15  # a component may have lost all its points
        means = posteriors.T @ points / sizes[:, None]
        spreads = (posteriors.T @ products / sizes[:, None]).reshape(-1, dimensions, dimensions)
        spreads += _RIDGE * np.eye(dimensions) - means[:, :, None] * means[:, None, :]
        # The log density of a Gaussian is a constant, plus what is linear and what is quadratic in the coordinates.
        quadratic = np.linalg.inv(spreads)
        linear = (quadratic @ means[:, :, None])[:, :, 0]
        volumes = np.linalg.slogdet(spreads).logabsdet + dimensions * np.log(2 * np.pi)
        constants = np.log(sizes / count) - (volumes + (linear * means).sum(axis=1)) / 2
        logarithms = constants + points @ linear.T - products @ quadratic.reshape(len(sizes), -1).T / 2
        peaks = logarithms.max(axis=1, keepdims=True)
        posteriors = np.exp(logarithms - peaks)
        totals = posteriors.sum(axis=1, keepdims=True)
        posteriors /= totals
        likelihood = float((peaks + np.log(totals)).mean())
        if abs(likelihood - before) < _GAIN:
            break
        before = likelihood
    free_parameters = len(sizes) * (1 + dimensions + dimensions * (dimensions + 1) // 2) - 1
    return Fit(posteriors, count * likelihood, free_parameters * float(np.log(count)) - 2 * count * likelihood)


def group_points(points: Array, centres: Array) -> Labels:
    """Group points (n, d) by k-means, starting from these centres (groups, d). A group may stay empty."""
    centres = centres.copy()
    labels: Labels = np.full(len(points), -1)
    for _ in range(_ROUNDS):
        nearest = ((centres**2).sum(axis=1) - 2 * points @ centres.T).argmin(axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        members = (np.arange(len(centres))[:, None] == labels).astype(np.float64)
        sizes = members.sum(axis=1)
        filled = sizes > 0  # a group that lost all its points keeps its centre
        centres[filled] = (members @ points)[filled] / sizes[filled, None]
    return labels


def draw_centres(points: Array, count: int, random: np.random.RandomState) -> list[int]:
    """Draw the positions of `count` first centres by k-means++ (Arthur, Vassilvitskii 2007).

    The probability of a point is proportional to its squared distance to the nearest centre so far. There are fewer
    centres where fewer points are distinct.
    """
    indices = [int(random.randint(len(points)))]
    squares = ((points - points[indices[0]]) ** 2).sum(axis=1)
    while len(indices) < count and squares.any():
        bounds = np.cumsum(squares)
        index = np.searchsorted(bounds, random.random_sample() * bounds[-1], side="right")
        indices.append(min(int(index), len(points) - 1))
        squares = np.minimum(squares, ((points - points[indices[-1]]) ** 2).sum(axis=1))
    return indices


Vectors: TypeAlias = "NDArray[np.floating[Any]]"
Cluster: TypeAlias = tuple[int, ...]  # positions, ascending
Watch: TypeAlias = Callable[[int, int], None]  # gets how much is done, and of how much

DIMENSIONS = 10  # of the reduced vectors
SMALL = DIMENSIONS + 1  # so few vectors are one cluster
_NEIGHBOURS = 10  # of the local reduction
_MOST_CLUSTERS = 50  # upper bound for one mixture; the bound itself is not tried
_POSTERIOR = 0.1
_SEED = 224
_MEGABYTES = 64  # of the distances that are held at a time; without a limit 1 GB
_DEEPEST = 5  # how often a cluster that is too long is clustered again
_NUMBA_LOCK = Lock()  # Numba's workqueue layer aborts if two threads enter it


@dataclass(frozen=True)
class Reduction:
    """A way to reduce dimensions: `reduce(vectors, neighbours, dimensions)` returns rows (n, dimensions).

    `note` is what a reader of the build report should know about it.
    """

    name: str
    reduce: Callable[[Vectors, int, int], Vectors]
    note: str = ""


def choose_reduction() -> Reduction:
    """Choose UMAP where umap-learn is installed, else PCA."""
    if find_spec("umap") is not None:
        return Reduction("umap", reduce_by_umap)
    note = "umap-learn is not installed: the tree was clustered on PCA; for UMAP, install tomewise[umap]"
    return Reduction("pca", reduce_by_pca, note)


def reduce_by_umap(vectors: Vectors, neighbours: int, dimensions: int) -> Vectors:
    """Reduce by UMAP with cosine distances (McInnes et al. 2018), seeded, in one thread, from principal components.

    Not from the spectral start, the default: where many vectors are equal, that draws from the entropy of the system.
    Neighbours are found exactly: for this many vectors that takes less time than compiling the search of umap-learn.
    """
    rows = np.ascontiguousarray(vectors, np.float32)
    if not np.ptp(rows, axis=0).any():
        return np.zeros((len(rows), dimensions))  # equal vectors have no principal components
    nearest = find_nearest(rows, neighbours)
    with _NUMBA_LOCK, warnings.catch_warnings():  # in this order: who waits must not see these filters
        if not _import_umap.cache_info().currsize:
            report_step("loading UMAP, which is compiled the first time: about a minute", 0, 0)
        library = _import_umap()
        warnings.filterwarnings("ignore", "precomputed_knn")  # it warns that new rows could not be reduced later
        reduced = library.UMAP(
            n_neighbors=neighbours,
            n_components=min(dimensions, rows.shape[1]),
            metric="cosine",
            init="pca",
            precomputed_knn=nearest,
            disconnection_distance=np.inf,  # opposite vectors have neighbours too
            random_state=_SEED,
            n_jobs=1,
        ).fit_transform(rows)
    return np.asarray(reduced, np.float64)


@cache
def _import_umap() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportWarning)  # it warns that TensorFlow is missing, which is not used here
        import umap
    from numba.extending import is_jitted

    for compiled in filter(is_jitted, [*vars(umap.umap_).values(), *vars(umap.layouts).values()]):
        compiled.targetoptions["nogil"] = True  # most of the time is spent there; model calls must go on meanwhile
        with suppress(RuntimeError):  # raised where compiled functions cannot be stored
            compiled.enable_caching()  # else each process compiles these again: 5 s, more than the rest
    return umap


def find_nearest(vectors: Vectors, count: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Find the `count` nearest rows of each row by cosine distance, itself first.

    Returns positions and distances, both (n, count).
    """
    from sklearn import config_context
    from sklearn.neighbors import NearestNeighbors

    with config_context(working_memory=_MEGABYTES):
        distances, indices = NearestNeighbors(n_neighbors=count - 1, metric="cosine").fit(vectors).kneighbors()
    rows = np.arange(len(vectors))
    nearest, lengths = np.column_stack((rows, indices)), np.column_stack((0 * rows, distances))
    return nearest.astype(np.int32), lengths.astype(np.float32)


def reduce_by_pca(vectors: Vectors, neighbours: int, dimensions: int) -> Vectors:
    """Reduce to the first principal components; ignores `neighbours`. The largest loading of each is positive."""
    rows = np.asarray(vectors, np.float64)
    left, scale, right = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    signs = np.where(right[np.arange(len(right)), np.abs(right).argmax(axis=1)] < 0, -1.0, 1.0)
    reduced: Vectors = (left * scale * signs)[:, :dimensions]
    return reduced


def cluster_by_mixture(points: Vectors, watch: Callable[[int], None] = lambda _: None) -> list[Cluster]:
    """Cluster by a Gaussian mixture with full covariances and the number of components that has the least BIC.

    Tries 1 .. min(50, n) - 1 components, and tells `watch` how many. A point belongs to each component with a posterior
    above 0.1, else to its likeliest component. Deviations from the released code: it uses the fit with the least BIC
    (the released code fits again with another seed), and each point gets a cluster.
    """
    most = max(1, min(_MOST_CLUSTERS, len(points)) - 1)
    return assign_clusters(find_best_fit(points, most, _SEED, watch).posteriors)


def assign_clusters(posteriors: Vectors) -> list[Cluster]:
    """Assign points to clusters by posteriors (n, components): to all above the threshold, else to the likeliest."""
    belongs = posteriors > _POSTERIOR
    belongs[np.arange(len(belongs)), posteriors.argmax(axis=1)] |= ~belongs.any(axis=1)
    found = (tuple(np.flatnonzero(column).tolist()) for column in belongs.T)
    return sorted({cluster for cluster in found if cluster})


def cluster_in_two_stages(vectors: Vectors, reduction: Reduction, watch: Watch = lambda *_: None) -> list[Cluster]:
    """Find global clusters, then local clusters in each large one; sorted, each set of members once.

    The global reduction uses floor(sqrt(n - 1)) neighbours (at least 2), the local one 10; both reduce the original
    vectors. Two vectors or fewer are one cluster. `watch` gets how many steps of how many are done.
    """
    count = len(vectors)
    if count <= 2:
        return [tuple(range(count))] if count else []
    watch(0, _MOST_CLUSTERS)
    reduced = reduction.reduce(vectors, max(2, isqrt(count - 1)), min(DIMENSIONS, count - 2))
    found: set[Cluster] = set()
    groups = cluster_by_mixture(reduced, lambda tried: watch(tried, _MOST_CLUSTERS))
    for number, members in enumerate(groups):
        watch(_MOST_CLUSTERS + number, _MOST_CLUSTERS + len(groups))
        if len(members) <= SMALL:
            found.add(members)
            continue
        local = reduction.reduce(vectors[list(members)], _NEIGHBOURS, DIMENSIONS)
        found.update(tuple(members[index] for index in cluster) for cluster in cluster_by_mixture(local))
    watch(_MOST_CLUSTERS + len(groups), _MOST_CLUSTERS + len(groups))
    return sorted(found)


def find_clusters(vectors: Vectors, tokens: Sequence[int], reduction: Reduction, max_tokens: int) -> list[Cluster]:
    """Find two-stage clusters of at most `max_tokens` each; only a cluster of a single text may have more.

    `vectors` is (n, dimensions) in document order, `tokens` the length of each text. A cluster that is too long is
    clustered again by itself with the same settings. A cluster that this does not split, or that was clustered again
    five times, is cut by position (there the released code recurses without end).
    """
    with use_one_blas_thread():
        everything = tuple(range(len(vectors)))
        watch = partial(report_step, "steps of clustering")
        return sorted(set(_find_short_clusters(vectors, everything, tokens, reduction, max_tokens, 0, watch)))


def _find_short_clusters(
    vectors: Vectors,
    members: Cluster,
    tokens: Sequence[int],
    reduction: Reduction,
    max_tokens: int,
    depth: int,
    watch: Watch = lambda *_: None,
) -> Iterator[Cluster]:
    for indices in cluster_in_two_stages(vectors[list(members)], reduction, watch):
        cluster = tuple(members[index] for index in indices)
        if len(cluster) == 1 or sum(tokens[member] for member in cluster) <= max_tokens:
            yield cluster
        elif len(cluster) in (2, len(members)) or depth == _DEEPEST:
            yield from cut_cluster(cluster, tokens, max_tokens)
        else:
            yield from _find_short_clusters(vectors, cluster, tokens, reduction, max_tokens, depth + 1)


def cut_cluster(cluster: Cluster, tokens: Sequence[int], max_tokens: int) -> list[Cluster]:
    """Cut a cluster by position into runs that are as long as `max_tokens` allows."""
    runs: list[list[int]] = []
    room = -1
    for member in cluster:
        room -= tokens[member]
        if room < 0:
            runs.append([])
            room = max_tokens - tokens[member]
        runs[-1].append(member)
    return [tuple(run) for run in runs]


class _SharedLimit:
    """Holds BLAS to one thread from the first `enter` to the last `leave`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._stack = ExitStack()

    def enter(self) -> None:
        import scipy.linalg  # noqa: F401  (brings a BLAS of its own, and only libraries that are loaded are limited)
        from threadpoolctl import threadpool_limits

        with self._lock:
            if not self._users:
                # threadpoolctl lets no other thread lift the limit than the one that set it. So neither may be that of
                # a caller: the first may end before the last.
                thread = self._stack.enter_context(ThreadPoolExecutor(1, "tomewise-blas"))
                limits = thread.submit(threadpool_limits, 1).result()
                self._stack.callback(lambda: thread.submit(limits.restore_original_limits).result())
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._stack.close()


_BLAS_LIMIT = _SharedLimit()


@contextmanager
def use_one_blas_thread() -> Iterator[None]:
    """Run BLAS on one thread, which holds for the whole process, until the last of those who want it so has ended.

    Small matrices are many times slower on several threads (measured: 59 s instead of 3 s on two cores).
    """
    _BLAS_LIMIT.enter()
    try:
        yield
    finally:
        _BLAS_LIMIT.leave()
