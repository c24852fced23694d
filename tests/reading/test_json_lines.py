import json
import time
from pathlib import Path

import pytest

from tomewise.errors import ReadingError
from tomewise.reading.bounds import Bounds
from tomewise.reading.json_lines import read_rows
from tomewise.types import Document, Place


def write(folder: Path, *lines: object) -> Path:
    path = folder / "corpus.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    return path


def test_rows_become_documents(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        b'\xef\xbb\xbf{"id": 0, "title": "A  title", "text": "One.\\r\\nTwo."}\r',
        b"",
        {"id": "x", "text": "Three."},
        {"id": None, "title": None, "text": "Four.", "more": [1], "deep": {"a": 1}, "none": None, "year": 1911},
        {"meeting_transcripts": [{"speaker": "Ann", "content": "Hi."}, {"speaker": "Bob", "content": "Ho."}]},
    )
    assert list(read_rows(path, "/c.jsonl")) == [
        Document(id="0", title="A title", text="One.\nTwo.", source="/c.jsonl"),
        Document(id="x", text="Three.", source="/c.jsonl"),
        Document(id="/c.jsonl#4", text="Four.", source="/c.jsonl", metadata={"more": [1], "year": 1911}),
        Document(id="/c.jsonl#5", text="Ann: Hi.\nBob: Ho.", source="/c.jsonl"),
    ]


def test_a_meeting_is_marked_with_its_speakers(tmp_path: Path) -> None:
    turns = [{"speaker": "Ann  Poe", "content": "Hello.\nWell?"}, {"speaker": "Bob", "content": "Yes."}]
    (document,) = read_rows(write(tmp_path, {"meeting_transcripts": turns}), "c")
    assert [(document.text[start:].split(":")[0], place) for start, place in document.marks] == [
        ("Ann  Poe", Place(speaker="Ann Poe")),
        ("Bob", Place(speaker="Bob")),
    ]


def test_a_prefix_stands_before_the_ids_that_rows_state(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": 1, "text": "a"}, {"text": "b"})
    assert [document.id for document in read_rows(path, "/c.jsonl", "north")] == ["north/1", "/c.jsonl#2"]


def test_rows_are_read_one_at_a_time(tmp_path: Path) -> None:
    documents = read_rows(write(tmp_path, {"text": "One."}, b"broken"), "/c.jsonl")
    assert next(documents).text == "One."
    with pytest.raises(ReadingError, match="line 2"):
        next(documents)


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
        ({"text": 3}, "`text` is empty or not a string"),
        ({"text": None}, "`text` is empty or not a string"),
        ({"text": " \n"}, "`text` is empty or not a string"),
        ({"text": "a", "id": ["b"]}, "`id` is"),
        ({"text": "a", "id": True}, "`id` is True"),
        ({"text": "a", "id": ""}, "`id` is ''"),
        ({"text": "a", "id": " \t"}, "`id` is ' "),
        ({"text": "a", "title": 7}, "`title` is 7"),
        (b'{"text": "ab\\ud83d"}', r"`text` holds the character '\\ud83d' at 2"),
        (b'{"text": "ab", "title": "\\u0000"}', "`title` holds the character"),
        (b'{"text": "ab", "id": "\\udc00"}', "`id` holds the character"),
        ({"meeting_transcripts": {}}, "`meeting_transcripts` is empty or not a list"),
        ({"meeting_transcripts": ["x"]}, "turn 0 lacks the field `speaker`"),
        ({"meeting_transcripts": [{"speaker": "Ann"}]}, "turn 0 lacks the field `content`"),
    ],
)
def test_bad_rows_are_refused_with_their_line(line: object, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, {"text": "fine"}, b"", line)
    with pytest.raises(ReadingError, match=f"^/c.jsonl, line 3: .*{message}") as caught:
        list(read_rows(path, "/c.jsonl"))
    assert "\n" not in str(caught.value)


def test_an_id_given_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": 1, "text": "a"}, {"id": "1", "text": "b"})
    with pytest.raises(ReadingError, match=r"line 2: the id '1' was used in line 1: make ids unique"):
        list(read_rows(path, "/c.jsonl"))


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_a_file_without_rows_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match="is empty or holds only white space"):
        list(read_rows(write(tmp_path, content), "/c.jsonl"))


def test_a_long_line_is_refused_and_named(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": "One."}, {"text": "a" * 2**24})
    with pytest.raises(ReadingError, match=r"line 2: the line has more than 16,777,216 bytes: make several rows of it"):
        list(read_rows(path, "/c.jsonl"))


def test_a_file_with_more_than_the_bounds_allow_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, *({"text": "a" * 1_000} for _ in range(50)))
    assert len(list(read_rows(path, "/c.jsonl", bounds=Bounds(characters=13_000)))) == 50
    with pytest.raises(ReadingError, match=r"holds more than 12,000 characters of text: raise .*`read_characters`"):
        list(read_rows(path, "/c.jsonl", bounds=Bounds(characters=12_000)))


def test_a_sparse_file_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.truncate(30 * 2**30)
    started = time.thread_time()
    with pytest.raises(ReadingError, match="holds more than 50,000,000 characters"):
        list(read_rows(path, "/a.jsonl"))
    with path.open("wb") as file:
        file.truncate(150 * 2**20)
    with pytest.raises(ReadingError, match="line 1: the line has more than 16,777,216 bytes"):
        list(read_rows(path, "/a.jsonl"))
    assert time.thread_time() - started < 5


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, *({"text": "a" * 90_000} for _ in range(4)))
    rows = read_rows(path, "/c.jsonl", bounds=Bounds(characters=100_000))
    next(rows)
    with path.open("ab") as file:
        file.write(b"\n" + b'{"text": "a"}\n' * 9_000)
    with pytest.raises(ReadingError, match="holds more than 100,000 characters"):
        list(rows)


def test_a_long_id_is_refused_and_other_fields_are_cut(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match=r"`id` has 1,001 characters: give it at most 1,000, or leave it out"):
        list(read_rows(write(tmp_path, {"id": "i" * 1_001, "text": "a"}), "/c.jsonl"))
    turns = [{"speaker": "s" * 9_000, "content": "Yes."}]
    (document,) = read_rows(
        write(tmp_path, {"title": "t" * 9_000, "meeting_transcripts": turns, "x": "y" * 9_000}), "c"
    )
    assert (len(document.title), len(document.marks[0][1].speaker)) == (200, 120)
    assert document.metadata == {"x": "y" * 1_000}
