import time
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


def list_speakers(tmp_path: Path, *cues: str) -> list[str]:
    cue = "00:{0:02}.000 --> 00:{0:02}.500\n{1}\n\n"
    document = read(tmp_path / "a.vtt", "WEBVTT\n\n" + "".join(map(cue.format, range(len(cues)), cues)))
    return [place.speaker for _, place in document.marks]


def test_who_speaks_once_speaks_and_does_not_take_the_name_of_the_next_line(tmp_path: Path) -> None:
    """Anna, Ben, Anna: Ben speaks once."""
    cue = "00:0{0}.000 --> 00:0{0}.500\n{1}\n\n"
    words = ["Anna: The gate is shut.", "Ben: I opened it.", "Anna: Then shut it.", "Now."]
    document = read(tmp_path / "a.vtt", "WEBVTT\n\n" + "".join(map(cue.format, range(4), words)))
    assert [place.speaker for _, place in document.marks] == ["Anna", "Ben", "Anna", "Anna"]
    assert document.text.split("\n") == words


@pytest.mark.parametrize(
    ("line", "speaker", "following"),
    [
        # Names begin to speak, and go on.
        ("Ben: yes.", "Ben", "Ben"),
        ("- Ben: yes.", "Ben", "Ben"),
        ("Dr. Ben Ode: yes.", "Dr. Ben Ode", "Dr. Ben Ode"),
        ("Ludwig van Beek: yes.", "Ludwig van Beek", "Ludwig van Beek"),
        ("Ben and Cleo: yes.", "Ben and Cleo", "Ben and Cleo"),
        ("Speaker 2: yes.", "Speaker 2", "Speaker 2"),
        ("Narrator: it rains.", "Narrator", "Narrator"),
        ("Will Day: yes.", "Will Day", "Will Day"),
        ("I. Moor: yes.", "I. Moor", "I. Moor"),
        # What may be a speaker ends the one before.
        ("Second man: yes.", "", ""),
        ("Woman in a coat: yes.", "", ""),
        ("Subtitles by: a friend.", "", ""),
        ("Translation: it rains.", "", ""),
        ("Note: it rains.", "", ""),
        ("NOTE: it rains.", "", ""),
        ("Music: a waltz.", "", ""),
        ("Chapter 2: the gate.", "", ""),
        ("Will: yes.", "", ""),
        ("WHAT I MEAN: it rains.", "", ""),
        # Words that go on.
        ("Remember this: it rains.", "Anna", "Anna"),
        ("What I mean: it rains.", "Anna", "Anna"),
        ("He said: it rains.", "Anna", "Anna"),
        ("At 10: we go.", "Anna", "Anna"),
        ("At 10:30 we go.", "Anna", "Anna"),
        ("http://example.org is down.", "Anna", "Anna"),
        ("It is 10:30: go.", "Anna", "Anna"),
        ("It rains: go.", "Anna", "Anna"),
        ("No colon at all.", "Anna", "Anna"),
        # A voice tag is for its own words.
        ("<v Cleo>Yes.", "Cleo", ""),
        ("<v Cleo>Ben: yes.", "Cleo", ""),
        ("<v Cleo>Anna: yes.", "Anna", "Anna"),
    ],
)
def test_what_stands_before_a_colon_begins_ends_or_goes_on(
    line: str, speaker: str, following: str, tmp_path: Path
) -> None:
    cues = ["Anna: The gate.", line, "It is late.", "Anna: Shut it."]
    assert list_speakers(tmp_path, *cues) == ["Anna", speaker, following, "Anna"]


def test_a_label_within_the_caption_of_a_speaker_is_spoken(tmp_path: Path) -> None:
    assert list_speakers(tmp_path, "Anna: The gate.\nNote: it rains.", "Anna: Yes.") == ["Anna", "Anna", "Anna"]


def test_nothing_is_a_speaker_before_the_first_known_one(tmp_path: Path) -> None:
    assert list_speakers(tmp_path, "The Storm: Part One", "Anna: Yes.", "Ben: No.", "Anna: Yes.") == [
        "", "Anna", "Ben", "Anna"
    ]  # fmt: skip
    assert list_speakers(tmp_path, "Ben: One.", "Cleo: Two.") == ["", ""]
    assert list_speakers(tmp_path, "Note: a.", "Note: b.", "Remember this: c.", "Remember this: d.") == [""] * 4


def test_where_names_are_in_capitals_other_words_are_no_names(tmp_path: Path) -> None:
    assert list_speakers(tmp_path, "ANNA: a", "Rome: a city.", "It is old.", "BEN: b", "the: c") == [
        "ANNA", "", "", "BEN", ""
    ]  # fmt: skip


def test_names_in_small_letters_are_names_where_the_known_ones_are(tmp_path: Path) -> None:
    assert list_speakers(tmp_path, "anna: a", "ben: b", "anna: c", "well: d") == ["anna", "ben", "anna", ""]
    assert list_speakers(tmp_path, "Me: a", "You: b", "Me: c", "You: d") == ["Me", "You", "Me", "You"]


def test_each_voice_of_a_caption_has_its_own_words(tmp_path: Path) -> None:
    two = "<v Anna>The gate.</v> It creaks.\n<v.loud Ben>I opened it. <v Anna>Oh.\nOh no."
    document = read(tmp_path / "b.vtt", f"WEBVTT\n\n00:01.000 --> 00:02.000\n{two}\n")
    assert document.text == "Anna: The gate.\nIt creaks.\nBen: I opened it.\nAnna: Oh.\nOh no."
    assert [place.speaker for _, place in document.marks] == ["Anna", "", "Ben", "Anna", "Anna"]


def test_names_made_of_words_of_sentences_are_names(tmp_path: Path) -> None:
    assert list_speakers(tmp_path, "Will Day: a", "Can Moor: b", "Will Day: c", "Can Moor: d") == [
        "Will Day", "Can Moor", "Will Day", "Can Moor"
    ]  # fmt: skip


@pytest.mark.parametrize("opened", ["<v a", "<v.", "<v", "<v ", "<v \t"])
def test_tags_that_are_never_closed_take_no_quadratic_time(opened: str, tmp_path: Path) -> None:
    blanks = " " * 300_000 if opened == "<v" else ""
    started = time.thread_time()
    assert list_speakers(tmp_path, opened * 50_000 + blanks) == [""]
    assert time.thread_time() - started < 5  # some hundredths of a second; more than a minute where it is quadratic


def test_captions_that_roll_are_written_once(tmp_path: Path) -> None:
    cue = "00:0{0}.000 --> 00:0{0}.500\n{1}\n\n"
    rolled = "WEBVTT\n\n" + "".join(map(cue.format, range(3), ["One", "One\nTwo", "Two\nThree"]))
    assert read(tmp_path / "a.vtt", rolled).text == "One\nTwo\nThree"
    repeated = "WEBVTT\n\n" + "".join(map(cue.format, range(3), ["No.", "No.", "Yes."]))
    assert read(tmp_path / "b.vtt", repeated).text == "No.\nNo.\nYes."


def test_a_file_without_captions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match=r"a\.srt holds no captions"):
        read(tmp_path / "a.srt", "The rain fell.")
