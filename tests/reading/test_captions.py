from pathlib import Path

import pytest

from tomewise.errors import ReadingError
from tomewise.place import describe_place
from tomewise.reading.captions import read_captions
from tomewise.reading.places import PlaceFinder
from tomewise.types import Document

SRT = """1
00:12:04,500 --> 00:12:07,000
<i>ANNA: Hello.</i> {\\an8}

2
00:12:08,000 --> 00:12:09,000
Who is there?

3
01:02:03,000 --> 01:02:05,000
BOB: The keeper.
Note: it rains.
"""
VTT = """WEBVTT - The Town

STYLE
::cue { color: red }

NOTE
00:00:00.000 --> 00:00:01.000
not said

intro
00:01.000 --> 00:02.000 align:start
<v.loud Anna Poe>Rain &amp; <c.x>wind</c>.</v>

00:03.000 --> 00:04.000
<00:03.500>Nobody <b>named</b>.
"""


def read(path: Path, text: str) -> Document:
    path.write_text(text)
    (document,) = read_captions(path)
    return document


def list_places(document: Document) -> list[tuple[str, str]]:
    return [(document.text[start:].split("\n")[0], describe_place(place)) for start, place in document.marks]


def test_srt_has_times_and_speakers(tmp_path: Path) -> None:
    document = read(tmp_path / "a.srt", SRT.replace("\n", "\r\n"))
    assert document.text == "ANNA: Hello.\nWho is there?\nBOB: The keeper.\nNote: it rains."
    assert list_places(document) == [
        ("ANNA: Hello.", "12:04, ANNA"),
        ("Who is there?", "12:08, ANNA"),
        ("BOB: The keeper.", "1:02:03, BOB"),
        ("Note: it rains.", "1:02:03, BOB"),
    ]
    at = document.text.index("Who")
    assert describe_place(PlaceFinder(document.text, document.marks).find(at, len(document.text))) == "12:08, ANNA"


def test_vtt_has_a_title_voices_and_no_styles_or_notes(tmp_path: Path) -> None:
    document = read(tmp_path / "a.vtt", VTT)
    assert document.title == "The Town"
    assert list_places(document) == [("Anna Poe: Rain & wind.", "00:01, Anna Poe"), ("Nobody named.", "00:03")]


def test_a_name_in_small_letters_speaks_if_it_speaks_twice(tmp_path: Path) -> None:
    cue = "00:0{0}.000 --> 00:0{0}.500\n{1}\n\n"
    words = ["Ann: Hi.", "Bob: Hi.", "Remember this: rain.", "- Ann: So?", "Bob: Yes."]
    document = read(tmp_path / "a.vtt", "WEBVTT\n\n" + "".join(map(cue.format, range(5), words)))
    assert [place.speaker for _, place in document.marks] == ["Ann", "Bob", "Bob", "Ann", "Bob"]


def test_captions_that_roll_are_written_once(tmp_path: Path) -> None:
    cue = "00:0{0}.000 --> 00:0{0}.500\n{1}\n\n"
    rolled = "WEBVTT\n\n" + "".join(map(cue.format, range(3), ["One", "One\nTwo", "Two\nThree"]))
    assert read(tmp_path / "a.vtt", rolled).text == "One\nTwo\nThree"
    repeated = "WEBVTT\n\n" + "".join(map(cue.format, range(3), ["No.", "No.", "Yes."]))
    assert read(tmp_path / "b.vtt", repeated).text == "No.\nNo.\nYes."


def test_a_file_without_captions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match=r"a\.srt holds no captions"):
        read(tmp_path / "a.srt", "The rain fell.")
