"""Read the captions of SRT and WebVTT with their times and speakers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from tomewise.errors import ReadingError
from tomewise.reading.decode import decode_text
from tomewise.types import Document, Place

_TIMES = re.compile(r"^[ \t]*(?:(\d+):)?(\d{1,2}):(\d{2})[.,]\d{1,3}[ \t]*-->[^\n]*$", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?[ \t]+([^>]+)>")
_MARKUP = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")
_NAME = re.compile(r"^(?:[-–][ \t]*)?([^\W\d_][\w.’' -]{0,39}?)[ \t]*:[ \t]+")
_HEADER = re.compile(r"\AWEBVTT[ \t]+(?:-[ \t]*)?([^\n]+)")


@dataclass(frozen=True, slots=True)
class _Cue:
    time: str
    speaker: str
    lines: tuple[str, ...]


def read_captions(path: Path) -> tuple[Document]:
    """The captions of an SRT or WebVTT file, each marked with the time at which it begins and with its speaker.

    A name before a colon is a speaker if it is written so twice or in capitals. The first line of a caption that moves
    up from the one before, in captions that roll, is left out. Raises `ReadingError` if it is not text or holds no
    captions.
    """
    raw = decode_text(path.read_bytes(), str(path))
    cues = list(_list_cues(raw))
    if not cues:
        raise ReadingError(f"{path} holds no captions: repair it, or give it the suffix .txt")
    names = Counter(found[1] for cue in cues for line in cue.lines if (found := _NAME.match(line)))
    known = frozenset(name for name, count in names.items() if count > 1 or name.isupper())
    pieces: list[str] = []
    marks: list[tuple[int, Place]] = []
    start, speaker = 0, ""
    for cue, before in zip(cues, [None, *cues], strict=False):
        for turn, line in _split_turns(cue, known)[_rolls(cue, before) :]:
            # A name before a colon speaks until the next one; a voice tag is for its own caption alone.
            place = Place(time=cue.time, speaker=turn or (speaker if known else ""))
            written = f"{turn}: {line}" if turn and turn != speaker else line
            speaker = place.speaker
            marks.append((start, place))
            pieces.append(written)
            start += len(written) + 1
    header = _HEADER.match(raw)
    title = " ".join(header[1].split()) if header else ""
    return (Document(id=str(path), text="\n".join(pieces), title=title, source=str(path), marks=tuple(marks)),)


def _list_cues(raw: str) -> Iterator[_Cue]:
    for block in re.split(r"\n[ \t]*\n", raw):
        found = _TIMES.search(block)
        if found is None or block.lstrip().startswith("NOTE"):
            continue
        hours, minutes, seconds = int(found[1] or 0), int(found[2]), found[3]
        time = f"{hours}:{minutes:02}:{seconds}" if hours else f"{minutes:02}:{seconds}"
        words = block[found.end() :]
        voice = _VOICE.search(words)
        lines = (" ".join(unescape(_MARKUP.sub("", line)).split()) for line in words.splitlines())
        yield _Cue(time, " ".join(unescape(voice[1]).split()) if voice else "", tuple(line for line in lines if line))


def _rolls(cue: _Cue, before: _Cue | None) -> bool:
    """Whether the first line of a caption is the last one of the caption before, moved up. A repeated word is not."""
    if before is None or not (cue.lines and before.lines) or cue.speaker != before.speaker:
        return False
    return cue.lines[0] == before.lines[-1] and len(cue.lines) + len(before.lines) > 2


def _split_turns(cue: _Cue, known: frozenset[str]) -> list[tuple[str, str]]:
    """The speaker, if the caption names one, and the words of each line."""
    names = [_NAME.match(line) for line in cue.lines]
    return [
        (name[1], line[name.end() :]) if name and name[1] in known else (cue.speaker, line)
        for name, line in zip(names, cue.lines, strict=True)
    ]
