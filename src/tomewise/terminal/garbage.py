"""How often this process searches for garbage."""

from __future__ import annotations

import gc

# New objects. Python searches for garbage after 700 of them, which takes a sixth of a short command: its imports make
# many objects, and hardly any garbage.
_COLLECT_AFTER = 200_000
_USUAL = gc.get_threshold()


def collect_rarely() -> None:
    """Search seldom, as suits a short command."""
    gc.set_threshold(_COLLECT_AFTER)


def collect_as_usual() -> None:
    """Search as often as Python does: what runs for long would keep the garbage of its work."""
    gc.set_threshold(*_USUAL)
