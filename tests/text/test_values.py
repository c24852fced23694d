"""Values are found with their places, and read alike in every spelling."""

from __future__ import annotations

from datetime import date
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.text.support import Grounds
from tomewise.text.values import find_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "On 5 May 1832 Jean Valjean paid 600 francs.",
            ["date 5 May 1832", "name Jean Valjean", "quantity 600 francs"],
        ),
        (
            "Eight five-pound notes at six thirty-five",
            ["number Eight", "quantity five-pound", "number six thirty-five"],
        ),
        ("Louis XIV; I mix CDs.", ["name Louis XIV", "name CDs"]),
        ("He fell to -5 or 3-5.", ["number -5", "number 3", "number 5"]),
        ("the third of the first five", ["ordinal third", "ordinal first", "number five"]),
        ("He didn't sell it. No, said Ada.", ["negation didn't", "name Ada"]),
        ("In May they may march.", ["date May"]),
        ("Jose\u0301 paid ٣٤ and ３５.", ["name Jose\u0301", "number ٣٤", "number ３５"]),
        ("王さんは1871年に1999ドル払った。", ["number 1871", "number 1999"]),
    ],
)
def test_values_are_found_with_their_kind(text: str, values: list[str]) -> None:
    assert [f"{value.kind} {value.text}" for value in find_values(text)] == values


@given(
    st.text(max_size=300)
    | st.text("0123456789.,:-–/' \n")
    | st.lists(st.sampled_from("five 5 of May and twenty a half past to hours not $ -5".split())).map(" ".join)
)
def test_values_are_ordered_disjoint_and_in_the_text(text: str) -> None:
    values = find_values(text)
    assert all(first.end <= second.start for first, second in pairwise(values))
    assert all(value.text == text[value.start : value.end] != "" for value in values)


# Each line has spellings of one value: each stands in a text that has any other.
SPELLINGS = [
    ["25", "twenty-five", "twenty five", "five-and-twenty", "25.0"],
    ["205,000", "205000", "205 000", "205.000", "two hundred and five thousand", "205 thousand"],
    ["3.5 million", "3,500,000", "three million five hundred thousand", "three and a half million"],
    ["12.5", "12,5", "twelve point five", "twelve and a half", "12½"],
    ["$3.5m", "3.5 million dollars", "$ 3,500,000"],
    ["£40k", "40,000 pounds"],
    ["36", "three dozen", "thirty-six"],
    ["in 1912", "nineteen twelve", "nineteen hundred and twelve"],
    ["the 14th", "the fourteenth", "number 14"],
    ["the 140th", "the hundred-and-fortieth", "140"],
    ["the 19th century", "the nineteenth century"],
    ["22 April", "the twenty-second of April", "April 22nd", "April the 22nd", "22 Apr.", "22\nApril"],
    ["5 March 1871", "March 5, 1871", "1871-03-05", "05.03.1871", "3/5/1871", "the fifth of March, 1871"],
    ["in March 1871", "March, 1871"],
    ["half past two", "2.30", "2:30 pm", "14:30", "thirty minutes past two", "two thirty", "half after two"],
    ["a quarter to ten", "9:45", "quarter before ten", "fifteen minutes to ten", "nine forty-five"],
    ["noon", "twelve o'clock", "12:00", "12 pm"],
    ["two and a half hours", "2.5 hours", "150 minutes"],
    ["half an hour", "30 minutes", "thirty min"],
    ["5 km", "five kilometres", "5000 m", "5,000 meters"],
    ["6 ft", "six feet", "two yards"],
    ["$3 million", "three million dollars", "3,000,000 dollars", "USD 3,000,000 dollars"],
    ["50%", "fifty per cent", "50 percent"],
    ["£5", "five pounds", "a five-pound note"],
]  # fmt: skip
# What follows from more exact values.
FOLLOWING = [
    ("1912", "1911-12"),
    ("the 1870s", "1874"),
    ("22 April", "1900-04-22"),
    ("in March 1871", "1871-03-05"),
    ("on Sunday", "1871-03-05"),
    ("1 hour", "an hour"),
    ("7 o'clock", "seven"),
    ("5 April", "the 4th and 5th of April"),
]


@pytest.mark.parametrize(
    ("value", "source"), FOLLOWING + [pair for line in SPELLINGS for pair in permutations(line, 2)]
)
def test_a_value_stands_in_a_text_that_has_it_in_another_spelling(value: str, source: str) -> None:
    statement = f"It was {value}."
    compared = {each.text for each in find_values(statement) if each.kind != "name"}
    assert compared
    assert compared.isdisjoint(Grounds([f"It was {source}."]).find_missing(statement))


@pytest.mark.parametrize(
    ("statement", "source"),
    [
        ("It was 25.", "It was 52."),
        ("It was twenty-five.", "It was twenty, and five more."),
        ("It was 2,050.", "It was 205,000."),
        ("It was twelve point five.", "It was twelve, or five."),
        ("It was 3 pounds.", "It was 3½ pounds."),
        ("It was in 1912.", "It was in 1921, at 12, for 19 days."),
        ("It was on 22 April.", "It was on 23 April. All the other things that we know of happened on 22 May."),
        ("It was on 5 March 1871.", "It was on 1872-03-05."),
        ("It was on Monday.", "It was on 1871-03-05."),
        ("It was in the 1870s.", "It was in 1869."),
        ("It was in the 19th century.", "It was in 1901."),
        ("It was at half past two.", "It was at 3:30."),
        ("It was at a quarter to ten.", "It was at 10:15."),
        ("It took 80 minutes.", "It took an hour and ten minutes."),
        ("It took three hours.", "It took three days."),
        ("He was five miles away.", "He was five kilometres away."),
        ("They paid $3 million.", "They paid £3 million."),
        ("They paid 50%.", "They paid 50 dollars."),
        ("It fell to -5.", "It fell to 5."),
        ("It fell to 5.", "It fell to -5."),
        ("It was Louis XIV.", "It was Louis XVI."),
    ],
)
def test_a_near_miss_is_not_supported(statement: str, source: str) -> None:
    assert Grounds([source]).find_missing(statement)


@given(st.integers(3, 999_999), st.integers(3, 999_999))
def test_a_changed_number_is_never_supported(counted: int, stated: int) -> None:
    text = Grounds([f"They counted {counted:,} ships, or {counted}."])
    assert (text.find_missing(f"They counted {stated} ships.") == []) == (counted == stated)


DATES = st.dates(date(1000, 1, 1), date(2199, 12, 31))


@given(DATES, DATES)
def test_a_changed_date_is_never_supported(written: date, stated: date) -> None:
    day, month, year = written.day, f"{written:%B}", written.year
    for form in (f"{day} {month} {year}", f"{month} {day}, {year}", written.isoformat()):
        missing = Grounds([f"The ship was lost on {form}."]).find_missing(
            f"It was lost on {stated.day} {stated:%B} {stated.year}."
        )
        assert (missing == []) == (written == stated)


@pytest.mark.parametrize(
    "text", ["2,50–10 Euro", "1'50-20", "1,52:30", "9.30-17", "It was 1" + " trillion" * 30 + " point five."]
)
def test_odd_numbers_are_read_without_an_error(text: str) -> None:
    assert find_values(text)
