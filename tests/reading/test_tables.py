import pytest


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.csv", "|")])
def test_rows_name_their_columns(name, delimiter, read_document):
    lines = ["Name{0}Town", '"Poe, Anna"{0}"New\nYork"', "{0}", "Bob{0}{0}x"]
    document = read_document(name, "\r\n".join(lines).format(delimiter))
    assert document.text == "Name: Poe, Anna; Town: New York\n\nName: Bob; column 3: x"
    assert [(start, place.row) for start, place in document.marks] == [(0, 2), (document.text.index("Name: Bob"), 4)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,Ann\n2,Bob", "1 | Ann\n\n2 | Bob"),
        ("Ann,Ann\nBob,Cid", "Ann | Ann\n\nBob | Cid"),
        ("Name,Town\n", "Name | Town"),
        ("a,b,\n1,2,", "a: 1; b: 2"),
        ("Name\n" + "x" * 200_000, "Name: " + "x" * 200_000),
    ],
    ids=["numbers", "repeated", "alone", "trailing delimiter", "a long cell"],
)
def test_the_first_row_is_a_header_only_if_it_names_columns(text, expected, read_document):
    assert read_document("a.csv", text).text == expected
