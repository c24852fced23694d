import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.language.labels import find_number, read_labels


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        (1, ["1"]),
        ("[1]", ["1"]),
        ("e1.", ["E1"]),
        ("M1, M3", ["M1", "M3"]),
        (["[M2]"], ["M2"]),
        (["E6, E7", "E8", "e8"], ["E6", "E7", "E8"]),
        ("E6, and E7", ["E6", "E7"]),
        ("E3-E5", ["E3", "E4", "E5"]),
        ("E3 to 5", ["E3", "E4", "E5"]),
        ("memory point M1", ["M1"]),
        ("M1: 12 men, of Barsoom", ["M1", "of Barsoom"]),
        ("M1 (12 men)", ["M1"]),
        ("['E1', 'E2']", ["E1", "E2"]),
        (None, []),
        ("3 of the passages", ["3 of the passages"]),
        ("E1.5", ["E1.5"]),
        # The end of a word is not the letter of a label.
        ("E1 and 2", ["E1", "2"]),
        ("evidence 2 of 3", ["2", "3"]),
    ],
)
def test_labels_are_read_as_models_write_them(written, labels):
    assert read_labels(written) == labels


@given(st.text(alphabet="EM12 ,.-[]()and:", max_size=200) | st.integers() | st.floats())
def test_what_was_read_is_read_again_as_the_same(written):
    labels = read_labels(written)
    assert read_labels(labels) == labels


def test_a_number_is_of_its_letter_or_of_none():
    assert [find_number(label, "E") for label in ("E3", "3", "M3", "all", "²")] == [3, 3, None, None, None]


def test_a_long_list_that_ends_in_words_is_read_once():
    """It would never end if marks or words between labels could be read in two ways."""
    assert read_labels(" ".join(map(str, range(5_000))) + " abcd") == [" ".join(map(str, range(5_000))) + " abcd"]
    assert read_labels("E 7 " * 2_000 + "abcd")[0].endswith("abcd")
