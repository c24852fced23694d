"""The bundled sample: a detective story written for Tomewise, and questions about one passage or the whole story."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STORY: Path = Path(__file__).parent / "story.md"
"""The story, "The Slack Water Book": Markdown, UTF-8, nine chapters, one paragraph per line."""

QUESTIONS: Path = Path(__file__).parent / "questions.jsonl"
"""The questions about the story: one JSON object per line, UTF-8, with the fields of `SampleQuestion`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleQuestion:
    """One question about the sample story, with its reference answers, its options and its evidence.

    `type` is `factoid` (one passage has the answer), `narrative` (the course of the plot has it) or `inferential` (it
    must be inferred). `correct` is the letter, A to D, of the right one of the four `options`. `supporting` are
    verbatim excerpts, each of which occurs exactly once in the story.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    options: tuple[str, ...]
    correct: str
    type: str
    supporting: tuple[str, ...]


def read_questions() -> list[SampleQuestion]:
    """Every question of the sample, in the order of the file."""
    return [_parse_question(json.loads(line)) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]


def _parse_question(row: dict[str, Any]) -> SampleQuestion:
    lists = {name: tuple(row[name]) for name in ("answers", "options", "supporting")}
    values: dict[str, Any] = {**row, **lists}
    return SampleQuestion(**values)
