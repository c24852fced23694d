"""One bad file never ends a folder: whatever error it causes, the others are read and it is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tomewise.errors import ReadingError
from tomewise.reading import read as reading
from tomewise.reading.folder import FolderRules, list_files
from tomewise.tome.tome import Tome

ERRORS = (
    ValueError("odd\nvalue"),
    RecursionError("a"),
    MemoryError(),
    KeyError("x"),
    AssertionError(),
    OverflowError(),
)


@pytest.fixture
def folder(here: Path) -> Path:
    (here / "files").mkdir()
    for name in ("a.txt", "b.md", "c.txt"):
        (here / "files" / name).write_text("The rain fell.")
    return here / "files"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_unforeseen_error_is_reported_and_the_others_are_read(error, folder, monkeypatch):
    def fail(text: str) -> None:
        raise error

    monkeypatch.setattr(reading, "read_front_matter", fail)
    with Tome.open(embedder="hash") as tome:
        report = tome.add(folder)
        assert [Path(name).name for name in report.added] == ["a.txt", "c.txt"]
        (reason,) = report.skipped.values()
        assert reason.startswith(f"{folder / 'b.md'} could not be read ({type(error).__name__}: ")
        assert "\n" not in reason
        with pytest.raises(ReadingError, match=r"b\.md could not be read"):
            tome.add(folder / "b.md")


def test_what_was_read_before_an_error_is_kept(folder, monkeypatch):
    """Also before an error that comes from no file, as of a disk."""
    read = reading.SourceReader.read

    def fail(reader: reading.SourceReader, path: Path, **options: str) -> reading.Source:
        if path.name == "c.txt":
            raise OSError("the disk is gone")
        return read(reader, path, **options)

    monkeypatch.setattr(reading.SourceReader, "read", fail)
    with Tome.open(embedder="hash") as tome:
        with pytest.raises(OSError, match="the disk is gone"):
            tome.add(folder)
        assert [Path(record.id).name for record in tome.documents()] == ["a.txt", "b.md"]


def test_rows_that_change_while_they_are_read_do_not_end_the_folder(folder, monkeypatch):
    rows = folder / "bb.jsonl"
    rows.write_text("".join(json.dumps({"id": number, "text": "The rain fell."}) + "\n" for number in range(3)))
    read = reading.SourceReader.read

    def spoil(reader: reading.SourceReader, path: Path, **options: str) -> reading.Source:
        source = read(reader, path, **options)
        if path == rows:
            rows.write_text('{"id": 0, "text": "The rain fell."}\nrain\n')
        return source

    monkeypatch.setattr(reading.SourceReader, "read", spoil)
    with Tome.open(embedder="hash") as tome:
        report = tome.add(folder)
        assert sorted(Path(name).name for name in report.added) == ["0", "a.txt", "b.md", "c.txt"]
        assert "line 2: the row is not JSON" in report.skipped[str(rows)]
        with pytest.raises(ReadingError, match="line 2"):
            tome.add(rows)


def test_folders_may_be_nested_deeper_than_python_calls(here):
    folders = [here / "d"]
    while len(folders) < 1_100:
        folders.append(folders[-1] / "d")
    for folder in folders:
        folder.mkdir()
    (folders[-1] / "a.txt").write_text("The rain fell.")
    (here / "z.txt").write_text("The wind rose.")
    try:
        found = [path for path in list_files(here, frozenset({".txt"}), FolderRules()) if isinstance(path, Path)]
    finally:
        (folders[-1] / "a.txt").unlink()
        for folder in reversed(folders):  # what clears the folders of tests calls itself for each
            folder.rmdir()
    assert [path.name for path in found] == ["a.txt", "z.txt"]


def test_a_long_heading_is_not_stored_with_each_passage(here):
    (here / "a.md").write_text(f"# {'a ' * 200_000}\n\n" + "The rain fell on the town. " * 400)
    with Tome.open("a.tome", embedder="hash") as tome:
        tome.add("a.md")
        (heading,) = next(iter(tome.store.passages().values())).place.chapter
        assert len(heading) < 100
    assert Path("a.tome").stat().st_size < 10_000_000
