"""Multiple choice: which letter a reply means, and whether it is the right one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase, punctuation

from tomewise.evaluate.metrics.answers import normalise
from tomewise.language.fences import letter

_PREFIX = r"(?:answer is|answer|option is)\s*:?\s*[\"'(*]*"


def letter_in(reply: str, options: Sequence[str]) -> str | None:
    """The letter that a free reply means, or None.

    In this order: the reply is an option, word for word; it begins with a letter that stands alone; a letter
    follows "answer is", "answer:" or "option is"; the reply holds the wording of exactly one option; the first letter
    that stands alone anywhere. Source: InfiniteBench (Zhang et al. 2024), its parser for EN.MC, with these deviations:
    letters reach as far as the options do; a letter must stand alone ("Anne" is not A), an A or I before a word in
    lower case is an article or a person, and a reply of one letter may be in lower case; the two rules about wording
    are ours.
    """
    if not options:
        return None
    letters = ascii_uppercase[: len(options)]
    alone = rf"\b([{letters}])\b(?![’']\w)(?!(?<=\b[AI])\s+[a-z])"
    reply = reply.strip()
    reply = reply.upper() if len(reply.strip(punctuation)) == 1 else reply
    return (
        _worded(reply, options)
        or _found(rf"[\"'(*\[]*{alone}", reply, anchored=True)
        or _found(rf"(?i:{_PREFIX}){alone}", reply)
        or _held(reply, options)
        or _found(alone, reply)
    )


def choice_accuracy(choice: str | None, reply: str, options: Sequence[str], correct: str) -> float:
    """1.0 when the letter chosen, or without one the letter found in the reply, is the correct one."""
    return float(chosen(choice, reply, options) == correct)


def chosen(choice: str | None, reply: str, options: Sequence[str]) -> str | None:
    """The letter chosen if it is one of the options, else the letter found in the reply, else None."""
    known = ascii_uppercase[: len(options)]
    named = (choice or "").strip().rstrip(".)").upper()
    return named if len(named) == 1 and named in known else letter_in(reply, options)


def _worded(reply: str, options: Sequence[str]) -> str | None:
    said = normalise(reply)
    same = [letter(at) for at, option in enumerate(options) if said and normalise(option) == said]
    return same[0] if len(same) == 1 else None


def _held(reply: str, options: Sequence[str]) -> str | None:
    said = f" {normalise(reply)} "
    held = [letter(at) for at, option in enumerate(options) if normalise(option) and f" {normalise(option)} " in said]
    return held[0] if len(held) == 1 else None


def _found(pattern: str, reply: str, *, anchored: bool = False) -> str | None:
    match = re.match(pattern, reply) if anchored else re.search(pattern, reply)
    return match.group(1) if match else None
