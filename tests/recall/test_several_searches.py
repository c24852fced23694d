"""Searches that are made of several: one for each thing that is compared, a second question, several layers."""

from __future__ import annotations

import pytest
from tests.recall.shelves import Shelves, join_nodes, make_pieces

from tomewise.errors import ModelUnavailable
from tomewise.recall.several_searches import ComparedRecall, LayeredRecall, split_comparison

# ---------------------------------------------------------------- comparisons


@pytest.mark.parametrize(
    ("question", "of_each", "things"),
    [
        ("Who was born first, Ada Marsh or Tom Hale?", "Who was born first, {}?", ["Ada Marsh", "Tom Hale"]),
        (
            " Who\twas born first,\n" + " " * 5000 + "Ada Marsh  or Tom Hale?",
            "Who was born first, {}?",
            ["Ada Marsh", "Tom Hale"],
        ),
        ("Who sold it, Tom Hale, Ada Marsh or Sam Poe?", "Who sold it, {}?", ["Tom Hale", "Ada Marsh", "Sam Poe"]),
        ("Is Ben Nevis higher than Snowdon?", "Is {} higher?", ["Ben Nevis", "Snowdon"]),
        ("Between Ada Marsh and Tom Hale, who is older?", "Between {}, who is older?", ["Ada Marsh", "Tom Hale"]),
        (
            "What is the difference between Skerry and Ghent?",
            "What is the difference between {}?",
            ["Skerry", "Ghent"],
        ),
        ('Was "Heron" sold before "Gull"?', "Was {} sold?", ['"Heron"', '"Gull"']),
        (
            "Did the author of Emma and the author of Dracula share a birthplace?",
            "Did {} share a birthplace?",
            ["the author of Emma", "the author of Dracula"],
        ),
    ],
)
def test_each_thing_has_the_question_for_itself(question, of_each, things):
    parts = {part.name: part.text for part in split_comparison(question)}
    assert parts == {thing: of_each.format(thing) for thing in things}


@pytest.mark.parametrize(
    "question",
    [
        "Who sold the Heron to Ida Poe?",
        "What is the capital of the country where Trinidad and Tobago plays?",
        "What did the keeper and the doctor burn?",
        "Who rowed more than twenty miles?",
        "Who won the war between France and Germany?",
        "If it rains, should the keeper row or walk?",
        "Who was born first, Ada Marsh or Tom Hale" + " of Skerry" * 200,
        "",
    ],
)
def test_a_question_that_compares_nothing_stays_whole(question):
    assert split_comparison(question) == []


async def test_each_thing_gives_passages_in_turn_and_the_whole_question_comes_last():
    question = "Who was born first, Ada or Tom?"
    first = "Who was born first, "
    inner = Shelves(
        {f"{first}Ada?": make_pieces("ax"), f"{first}Tom?": make_pieces("xty"), question: make_pieces("wa")}
    )
    found = await ComparedRecall(inner).retrieve(question, 5)
    assert join_nodes(found) == "axwty"
    assert [piece.score for piece in found] == [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]
    assert [piece.rewrite.name if piece.rewrite else "" for piece in found] == ["Ada", "Tom", "", "Tom", "Tom"]
    assert len(inner.asked) == 3
    plain = Shelves({}, make_pieces("wa", best=9.0))
    assert await ComparedRecall(plain).retrieve("Who came?", 5) == make_pieces("wa", best=9.0)
    assert plain.asked == ["Who came?"]


# ---------------------------------------------------------------- several layers


async def test_each_query_and_layer_gets_its_own_in_order():
    queries = ["b", "a", "b"]
    found = {
        name: {query: make_pieces([f"{name}{query}0", f"{name}{query}1", "x"]) for query in "ab"} for name in "vse"
    }
    recall = LayeredRecall({name: Shelves(shelves) for name, shelves in found.items()})
    assert recall.layers == ("v", "s", "e")
    layers = await recall.retrieve(queries, 2)
    assert layers == [{name: shelves[query][:2] for name, shelves in found.items()} for query in queries]
    assert [list(each) for each in layers] == [["v", "s", "e"]] * 3
    assert await recall.retrieve([], 5) == []


async def test_a_layer_that_fails_is_an_error_and_not_an_empty_layer():
    class Away:
        async def retrieve(self, query, limit, *, within=None):
            raise ModelUnavailable("gone")

    with pytest.raises(ModelUnavailable, match="gone"):
        await LayeredRecall({"veridical": Shelves({}), "semantic": Away()}).retrieve(["a"], 1)
