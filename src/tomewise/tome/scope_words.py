"""A scope in words."""

from __future__ import annotations

from tomewise.types import Scalar, Scope

_SHOWN = 3  # documents named in a description


def describe_scope(scope: Scope) -> str:
    """A scope in one line, for people."""
    facts = []
    if scope.documents is not None:
        names = [name.rstrip("/").rsplit("/", 1)[-1] for name in sorted(scope.documents)]
        facts.append(", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""))
    facts += [f"{test.field}{test.operator}{_write_value(test.value)}" for test in scope.where]
    if scope.entities is not None:
        facts.append(f"entities seen: {len(scope.entities)}")
    if scope.without_entities:
        facts.append(f"entities left out: {len(scope.without_entities)}")
    return ", ".join(facts)


def _write_value(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
