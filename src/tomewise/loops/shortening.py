"""Texts that are too long for their room lose whole sentences, or leave others out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from tomewise.language.sentences import split_sentences
from tomewise.loops.evidence import FENCE, Count

_NEAR = 0.8  # a text is cut between words only if this share of it is left; else it has no spaces to cut at
_LEAST = 100  # tokens: if there are too many texts, none is cut shorter than this


class Shortener:
    """Shortens texts by their tokens."""

    def __init__(self, count: Count) -> None:
        self._count = count

    def shorten(self, text: str, most: int) -> str:
        """A text cut to `most` tokens: as many of its first sentences as fit, so that none loses what it follows from.

        If not even one sentence fits, the text is cut between words.
        """
        text = text.strip()
        if most <= 0 or self._count([text])[0] <= most:
            return text if most > 0 else ""
        sentences = split_sentences(text, limit=len(text), longest=len(text))
        cuts = [f"{text[: sentence.end]} …" for sentence in sentences[:-1]]
        fitting = bisect_right(cuts, most, key=lambda cut: self._count([cut])[0])
        return cuts[fitting - 1] if fitting else self._cut_between_words(text, most)

    def fit(self, texts: Sequence[str], room: int) -> list[str]:
        """Texts that fit into `room` tokens: the longest are cut; if all would get too short, the last are left out."""
        if not texts:
            return []
        sizes = self._count(texts)
        needs = accumulate(min(size, _LEAST) + FENCE for size in sizes)
        count = max(1, sum(need <= room for need in needs))
        left, most = room - FENCE * count, 0
        for index, size in enumerate(sorted(sizes[:count])):
            most = left // (count - index)
            if size > most:
                break
            left, most = left - size, size
        return [short for text in texts[:count] if (short := self.shorten(text, most))]

    def _cut_between_words(self, text: str, most: int) -> str:
        """The beginning of a text, up to `most` tokens, between two words where one is near."""
        beginning, length = text, len(text)
        while (size := self._count([beginning])[0]) > most:
            length = int(0.95 * length * most / size)  # a little less, so that few rounds do
            begun = text[:length].strip()
            if not begun:
                return ""
            words = begun.rsplit(maxsplit=1)[0]
            beginning = f"{words if len(words) > _NEAR * len(begun) else begun} …"
        return beginning
