"""Read the JSON of a reply that is still being written."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic_core import from_json

from tomewise.language.reply import find_opening

_LONGEST = 100_000  # characters of a reply that are read while it is written; no answer is so long
_GROWTH = 64  # the text is read again after it has grown by this fraction, so that all readings together stay linear
_CONTROLS = dict.fromkeys(range(32), " ")  # models leave line breaks inside of strings, which JSON forbids


class PartialReply:
    """Collects the pieces of a reply. `read` gives the fields of its JSON object, the last of which may be cut."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._pieces: list[str] = []
        self._length = 0
        self._read_length = 0

    def add(self, piece: str) -> None:
        """The next piece of the text."""
        if self._length <= _LONGEST:
            self._pieces.append(piece)
            self._length += len(piece)

    def read(self) -> dict[str, Any]:
        """The fields so far. Empty before JSON begins, if the text is not JSON, and if too little is new."""
        if self._length > _LONGEST or self._length - self._read_length <= self._read_length // _GROWTH:
            return {}
        self._read_length = self._length
        text = "".join(self._pieces)
        self._pieces = [text]
        opening = find_opening(text)
        return {} if opening is None else self._find_fields(_parse(text[opening:]))

    def _find_fields(self, value: Any) -> dict[str, Any]:
        """The fields, also one level down, as in a reply that is whole."""
        values = [value, *value.values()] if isinstance(value, dict) else []
        return next((each for each in values if isinstance(each, dict) and self._names & each.keys()), {})


def _parse(text: str) -> Any:
    for wording in (text, text.translate(_CONTROLS)):
        try:
            return from_json(wording, allow_partial="trailing-strings")
        except ValueError:
            continue
    return None
