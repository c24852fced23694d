import io
import os
import sys
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.reading.documents import EPUB, docx, pdf, write_zip

from tomewise.errors import ReadingError
from tomewise.reading.folder import FolderRules, Skipped
from tomewise.reading.messages import Reply
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import SourceReader
from tomewise.reading.worker import _clean_document
from tomewise.types import Document, Place


@pytest.fixture(scope="module", autouse=True)
def process() -> Iterator[ReaderProcess]:
    """One process that converts for all tests here."""
    with ReaderProcess() as process:
        read.process = process  # type: ignore[attr-defined]
        yield process


def read(path: Path | str) -> list[Document]:
    return list(SourceReader(read.process).read(path).documents)  # type: ignore[attr-defined]


def read_all(paths: Iterable[Path | str], *, follow: bool = False) -> Iterator[Document | Skipped]:
    reader = SourceReader(read.process, rules=FolderRules(follow=follow))  # type: ignore[attr-defined]
    for found in reader.read_all(paths):
        if isinstance(found, Skipped):
            yield found
        else:
            yield from found.documents


def pipe(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(raw)))


@pytest.mark.parametrize("name", ["a.txt", "a.md", "A.MARKDOWN", "a.log", "README"])
def test_text_is_kept_as_it_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf# Head\r\n\r\n*text* \n")
    assert list(read(path)) == [Document(id=path.as_posix(), text="# Head\n\n*text* \n", source=path.as_posix())]


def test_ids_are_resolved_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real.txt").write_text("text")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    monkeypatch.chdir(tmp_path)
    for name in ("real.txt", "./real.txt", "link.txt"):
        assert [document.id for document in read(name)] == [(tmp_path / "real.txt").resolve().as_posix()]


def test_html_states_its_title_and_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.htm"
    path.write_bytes('<meta charset="cp1252"><title>Été</title><p>œuvre</p>'.encode("cp1252"))
    (document,) = read(path)
    assert (document.title, document.text) == ("Été", "œuvre")


def test_documents_that_are_converted_have_the_ids_of_their_files(tmp_path: Path) -> None:
    (tmp_path / "A.PDF").write_bytes(pdf("The rain fell."))
    docx(tmp_path / "b.docx")
    write_zip(tmp_path / "c.epub", EPUB)
    found = [entry for entry in read_all([tmp_path]) if isinstance(entry, Document)]
    assert [entry.id for entry in found] == [str(tmp_path / name) for name in ("A.PDF", "b.docx", "c.epub")]
    assert all("The rain fell." in entry.text and entry.source == entry.id for entry in found)
    assert [entry.title for entry in found] == ["", "", "The Town"]


def test_places_come_with_the_documents(tmp_path: Path) -> None:
    texts = {
        "a.md": "# One\n\nRain.",
        "b.txt": "Ann: Hi.\nBob: Hi.\nAnn: So?\nAnn: Yes.",
        "c.html": "<h2>Two</h2>Rain.",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    write_zip(tmp_path / "d.epub", EPUB)
    found = {path.name: read(path)[0] for path in sorted(tmp_path.iterdir())}
    assert found["a.md"].marks == ((0, Place(chapter=("One",))),)
    assert [(start, place.speaker) for start, place in found["b.txt"].marks][:2] == [(0, "Ann"), (9, "Bob")]
    assert found["c.html"].marks == ((0, Place(chapter=("Two",))),)
    assert found["d.epub"].marks == ((0, Place(chapter=("One",))),)


def test_marks_stay_at_their_texts_when_a_converted_text_is_cleaned() -> None:
    text = "ab\0\r\nc\r\n# One\0\r\nRain.\r\n# Two"
    marks = tuple((text.index(words), Place(chapter=(words,))) for words in ("# One", "# Two"))
    cleaned = _clean_document(Document(id="d", text=text, marks=marks))
    assert cleaned.text == "ab\nc\n# One\nRain.\n# Two"
    assert [cleaned.text[start:].split("\n")[0] for start, _ in cleaned.marks] == ["# One", "# Two"]
    assert Reply.decode(Reply(documents=(cleaned,)).encode()).documents[0].marks == cleaned.marks


def test_rows_of_a_corpus(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "a"}\n{"id": 5, "text": "b"}\n')
    assert [document.id for document in read(path)] == [f"{path.as_posix()}#1", "5"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"caf\xc3\xa9\r\n")
    (document,) = read("-")
    name = sha256("café\n".encode()).hexdigest()[:12]
    assert document == Document(id=f"stdin-{name}", text="café\n", source="stdin")


@pytest.mark.parametrize("raw", [b"", b" \n", b"a\0b"])
def test_bad_standard_input(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, raw)
    with pytest.raises(ReadingError, match=r"^standard input is "):
        list(read_all(["-"]))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ReadingError, match="standard input is closed"):
        list(read("-"))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing.txt", "does not exist: check the path"),
        ("nul\0.txt", "cannot be read"),
        ("x" * 5000, "cannot be read"),
        ("loop.txt", "cannot be read"),
        ("pipe", "neither a file nor a folder"),
        ("scripts.html", "holds no text"),
        ("empty.txt", "is empty or holds only white space"),
        ("binary.txt", "is binary, not text"),
        ("empty.jsonl", "is empty or holds only white space"),
        ("empty.pdf", "is empty: give a source with text"),
        ("scan.pdf", "holds no text"),
    ],
)
def test_bad_files_are_refused(path: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "scripts.html").write_text("<script>f()</script>")
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "binary.txt").write_bytes(b"a\0b")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "empty.pdf").write_text("")
    (tmp_path / "scan.pdf").write_bytes(pdf(""))
    for reader in (read, lambda path: read_all([path])):
        with pytest.raises(ReadingError, match=message) as caught:
            list(reader(tmp_path / path))
        assert "\n" not in str(caught.value)


