"""Read the captions of SRT and WebVTT with their times and speakers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Literal

from tomewise.errors import ReadingError
from tomewise.reading.decode import decode, join_words
from tomewise.reading.places import join_marked, make_document
from tomewise.types import Document, Place

_TIMES = re.compile(r"^[ \t]*(?:(\d+):)?(\d{1,2}):(\d{2})[.,]\d{1,3}[ \t]*-->[^\n]*$", re.MULTILINE)
# A tag that is never closed must not be searched to the end of the file from each place where one begins.
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?[ \t]+([^\s<>][^<>]*)>|</v>")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_NO_CUE = re.compile(r"(?:WEBVTT|STYLE|REGION)(?![^\s])|\d*$")
_MARKUP = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")
_NAME = re.compile(r"^(?:[-–][ \t]*)?([^\W\d_][\w.’' -]{0,39}?)[ \t]*:[ \t]+")
# Words of sentences: who says "this is what I mean: rain" is not named so.
_SPOKEN = frozenset(
    "i you we they he she it me him us them my your our their his its this that these those is are was were be am do "
    "does did has have had will would can could should must not said say says".split()
)
_SENTENCE_STARTS = frozenset(
    "at in on to for about if when what why how who where because but so then here there as with like".split()
)
# Nouns before a colon that are no speakers.
_LABELS = frozenset(
    "note notes warning caution attention remember reminder example question answer ps nb tip hint step chapter part "
    "episode scene act section point rule fact lesson result conclusion summary source sources reference date time "
    "place subject topic title re http https caption captions subtitle subtitles subtitled translation translated "
    "synced sync credits music song sound applause laughter first second third finally yes no ok okay well also and or "
    "one two three number update breaking news problem solution idea plan reason".split()
)
_PARTICLES = frozenset("de da di du del della der den van von zu la le el al bin ibn of the and & y e".split())
_MOST_WORDS = 4  # of a name
_HEADER = re.compile(r"\AWEBVTT[ \t]+(?:-[ \t]*)?([^\n]+)")


@dataclass(frozen=True, slots=True)
class _Cue:
    """A caption: when it begins, and its lines, each with the name in its voice tag."""

    time: str
    lines: tuple[tuple[str, str], ...]


def read_captions(path: Path) -> tuple[Document]:
    """The captions of an SRT or WebVTT file, each marked with the time at which it begins and with its speaker.

    A name before a colon is a known speaker if it is written so twice or in capitals. Behind the first known one, a
    name that is written once begins to speak too, and anything else that may be a speaker ends the one before: no
    speaker is better than a wrong one (see `_judge_label`). The first line of a caption that moves up from the one
    before, in captions that roll, is left out. Raises `ReadingError` if it is not text or holds no captions.
    """
    raw, metadata = decode(path.read_bytes(), str(path))
    losses = Counter[str]()
    cues = list(_list_cues(raw, losses))
    if not cues:
        raise ReadingError(f"{path} holds no captions: repair it, or give it the suffix .txt")
    header = _HEADER.match(raw)
    title = header[1] if header else ""
    text, marks = join_marked(_list_turns(cues), "\n")
    return make_document(path, text, title, metadata, marks, losses)


def _list_turns(cues: list[_Cue]) -> Iterator[tuple[str, Place]]:
    """The lines of all captions with their places, and with the name of who begins to speak, if that is known."""
    names = Counter(found[1] for cue in cues for _, line in cue.lines if (found := _NAME.match(line)))
    known = frozenset(name for name, count in names.items() if (count > 1 or name.isupper()) and not _is_label(name))
    current = last = ""  # who goes on speaking, and who spoke the line before
    has_begun = False
    for cue, before in zip(cues, [_Cue("", ()), *cues], strict=False):
        # The first line of a caption may be the last one of the caption before, moved up. A repeated word is not.
        is_repeated = cue.lines[:1] == before.lines[-1:] and len(cue.lines) + len(before.lines) > 2
        for number, (voice, line) in enumerate(cue.lines[is_repeated:]):
            found = _NAME.match(line)
            kind = _judge_label(found[1], known, is_first=number == 0) if found else "words"
            if found and (found[1] in known or (kind == "speaker" and has_begun and not voice)):
                current = speaker = found[1]
                words = line[found.end() :]
                has_begun = True
            else:
                if voice or kind != "words":
                    current = ""  # a voice tag is for its own words alone
                speaker, words = voice or current, line
            is_named = speaker != last and speaker and (voice or words != line)
            yield f"{speaker}: {words}" if is_named else words, Place(time=cue.time, speaker=speaker)
            last = speaker


def _is_label(name: str) -> bool:
    """Whether words before several colons, or in capitals, are still not a name; "Me" and "You" are."""
    words = name.split()
    return words[0].strip(".").lower() in _LABELS or (len(words) > 1 and _is_spoken(words))


def _is_spoken(words: list[str]) -> bool:
    """Whether words of sentences are among these. Where each is capitalised, they are a name: "Will Day", "I. Moor"."""
    if len(words) > 1 and "I" not in words and all(word[0].isupper() and not word[1:].isupper() for word in words):
        return False
    return any(word.strip(".").lower() in _SPOKEN for word in words)


def _judge_label(label: str, known: frozenset[str], *, is_first: bool) -> Literal["speaker", "unclear", "words"]:
    """Whether the words before a colon are a speaker, spoken words, or may be either.

    A name is a few capitalised words, or in small letters where the known names are; not where those are in capitals,
    which all names then are. "Remember this" is spoken. "Note" is spoken by who speaks in the same caption; a caption
    that begins so may be of somebody else.
    """
    words = label.split()
    first = words[0].strip(".").lower()
    if _is_spoken(words):
        # "Will", "ME" and "WILL DAY" may be names.
        return "unclear" if is_first and (label.isupper() or (len(words) == 1 and label[0].isupper())) else "words"
    if first in _SENTENCE_STARTS:
        return "words"
    if first in _LABELS:
        return "unclear" if is_first else "words"
    is_small = any(name.islower() for name in known)
    named = [word for word in words if word not in _PARTICLES]
    is_written_so = all(is_small or word[0].isupper() or word.isdigit() for word in named)
    if named and is_written_so and len(words) <= _MOST_WORDS and not all(name.isupper() for name in known):
        return "speaker"
    return "unclear"


def _list_cues(raw: str, losses: Counter[str]) -> Iterator[_Cue]:
    for block in map(str.strip, _BLANK_LINE.split(raw)):
        found = _TIMES.search(block)
        if found is None or block.startswith("NOTE"):
            losses["note" if found or block.startswith("NOTE") else "cue without a time"] += not _NO_CUE.match(block)
            continue
        hours, minutes, seconds = int(found[1] or 0), int(found[2]), found[3]
        time = f"{hours}:{minutes:02}:{seconds}" if hours else f"{minutes:02}:{seconds}"
        yield _Cue(time, tuple(_list_lines(block[found.end() :])))


def _list_lines(words: str) -> Iterator[tuple[str, str]]:
    """The lines of a caption, each with the voice that speaks it; a line in which the voice changes is several."""
    # Text, name, text, name, ...: the end of a voice gives None.
    pieces = _VOICE.split(words)
    for voice, piece in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        name = join_words(unescape(voice or ""))
        for line in piece.splitlines():
            if text := join_words(unescape(_MARKUP.sub("", line))):
                yield name, text
