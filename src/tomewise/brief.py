"""Short texts: for `repr`, since a notebook or a debugger prints objects that hold whole books, and of errors."""

from __future__ import annotations

_LONGEST = 60  # characters of one value


def describe_object(thing: object, *values: object, **fields: object) -> str:
    """The name of the type with values and named fields, each cut, as `Answer('Ada', supported='full')`."""
    parts = [*map(_cut_text, values), *(f"{name}={_cut_text(value)}" for name, value in fields.items())]
    return f"{type(thing).__name__}({', '.join(parts)})"


def describe_fault(error: BaseException) -> str:
    """An error that nobody foresaw, in one short line: its type and what it says."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _cut_text(value: object) -> str:
    text = repr(value[: _LONGEST + 1]) if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
