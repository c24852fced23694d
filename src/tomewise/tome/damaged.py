"""What users of a damaged tome get: one error that names the row and the remedy, and all that does not need the row."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tomewise.errors import StoreError, TomewiseError
from tomewise.plugins import find_fault
from tomewise.store.contract import Store

Item = TypeVar("Item")
T = TypeVar("T")


@contextmanager
def explain_damage(store: Store) -> Iterator[None]:
    """Turn an error that nobody foresaw into a StoreError, if the tome is damaged, or else into one that names a part.

    Parts may rely on what a tome holds: that an edge has two nodes, a passage a document. Only after such an error is
    the whole tome searched for a row that breaks this. What a part from outside raises becomes a PartError; another
    error is a bug, and stays.
    """
    try:
        yield
    except TomewiseError:
        raise
    except Exception as error:
        raise_cause(error, store)
        raise


def raise_cause(error: Exception, store: Store) -> None:
    """Raise what an error that nobody foresaw comes from, if that is known."""
    if not isinstance(error, OSError) and (damage := store.find_damage()):
        raise StoreError(damage) from error
    if fault := find_fault(error):
        raise fault from error


def skip_damaged(items: Iterable[Item], read: Callable[[Item], T | None]) -> list[T]:
    """What `read` makes of each item; a damaged one is left out, with a warning that names the remedy."""
    made: list[T] = []
    for item in items:
        try:
            found = read(item)
        except StoreError as error:
            warnings.warn(str(error), stacklevel=3)
            continue
        if found is not None:
            made.append(found)
    return made
