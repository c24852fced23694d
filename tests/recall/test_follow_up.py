from __future__ import annotations

import pytest

from tomewise.calls import NO_CALLS
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply
from tomewise.fallbacks import NOT_FOLLOWED_UP, count_fallbacks
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.roles import FOLLOW_UP, FollowUpIn, Shown
from tomewise.recall.follow_up import FollowedUp
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Evidence, Rewrite, Scope

QUESTION = "Which currency does the country that Signe Holm is from have?"
SECOND = "Which currency does Denmark have?"


class Twice:
    calls = NO_CALLS

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        self.asked.append(query)
        nodes = "abc" if query == QUESTION else "dbe"
        return [Evidence(node=node, layer="passages", text=node, score=1.0, sources=(node,)) for node in nodes][:limit]


def reply(bridge: str, question: str) -> ScriptedModel:
    return ScriptedModel({"follow_up": [{"bridge": bridge, "question": question}]})


async def test_both_searches_give_passages_in_turn() -> None:
    retriever, model = Twice(), reply("Denmark", SECOND)
    found = await FollowedUp(retriever, model, shown=2).retrieve(QUESTION, 4)
    assert "".join(piece.node for piece in found) == "adbc"
    rewrite = Rewrite(text=SECOND, name="Denmark")
    assert [piece.rewrite for piece in found] == [None, rewrite, None, None]
    assert retriever.asked == [QUESTION, SECOND]
    assert [shown.text for shown in model.calls[0].given.evidence] == ["a", "b"]
    assert FollowedUp(retriever, model).calls.most == 1


@pytest.mark.parametrize("second", ["", QUESTION])
async def test_without_a_second_question_the_first_search_stands_alone(second: str) -> None:
    retriever = Twice()
    found = await FollowedUp(retriever, reply("", second)).retrieve(QUESTION, 2)
    assert "".join(piece.node for piece in found) == "ab"
    assert retriever.asked == [QUESTION]


async def test_a_reply_that_cannot_be_used_is_counted() -> None:
    with count_fallbacks() as counts:
        found = await FollowedUp(Twice(), ScriptedModel({"follow_up": [BadReply("no JSON")]})).retrieve(QUESTION, 3)
    assert (len(found), dict(counts)) == (3, {NOT_FOLLOWED_UP: 1})


async def test_the_extractive_model_puts_a_name_in_place_of_what_is_settled() -> None:
    texts = ["Signe Holm is a rower who is from Denmark.", "Boats are built in Skagen."]
    shown = [Shown(label=f"E{place}", text=text) for place, text in enumerate(texts, start=1)]
    model = ExtractiveModel(HashEmbedder(64))
    found = await model.ask(FOLLOW_UP, FollowUpIn(question=QUESTION, evidence=shown))
    assert found.bridge == "Denmark"
    assert found.question == "Which currency does the country that is from have Denmark"
    nothing = await model.ask(FOLLOW_UP, FollowUpIn(question=QUESTION, evidence=shown[1:]))
    assert (nothing.bridge, nothing.question) == ("", "")
