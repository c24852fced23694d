from dataclasses import replace

import pytest

from tomewise.reading.places import PlaceFinder, find_place, find_sections, mark_headings, mark_speakers
from tomewise.types import Document, Passage, Place


def mark_document(text: str) -> Document:
    return Document(id="/d.md", text=text, marks=mark_headings(text))


def make_finder(document: Document) -> PlaceFinder:
    return PlaceFinder(document.text, document.marks)


def test_headings_have_their_paths():
    text = "# A *big* Book\n\n## 1. One ##\n\nRain.\n\n### Deep\n\n## 2. Two\n"
    assert [(text[start:].split("\n")[0], place.chapter) for start, place in mark_headings(text)] == [
        ("# A *big* Book", ("A big Book",)),
        ("## 1. One ##", ("A big Book", "1. One")),
        ("### Deep", ("A big Book", "1. One", "Deep")),
        ("## 2. Two", ("A big Book", "2. Two")),
    ]


def test_what_only_looks_like_a_heading_is_none():
    assert mark_headings("#hash\n\nno # heading\n\n#\n\n    # code\n") == ()
    fenced = "````\n# comment\n```\n# still\n````\n# Heading\n"
    assert [place.chapter for _, place in mark_headings(fenced)] == [("Heading",)]


def test_speakers_are_found_in_transcripts_only():
    transcript = "Ann: Hello.\nBob B. Smith: Hello.\nAnn: The rain\ncomes.\nAnn: Yes."
    assert mark_speakers(transcript) == (
        (0, Place(speaker="Ann")),
        (12, Place(speaker="Bob B. Smith")),
        (33, Place(speaker="Ann")),
        (54, Place(speaker="Ann")),
    )
    assert mark_speakers("Rain: water that falls.\nSnow: the same, frozen.\nHail: ice.\n") == ()
    assert mark_speakers("Ann: a\nAnn: b\nAnn: c\n") == ()
    assert mark_speakers("Ann: a\nBob: b\nAnn: c\nAnn: d\n" + "The rain fell.\n" * 10) == ()


CHATS = {
    "iPhone": "[12/03/2024, 18:04:11] Theo: Hi\n[12/03/2024, 18:05:00] Mia: 4#\nmore\n[12/03/2024, 18:06:00] Theo: ok",
    "Android": "12/03/2024, 18:04 - Theo: Hi\n12/03/2024, 18:05 - Mia: 4#\n12/03/2024, 18:06 - Theo: ok: yes",
    "IRC": "18:04 <Theo> hi\n18:05 <Mia> 4418#\n18:06 <Theo> ok",
}


@pytest.mark.parametrize("text", CHATS.values(), ids=CHATS)
def test_an_exported_chat_of_plain_text_has_speakers_and_times(text):
    places = [place for _, place in mark_speakers(text)]
    assert [place.speaker for place in places] == ["Theo", "Mia", "Theo"]
    assert [place.time.split(", ")[-1][:5] for place in places] == ["18:04", "18:05", "18:06"]


def test_a_log_has_no_speakers():
    assert mark_speakers("2024-03-01 12:00 ERROR: disk\n2024-03-01 12:01 INFO: up\n" * 3) == ()


def test_a_heading_without_text_below_it_begins_no_section_of_its_own():
    text = "# Book\n\n## 1\n\nRain.\n\n## 2\n\n### 2.1\n\nWind.\n\n## End\n"
    assert [text[start:].split("\n")[0] for start in find_sections(mark_document(text))] == ["## 2"]
    assert find_sections(Document(id="d", text=text)) == []
    assert find_sections(mark_document("Before.\n\n# One\n\nRain.")) == [9]


def test_the_place_of_a_passage_is_that_of_its_beginning_as_far_as_all_of_it_has_it():
    text = "# Book\n\n## 1\n\nRain.\n\nWind.\n\n## 2\n\nSnow."
    places = make_finder(mark_document(text))
    assert places.find(0, text.index("Wind")).chapter == ("Book", "1")
    assert places.find(text.index("Wind"), len(text)).chapter == ("Book",)
    assert places.find(text.index("## 2"), text.index("Snow")).chapter == ("Book", "2")
    assert make_finder(mark_document("Before.\n\n# One\n\nRain.")).find(0, 7) == Place(), "it begins before the first"


PAGES = tuple((start, Place(page=page)) for page, start in enumerate((0, 10, 20), start=1))


def test_a_passage_may_span_pages_and_a_piece_of_it_has_a_place_of_its_own():
    places = PlaceFinder("x" * 30, PAGES)
    assert places.find(0, 10) == Place(page=1)
    assert places.find(12, 30) == Place(page=2, last_page=3)
    assert places.list_marks(0, 10) == places.list_marks(12, 18) == ()
    assert places.list_marks(12, 30) == ((-2, Place(page=2)), (8, Place(page=3)))
    where = {"place": places.find(12, 30), "marks": places.list_marks(12, 30)}
    passage = Passage(id="p", document="d", position=0, start=12, end=30, text="x" * 18, **where)
    assert find_place(passage, 0, 8) == Place(page=2)
    assert find_place(passage, 8, 9) == Place(page=3)
    assert find_place(passage, 6, 12) == Place(page=2, last_page=3)
    assert find_place(replace(passage, marks=()), 8, 9) == Place(page=2, last_page=3)


def test_the_last_row_of_a_passage_is_that_of_its_own_sheet():
    rows = [("Boats", 2), ("Boats", 3), ("Nets", 5)]
    marks = tuple((10 * at, Place(chapter=(sheet,), row=row)) for at, (sheet, row) in enumerate(rows))
    places = PlaceFinder("row\nrow\nr\n" * 3, marks)
    assert places.find(0, 20) == Place(chapter=("Boats",), row=2, last_row=3)
    assert places.find(0, 30) == Place(row=2)
