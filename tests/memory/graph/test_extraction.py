"""Names, facts and relations that replies hold: normalised, each once, and their unusable parts counted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.errors import BadReply
from tomewise.fallbacks import REPLY_SKIPPED, count_fallbacks
from tomewise.language.roles import PassageIn, RelationsOut, TriplesOut
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.extraction import LONGEST_NAME, Extraction, clean_relations, clean_triples, glean_relations
from tomewise.testing import ScriptedModel


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
def test_names_are_equal_when_their_letters_and_digits_are_in_every_script(name: str, same: str) -> None:
    assert normalise_name(name) == normalise_name(same) == same


@given(st.text(max_size=60), st.text(alphabet=st.characters(max_codepoint=127)))
def test_normalising_twice_changes_nothing_and_ascii_names_are_as_in_hipporag(name: str, ascii_name: str) -> None:
    once = normalise_name(name)
    assert normalise_name(once) == once == " ".join(once.split())
    assert normalise_name(name.swapcase().swapcase()) or not any(sign.isalnum() for sign in name)
    theirs = re.sub("[^A-Za-z0-9 ]", " ", ascii_name.lower()).strip()
    assert normalise_name(ascii_name) == " ".join(theirs.split())


# ---------------------------------------------------------------- triples


def read_triples(entities: list[object], triples: list[object]) -> Extraction:
    return clean_triples(TriplesOut(entities=entities, triples=triples))


def test_unusable_parts_are_left_out_or_repaired_and_counted() -> None:
    found = read_triples(
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
    facts = ["ada born in 1911", "ada met tom", "ada met ida", "tom owns boat", "ada skerry"]
    assert [fact.text for fact in found.facts] == facts
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
    found = read_triples(entities, triples)
    assert all(name == name.strip() and 0 < len(name) <= LONGEST_NAME for name in found.entities)
    assert {end for fact in found.facts for end in (fact.head, fact.tail)} <= set(found.entities)


# ---------------------------------------------------------------- relations


def test_dirty_relations_are_cleaned_and_counted() -> None:
    raw = RelationsOut.model_validate(
        {
            "entities": [
                {"name": ""},
                {"name": "x" * 2000},
                {"name": "Ada", "description": "a\0\nb"},
                {"name": "ADA", "type": "Person", "description": "c" * 5000},
            ],
            "relationships": [
                {"source": "Ada", "target": ""},
                {"source": "Ada", "target": "ada"},
                {"source": "Zoe", "target": "Ada", "keywords": [" b ", "", "a"]},
            ],
        }
    )
    found = clean_relations(raw)
    assert found.entities == ("ada", "zoe")
    (mention,) = found.mentions
    assert (mention.name, mention.type, mention.description) == ("Ada", "person", "a b\n" + "c" * 2000)
    assert [fact.text for fact in found.facts] == ["a, b: ada, zoe"]
    assert found.faults == {
        "empty names": 2,
        "names over 200 characters": 1,
        "relationships of a thing with itself": 1,
    }


async def glean(first, glean, gleanings):
    model = ScriptedModel({"extract_relations": lambda _: first, "glean_relations": glean})
    (read,) = await glean_relations(model, [PassageIn(text="Ada, Tom and Una met.")], 1, gleanings=gleanings)
    return read


async def test_gleanings_read_what_was_missed_until_nothing_is_new():
    asked = []

    def find_una(given):
        asked.append((given.entities, given.pairs))
        found = {"entities": [{"name": "Una"}], "relationships": [{"source": "Ada", "target": "Una"}]}
        return found if len(asked) == 1 else {}

    first = {"entities": [{"name": "Ada"}, {"name": "Tom"}], "relationships": [{"source": "Ada", "target": "Tom"}]}
    read = await glean(first, find_una, gleanings=3)
    assert asked == [(["Ada", "Tom"], ["Ada, Tom"]), (["Ada", "Tom", "Una"], ["Ada, Tom", "Ada, Una"])]
    assert {(fact.head, fact.tail) for fact in read.facts} == {("ada", "tom"), ("ada", "una")}


async def test_a_gleaning_that_fails_leaves_what_was_read():
    with count_fallbacks() as counts:
        read = await glean({"entities": [{"name": "Ada"}]}, [BadReply("nothing")], gleanings=2)
    assert read.entities == ("ada",)
    assert counts == {REPLY_SKIPPED: 1}
