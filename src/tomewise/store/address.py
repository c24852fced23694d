"""Where a tome is, as people name it."""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import Path

from tomewise.errors import UsageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def find_path(address: str | PathLike[str]) -> Path:
    """The file that an address names. Raises UsageError for the address of a database: no store for any is known."""
    found = _SCHEME.match(fspath(address))
    if found is None:
        return Path(address)
    raise UsageError(  # without the address, which may hold a password
        f"a tome at {found[1]}:// needs a store for {found[1]}, which this Tomewise does not have: name a file, such "
        "as memory.tome, or in Python give a store of your own to `Tome.open(store=...)`"
    )
