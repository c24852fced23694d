"""How long a test waits for what comes at once: longer than any busy machine takes, shorter than a hang."""

from __future__ import annotations

import time
from collections.abc import Callable

SOON = 300.0
"""Seconds. What a test must tell apart from this, a model that hangs for instance, takes `NEVER`."""

NEVER = 3600.0


def wait_until(holds: Callable[[], object], seconds: float = SOON) -> None:
    """Wait until a condition holds; fail if it does not come to hold in time."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "the condition never held"
        time.sleep(0.02)
