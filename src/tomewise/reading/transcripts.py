"""Turn meeting transcripts into text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tomewise.reading.decode import join_words
from tomewise.reading.places import Marks
from tomewise.types import Place


def join_turns(turns: Sequence[Mapping[str, str]]) -> tuple[str, list[tuple[int, int]]]:
    """The transcript, with a line `speaker: content` for each turn, and the start and end of each line in characters.

    Each turn is a mapping with `speaker` and `content`, as in QMSum. A newline within a turn becomes a space.
    """
    lines = [" ".join(f"{turn['speaker']}: {turn['content']}".splitlines()).strip() for turn in turns]
    offsets: list[tuple[int, int]] = []
    start = 0
    for line in lines:
        offsets.append((start, start + len(line)))
        start += len(line) + 1
    return "\n".join(lines), offsets


def mark_turns(turns: Sequence[Mapping[str, str]], offsets: Sequence[tuple[int, int]]) -> Marks:
    """The marks of a transcript: who speaks from where. `offsets` are those of `join_turns`."""
    return tuple(
        (start, Place(speaker=join_words(turn["speaker"]))) for turn, (start, _) in zip(turns, offsets, strict=True)
    )
