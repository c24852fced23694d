from __future__ import annotations

from collections.abc import Sequence

import pytest

from tomewise.recall.comparing import ComparedRecall, split_comparison
from tomewise.types import Evidence, Scope


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "Who was born first, Ada Marsh or Tom Hale?",
            {"Ada Marsh": "Who was born first, Ada Marsh?", "Tom Hale": "Who was born first, Tom Hale?"},
        ),
        (
            "Which novel is older, Pride and Prejudice or Storm over Skerry?",
            {
                "Pride and Prejudice": "Which novel is older, Pride and Prejudice?",
                "Storm over Skerry": "Which novel is older, Storm over Skerry?",
            },
        ),
        (
            " Who\twas born first,\n" + " " * 5000 + "Ada Marsh  or Tom Hale?",
            {"Ada Marsh": "Who was born first, Ada Marsh?", "Tom Hale": "Who was born first, Tom Hale?"},
        ),
        (
            "what is larger, the lighthouse or the harbour?",
            {"the lighthouse": "what is larger, the lighthouse?", "the harbour": "what is larger, the harbour?"},
        ),
        (
            "Who sold it, Tom Hale, Ada Marsh or Sam Poe?",
            {name: f"Who sold it, {name}?" for name in ("Tom Hale", "Ada Marsh", "Sam Poe")},
        ),
        (
            "Is Ben Nevis higher than Snowdon?",
            {"Ben Nevis": "Is Ben Nevis higher?", "Snowdon": "Is Snowdon higher?"},
        ),
        (
            "Between Ada Marsh and Tom Hale, who is older?",
            {"Ada Marsh": "Between Ada Marsh, who is older?", "Tom Hale": "Between Tom Hale, who is older?"},
        ),
        (
            "What is the difference between Skerry and Ghent?",
            {"Skerry": "What is the difference between Skerry?", "Ghent": "What is the difference between Ghent?"},
        ),
        (
            'Was "Heron" sold before "Gull"?',
            {'"Heron"': 'Was "Heron" sold?', '"Gull"': 'Was "Gull" sold?'},
        ),
        (
            "Were Ada Marsh and Tom Hale born in the same year?",
            {
                "Ada Marsh": "Were Ada Marsh born in the same year?",
                "Tom Hale": "Were Tom Hale born in the same year?",
            },
        ),
        (
            "Did the author of Emma and the author of Dracula share a birthplace?",
            {
                "the author of Emma": "Did the author of Emma share a birthplace?",
                "the author of Dracula": "Did the author of Dracula share a birthplace?",
            },
        ),
    ],
)
def test_each_thing_has_the_question_for_itself(question: str, parts: dict[str, str]) -> None:
    assert {part.thing: part.text for part in split_comparison(question)} == parts


@pytest.mark.parametrize(
    "question",
    [
        "Who sold the Heron to Ida Poe?",
        "What is the capital of the country where Trinidad and Tobago plays?",
        "Who was president of France before Jacques Chirac?",
        "What did the keeper and the doctor burn?",
        "Who rowed more than twenty miles?",
        "In the end, did she stay or leave?",
        "Who won the war between France and Germany?",
        "If it rains, should the keeper row or walk?",
        "Who was born first, Ada Marsh or Tom Hale" + " of Skerry" * 200,
        "",
    ],
)
def test_a_question_that_compares_nothing_stays_whole(question: str) -> None:
    assert split_comparison(question) == []


class Lists:
    """A retriever that gives a fixed list for each query."""

    def __init__(self, **lists: str) -> None:
        self.lists = lists
        self.asked: list[str] = []

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        self.asked.append(query)
        nodes: Sequence[str] = self.lists[next(name for name in ("whole", *self.lists) if name in self._tell(query))]
        return [Evidence(node=node, layer="passages", text=node, score=9.0, sources=(node,)) for node in nodes][:limit]

    def _tell(self, query: str) -> set[str]:
        named = {name for name in ("Ada", "Tom") if name in query}
        return {"whole"} if len(named) != 1 else named


async def test_each_thing_gives_passages_in_turn_and_the_whole_question_comes_last() -> None:
    inner = Lists(Ada="ax", Tom="xty", whole="wa")
    found = await ComparedRecall(inner).retrieve("Who was born first, Ada or Tom?", 5)
    assert "".join(piece.node for piece in found) == "axwty"
    assert [piece.score for piece in found] == [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]
    assert [piece.rewrite.name if piece.rewrite else "" for piece in found] == ["Ada", "Tom", "", "Tom", "Tom"]
    assert len(inner.asked) == 3
    inner.asked.clear()
    assert [piece.score for piece in await ComparedRecall(inner).retrieve("Who came?", 5)] == [9.0, 9.0]
    assert inner.asked == ["Who came?"]
