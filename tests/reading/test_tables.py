from pathlib import Path

import pytest

from tomewise.errors import ReadingError
from tomewise.place import describe_place
from tomewise.reading.places import PlaceFinder
from tomewise.reading.tables import read_table
from tomewise.types import Document


def read(path: Path, text: str) -> Document:
    path.write_text(text, newline="")
    (document,) = read_table(path)
    return document


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.csv", "|")])
def test_rows_name_their_columns(name: str, delimiter: str, tmp_path: Path) -> None:
    lines = ["Name,Town", '"Poe, Anna","New\nYork"', ",", "Bob,,x"]
    text = "\r\n".join(line if '"' in line else line.replace(",", delimiter) for line in lines)
    text = text.replace('","', f'"{delimiter}"')
    document = read(tmp_path / name, text)
    assert document.text == "Name: Poe, Anna; Town: New York\n\nName: Bob; column 3: x"
    assert [(start, place.row) for start, place in document.marks] == [(0, 2), (document.text.index("Name: Bob"), 4)]


def test_a_passage_of_several_rows_names_the_first_and_the_last(tmp_path: Path) -> None:
    document = read(tmp_path / "a.csv", "Name\nAnn\nBob\nCid\n")
    assert describe_place(PlaceFinder(document.text, document.marks).find(0, len(document.text))) == "row 2–4"
    assert describe_place(PlaceFinder(document.text, document.marks).find(0, 5)) == "row 2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,Ann\n2,Bob", "1 | Ann\n\n2 | Bob"),
        ("Ann,Ann\nBob,Cid", "Ann | Ann\n\nBob | Cid"),
        ("Name,Town\n", "Name | Town"),
        ("a,b,\n1,2,", "a: 1; b: 2"),
    ],
)
def test_the_first_row_is_a_header_only_if_it_names_columns(text: str, expected: str, tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", text).text == expected


def test_a_long_cell_is_read_and_a_binary_file_refused(tmp_path: Path) -> None:
    assert len(read(tmp_path / "a.csv", "Name\n" + "x" * 200_000).text) > 200_000
    with pytest.raises(ReadingError, match="is binary"):
        read(tmp_path / "b.csv", "a\0b")
