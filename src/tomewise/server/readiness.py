"""Which systems a tome is ready for, and which layers lag."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from tomewise.errors import TomewiseError
from tomewise.memory.building import find_lag
from tomewise.systems.registry import list_systems
from tomewise.systems.spec import parse_variant
from tomewise.tome.tome import Tome


class Readiness:
    """Finds what each system still needs, and keeps it until the memory changes. May be used from several threads."""

    def __init__(self, tome: Tome) -> None:
        self._tome = tome
        self._lock = Lock()
        self._state: object = None
        self._lag: Mapping[str, Mapping[str, int]] = {}

    def find_lag(self) -> Mapping[str, Mapping[str, int]]:
        """By system, with its default settings: the layers to build, with how many nodes each has yet to take in."""
        store = self._tome.store
        with self._lock:
            state = (store.versions(["vectors/passages"]), store.builds())
            if state != self._state:
                self._lag = {name: lag for name in list_systems() if (lag := self._find(name)) is not None}
                self._state = state
            return self._lag

    def list_ready(self) -> list[str]:
        """The systems that can answer now."""
        return [name for name, lag in self.find_lag().items() if not lag]

    def _find(self, name: str) -> Mapping[str, int] | None:
        try:
            return find_lag(parse_variant(name).wire(self._tome.kit).layers, self._tome.store)
        except TomewiseError:  # a plugin that is broken, or a system without its library
            return None
