"""The tomes that an MCP server offers, by name, and how its replies name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.tome.document_names import hide_paths

if TYPE_CHECKING:
    from tomewise.tome.tome import Tome

Admit = Callable[[], AbstractAsyncContextManager[object]]  # a question runs inside: a queue, a time limit, a budget

_SHOWN = 20  # names of tomes in a message


class Library(Protocol):
    """Open tomes by name. The mapping may change while a server runs."""

    @property
    def tomes(self) -> Mapping[str, Tome]: ...


@dataclass(frozen=True, slots=True)
class FixedLibrary:
    """The same tomes from start to end."""

    tomes: Mapping[str, Tome]


def find_tome(name: str, library: Library) -> tuple[str, Tome]:
    """The name and the tome; an empty name stands for the only one. Raises UnknownName, UsageError."""
    tomes = library.tomes
    if name in tomes:
        return name, tomes[name]
    known = ", ".join(sorted(tomes)[:_SHOWN]) + (", ..." if len(tomes) > _SHOWN else "")
    if name:
        raise UnknownName(f"no tome {name[:200]!r}: {suggest(name, tomes)}this server has {known or 'none'}")
    if len(tomes) == 1:
        return next(iter(tomes.items()))
    raise UsageError(f"name the tome: this server has {known or 'none'}")


def hide_addresses(message: str, library: Library) -> str:
    """The message with the names of tomes and of documents instead of the places where they are kept."""
    addresses = {book.store.address: name for name, book in library.tomes.items()}
    for address in sorted(addresses, key=len, reverse=True):
        message = message.replace(address, addresses[address])
    return hide_paths(message, (book.document_names for book in library.tomes.values()))
