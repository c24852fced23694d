"""Find the columns of a page, so that its text is read down each column and not across them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Boxes: TypeAlias = NDArray[np.float64]  # shape (n, 4): left, bottom, right, top in points, in the order of the file

_MIN_LINES = 5  # of a column
_MIN_WIDTH = 0.6  # of a column that its median line fills: cells of a table are shorter
_MOST_SPANS = 0.3  # of the lines of a page that cross the gutter, such as titles; prose in one column crosses it always
_EDGE = 0.25  # of the width of the text on each side where no gutter is searched
_STEPS = 101  # positions at which a gutter is searched
_DEEPEST = 2  # columns within columns: up to four of equal width


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a page that is read as one, in points."""

    left: float
    bottom: float
    right: float
    top: float


@dataclass(frozen=True, slots=True)
class _Lines:
    """The boxes of a page and the line of each, counted from the top."""

    boxes: Boxes
    numbers: NDArray[np.intp]


def find_regions(boxes: Boxes, page: Region) -> list[Region]:
    """The regions of a page in reading order; one, the whole page, if the order of the file is good as it is.

    A page is cut into columns only if the file switches from column to column with the lines, and if the lines fill
    their columns.
    """
    return list(_cut_region(boxes, page, 0)) or [page]


def _cut_region(boxes: Boxes, region: Region, depth: int) -> Iterator[Region]:
    lines = _number_lines(boxes)
    gutter = _find_gutter(lines) if depth < _DEEPEST else None
    if gutter is None:
        yield region
        return
    spans = np.unique(lines.numbers[_crosses(boxes, gutter)])
    for bottom, top, inside in _cut_bands(lines, spans, region):
        if lines.numbers[inside][0] in spans:
            yield Region(region.left, bottom, region.right, top)
            continue
        left = inside & (boxes[:, 0] + boxes[:, 2] < 2 * gutter)
        right = inside & ~left
        if left.any():
            yield from _cut_region(boxes[left], Region(region.left, bottom, gutter, top), depth + 1)
        if right.any():
            yield from _cut_region(boxes[right], Region(gutter, bottom, region.right, top), depth + 1)


def _number_lines(boxes: Boxes) -> _Lines:
    centres = (boxes[:, 1] + boxes[:, 3]) / 2
    order = np.argsort(-centres, kind="stable")
    if not len(boxes):
        return _Lines(boxes, order)
    height = float(np.median(boxes[:, 3] - boxes[:, 1]))
    steps = np.concatenate(([0], np.cumsum(-np.diff(centres[order]) > height / 2)))
    numbers = np.empty(len(boxes), np.intp)
    numbers[order] = steps
    return _Lines(boxes, numbers)


def _find_gutter(lines: _Lines) -> float | None:
    """The horizontal position between two columns whose lines the file interleaves; None for any other page."""
    boxes = lines.boxes
    count = int(lines.numbers.max()) + 1 if len(boxes) else 0
    if count < _MIN_LINES:
        return None
    start, end = boxes[:, 0].min(), boxes[:, 2].max()
    positions = np.linspace(start + _EDGE * (end - start), end - _EDGE * (end - start), _STEPS)
    crossings = ((boxes[:, :1] < positions) & (boxes[:, 2:3] > positions)).sum(axis=0)
    least = np.flatnonzero(crossings == crossings.min())
    middle = float(positions[least[len(least) // 2]])
    return middle if _is_gutter(lines, middle, count) else None


def _is_gutter(lines: _Lines, x: float, count: int) -> bool:
    crosses = _crosses(lines.boxes, x)
    spans = np.unique(lines.numbers[crosses])
    if len(spans) > _MOST_SPANS * count:
        return False
    inside = ~np.isin(lines.numbers, spans)
    right = lines.boxes[:, 0] + lines.boxes[:, 2] >= 2 * x
    if not all(_fills(lines, inside & side) for side in (right, ~right)):
        return False
    switches = np.count_nonzero(np.diff(right[inside].astype(np.int8)))
    return bool(switches > max(3, len(np.unique(lines.numbers[inside])) / 2))


def _fills(lines: _Lines, chosen: NDArray[np.bool_]) -> bool:
    """Whether the lines of these boxes are as wide as a column of prose."""
    numbers, at = np.unique(lines.numbers[chosen], return_inverse=True)
    if len(numbers) < _MIN_LINES:
        return False
    starts, ends = np.full(len(numbers), np.inf), np.full(len(numbers), -np.inf)
    np.minimum.at(starts, at, lines.boxes[chosen, 0])
    np.maximum.at(ends, at, lines.boxes[chosen, 2])
    return bool(np.median(ends - starts) >= _MIN_WIDTH * (ends.max() - starts.min()))


def _crosses(boxes: Boxes, x: float) -> NDArray[np.bool_]:
    crosses: NDArray[np.bool_] = (boxes[:, 0] < x) & (boxes[:, 2] > x)
    return crosses


def _cut_bands(
    lines: _Lines, spans: NDArray[np.intp], region: Region
) -> Iterator[tuple[float, float, NDArray[np.bool_]]]:
    """The bottom and the top of each band of lines that all cross the gutter or all do not, and its boxes."""
    numbers = np.arange(int(lines.numbers.max()) + 1)
    cuts = np.flatnonzero(np.diff(np.isin(numbers, spans).astype(np.int8))) + 1
    top = region.top
    for band in np.split(numbers, cuts):
        inside = np.isin(lines.numbers, band)
        below = lines.boxes[lines.numbers == band[-1] + 1]
        bottom = float(below[:, 3].max() + lines.boxes[inside, 1].min()) / 2 if len(below) else region.bottom
        yield bottom, top, inside
        top = bottom
