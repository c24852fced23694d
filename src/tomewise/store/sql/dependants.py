"""Which nodes go with a removed one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, exists, select

from tomewise.store.sql.lists import list_keys
from tomewise.store.sql.schema import edges

if TYPE_CHECKING:
    from tomewise.store.sql.dialects import Dialect


def find_dependants(connection: Connection, dialect: Dialect, keys: Iterable[int]) -> list[int]:
    """These nodes in ascending order, then the nodes that go with them, level by level."""
    gone: dict[int, None] = {}
    front = sorted(set(keys))
    while front:
        gone |= dict.fromkeys(front)
        front = sorted(find_orphans(connection, dialect, front, gone) - gone.keys())
    return list(gone)


def find_orphans(
    connection: Connection,
    dialect: Dialect,
    front: Iterable[int],
    gone: Iterable[int],
    except_spaces: Sequence[str] = (),
) -> set[int]:
    """The nodes that go with those of `front`, by their lifetimes, once all in `gone` are removed.

    Links of the spaces `except_spaces` do not count.
    """
    orphans: set[int] = set()
    seen: dict[str, set[int]] = defaultdict(set)
    query = select(*edges.c["a", "space"]).where(edges.c.b.in_(list_keys(front)), edges.c.space.not_in(except_spaces))
    for a, space in connection.execute(query):
        if space.startswith("made-of:"):
            orphans.add(a)
        elif space.startswith("seen-in:"):
            seen[space].add(a)
    for space, candidates in seen.items():
        at = list_keys(sorted(candidates)).subquery().c.value
        # EXISTS, since one source that stays is enough, and a common name has thousands of sources.
        stays = exists().where(edges.c.a == at, edges.c.space == space, edges.c.b.not_in(list_keys(gone)))
        orphans.update(connection.scalars(select(at).where(~stays)))
    return orphans
