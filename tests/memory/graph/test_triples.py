"""Replies become names and facts; their unusable parts are counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tomewise.language.roles import TriplesOut
from tomewise.memory.graph.extraction import LONGEST_NAME, Extraction
from tomewise.memory.graph.triples import clean_triples


def read(entities: list[object], triples: list[object]) -> Extraction:
    return clean_triples(TriplesOut(entities=entities, triples=triples))


def test_names_and_facts_are_normalised_and_unique() -> None:
    triples: list[object] = [["Ada Marsh", "kept", "the Light!"], ["ada marsh", "Kept", "The light"]]
    found = read(["Ada Marsh", "ADA  MARSH", "Skerry"], triples)
    assert found.entities == ("ada marsh", "skerry", "the light")
    assert [fact.text for fact in found.facts] == ["ada marsh kept the light"]
    assert found.facts[0].data == {"head": "ada marsh", "relation": "kept", "tail": "the light"}
    assert found.faults == {}


def test_unusable_parts_are_left_out_or_repaired_and_counted() -> None:
    found = read(
        ["", "x" * 2000, ["Ada", "Tom"], {"name": "Ida", "type": "person"}, 1911, None, "…", {"type": "person"}],
        [
            ["Ada", "kept"],
            ["Ada", "sold", "boat", "to", "Tom"],
            ["", "kept", "light"],
            ["Ada", "born in", 1911],
            ["Ada", "met", ["Tom", "Ida"]],
            {"subject": "Tom", "relation": "owns", "object": "boat"},
            "Ada | kept | light",
            ["Ada", "", "Skerry"],
            [["Ada"], {"text": "likes"}, None],
        ],
    )
    assert found.entities == ("ada", "tom", "ida", "1911", "boat", "skerry")
    assert [fact.text for fact in found.facts] == [
        "ada born in 1911",
        "ada met tom",
        "ada met ida",
        "tom owns boat",
        "ada skerry",
    ]
    assert found.faults == {
        "empty names": 3,
        f"names over {LONGEST_NAME} characters": 1,
        "lists in place of strings": 3,
        "objects in place of strings": 3,
        "numbers in place of strings": 2,
        "values that are no text": 2,
        "triples not of three parts": 2,
        "objects in place of triples": 1,
        "triples that are no list": 1,
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=6), st.lists(JSON, max_size=6))
def test_any_json_is_cleaned(entities: list[object], triples: list[object]) -> None:
    found = read(entities, triples)
    assert all(name == name.strip() and 0 < len(name) <= LONGEST_NAME for name in found.entities)
    assert {end for fact in found.facts for end in (fact.head, fact.tail)} <= set(found.entities)
