"""Which nodes go with a removed one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, exists, select

from tomewise.store.sql.dialect import SqliteDialect
from tomewise.store.sql.schema import edges


def find_dependants(connection: Connection, dialect: SqliteDialect, keys: Iterable[int]) -> list[int]:
    """These nodes in ascending order, then the nodes that go with them, level by level."""
    gone: dict[int, None] = {}
    front = sorted(set(keys))
    while front:
        gone |= dict.fromkeys(front)
        front = sorted(find_orphans(connection, dialect, front, gone) - gone.keys())
    return list(gone)


def find_orphans(
    connection: Connection,
    dialect: SqliteDialect,
    front: Iterable[int],
    gone: Iterable[int],
    except_spaces: Sequence[str] = (),
) -> set[int]:
    """The nodes that go with those of `front`, by their lifetimes, once all in `gone` are removed.

    Links of the spaces `except_spaces` do not count.
    """
    orphans: set[int] = set()
    seen: dict[str, set[int]] = defaultdict(set)
    query = select(edges.c.a, edges.c.space).where(
        edges.c.b.in_(dialect.values(front)), edges.c.space.not_in(except_spaces)
    )
    for a, space in connection.execute(query):
        if space.startswith("made-of:"):
            orphans.add(a)
        elif space.startswith("seen-in:"):
            seen[space].add(a)
    for space, candidates in seen.items():
        at = dialect.values(sorted(candidates)).subquery().c.value
        # EXISTS, since one source that stays is enough, and a common name has thousands of sources.
        stays = exists().where(edges.c.a == at, edges.c.space == space, edges.c.b.not_in(dialect.values(gone)))
        orphans.update(connection.scalars(select(at).where(~stays)))
    return orphans
