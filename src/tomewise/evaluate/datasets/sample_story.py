"""The story that comes with Tomewise, and its questions."""

from __future__ import annotations

from pathlib import Path

from tomewise.errors import ReadingError
from tomewise.evaluate.datasets.corpus import Corpus
from tomewise.evaluate.datasets.data_rows import read_text
from tomewise.evaluate.items import Dataset, Item
from tomewise.reading.places import mark_headings
from tomewise.sample import STORY, SampleQuestion, read_questions
from tomewise.types import Question


def read_sample(_folder: Path) -> Dataset:
    """One story and its questions; their supporting excerpts become spans. Needs no folder.

    Raises ReadingError when the story lacks an excerpt: then the installation is damaged.
    """
    corpus = Corpus(STORY)
    text = read_text(STORY)
    story = corpus.add(text, id=STORY.name, marks=mark_headings(text))
    return corpus.make_dataset("sample", (_make_item(question, story, corpus) for question in read_questions()))


def _make_item(sample: SampleQuestion, story: str, corpus: Corpus) -> Item:
    spans = corpus.find_spans(story, list(sample.supporting))
    if not spans:
        raise ReadingError(f"{STORY} lacks an excerpt that question {sample.id!r} rests on: install Tomewise again")
    return Item(
        id=sample.id,
        question=Question(text=sample.question, options=sample.options),
        answers=sample.answers,
        correct=sample.correct,
        spans=spans,
        slices={"type": sample.type},
    )
