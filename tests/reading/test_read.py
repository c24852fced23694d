import io
import json
import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.reading.documents import pdf

from tomewise.errors import ReadingError
from tomewise.reading.folder import FolderRules, Skipped
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import SourceReader
from tomewise.types import Document, Place


@pytest.fixture(scope="module")
def process() -> Iterator[ReaderProcess]:
    """One process that converts for all tests here."""
    with ReaderProcess() as process:
        yield process


@pytest.fixture
def read(process: ReaderProcess):
    """Read one source."""
    return lambda path: list(SourceReader(process).read(path).documents)


@pytest.fixture
def read_all(process: ReaderProcess):
    """Read sources, and folders with what is in them."""

    def read(*paths: Path | str, follow: bool = False) -> Iterator[Document | Skipped]:
        for found in SourceReader(process, rules=FolderRules(follow=follow)).read_all(paths):
            yield from [found] if isinstance(found, Skipped) else found.documents

    return read


def list_reasons(found: list[Document | Skipped]) -> dict[str, str]:
    return {entry.path.name: entry.reason for entry in found if isinstance(entry, Skipped)}


@pytest.mark.parametrize("name", ["a.txt", "a.md", "A.MARKDOWN", "a.log", "README"])
def test_text_is_kept_as_it_is(name, read, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf# Head\r\n\r\n*text* \n")
    assert read(path) == [Document(id=path.as_posix(), text="# Head\n\n*text* \n", source=path.as_posix())]


def test_a_plain_text_may_be_a_transcript(read, tmp_path):
    (tmp_path / "b.txt").write_text("Ann: Hi.\nBob: Hi.\nAnn: So?\nAnn: Yes.")
    assert read(tmp_path / "b.txt")[0].marks[:2] == ((0, Place(speaker="Ann")), (9, Place(speaker="Bob")))


def test_marks_stay_at_their_texts_when_a_converted_text_is_cleaned(read, tmp_path):
    text = "ab\0\r\nc\r\n# One\0\r\nRain \ud83d.\r\n# Two"
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": text}]}))
    (document,) = read(tmp_path / "a.ipynb")
    assert document.text == "ab\nc\n# One\nRain ?.\n# Two"
    assert [(document.text[start:].split("\n")[0], place.chapter) for start, place in document.marks] == [
        ("ab", ()),
        ("# One", ("One",)),
        ("# Two", ("Two",)),
    ]


def pipe(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(raw)))


def test_standard_input(read, monkeypatch):
    pipe(monkeypatch, b"caf\xc3\xa9\r\n")
    name = sha256("café\n".encode()).hexdigest()[:12]
    assert read("-") == [Document(id=f"stdin-{name}", text="café\n", source="stdin")]
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ReadingError, match="standard input is closed"):
        read("-")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.txt", None, "does not exist: check the path"),
        ("nul\0.txt", None, "cannot be read"),
        ("x" * 5000, None, "cannot be read"),
        ("loop.txt", lambda path: path.symlink_to(path), "cannot be read"),
        ("pipe", os.mkfifo, "neither a file nor a folder"),
        ("scripts.html", b"<script>f()</script>", "holds no text"),
        ("empty.txt", b" \n", "is empty or holds only white space"),
        ("binary.txt", b"a\0b", "is binary, not text"),
        ("empty.jsonl", b"", "is empty or holds only white space"),
        ("empty.pdf", b"", "is empty: give a source with text"),
        ("scan.pdf", pdf(""), "holds no text"),
        (os.fsdecode(b"a\xff.txt"), b"text", "is not UTF-8: rename the file"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_bad_files_are_refused(name, content, message, read, read_all, tmp_path):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        content(path)
    for reader in (read, read_all):
        with pytest.raises(ReadingError, match=message) as caught:
            list(reader(path))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_a_file_that_may_not_be_opened(name, read, tmp_path, monkeypatch):
    (tmp_path / name).write_text("text")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ReadingError, match=r"cannot be read \(Permission denied\): check its permissions"):
        read(tmp_path / name)


def test_folders_are_read_in_order_and_what_is_left_out_is_said(read_all, tmp_path):
    for name in ("b/z.txt", "b/a.md", "a.txt", "b/picture.png", "b/LICENSE", ".git/config.txt", "b/.hidden.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}")
    (tmp_path / "b" / "bad.txt").write_bytes(b"a\0b")
    (tmp_path / "b" / "c.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    (tmp_path / "b" / "half.jsonl").write_text('{"text": "a"}\n{}\n')
    (tmp_path / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "b" / "loop.txt").symlink_to(tmp_path / "b" / "loop.txt")
    found = list(read_all(tmp_path))
    ids = [Path(item.id).name for item in found if isinstance(item, Document)]
    assert ids == ["a.txt", "a.md", "c.jsonl#1", "c.jsonl#2", "z.txt"]
    reasons = list_reasons(found)
    assert set(reasons) == {".git", ".hidden.txt", "LICENSE", "bad.txt", "half.jsonl", "loop.txt", "picture.png", "up"}
    assert reasons[".git"] == "is hidden"
    assert "binary" in reasons["bad.txt"]
    assert "line 2: the row lacks the field `text`" in reasons["half.jsonl"]
    assert "'.png'" in reasons["picture.png"]


def test_nothing_is_read_twice(read_all, tmp_path):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.txt").symlink_to(tmp_path / "a.txt")
    found = list(read_all(tmp_path / "a.txt", tmp_path, tmp_path / "a.txt"))
    assert [type(item) for item in found] == [Document, Skipped, Skipped, Skipped]
    assert {item.reason for item in found[1:] if isinstance(item, Skipped)} == {"was already read"}


def test_a_link_that_leads_out_of_a_folder_is_passed_over_unless_followed(read_all, tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    (inside / "a.txt").write_text("text")
    (outside / "secret.txt").write_text("secret")
    (inside / "deep" / "up.txt").symlink_to("../a.txt")
    (inside / "link.txt").symlink_to(outside / "secret.txt")
    (inside / "z.txt").symlink_to(inside / "link.txt")
    (tmp_path / "named").symlink_to(inside)  # a folder that is named by a link is still the folder
    found = list(read_all(tmp_path / "named"))
    reasons = list_reasons(found)
    assert [entry.text for entry in found if isinstance(entry, Document)] == ["text"]
    assert set(reasons) == {"up.txt", "link.txt", "z.txt"}
    assert reasons["link.txt"] == reasons["z.txt"]
    assert "is a link to a file outside of the folder" in reasons["link.txt"]
    followed = [entry for entry in read_all(inside, follow=True) if isinstance(entry, Document)]
    assert [(entry.text, entry.id) for entry in followed][1:] == [("secret", str(outside / "secret.txt"))]
    assert [entry.text for entry in read_all(inside / "link.txt") if isinstance(entry, Document)] == ["secret"]


def test_a_folder_that_may_not_be_listed_is_passed_over(read_all, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "shut").mkdir()
    listing = Path.iterdir

    def refuse(path: Path) -> object:
        if path.name == "shut":
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    document, skipped = read_all(tmp_path)
    assert isinstance(document, Document)
    assert skipped == Skipped(tmp_path / "shut", "Permission denied", is_lost=True)
