"""The system that a request names, within bounds: a client must not make one question run for days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tomewise.errors import UsageError
from tomewise.systems.spec import Variant, choose_variant

_MOST: Mapping[str, float] = {"cycles": 20, "probes": 20, "limit": 1000, "neighbours": 50, "steps": 50, "wave": 64}
_MOST_OTHER = 1_000_000  # of any other number, such as tokens of context
_LONGEST = 2000  # characters of a text


def choose_bounded(system: str, settings: Mapping[str, Any]) -> Variant:
    """The variant that a request names. Raises UnknownName, and UsageError for a setting that is out of bounds."""
    variant = choose_variant(system, settings)
    for name, value in variant.settings.items():
        _check_setting(name, value)
    return variant


def _check_setting(name: str, value: Any) -> None:
    most = _MOST.get(name, _MOST_OTHER)
    if isinstance(value, int | float) and not abs(value) <= most:
        raise UsageError(f"settings.{name} is {value}: this server allows {most:g} at most")
    if isinstance(value, str | list | tuple | dict) and len(str(value)) > _LONGEST:
        raise UsageError(f"settings.{name} is too long: this server allows {_LONGEST:,} characters")
