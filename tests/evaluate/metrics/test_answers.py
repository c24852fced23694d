import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.evaluate.metrics.answers import exact_match, helmet_f1, normalise, substring_match, token_f1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Hague!", "hague"),
        ("A man, a plan", "man plan"),
        ("U.S.A.", "usa"),  # punctuation goes before the words are split
        ("an-other", "another"),
        ("Theatre", "theatre"),
        ("«Élan»", "«élan»"),  # only ASCII punctuation
        ("the", ""),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(st.text())
def test_normalised_text_has_single_spaces_and_no_articles(text: str) -> None:
    words = normalise(text).split()
    assert normalise(text) == " ".join(words)
    assert not {"a", "an", "the"} & set(words)


def test_exact_match_takes_any_reference() -> None:
    assert exact_match("The Dodgers.", ["Giants", "dodgers"]) == 1.0
    assert exact_match("Los Angeles Dodgers", ["Dodgers"]) == 0.0
    assert exact_match("x", []) == 0.0


def test_token_f1_by_hand() -> None:
    # answer: cat sat mat (3), wanted: cat sat (2), shared 2: precision 2/3, recall 1, F1 0.8
    assert token_f1("the cat sat mat", ["a cat sat"]) == pytest.approx(0.8)
    # repeated words count as often as both have them: shared 1 of 2 and 1
    assert token_f1("no no", ["no"]) == pytest.approx(2 / 3)
    assert token_f1("red", ["blue", "dark red"]) == pytest.approx(2 / 3)
    assert token_f1("", ["blue"]) == 0.0
    assert token_f1("the", ["a"]) == 1.0
    assert token_f1("blue", []) == 0.0


def test_substring_match() -> None:
    assert substring_match("It was in Paris, France.", ["paris"]) == 1.0
    assert substring_match("Paris", ["Paris, France"]) == 0.0
    assert substring_match("Paris", ["the"]) == 0.0


def test_helmet_f1_is_zero_when_only_one_side_is_closed() -> None:
    assert helmet_f1("yes", ["yes"]) == 1.0
    assert helmet_f1("yes", ["yes it is"]) == 0.0
    assert helmet_f1("no way", ["no"]) == 0.0
    assert token_f1("no way", ["no"]) > 0
    assert helmet_f1("red car", ["car"]) == token_f1("red car", ["car"])


@given(st.text(alphabet="ab the.", max_size=20), st.text(alphabet="ab the.", max_size=20))
def test_f1_is_symmetric_and_between_exact_match_and_one(answer: str, wanted: str) -> None:
    f1 = token_f1(answer, [wanted])
    assert exact_match(answer, [wanted]) <= f1 <= 1.0
    assert f1 == token_f1(wanted, [answer])
