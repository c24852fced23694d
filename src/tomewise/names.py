"""Suggest a known name for a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_ALIKE = 0.4  # the least difflib ratio at which a known name counts as a likely misspelling


def suggest(name: str, known: Iterable[str]) -> str:
    """`did you mean 'NEAREST'? ` for a message, or an empty text if no known name is near. Case does not count."""
    spellings = {spelling.lower(): spelling for spelling in known}
    near = get_close_matches(name.lower(), spellings, n=1, cutoff=_ALIKE)
    return f"did you mean {spellings[near[0]]!r}? " if near else ""
