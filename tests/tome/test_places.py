"""Places from the file to the answer: kept with passages, found by their words, shown in citations and traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.reading.documents import pdf

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


def test_passages_and_citations_have_the_place_of_their_chapter(tome: Tome) -> None:
    places = [Place(chapter=("The Coast", "1. Lighthouses")), SECOND]
    assert [passage.place for passage in tome.store.passages().values()] == places
    assert sum('"place"' in line for line in tome.memory.export()) == 2
    answer = tome.ask("Who sold the boat to Ida Poe?", system="hybrid")
    assert answer.quotes[0].place == SECOND
    assert answer.to_dict()["statements"][0]["quotes"][0]["place"] == {"chapter": ["The Coast", "2. Harbours"]}
    assert {piece.place for piece in answer.evidence} == set(places)
    assert tome.traces.latest(1)[0].answer.quotes == answer.quotes


def test_words_of_headings_find_the_passages_below_them_until_they_are_removed(tome: Tome, tmp_path: Path) -> None:
    long = tmp_path / "long.md"
    long.write_text(f"# Zeppelins\n\n{'The rain fell on the town in the night. ' * 80}")
    tome.add(long)
    found = tome.store.lexical("zeppelin", 10)
    assert len(found) == len(tome.store.passages(documents=[long.as_posix()])) > 1
    tome.remove(long.as_posix())
    assert tome.store.lexical("zeppelin", 10) == []


def test_a_citation_says_where_the_quotation_stands_and_not_where_its_passage_begins(tome: Tome, tmp_path: Path):
    captions = tmp_path / "talk.srt"
    captions.write_text(
        "1\n00:00:01,000 --> 00:00:04,000\nANNA: The harbour was cold at night.\n\n"
        "2\n00:12:04,000 --> 00:12:08,000\nBEN: Mira Holt bought the red schooner.\n"
    )
    tome.add(captions)
    answer = tome.within("talk.srt").ask("Who bought the red schooner?")
    (passage,) = tome.store.passages(documents=[captions.as_posix()]).values()
    assert passage.place == Place(time="00:01", speaker="ANNA")
    assert answer.quotes[0].place == Place(time="12:04", speaker="BEN")
    assert any('"marks"' in line and '"12:04"' in line for line in tome.memory.export())


def test_a_quotation_on_the_second_page_of_a_passage_has_that_page(tmp_path: Path) -> None:
    file = tmp_path / "log.pdf"
    file.write_bytes(pdf("The harbour was cold at night.", "Mira Holt bought the red schooner."))
    with Tome.open(tmp_path / "b.tome", embedder="hash:64", model="extractive") as tome:
        tome.add(file)
        answer = tome.ask("Who bought the red schooner?")
        assert [piece.place for piece in answer.evidence] == [Place(page=1, last_page=2)]
        assert answer.quotes[0].place == Place(page=2)
