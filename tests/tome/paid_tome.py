"""A tome whose memory seems to be paid for, without a model that costs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def pretend_paid(path: Path, model: str = "openai:test") -> None:
    """Write into the records of all builds that this model made them."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE builds SET record = json_set(record, '$.model', ?)", (model,))
