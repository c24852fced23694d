"""Names are equal when their letters and digits are equal, in every script."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.memory.graph.entity_names import count_alphanumerics, normalise_name


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("  The  O'Brien-Smith, Co. ", "the o brien smith co"),
        ("Straße", "strasse"),
        ("ＡＢＣ１２", "abc12"),
        ("Москва́ (СССР)", "москва́ ссср"),
        ("東京・タワー", "東京 タワー"),
        ("हिन्दी", "हिन्दी"),
        ("co\u00adoperate", "cooperate"),
        ("snake_case", "snake case"),
        ("?!… — ", ""),
        ("", ""),
        ("\ud800x", "x"),
    ],
)
def test_names_are_normalised(name: str, same: str) -> None:
    assert normalise_name(name) == normalise_name(same) == same


@given(st.text(max_size=60))
def test_normalising_twice_changes_nothing(name: str) -> None:
    once = normalise_name(name)
    assert normalise_name(once) == once
    assert normalise_name(name.swapcase().swapcase()) or not any(sign.isalnum() for sign in name)
    assert once == " ".join(once.split())


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_names_are_normalised_as_in_hipporag(name: str) -> None:
    theirs = re.sub("[^A-Za-z0-9 ]", " ", name.lower()).strip()
    assert normalise_name(name) == " ".join(theirs.split())


def test_letters_and_digits_are_counted() -> None:
    assert [count_alphanumerics(name) for name in ("", "a 1", "東京 塔")] == [0, 2, 3]
