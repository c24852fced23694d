"""Split text into sentences, with their offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

READ_AT_MOST = 160_000  # characters of one call's texts that are read: more than the window holds
_LONGEST = 700  # characters; a longer sentence is cut at white space
_ABBREVIATIONS = frozenset(
    """mr mrs ms dr st jr sr prof rev gen col capt lt sgt messrs mme mlle hon no nos vs etc eg ie inc ltd co corp fig
    vol ch pp ca approx jan feb mar apr jun jul aug sep sept oct nov dec mt ft""".split()
)
# Repetitions are bounded, so that the time is linear also for a megabyte of dots.
_BREAK = re.compile(
    r"""[.!?…]{1,8}["'”’)\]»]{0,4}(?=\s)|[。！？]{1,8}[」』”’）]{0,4}|\n[^\S\n]*\n|\n(?=[^\W\d_][^\n:]{0,40}:[ \t])"""
)
_GERMAN_MONTH = re.compile(r"\s+(?:Januar|Februar|März|April|Mai|Juni|Juli|August|(?:Septem|Okto|Novem|Dezem)ber)\b")
_TURN = re.compile(r"\s*([^\W\d_][^\n:.!?\"“]{0,40}):\s")
_LINE_TURN = re.compile(r"^[^\S\n]*[^\W\d_][^\n:.!?\"“]{0,40}:[^\S\n]+(?P<words>\S[^\n]*)", re.MULTILINE)
_SPOKEN = re.compile(r"[.!?…。！？—–-][\"'”’)\]}]{0,4}\s*\Z")
_FINISHED = re.compile(r"[.!?…:。！？][\"'”’)\]}」』]{0,4}[^\S\n]*\Z")
_TRIMMED = re.compile(r"\S(?:.*\S)?", re.DOTALL)
_LAST_WORD = re.compile(r"[^\W_]+(?:\.[^\W_]+)*\Z")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`whole[start:end] == text`. `source` is the number of the whole text, `position` the sentence's number in it."""

    text: str
    start: int
    end: int
    source: int = 0
    position: int = 0
    speaker: str = ""


def split_sentences(
    text: str, *, source: int = 0, limit: int = READ_AT_MOST, longest: int = _LONGEST
) -> list[Sentence]:
    """The sentences of the first `limit` characters of `text`, in order; one of more than `longest` is cut.

    A sentence ends at `.`, `!`, `?` and their East Asian forms, at an empty line, and in a conversation
    (`_is_conversation`) before a line that opens with a name (`Name: ...`). All sentences of a turn get this speaker.
    Elsewhere such a line begins a sentence only where the line before ends one.
    """
    text = text[:limit]
    sentences: list[Sentence] = []
    speaker = ""
    has_speakers = _is_conversation(text)
    for left, right in _find_bounds(text, has_speakers=has_speakers):
        for start, end in _trim_and_cut(text, left, right, longest):
            piece = text[start:end]
            turn = _TURN.match(piece) if has_speakers and (start == 0 or text[start - 1] == "\n") else None
            if turn:
                speaker = turn[1].strip()
            sentences.append(Sentence(piece, start, end, source, len(sentences), speaker))
    return sentences


def _is_conversation(text: str) -> bool:
    """Whether names that open lines are speakers: two turns or more, and what follows most names is a sentence.

    The head of a mail, minutes and the rows of a table have lines of this form too, but few of these are sentences.
    """
    turns = list(_LINE_TURN.finditer(text))
    return len(turns) > 1 and 2 * sum(bool(_SPOKEN.search(turn["words"])) for turn in turns) > len(turns)


def _find_bounds(text: str, *, has_speakers: bool) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _BREAK.finditer(text):
        if _ends_sentence(text, match, has_speakers=has_speakers):
            spans.append((start, match.end()))
            start = match.end()
    return [*spans, (start, len(text))]


def _ends_sentence(text: str, match: re.Match[str], *, has_speakers: bool) -> bool:
    """Whether a sentence ends here.

    At a full stop it does not after an abbreviation or initial, in "am 3. Mai", or before a small letter.
    """
    if match[0] == "\n":
        return has_speakers or bool(_FINISHED.search(text, max(0, match.start() - 8), match.start()))
    if not match[0].startswith("."):
        return True
    word = _LAST_WORD.search(text, max(0, match.start() - 24), match.start())
    plain = word[0].replace(".", "").lower() if word else ""
    if plain in _ABBREVIATIONS or (plain.isdigit() and len(plain) < 3 and _GERMAN_MONTH.match(text, match.end())):
        return False
    if (
        word is not None
        and len(plain) == 1
        and word[0].isupper()
        and (plain != "i" or text[word.start() - 1 : word.start()] == "\n")
    ):
        return False
    following = text[match.end() : match.end() + 4].lstrip()[:1]
    return not following.islower()


def _trim_and_cut(text: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """White space trimmed, and an over-long piece cut at white space."""
    while start < end:
        stop = end
        if end - start > longest:
            space = text.rfind(" ", start + longest // 2, start + longest)
            stop = space if space > 0 else start + longest
        if inner := _TRIMMED.search(text, start, stop):
            yield inner.span()
        start = stop


def split_texts(texts: list[str], *, limit: int = READ_AT_MOST) -> list[Sentence]:
    """The sentences of several texts in order. At most `limit` characters are read, the same number of each text."""
    if sum(map(len, texts)) > limit:
        share = max(limit // len(texts), 1)
        texts = [text[:share] for text in texts[:limit]]
    return [sentence for number, text in enumerate(texts) for sentence in split_sentences(text, source=number)]
