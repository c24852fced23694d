"""Errors that nobody foresaw: damage of the tome if there is some, else a bug that keeps its name."""

from __future__ import annotations

import pytest

from tomewise.errors import StoreError, UsageError
from tomewise.tome.damaged import explain_damage, names_damage, skip_damaged


class OneStore:
    """A store of which only the damage counts. It counts how often it was searched."""

    def __init__(self, damage: str) -> None:
        self._damage = damage
        self.searched = 0

    def find_damage(self) -> str:
        self.searched += 1
        return self._damage


class Work:
    def __init__(self, damage: str) -> None:
        self.store = OneStore(damage)

    @names_damage  # type: ignore[type-var]
    async def fail(self, error: Exception) -> None:
        """Raise it."""
        raise error


async def test_an_error_at_a_damaged_tome_names_the_damage() -> None:
    work = Work("row 5 is damaged")
    with pytest.raises(StoreError, match="row 5 is damaged") as caught:
        await work.fail(KeyError("x"))
    assert isinstance(caught.value.__cause__, KeyError)
    assert Work.fail.__doc__ == "Raise it."


async def test_an_error_at_a_sound_tome_stays() -> None:
    with pytest.raises(KeyError):
        await Work("").fail(KeyError("x"))


def test_errors_of_our_own_search_for_nothing() -> None:
    store = OneStore("damaged")
    with pytest.raises(UsageError), explain_damage(store):  # type: ignore[arg-type]
        raise UsageError("wrong")
    assert store.searched == 0


def test_a_damaged_item_is_skipped_with_a_warning() -> None:
    def read(number: int) -> int | None:
        if number == 2:
            raise StoreError("the row 2 is damaged: delete it")
        return None if number == 3 else number * 10

    with pytest.warns(UserWarning, match="the row 2 is damaged: delete it"):
        assert skip_damaged([1, 2, 3, 4], read) == [10, 40]
