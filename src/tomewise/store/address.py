"""Where a tome is, as people name it: the path of a file, or a database and the name of a tome in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from tomewise.credentials import remember_credentials
from tomewise.errors import UsageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_POSTGRES = "postgresql", "postgres"
# The parameters that no message shows.
_SECRET = "password", "sslpassword", "passfile", "sslkey", "oauth_client_secret", "scram_client_key", "scram_server_key"
_MISSPELT = re.compile(r"%(?![0-9A-Fa-f]{2})|%00|\s")  # the driver would refuse these, and show the password
_NAME = re.compile(r"[^\W\d][\w-]*")
_LONGEST = 63  # bytes of a name in PostgreSQL, which cuts a longer one in silence


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """A database of PostgreSQL, and the tome in it; without `tome` the database alone.

    `shown` is the address for people: it has no password.
    """

    database: str = field(repr=False)
    """What the driver connects to, with the password if one was stated."""
    tome: str
    shown: str

    def __str__(self) -> str:
        return self.shown

    def write(self) -> str:
        """The whole address, with the password if one was stated, as `find_tome_address` reads it."""
        return f"{self.database}#{quote(self.tome)}"

    @property
    def name(self) -> str:
        """What people call the tome."""
        return self.tome

    def find_tome(self, name: str) -> DatabaseAddress:
        """Another tome of this database. Raises UsageError for a name that none can have."""
        check_name(name)
        return DatabaseAddress(self.database, name, f"{self.shown.partition('#')[0]}#{name}")


TomeAddress: TypeAlias = Path | DatabaseAddress


def check_name(name: str) -> None:
    """Raise UsageError for a name that no tome in a database can have."""
    if not _NAME.fullmatch(name) or len(name.encode()) > _LONGEST or name.startswith("pg_"):
        raise UsageError(
            f"{name[:100]!a} cannot name a tome in a database: give up to {_LONGEST} letters, digits, - and _, "
            "with a letter first, and not pg_"
        )


def find_database(address: str | PathLike[str]) -> DatabaseAddress | None:
    """The database that an address names, with the tome after # if there is one; None for the path of a file.

    Raises UsageError.
    """
    text = fspath(address)
    found = _SCHEME.match(text)
    if found is None:
        return None
    if found[1].lower() not in _POSTGRES:
        raise UsageError(  # without the address, which may hold a password
            f"a tome at {found[1]}:// needs a store for {found[1]}, which this Tomewise does not have: name a file, "
            "such as memory.tome, or a tome in PostgreSQL, such as postgresql://host/database#novels"
        )
    try:
        parts = urlsplit(text)
        password, host = parts.password, parts.netloc.rpartition("@")[2]
        _ = parts.port
        if _MISSPELT.search(text.partition("#")[0]) or _has_stray_at(parts):
            raise ValueError
    except ValueError:
        raise UsageError(
            "the address of the database cannot be read: write it as postgresql://host:5432/database#novels, "
            "with %23, %2F, %3F, %40, %25 and %20 for #, /, ?, @, % and a space in a user or a password"
        ) from None
    queries = parse_qsl(parts.query, keep_blank_values=True)
    for secret in (password, *(value for name, value in queries if name in _SECRET)):
        remember_credentials(unquote(secret) if secret else None)
    user = f"{parts.username}@" if parts.username else ""
    query = urlencode([pair for pair in queries if pair[0] not in _SECRET], safe="/")
    tome = unquote(parts.fragment)
    if tome:
        check_name(tome)
    shown = _join(user + host, parts.path, query)
    return DatabaseAddress(_join(parts.netloc, parts.path, parts.query), tome, shown + (f"#{tome}" if tome else ""))


def _has_stray_at(parts: SplitResult) -> bool:
    """Whether there is an @ behind the host: a password with a bare /, ? or # ends the host, and would be shown."""
    names = [pair.partition("=")[0] for pair in parts.query.split("&")]
    return any("@" in each for each in (parts.path, parts.fragment, *names))


def _join(host: str, path: str, query: str) -> str:
    """An address with its slashes, which `urlunsplit` leaves out without a host."""
    return f"postgresql://{host}{path}" + (f"?{query}" if query else "")


def find_tome_address(address: str | PathLike[str]) -> TomeAddress:
    """The file, or the tome in a database, that an address names. Raises UsageError."""
    database = find_database(address)
    if database is None:
        return Path(address)
    if not database.tome:
        raise UsageError(
            f"{database} names no tome: write its name behind #, as in #novels; `tome show -m` with this address lists "
            "those that are there"
        )
    return database
