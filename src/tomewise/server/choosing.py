"""The system that a request names, within bounds: a client must not make one question run for days. How replies name
documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tomewise.errors import TomewiseError, UsageError
from tomewise.outgoing.form import Naming
from tomewise.systems.registry import Variant, choose_variant, parse_variant

if TYPE_CHECKING:
    from tomewise.tome.tome import Tome

# What multiplies the calls of one question, or the evidence of one search.
_MOST: Mapping[str, float] = {
    **dict.fromkeys(("cycles", "probes", "rounds", "runs", "hops", "subqueries"), 20),
    **dict.fromkeys(("steps", "thoughts", "neighbours", "recovery"), 50),
    **dict.fromkeys(("pages", "questions"), 200),
    "wave": 64,
    "limit": 1000,
}
_MOST_OTHER = 1_000_000  # of any other number, such as tokens of context
_LONGEST = 2000  # characters of a text


def choose_bounded(system: str, settings: Mapping[str, Any]) -> Variant:
    """The variant that a request names. Raises UnknownName, and UsageError for a setting that is out of bounds."""
    for name, value in settings.items():  # before the message of another check repeats a long value
        _check_setting(name[:100], value)
    variant = choose_variant(system, settings)
    for name, value in variant.settings.items():
        _check_setting(name, value)
    return variant


def choose_naming(tome: Tome) -> Naming:
    """How a server names the documents of a tome to its clients: as they are now, so it is called for each reply."""
    return tome.document_names.read().name


def _check_setting(name: str, value: Any) -> None:
    most = _MOST.get(name, _MOST_OTHER)
    if isinstance(value, int | float) and not abs(value) <= most:
        raise UsageError(f"settings.{name} is {value}: this server allows {most:g} at most")
    if isinstance(value, str | list | tuple | dict) and len(str(value)) > _LONGEST:
        raise UsageError(f"settings.{name} is too long: this server allows {_LONGEST:,} characters")
    if isinstance(value, str):
        _check_systems(value)


def _check_systems(text: str) -> None:
    """Check the settings of systems inside a text, such as the ladder of `auto`."""
    for part in text.split(","):
        for name, value in _read_settings(part).items():
            _check_setting(name, value)


def _read_settings(text: str) -> Mapping[str, Any]:
    try:
        return parse_variant(text).settings
    except TomewiseError:  # most texts name no system
        return {}
