"""Options of a multiple-choice question, in the forms that files have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from tomewise.evaluate.datasets.data_rows import Record
from tomewise.language.fences import get_letter

_LETTERED = re.compile(r"^\s*\(?([A-Z])[.):]\s+")


def read_options(record: Record, *names: str) -> tuple[str, ...]:
    """The wordings of the options in order: a list, a mapping from letters, or lines that begin with letters."""
    value = record.take(*names)
    if isinstance(value, dict):
        value = [wording for _, wording in sorted(value.items()) if wording is not None]
    if isinstance(value, str):
        value = value.strip().splitlines()
    if not isinstance(value, list) or not value:
        raise record.make_wrong_field_error(names[0], value, "a list of options, or a mapping from letters to options")
    if len(value) > len(ascii_uppercase):
        raise record.make_wrong_field_error(
            names[0], f"{len(value)} options", f"{len(ascii_uppercase)} options at most"
        )
    return _strip_letters([str(wording).strip() for wording in value])


def read_correct_letter(record: Record, options: Sequence[str], *names: str) -> str:
    """The letter of the right option. The file gives the letter, the wording, or the letter with the wording."""
    answers = record.texts(*names)
    for answer in answers:
        if answer.strip() in options:
            return get_letter(options.index(answer.strip()))
    letters = [get_letter(at) for at in range(len(options))]
    for answer in answers:
        if (named := answer.strip().rstrip(".):").upper()) in letters:
            return named
        if (match := _LETTERED.match(answer)) and match.group(1) in letters:
            return match.group(1)
    raise record.make_wrong_field_error(
        names[0], " / ".join(answers), f"one of the options or one of the letters {', '.join(letters)}"
    )


def find_wording(options: Sequence[str], correct: str) -> str:
    """The wording of the option with that letter."""
    return options[ord(correct) - ord("A")]


def _strip_letters(options: list[str]) -> tuple[str, ...]:
    """The options without letters in front, if each begins with its own letter; so a lone "A. Smith" stays whole."""
    matches = [_LETTERED.match(option) for option in options]
    if any(match is None or match.group(1) != get_letter(at) for at, match in enumerate(matches)):
        return tuple(options)
    return tuple(_LETTERED.sub("", option, count=1) for option in options)
