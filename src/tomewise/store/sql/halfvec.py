"""The `halfvec` of pgvector, a vector of float16: whether the database of a tome has it, and what it can hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

Rows = NDArray[np.float32]

MOST_DIMENSIONS = 4_000  # of an index of this type
LEAST_VERSION = (0, 8)  # the version from which a search goes on until it has found enough
_EXTENSION = """
SELECT e.extversion, n.nspname, has_schema_privilege(n.oid, 'USAGE') FROM pg_extension e
JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""


@dataclass(frozen=True, slots=True)
class Halfvec:
    """The names of the type, of its operator for the negative inner product, and of the class of its indexes.

    They may stand in statements with parameters.
    """

    type: str
    product: str
    index_class: str


def find_halfvec(connection: Connection) -> Halfvec | str:
    """The names of `halfvec` in this database, or why it cannot be used, with the remedy."""
    found = connection.exec_driver_sql(_EXTENSION).one_or_none()
    if found is None:
        return "the database has no pgvector: its owner adds it with `CREATE EXTENSION vector`"
    version, schema, may_use = found
    if parse_version(version) < LEAST_VERSION:
        return f"pgvector is {version} here, which is too old: its owner runs `ALTER EXTENSION vector UPDATE`"
    quoted = '"' + schema.replace('"', '""') + '"'
    if not may_use:
        return f"you may not use pgvector here: its owner runs `GRANT USAGE ON SCHEMA {quoted} TO` you"
    safe = quoted.replace("%", "%%")
    return Halfvec(f"{safe}.halfvec", f"OPERATOR({safe}.<#>)", f"{safe}.halfvec_ip_ops")


def parse_version(version: str) -> tuple[int, ...]:
    numbers = version.split(".")
    return tuple(int(number) if number.isdecimal() else 0 for number in numbers)


def round_to_half(rows: Rows) -> NDArray[np.float16] | None:
    """The numbers as float16; None if they, or their dimensions, are beyond what an index holds."""
    if not 0 < rows.shape[-1] <= MOST_DIMENSIONS:
        return None
    with np.errstate(over="ignore"):
        halves = rows.astype(np.float16)
    return halves if np.isfinite(halves).all() else None


def write_literal(half: NDArray[np.float16]) -> str:
    """One vector (d,) as text."""
    return str(half.tolist())
