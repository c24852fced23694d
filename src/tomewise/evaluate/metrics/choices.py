"""Multiple choice: which letter a reply means, and whether it is correct."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase, punctuation

from tomewise.evaluate.metrics.answers import normalise
from tomewise.language.fences import letter

_PREFIX = r"(?:answer is|answer|option is)\s*:?\s*[\"'(*]*"


def find_letter(reply: str, options: Sequence[str]) -> str | None:
    """The letter that a free reply means, or None.

    The first rule that finds a letter decides: the reply is the wording of an option; it begins with a letter; a letter
    follows "answer is", "answer:" or "option is"; it contains the wording of exactly one option; it contains a letter.

    Source: the parser of InfiniteBench (Zhang et al. 2024) for EN.MC. Deviations: only letters of options count; a
    letter must be a word by itself ("Anne" is not A); an A or I before a word in lower case is an article or a pronoun;
    a reply of one letter may be in lower case; the two rules about wordings are ours.
    """
    if not options:
        return None
    letters = ascii_uppercase[: len(options)]
    alone = rf"\b([{letters}])\b(?![’']\w)(?!(?<=\b[AI])\s+[a-z])"
    reply = reply.strip()
    reply = reply.upper() if len(reply.strip(punctuation)) == 1 else reply
    return (
        _match_wording(reply, options)
        or _match_letter(rf"[\"'(*\[]*{alone}", reply, anchored=True)
        or _match_letter(rf"(?i:{_PREFIX}){alone}", reply)
        or _find_wording(reply, options)
        or _match_letter(alone, reply)
    )


def choice_accuracy(choice: str | None, reply: str, options: Sequence[str], correct: str) -> float:
    """1.0 when the chosen letter is correct; see `pick_letter`."""
    return float(pick_letter(choice, reply, options) == correct)


def pick_letter(choice: str | None, reply: str, options: Sequence[str]) -> str | None:
    """The letter of `choice` if it is one of the options, else the letter found in the reply, else None."""
    letters = ascii_uppercase[: len(options)]
    named = (choice or "").strip().rstrip(".)").upper()
    return named if len(named) == 1 and named in letters else find_letter(reply, options)


def _match_wording(reply: str, options: Sequence[str]) -> str | None:
    """The letter of the one option whose wording is the reply."""
    text = normalise(reply)
    letters = [letter(at) for at, option in enumerate(options) if text and normalise(option) == text]
    return letters[0] if len(letters) == 1 else None


def _find_wording(reply: str, options: Sequence[str]) -> str | None:
    """The letter of the one option whose wording the reply contains."""
    text, wordings = f" {normalise(reply)} ", map(normalise, options)
    letters = [letter(at) for at, wording in enumerate(wordings) if wording and f" {wording} " in text]
    return letters[0] if len(letters) == 1 else None


def _match_letter(pattern: str, reply: str, *, anchored: bool = False) -> str | None:
    match = re.match(pattern, reply) if anchored else re.search(pattern, reply)
    return match.group(1) if match else None
