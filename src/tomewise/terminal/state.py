"""What one call of the command knows: which tome it names, and what to say when it is interrupted."""

from __future__ import annotations

KEPT = "tome: interrupted; what was finished is kept"


class State:
    """Reset by each call. `kept` is what an interrupted command prints."""

    tome: str | None = None
    kept = KEPT


def promise_to_resume() -> None:
    """For commands that begin where an interrupted one ended."""
    State.kept = f"{KEPT}, the same command goes on from there"
