"""QMSum (Zhong et al. 2021): queries on meeting transcripts, with reference summaries and the turns behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tomewise.evaluate.datasets.corpus import Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_files, read_records
from tomewise.evaluate.items import Dataset, Item, Span
from tomewise.reading.places import join_turns, mark_turns
from tomewise.types import Question


def read_qmsum(folder: Path) -> Dataset:
    """A meeting per row of `test.jsonl` (or of `*.jsonl`), or per file `*.json`, in QMSum's own form.

    `tomewise.reading` writes out the turns. The turns from first to last of `relevant_text_span` (counted from 0, both
    included) become a span of characters. General queries are about the whole meeting and have no spans.
    """
    corpus = Corpus(folder)
    items: list[Item] = []
    for path in find_files(folder, "test.jsonl", "test/*.json", "*.jsonl", "*.json"):
        rows = read_records(path)
        for number, record in enumerate(rows, 1):
            items += _read_meeting(record, f"{path.stem}-{number}" if len(rows) > 1 else path.stem, corpus)
    return corpus.make_dataset("qmsum", items)


def _read_meeting(record: Record, meeting: str, corpus: Corpus) -> list[Item]:
    turns = record.rows("meeting_transcripts")
    spoken = [{field: turn.text(field) for field in ("speaker", "content")} for turn in turns]
    text, places = join_turns(spoken)
    corpus.add(text, id=meeting, marks=mark_turns(spoken, places))
    return [
        _make_item(query, f"{meeting}/{kind}-{number}", kind, meeting, places, len(turns))
        for kind in ("general", "specific")
        for number, query in enumerate(record.rows(f"{kind}_query_list"), 1)
    ]


def _make_item(record: Record, id: str, kind: str, meeting: str, places: list[tuple[int, int]], turns: int) -> Item:
    pairs = record.take("relevant_text_span") if kind == "specific" else []
    if not isinstance(pairs, list):
        raise record.make_wrong_field_error("relevant_text_span", pairs, "a list of pairs of turns")
    return Item(
        id=id,
        question=Question(text=record.text("query")),
        answers=record.texts("answer"),
        spans=tuple(_make_span(record, pair, meeting, places) for pair in pairs),
        documents=(meeting,),
        slices={"type": kind, "turns": turns},
    )


def _make_span(record: Record, pair: Any, meeting: str, places: list[tuple[int, int]]) -> Span:
    try:
        first, last = (int(turn) for turn in pair)
    except (TypeError, ValueError):
        first = last = -1
    if not 0 <= first <= last < len(places):
        raise record.make_wrong_field_error("relevant_text_span", pair, f"[first, last] turn below {len(places)}")
    return Span(document=meeting, start=places[first][0], end=places[last][1])
