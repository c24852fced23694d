import pytest

from tomewise.errors import BadReply, ModelError, Refused
from tomewise.language import roles
from tomewise.testing.scripted import Call, ScriptedModel
from tomewise.types import LanguageModel

GIVEN = roles.ProbeIn(question="Who hid the letter?")


async def probe(model):
    return (await model.ask(roles.PROBE, GIVEN)).probes


async def test_a_list_is_used_up_in_order_and_recorded_and_a_function_sees_what_is_given():
    model = ScriptedModel({"probe": [{"probes": ["a"]}, roles.ProbeOut(probes=["b"])]})
    assert isinstance(model, LanguageModel)
    assert [await probe(model), await probe(model)] == [["a"], ["b"]]
    assert model.calls == [Call("probe", GIVEN)] * 2
    assert await probe(ScriptedModel({"probe": lambda given: {"probes": [given.question]}})) == [GIVEN.question]


@pytest.mark.parametrize(
    ("script", "error", "says"),
    [
        ({"probe": []}, ModelError, "'probe'"),
        ({}, ModelError, "'probe'"),
        ({"probe": [Refused("no")]}, Refused, "no"),
        ({"probe": lambda given: Refused("no")}, Refused, "no"),
        ({"probe": [{"probes": 3}]}, BadReply, "ProbeOut"),
    ],
    ids=["used up", "no script", "exception", "exception of a function", "wrong shape"],
)
async def test_what_is_no_reply_is_an_error(script, error, says):
    with pytest.raises(error, match=says):
        await probe(ScriptedModel(script))
