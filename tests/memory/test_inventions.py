"""Unsupported names: a gist may use other forms of the names in its passage, and no other names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.memory.inventions import find_unsupported
from tomewise.memory.numerals import find_numbers

PASSAGE = (
    "Dr. Hart's sister, mary, met John O'Brien in the U.S. on 2 Mar. 1871. They paid 3 million dollars for "
    "1,500 acres; the United Nations came. It lasted 1914-18, in Italy's north. Twenty-one men died. "
    "José went by NATO train."
)


@pytest.mark.parametrize(
    "memory",
    [
        "Doctor Hart met Mary.",  # an abbreviation spelled out, a name without its capital
        "Mary O'Brien met John.",  # words of names in a new combination
        "However, the Italian men died.",  # a word that begins a sentence, an adjective of a name
        "On 2 March 1871 they paid three million dollars.",
        "In 1918 UN troops left. 21 men died.",  # a range of years, an acronym, number words
        "It cost 3,000,000 dollars and 1500 acres.",
        "Both sisters met two men.",  # number words up to two are not checked
        "Jose and Mary’s brother went by train.",  # an accent and an apostrophe
    ],
)
def test_other_forms_of_names_in_the_passage_are_supported(memory: str) -> None:
    assert find_unsupported(memory, PASSAGE) == []


@pytest.mark.parametrize(
    ("memory", "inventions"),
    [
        ("John met Napoleon Bonaparte in Paris.", ["Napoleon Bonaparte", "Paris"]),
        ("Napoleon came. They saw Napoleon.", ["Napoleon"]),
        ("Napoleon Bonaparte came.", ["Bonaparte"]),
        ("They met Napoleon's army.", ["Napoleon's"]),
        ("They paid $4,000 in April.", ["4,000", "April"]),
        ("Five men left.", ["Five"]),
        ("Mary met John in 1872 and in 1872.", ["1872"]),
        ("王さんは1871年に1999ドル払った。", ["1999"]),
        ("McDonald came.", ["McDonald"]),
    ],
)
def test_names_that_are_not_in_the_passage_are_found(memory: str, inventions: list[str]) -> None:
    assert find_unsupported(memory, PASSAGE) == sorted(inventions, key=memory.index)


def test_invisible_characters_do_not_change_a_name() -> None:
    assert find_unsupported("It was Margaret.", "It was Mar\u00adga\u200bret.") == []


def test_a_word_that_begins_a_sentence_is_not_checked() -> None:
    assert find_unsupported("Troops came. Meanwhile they paid.", PASSAGE) == []
    assert find_unsupported("Later the men died.\n- Reportedly Mary left.", PASSAGE) == []
    assert find_unsupported("Meanwhile Mary left. Meanwhile they paid.", PASSAGE) == []
    assert find_unsupported("Yesterday's men died.", PASSAGE) == []
    assert find_unsupported('Mary said, “Travel with John.” John said, "Certainly."', PASSAGE) == []


def test_an_acronym_may_be_spelled_out() -> None:
    assert find_unsupported("The men of the World Health Organization left.", "Men of the WHO left.") == []


def test_numeric_dates_support_their_month() -> None:
    assert find_unsupported("It happened on 5 March 1871.", "Date: 1871-03-05.") == []
    assert find_unsupported("It happened on 5 April 1871.", "Date: 1871-03-05.") == ["April"]


def test_german_nouns_are_not_taken_for_names() -> None:
    ground = "Der Hund und die Katze liefen auf der Straße, und das war nicht gut."
    assert find_unsupported("Das schnelle Tier lief auf dem Weg.", ground) == []
    assert find_unsupported("Das schnelle Tier lief 17 Meter.", ground) == ["17"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("two hundred and five thousand", [205_000]),
        ("nineteen twelve", [1912]),
        ("a dozen eggs", [12]),
        ("3.5 million", [3_500_000]),
        ("1\u202f500", [1500]),
        ("٣٤ and ３５", [34, 35]),
        ("one or two", []),
    ],
)
def test_numbers_are_read_in_digits_and_words(text: str, values: list[float]) -> None:
    assert [number.values[0] for number in find_numbers(text)] == values


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
def test_every_text_supports_itself(text: str) -> None:
    assert find_unsupported(text, text) == []


@given(st.lists(st.sampled_from(PASSAGE.split()), max_size=30).map(" ".join))
def test_words_of_the_passage_are_supported_in_any_order(memory: str) -> None:
    unsupported = [number for number in find_unsupported(memory, PASSAGE) if not any(sign.isdigit() for sign in number)]
    allowed = {"million", "Twenty-one"}  # numbers in a new combination are other numbers
    assert [name for name in unsupported if not allowed.intersection(name.replace(",", "").split())] == []