def test_a_folder_is_for_read_all(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match="is a folder"):
        list(read(tmp_path))


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_a_file_that_may_not_be_opened(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_text("text")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ReadingError, match=r"cannot be read \(Permission denied\): check its permissions"):
        list(read(tmp_path / name))


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.txt"))
    path.write_text("text")
    with pytest.raises(ReadingError, match="is not UTF-8: rename the file"):
        list(read(path))


def test_folders_are_read_in_order_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    for name in ("b/z.txt", "b/a.md", "a.txt", "b/picture.png", "b/LICENSE", ".git/config.txt", "b/.hidden.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}")
    (tmp_path / "b" / "bad.txt").write_bytes(b"a\0b")
    (tmp_path / "b" / "c.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    (tmp_path / "b" / "half.jsonl").write_text('{"text": "a"}\n{}\n')
    (tmp_path / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "b" / "loop.txt").symlink_to(tmp_path / "b" / "loop.txt")
    found = list(read_all([tmp_path]))
    ids = [Path(item.id).name for item in found if isinstance(item, Document)]
    assert ids == ["a.txt", "a.md", "c.jsonl#1", "c.jsonl#2", "z.txt"]
    reasons = {item.path.name: item.reason for item in found if isinstance(item, Skipped)}
    assert set(reasons) == {".git", ".hidden.txt", "LICENSE", "bad.txt", "half.jsonl", "loop.txt", "picture.png", "up"}
    assert reasons[".git"] == "is hidden"
    assert "binary" in reasons["bad.txt"]
    assert "line 2: the row lacks the field `text`" in reasons["half.jsonl"]
    assert "'.png'" in reasons["picture.png"]


def test_nothing_is_read_twice(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.txt").symlink_to(tmp_path / "a.txt")
    found = list(read_all([tmp_path / "a.txt", tmp_path, tmp_path / "a.txt"]))
    assert [type(item) for item in found] == [Document, Skipped, Skipped, Skipped]
    assert {item.reason for item in found[1:] if isinstance(item, Skipped)} == {"was already read"}


def test_a_folder_with_nothing_to_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match=r"nothing in the folder .* can be read: it is empty: `tome add"):
        list(read_all([tmp_path]))
    (tmp_path / "a.txt").write_text("")
    found = read_all([tmp_path])
    assert isinstance(next(found), Skipped)
    with pytest.raises(ReadingError, match="nothing in the folder"):
        next(found)


def test_a_folder_with_nothing_to_read_names_the_reasons(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"a\0b")
    for number in range(12):
        (tmp_path / f"{number:02}.png").write_text("x")
    with pytest.raises(ReadingError) as caught:
        list(read_all([tmp_path]))
    assert "can be read: 00.png: has the unsupported suffix '.png' (and 11 more); bad.txt: " in str(caught.value)
    assert "bad.txt is binary, not text" in str(caught.value)


def test_a_link_that_leads_out_of_a_folder_is_passed_over_unless_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
    (inside / "a.txt").write_text("text")
    (outside / "secret.txt").write_text("secret")
    (inside / "deep").mkdir()
    (inside / "deep" / "up.txt").symlink_to("../a.txt")
    (inside / "link.txt").symlink_to(outside / "secret.txt")
    (inside / "z.txt").symlink_to(inside / "link.txt")
    (tmp_path / "named").symlink_to(inside)  # a folder that is named by a link is still the folder
    found = list(read_all([tmp_path / "named"]))
    reasons = {entry.path.name: entry.reason for entry in found if isinstance(entry, Skipped)}
    assert [entry.text for entry in found if isinstance(entry, Document)] == ["text"]
    assert set(reasons) == {"up.txt", "link.txt", "z.txt"}
    assert reasons["link.txt"] == reasons["z.txt"]
    assert "is a link to a file outside of the folder" in reasons["link.txt"]
    followed = [entry for entry in read_all([inside], follow=True) if isinstance(entry, Document)]
    assert [(entry.text, entry.id) for entry in followed][1:] == [("secret", str(outside / "secret.txt"))]
    assert [entry.text for entry in read_all([inside / "link.txt"]) if isinstance(entry, Document)] == ["secret"]


def test_a_folder_that_may_not_be_listed_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "shut").mkdir()
    listing = Path.iterdir

    def refuse(path: Path) -> object:
        if path.name == "shut":
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    document, skipped = read_all([tmp_path])
    assert isinstance(document, Document)
    assert skipped == Skipped(tmp_path / "shut", "Permission denied")
