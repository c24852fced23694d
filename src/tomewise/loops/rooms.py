"""How much a call can show of a text, or of what was noted of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from tomewise.errors import UsageError
from tomewise.language.per_role import find_name, find_window
from tomewise.loops.desk import Desk
from tomewise.types import In, Role

LEAST_ROOM = 1_000  # tokens of a chunk, and of a ledger
_SURE = 0.8  # of the window: models count tokens in their own way


@dataclass(frozen=True, slots=True)
class Room:
    """The tokens that a call of `role` has for what grows while a text is read, and how many it needs at least."""

    role: Role[Any, Any]
    tokens: int
    least: int = LEAST_ROOM

    @classmethod
    def measure(cls, desk: Desk, role: Role[In, Any], empty: In, *, beside: int = 0, least: int = LEAST_ROOM) -> Room:
        """The room beside the prompt with an `empty` input, and beside so many tokens more."""
        used = desk.model.count_input_tokens(role, empty) + beside
        return cls(role, int(_SURE * (find_window(desk.model, role) - role.output_tokens)) - used, least)


def check_rooms(desk: Desk, rooms: Sequence[Room]) -> None:
    """Raise UsageError if the window of a role's model is too small, with the window that is needed."""
    needed, role = max((_find_needed_window(room, desk), room.role.name, room.role) for room in rooms)[::2]
    window = find_window(desk.model, role)
    if needed > window:
        raise UsageError(
            f"{find_name(desk.model, role)} takes {window:,} tokens, too few to read a text part by part, which needs "
            f"{needed:,}: let its server accept more (Ollama: OLLAMA_CONTEXT_LENGTH), set `window` if it does already, "
            "or name another model"
        )


def _find_needed_window(room: Room, desk: Desk) -> int:
    return find_window(desk.model, room.role) + ceil((room.least - room.tokens) / _SURE)
