"""The state of one call of the command: the tome it names, and the message of an interrupt."""

from __future__ import annotations

INTERRUPTED_MESSAGE = "tome: interrupted; what was finished is kept"
# After a limit: every reply is kept before it is used, so the next try pays for none of them again.
KEPT_MESSAGE = "Every reply so far is kept: with a higher limit the same command goes on from there"


class State:
    """Each call resets it. An interrupted command prints `interrupted`."""

    tome: str | None = None
    interrupted = INTERRUPTED_MESSAGE


def promise_to_resume() -> None:
    """Let an interrupt say that the same command continues where this one ended."""
    State.interrupted = f"{INTERRUPTED_MESSAGE}, the same command goes on from there"
