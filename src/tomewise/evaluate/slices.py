"""Results by the slices of a dataset, and by the length of the documents asked over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tomewise.errors import UnknownName
from tomewise.evaluate.rows import Row

if TYPE_CHECKING:
    from tomewise.evaluate.results import Results

LENGTH = "length"
_MOST = 8  # more different numbers than this are put in bins
_BINS = 4


def split_by_slice(results: Results, name: str) -> Mapping[str, Results]:
    """The results by the value of a slice; `length` is that of the documents asked over, in characters.

    Whole numbers of many values are put in up to four bins of about equally many questions. A question without the
    slice is left out. Raises UnknownName.
    """
    names = list_slices(results)
    if name not in names:
        raise UnknownName(f"{results.about.dataset} has no slice {name!r}: it has {', '.join(names)}")
    values = {row.item.id: _read_value(row, name) for row in results.rows}
    label = _make_label([value for value in values.values() if value is not None])
    parts: dict[str, list[Row]] = {}
    for row in sorted(results.rows, key=lambda row: _make_sort_key(values[row.item.id])):
        if (value := values[row.item.id]) is not None:
            parts.setdefault(label(value), []).append(row)
    places = {row.key: place for place, row in enumerate(results.rows)}
    return {
        value: replace(results, rows=tuple(sorted(rows, key=lambda row: places[row.key])), builds={})
        for value, rows in parts.items()
    }


def list_slices(results: Results) -> tuple[str, ...]:
    """The slices that at least one question has, without `pair`, which names pairs of claims."""
    names = dict.fromkeys(name for row in results.rows for name in row.item.slices if name != "pair")
    return (*names, LENGTH)


def _read_value(row: Row, name: str) -> str | int | None:
    return row.item.slices.get(name) if name in row.item.slices or name != LENGTH else row.characters


def _make_sort_key(value: str | int | None) -> tuple[int, int, str]:
    return (0, value, "") if isinstance(value, int) else (1, 0, str(value))


def _make_label(values: Sequence[str | int]) -> Callable[[str | int], str]:
    """A function from a value to its label: the value itself, or its bin."""
    numbers = sorted(value for value in values if isinstance(value, int))
    if len(numbers) < len(values) or len(set(numbers)) <= _MOST:
        return str
    tops = sorted({numbers[-(-len(numbers) * part // _BINS) - 1] for part in range(1, _BINS + 1)})
    names = [f"up to {tops[0]:,}", *(f"{low + 1:,} to {high:,}" for low, high in pairwise(tops))]

    def label(value: str | int) -> str:
        return next(name for name, top in zip(names, tops, strict=True) if isinstance(value, int) and value <= top)

    return label
