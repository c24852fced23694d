"""What says word for word what was there before: evidence is shown once, a question is asked once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tomewise.loops.origins import PASSAGE, name_kind
from tomewise.types import Evidence

_WORD = re.compile(r"\w+")
_LEAST = 12  # words: shorter texts, such as facts, cost little and are seldom the same by mistake
_RUN = 3  # words
_SHARE = 0.9  # of the runs of a text that another one must have


@dataclass(frozen=True)
class _Wording:
    sequence: Sequence[str]
    words: frozenset[str]
    is_passage: bool

    @cached_property
    def runs(self) -> frozenset[tuple[str, ...]]:
        """Neighbouring words. Few texts have all the words of another, so most need no runs."""
        return frozenset(zip(*(self.sequence[start:] for start in range(_RUN)), strict=False))

    def repeats(self, earlier: _Wording) -> bool:
        """Whether the earlier text has all these words, nearly all in the same order."""
        if (self.is_passage and not earlier.is_passage) or not self.words <= earlier.words:
            return False
        return len(self.runs & earlier.runs) >= _SHARE * len(self.runs)


def drop_near_repeats(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The evidence without pieces that add no word to an earlier one: copies, and texts that quote a passage.

    A piece with another number, name or "not" has a word more, so it stays. A passage is left out for another passage
    only, since nothing else can be quoted.
    """
    kept: list[Evidence] = []
    known: list[_Wording] = []
    for piece in evidence:
        words = _WORD.findall(piece.text.casefold())
        if len(words) >= _LEAST:
            wording = _Wording(words, frozenset(words), name_kind(piece) == PASSAGE)
            if any(map(wording.repeats, known)):
                continue
            known.append(wording)
        kept.append(piece)
    return kept


def fold(text: str) -> str:
    """The text for comparison: without differences of case, spaces and the marks at its ends."""
    return " ".join(text.casefold().split()).strip(" ?.!\"'")
