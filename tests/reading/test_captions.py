import pytest

from tomewise.reading.places import PlaceFinder
from tomewise.types.place import describe_place

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


def write_cues(*cues: str) -> str:
    return "WEBVTT\n\n" + "".join(
        f"00:{number:02}.000 --> 00:{number:02}.500\n{cue}\n\n" for number, cue in enumerate(cues)
    )


def list_places(document) -> list[tuple[str, str]]:
    return [(document.text[start:].split("\n")[0], describe_place(place)) for start, place in document.marks]


def test_srt_has_times_and_speakers(read_document):
    document = read_document("a.srt", SRT.replace("\n", "\r\n"))
    assert document.text == "ANNA: Hello.\nWho is there?\nBOB: The keeper.\nNote: it rains."
    assert list_places(document) == [
        ("ANNA: Hello.", "12:04, ANNA"),
        ("Who is there?", "12:08, ANNA"),
        ("BOB: The keeper.", "1:02:03, BOB"),
        ("Note: it rains.", "1:02:03, BOB"),
    ]
    at = document.text.index("Who")
    assert describe_place(PlaceFinder(document.text, document.marks).find(at, len(document.text))) == "12:08, ANNA"


def test_vtt_has_a_title_voices_and_no_styles_or_notes(read_document):
    document = read_document("a.vtt", VTT)
    assert document.title == "The Town"
    assert list_places(document) == [("Anna Poe: Rain & wind.", "00:01, Anna Poe"), ("Nobody named.", "00:03")]


@pytest.mark.parametrize(
    ("line", "speaker", "following"),
    [
        # Names begin to speak, and go on.
        *((f"{name}: yes.", name, name) for name in ("Ben", "Dr. Ben Ode", "Ludwig van Beek", "Ben and Cleo")),
        *((f"{name}: yes.", name, name) for name in ("Speaker 2", "Narrator", "Will Day", "I. Moor")),
        ("- Ben: yes.", "Ben", "Ben"),
        # What may be a speaker ends the one before.
        *((f"{label}: yes.", "", "") for label in ("Second man", "Woman in a coat", "Subtitles by", "Translation")),
        *((f"{label}: yes.", "", "") for label in ("Note", "NOTE", "Music", "Chapter 2", "Will", "WHAT I MEAN")),
        # Words that go on.
        *((f"{words}: it rains.", "Anna", "Anna") for words in ("Remember this", "What I mean", "He said", "At 10")),
        *((line, "Anna", "Anna") for line in ("At 10:30 we go.", "http://example.org is down.", "It is 10:30: go.")),
        *((line, "Anna", "Anna") for line in ("It rains: go.", "No colon at all.")),
        # A voice tag is for its own words.
        ("<v Cleo>Yes.", "Cleo", ""),
        ("<v Cleo>Ben: yes.", "Cleo", ""),
        ("<v Cleo>Anna: yes.", "Anna", "Anna"),
    ],
)
def test_what_stands_before_a_colon_begins_ends_or_goes_on(line, speaker, following, read_document):
    document = read_document("a.vtt", write_cues("Anna: The gate.", line, "It is late.", "Anna: Shut it."))
    assert [place.speaker for _, place in document.marks] == ["Anna", speaker, following, "Anna"]


@pytest.mark.parametrize(
    ("cues", "speakers"),
    [
        (["Ann: Hi.", "Bob: Hi.", "Keep this: a.", "- Ann: So?", "Bob: Yes."], ["Ann", "Bob", "Bob", "Ann", "Bob"]),
        (["Anna: Hi.", "Ben: I did.", "Anna: So?", "Now."], ["Anna", "Ben", "Anna", "Anna"]),
        (["Anna: The gate.\nNote: it rains.", "Anna: Yes."], ["Anna"] * 3),
        (["The Storm: Part One", "Anna: Yes.", "Ben: No.", "Anna: Yes."], ["", "Anna", "Ben", "Anna"]),
        (["Ben: One.", "Cleo: Two."], ["", ""]),
        (["Note: a.", "Note: b.", "Remember this: c.", "Remember this: d."], [""] * 4),
        (["ANNA: a", "Rome: a city.", "It is old.", "BEN: b", "the: c"], ["ANNA", "", "", "BEN", ""]),
        (["anna: a", "ben: b", "anna: c", "well: d"], ["anna", "ben", "anna", ""]),
        (["Me: a", "You: b", "Me: c", "You: d"], ["Me", "You", "Me", "You"]),
        (["Will Day: a", "Can Moor: b"] * 2, ["Will Day", "Can Moor"] * 2),
    ],
    ids=[
        "in small letters twice", "who speaks once", "a label within a caption", "before the first known one",
        "nobody is known", "labels alone", "names in capitals", "known names in small letters", "pronouns",
        "names made of words",
    ],
)  # fmt: skip
def test_who_speaks_is_known_by_how_names_are_written(cues, speakers, read_document):
    document = read_document("a.vtt", write_cues(*cues))
    assert [place.speaker for _, place in document.marks] == speakers


def test_each_voice_of_a_caption_has_its_own_words(read_document):
    two = "<v Anna>The gate.</v> It creaks.\n<v.loud Ben>I opened it. <v Anna>Oh.\nOh no."
    document = read_document("b.vtt", write_cues(two))
    assert document.text == "Anna: The gate.\nIt creaks.\nBen: I opened it.\nAnna: Oh.\nOh no."
    assert [place.speaker for _, place in document.marks] == ["Anna", "", "Ben", "Anna", "Anna"]


@pytest.mark.parametrize(
    ("cues", "text"),
    [(("One", "One\nTwo", "Two\nThree"), "One\nTwo\nThree"), (("No.", "No.", "Yes."), "No.\nNo.\nYes.")],
    ids=["rolled", "repeated"],
)
def test_captions_that_roll_are_written_once(cues, text, read_document):
    assert read_document("a.vtt", write_cues(*cues)).text == text
