import sys
from pathlib import Path

import pytest
from tests.reading.documents import docx, pdf

from tomewise.errors import MissingDependency, ReadingError
from tomewise.reading.formats import load_reader
from tomewise.reading.office import read_docx, read_pdf


def test_pdf(tmp_path: Path) -> None:
    path = tmp_path / "a.PDF"
    path.write_bytes(pdf("The rain fell on the town."))
    (document,) = read_pdf(path)
    assert document.text.strip() == "The rain fell on the town."
    assert (document.id, document.source, document.title) == (path.as_posix(), path.as_posix(), "")


def test_docx(tmp_path: Path) -> None:
    (document,) = read_docx(docx(tmp_path / "a.docx"))
    assert document.text == "The rain fell.\n\nThe wind rose."


@pytest.mark.parametrize("reader", [read_pdf, read_docx])
def test_a_damaged_document_is_refused(reader, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"this is no document at all")
    with pytest.raises(ReadingError, match="could not be converted: ") as caught:
        reader(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("format", ["pdf", "docx"])
def test_without_the_extra_its_name_is_said(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tomewise.reading.office")
    monkeypatch.setitem(sys.modules, "markitdown", None)
    with pytest.raises(MissingDependency, match=r"pip install 'tomewise\[documents\]'"):
        load_reader(format)
