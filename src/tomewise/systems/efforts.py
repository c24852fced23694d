"""How much work a question is worth, in plain words, and the system of ours that does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from tomewise.errors import UsageError

if TYPE_CHECKING:
    from tomewise.systems.kit import Kit

T = TypeVar("T")
Effort: TypeAlias = Literal["auto", "quick", "thorough", "whole"]

# The first system of an effort whose memory is built answers; the last one needs none.
EFFORTS: Mapping[Effort, tuple[str, ...]] = {
    "auto": ("auto",),
    "quick": ("associative", "hybrid"),
    "thorough": ("investigate",),
    "whole": ("whole",),
}
OUR_NAMES = (*dict.fromkeys(name for names in EFFORTS.values() for name in reversed(names)), "read_through")


def choose_by_effort(system: T, effort: Effort | None, kit: Kit, *, current: bool = False, begun: str = "") -> T | str:
    """The system that was named, or the one that does so much work on this tome.

    With `current` its memory must be up to date. A session goes on with the system that it was `begun` with, if that
    does so much. Raises UsageError if both are given, and for an effort that does not exist.
    """
    if effort is None:
        return system
    if not isinstance(effort, str) or effort not in EFFORTS:
        raise UsageError(f"effort must be one of {', '.join(EFFORTS)}, not {effort!r:.200}")
    if system:
        raise UsageError(f"effort={effort} chooses the system: leave out the effort, or the system")
    from tomewise.systems.lag import LagFinder
    from tomewise.systems.registry import assemble

    *others, last = EFFORTS[effort]
    if begun in (*others, last):
        return begun
    lags = ((name, LagFinder(kit, name, assemble(name, kit).layers).find_lag(current=current)) for name in others)
    return next((name for name, lag in lags if not lag), last)
