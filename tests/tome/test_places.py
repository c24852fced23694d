"""Places from the file to the answer: kept with passages, found by their words, shown in citations and traces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tomewise.tome.reports import as_json
from tomewise.tome.tome import Tome
from tomewise.types import Place

BOOK = (
    "# The Coast\n\n## 1. Lighthouses\n\nThe keeper, Ada Marsh, put out the light in May 1911.\n\n"
    "## 2. Harbours\n\nThe pilot, Tom Hale, sold the boat to Ida Poe in June 1912.\n"
)
SECOND = Place(chapter=("The Coast", "2. Harbours"))


@pytest.fixture
def tome(tmp_path: Path) -> Iterator[Tome]:
    path = tmp_path / "coast.md"
    path.write_text(BOOK)
    with Tome.open(tmp_path / "a.tome", embedder="hash:64", model="extractive") as tome:
        tome.add(path)
        yield tome


def test_passages_keep_their_places(tome: Tome) -> None:
    passages = tome.store.passages().values()
    assert [passage.place for passage in passages] == [Place(chapter=("The Coast", "1. Lighthouses")), SECOND]
    assert sum('"place"' in line for line in tome.export()) == 2


def test_a_citation_says_where_its_passage_begins(tome: Tome) -> None:
    answer = tome.ask("Who sold the boat to Ida Poe?", system="hybrid")
    assert [citation.place for citation in answer.citations] == [SECOND]
    assert as_json(answer)["citations"][0]["place"] == {"chapter": ["The Coast", "2. Harbours"]}
    assert {piece.place for piece in answer.evidence} == {SECOND, Place(chapter=("The Coast", "1. Lighthouses"))}
    trace = tome.traces(1)[0]
    assert trace.answer.citations == answer.citations
    shown = [piece for event in trace.answer.events for piece in event.detail.get("evidence", ())]
    assert {"chapter": ["The Coast", "2. Harbours"]} in [piece["place"] for piece in shown]
    json.dumps(trace.as_json())


def test_words_of_headings_find_the_passages_below_them_until_they_are_removed(tome: Tome, tmp_path: Path) -> None:
    long = tmp_path / "long.md"
    long.write_text(f"# Zeppelins\n\n{'The rain fell on the town in the night. ' * 80}")
    tome.add(long)
    found = tome.store.lexical("zeppelin", 10)
    assert len(found) == len(tome.store.passages_of([long.as_posix()])) > 1
    tome.remove(long.as_posix())
    assert tome.store.lexical("zeppelin", 10) == []
    assert tome.store.lexical("harbour", 10) != []


def test_a_renewed_passage_is_still_found_by_its_heading(tome: Tome) -> None:
    ((key, _),) = tome.store.lexical("harbours", 10)
    with tome.store.write() as change:
        fresh = change.renew_passage(key)
    assert [found for found, _ in tome.store.lexical("harbours", 10)] == [fresh]
    assert tome.store.passages([fresh])[fresh].place == SECOND
