"""The scopes that clients have opened: parts of tomes by an id, each of which knows what of it was read."""

from __future__ import annotations

from collections import OrderedDict
from secrets import token_hex
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from tomewise.errors import UnknownName
from tomewise.tome.tome import Tome
from tomewise.tome.view import TomeView

_MOST = 1_000  # of one tome; the one that was used longest ago goes


class ScopeList:
    """Scopes by tome and id. They are gone with the tome, or when the server ends. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._scopes: WeakKeyDictionary[Tome, OrderedDict[str, TomeView]] = WeakKeyDictionary()

    def open(self, tome: Tome, part: TomeView) -> str:
        """Keep a part of a tome, and return its id."""
        id = token_hex(8)
        with self._lock:
            scopes = self._scopes.setdefault(tome, OrderedDict())
            scopes[id] = part
            while len(scopes) > _MOST:
                scopes.popitem(last=False)
        return id

    def find(self, tome: Tome, id: str) -> TomeView:
        """The part with this id. Raises UnknownName."""
        with self._lock:
            scopes = self._scopes.get(tome, OrderedDict())
            if id not in scopes:
                raise UnknownName(f"no scope {id[:100]!a} of this tome is open: open it again")
            scopes.move_to_end(id)
            return scopes[id]


def describe_scope(id: str, part: TomeView, tome: Tome) -> Any:
    """What a scope is narrowed to, and what of it was read, as `ScopeReply` has it."""
    about = {"id": id, "within": str(part.scope or ""), "documents": len(part.documents), "coverage": part.coverage}
    return tome.documents.names.hide(about)
