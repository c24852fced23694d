import json
from pathlib import Path

import pytest

from tomewise.errors import ReadingError
from tomewise.reading.json_lines import read_rows
from tomewise.reading.process import Bounds
from tomewise.types import Document, Place


@pytest.fixture
def corpus(tmp_path):
    """Write the lines of a corpus. Returns its path."""

    def write(*lines: object) -> Path:
        path = tmp_path / "corpus.jsonl"
        path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
        return path

    return write


def test_rows_become_documents(corpus):
    path = corpus(
        b'\xef\xbb\xbf{"id": 0, "title": "A  title", "text": "One.\\r\\nTwo."}\r',
        b"",
        {"id": "x", "text": "Three."},
        {"id": None, "title": None, "text": "Four.", "more": [1], "deep": {"a": 1}, "none": None, "year": 1911},
    )
    assert list(read_rows(path, "/c.jsonl")) == [
        Document(id="0", title="A title", text="One.\nTwo.", source="/c.jsonl"),
        Document(id="x", text="Three.", source="/c.jsonl"),
        Document(
            id="/c.jsonl#4",
            text="Four.",
            source="/c.jsonl",
            metadata={"left_out": ["1 field"], "more": [1], "year": 1911},
        ),
    ]


def test_a_meeting_has_a_line_for_each_turn_marked_with_its_speaker(corpus):
    turns = [("Ann  Poe", "Hello.\nWell?\u2028Yes?\x0b "), ("Bob", "Yes. "), ("", "")]
    path = corpus({"meeting_transcripts": [{"speaker": speaker, "content": content} for speaker, content in turns]})
    (document,) = read_rows(path, "c")
    assert document.text == "Ann  Poe: Hello. Well? Yes?\nBob: Yes.\n:"
    assert [(document.text[start:].split("\n")[0], place) for start, place in document.marks] == [
        ("Ann  Poe: Hello. Well? Yes?", Place(speaker="Ann Poe")),
        ("Bob: Yes.", Place(speaker="Bob")),
        (":", Place()),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "a", "note": ["b\\u0000"]}', "'note' holds a character"),
        (b"{", "the row is not JSON"),
        (b"[" * 200_000, "the row is not JSON"),
        (b"9" * 5000, "the row is not JSON"),
        (b"\xff\xfe{}", "byte 0 is not UTF-8"),
        ([1, 2], "the row is not an object"),
        ("text", "the row is not an object"),
        ({"title": "x"}, "lacks the field `text`"),
        *(({"text": text}, "`text` is empty or not a string") for text in (3, None, " \n")),
        ({"text": "a", "id": ["b"]}, "`id` is"),
        ({"text": "a", "id": True}, "`id` is True"),
        ({"text": "a", "id": ""}, "`id` is ''"),
        ({"text": "a", "id": " \t"}, "`id` is ' "),
        ({"text": "a", "id": "i" * 1_001}, "`id` has 1,001 characters: give it at most 1,000, or leave it out"),
        ({"text": "a", "title": 7}, "`title` is 7"),
        ({"text": "a", "id": "first"}, "the id 'first' was used in line 1: make ids unique"),
        ({"text": "a" * 2**24}, "the line has more than 16,777,216 bytes: make several rows of it"),
        (b'{"text": "ab\\ud83d"}', r"`text` holds the character '\\ud83d' at 2"),
        (b'{"text": "ab", "title": "\\u0000"}', "`title` holds the character"),
        (b'{"text": "ab", "id": "\\udc00"}', "`id` holds the character"),
        ({"meeting_transcripts": {}}, "`meeting_transcripts` is empty or not a list"),
        ({"meeting_transcripts": ["x"]}, "turn 0 lacks the field `speaker`"),
        ({"meeting_transcripts": [{"speaker": "Ann"}]}, "turn 0 lacks the field `content`"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_rows_are_refused_with_their_line(line, message, corpus):
    path = corpus({"id": "first", "text": "fine"}, b"", line)
    with pytest.raises(ReadingError, match=f"^/c.jsonl, line 3: .*{message}") as caught:
        list(read_rows(path, "/c.jsonl"))
    assert "\n" not in str(caught.value)


def test_a_file_with_more_than_the_bounds_allow_is_refused(corpus):
    path = corpus(*({"text": "a" * 1_000} for _ in range(50)))
    assert len(list(read_rows(path, "/c.jsonl", bounds=Bounds(characters=13_000)))) == 50
    with pytest.raises(ReadingError, match=r"holds more than 12,000 characters of text: raise .*`read_characters`"):
        list(read_rows(path, "/c.jsonl", bounds=Bounds(characters=12_000)))


def test_a_file_that_grows_while_it_is_read_is_refused(corpus):
    path = corpus(*({"text": "a" * 90_000} for _ in range(4)))
    rows = read_rows(path, "/c.jsonl", bounds=Bounds(characters=100_000))
    next(rows)
    with path.open("ab") as file:
        file.write(b"\n" + b'{"text": "a"}\n' * 9_000)
    with pytest.raises(ReadingError, match="holds more than 100,000 characters"):
        list(rows)
