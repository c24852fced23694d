"""Tables: which cells say the same, what rows are one thing, and what is computed over columns."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.errors import UsageError
from tomewise.tome.collected import (
    Row,
    Table,
    find_likely,
    join_rows,
    join_same,
    read_amount,
    read_date,
    read_key,
)
from tomewise.types import Column, Statement


def make_rows(*rows):
    return [Row(cells=tuple(Statement(text=text, support="inferred") for text in row)) for row in rows]


def make_table(rows, *columns):
    return Table(asked="all", item="a thing", columns=columns, key=("name",), rows=tuple(make_rows(*rows)))


@pytest.mark.parametrize(
    ("cell", "later", "same"),
    [
        ("Act 1 Scene 2", "Act 2 Scene 1", False),
        ("section 1.1", "section 1.10", False),
        ("06:30", "18:30", False),
        ("5 lb", "£5", False),
        ("not Reed", "Reed", False),
        ("A to B", "B to A", False),
        ("007", "7", False),
        ("£1,200", "1,200 pounds", True),
        ("3 May 1911", "May 3rd, 1911", True),
        ("3 May 1911", "4 May 1911", False),
        ("Tender 12", "tender twelve", True),
        ("Tender 12", "Tender 13", False),
        ("The Müller AG", "muller ag", True),
        ("Reed", "Mr. Reed", False),
        ("the", "the", True),
        ("漢字", "漢字", True),
        ("Lot A", "Lot B", False),
    ],
)
def test_two_cells_say_the_same_by_their_values_and_words(cell, later, same):
    assert (read_key(cell) == read_key(later)) == same


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("about 40 men", (40, "")),
        ("2 km", (2000, "metre")),
        ("two", (2, "")),
        ("none", None),
        ("-5", (-5, "")),
        ("", None),
        ("£40 a year", (40.0, "pound a year")),
        ("forty pounds every year", (40.0, "pound a year")),
        ("3 per week", (3.0, "a week")),
        ("£40" + " a year" * 5_000, None),
    ],
)
def test_a_number_is_read_with_its_unit(text, amount):
    assert read_amount(text) == amount


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("on 12 March 1911", (1911, 3, 12)),
        ("March 1911", (1911, 3, 0)),
        ("1911", (1911, 0, 0)),
        ("3 May", (0, 5, 3)),
        ("x", None),
    ],
)
def test_a_date_is_read_as_far_as_it_is_said(text, date):
    assert read_date(text) == date


def test_figures_rest_on_the_rows_that_have_a_value():
    columns = (Column(name="name"), Column(name="paid", kind="number"), Column(name="day", kind="date"))
    table = make_table(
        [
            ("a", "£10", "3 May 1911"),
            ("b", "", "2 April 1912"),
            ("c", "twelve pounds", ""),
            ("d", "unknown", "May 1911"),
        ],
        *columns,
    )
    figures = {name: table.compute(name, "Paid") for name in ("sum", "mean", "least", "greatest", "count")}
    assert {name: each.value for name, each in figures.items()} == {
        "sum": 22.0, "mean": 11.0, "least": 10.0, "greatest": 12.0, "count": 3,
    }  # fmt: skip
    assert (figures["sum"].unit, figures["sum"].rows, figures["sum"].left_out) == ("pound", (0, 2), (1, 3))
    assert str(figures["sum"]) == "sum of paid: 22 pound (2 rows; 2 rows without a value left out)"
    assert (table.compute("first", "day").value, table.compute("last", "day").value) == ("May 1911", "2 April 1912")
    assert table.compute("last", "name").value == "d"
    assert (table.compute("count").value, table.compute("count").rows) == (4, (0, 1, 2, 3))


def test_figures_that_cannot_be_computed_are_refused_or_empty():
    table = make_table([("a", "£10"), ("b", "5 km")], Column(name="name"), Column(name="paid", kind="number"))
    mixed = table.compute("sum", "paid")
    assert (mixed.value, str(mixed)) == (None, "sum of paid: none, since its cells are in metre and in pound")
    with pytest.raises(UsageError, match="the table has no column 'pays': did you mean 'paid'"):
        table.compute("sum", "pays")
    with pytest.raises(UsageError, match="'median' is not a figure"):
        table.compute("median", "paid")
    empty = make_table([], Column(name="name"))
    assert (empty.compute("mean", "name").value, empty.compute("sum", "name").value) == (None, 0)


_NAMES = st.sampled_from(["Reed", "the Reed", "REED", "Marsh", "Lot 1", "lot one", "Lot 2", ""])


@given(st.lists(st.tuples(_NAMES, st.sampled_from(["", "x", "y"])), max_size=12))
def test_joined_rows_have_one_row_for_each_key_and_lose_no_place(pairs):
    rows = join_rows(make_rows(*pairs), (0,))
    found = [(read_key(row.cells[0].text), row.cells[1].text) for row in rows if row.cells[0].text]
    assert len(found) == len(set(found)), "rows that say the same are one"
    assert {key for key, _ in found} == {read_key(name) for name, _ in pairs if name}
    assert sum(row.places for row in rows) == len(pairs)


@given(st.lists(st.sampled_from(["Ada", "Ada Marsh", "Marsh", "Ada Marsh of Skerry", "Reed", "the"]), max_size=8))
def test_likely_pairs_are_those_whose_words_are_among_the_others(names):
    pairs = set(find_likely(make_rows(*((name,) for name in names)), (0,)))
    bags = [set(name.lower().split()) - {"the", "of"} for name in names]
    expected = {
        (first, second)
        for first in range(len(names))
        for second in range(first + 1, len(names))
        if bags[first] and bags[second] and (bags[first] < bags[second] or bags[second] < bags[first])
    }
    assert pairs == expected


def test_rows_become_one_where_every_two_of_them_are_the_same():
    rows, numbers = join_same(make_rows(("a",), ("b",), ("c",), ("d",)), [(3, 2), (0, 3), (2, 0)])
    assert [row.cells[0].text for row in rows] == ["a", "b"]
    assert numbers == [0, 1, 0, 0]
    rows, numbers = join_same(make_rows(("Ada Marsh",), ("Marsh",), ("Tom Marsh",)), [(0, 1), (1, 2)])
    assert [row.cells[0].text for row in rows] == ["Ada Marsh", "Tom Marsh"]
    assert numbers == [0, 0, 1]


def test_a_table_is_saved_by_the_suffix_of_the_file(tmp_path):
    columns = (Column(name="name"), Column(name="paid", kind="number"), Column(name="day", kind="date"))
    table = make_table([("=1+1", "£10", "May 1911")], *columns)
    for suffix in ("csv", "md", "json", "parquet"):
        table.save(tmp_path / f"a.{suffix}")
    assert (tmp_path / "a.csv").read_text().splitlines()[1].startswith("'=1+1,")
    assert json.loads((tmp_path / "a.json").read_text())["rows"][0]["cells"][1]["text"] == "£10"
    from pyarrow import parquet

    (row,) = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert (row["name"], row["paid"], row["paid (number)"], row["paid (unit)"]) == ("=1+1", "£10", 10.0, "pound")
    assert (row["day"], row["day (date)"], row["sources"]) == ("May 1911", "1911-05", [])
    with pytest.raises(UsageError, match=r"cannot write a table as 'a\.xlsx'"):
        table.save(tmp_path / "a.xlsx")
