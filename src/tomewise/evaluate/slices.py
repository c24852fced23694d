"""Rows by the slices of a dataset, and by the length of the documents that questions are asked over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from tomewise.errors import UnknownName
from tomewise.evaluate.rows import Row

LENGTH = "length"
_MOST = 8  # more different numbers than this are put in bins
_BINS = 4


def split_by_slice(rows: Sequence[Row], name: str, dataset: str) -> Mapping[str, tuple[Row, ...]]:
    """The rows by the value of a slice; `length` is that of the documents of the question, in characters.

    Whole numbers of many values are put in up to four bins of about equally many questions. A question without the
    slice is left out. Raises UnknownName.
    """
    names = list_slices(rows)
    if name not in names:
        raise UnknownName(f"{dataset} has no slice {name!r}: it has {', '.join(names)}")
    values = {row.item.id: _read_value(row, name) for row in rows}
    known = sorted({value for value in values.values() if value is not None}, key=_make_sort_key)
    make_label = _choose_labels([value for value in values.values() if value is not None])
    parts: dict[str, list[Row]] = {make_label(value): [] for value in known}
    for row in rows:
        if (value := values[row.item.id]) is not None:
            parts[make_label(value)].append(row)
    return {label: tuple(part) for label, part in parts.items()}


def list_slices(rows: Sequence[Row]) -> tuple[str, ...]:
    """The slices that at least one question has, without `pair`, which names pairs of claims."""
    names = dict.fromkeys(name for row in rows for name in row.item.slices if name != "pair")
    return (*names, LENGTH)


def _read_value(row: Row, name: str) -> str | int | None:
    return row.item.slices.get(name) if name in row.item.slices or name != LENGTH else row.characters


def _make_sort_key(value: str | int) -> tuple[int, int, str]:
    return (0, value, "") if isinstance(value, int) else (1, 0, str(value))


def _choose_labels(values: Sequence[str | int]) -> Callable[[str | int], str]:
    """A function from a value to its label: the value itself, or its bin."""
    numbers = sorted(value for value in values if isinstance(value, int))
    if len(numbers) < len(values) or len(set(numbers)) <= _MOST:
        return str
    tops = sorted({numbers[-(-len(numbers) * part // _BINS) - 1] for part in range(1, _BINS + 1)})
    names = [f"up to {tops[0]:,}", *(f"{low + 1:,} to {high:,}" for low, high in pairwise(tops))]

    def make_label(value: str | int) -> str:
        return next(name for name, top in zip(names, tops, strict=True) if isinstance(value, int) and value <= top)

    return make_label
