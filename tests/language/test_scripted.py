import asyncio

import pytest

from tomewise.errors import BadReply, ModelError, Refused
from tomewise.language import roles
from tomewise.run import meter
from tomewise.testing.scripted import Call, ScriptedModel
from tomewise.types import LanguageModel

GIVEN = roles.ProbeIn(question="Who hid the letter?")


async def test_a_list_is_used_up_in_order_and_recorded() -> None:
    model = ScriptedModel({"probe": [{"probes": ["a"]}, roles.ProbeOut(probes=["b"])]})
    assert isinstance(model, LanguageModel)
    assert (await model.ask(roles.PROBE, GIVEN)).probes == ["a"]
    assert (await model.ask(roles.PROBE, GIVEN)).probes == ["b"]
    assert model.calls == [Call("probe", GIVEN)] * 2
    with pytest.raises(ModelError, match="'probe'"):
        await model.ask(roles.PROBE, GIVEN)


async def test_a_role_without_a_script_is_named() -> None:
    with pytest.raises(ModelError, match="'fuse'"):
        await ScriptedModel({}).ask(roles.FUSE, roles.FuseIn(question="q", cues=[]))


async def test_a_function_sees_what_is_given() -> None:
    model = ScriptedModel({"probe": lambda given: {"probes": [given.question.upper()]}})
    assert (await model.ask(roles.PROBE, GIVEN)).probes == ["WHO HID THE LETTER?"]


async def test_an_exception_is_raised() -> None:
    with pytest.raises(Refused, match="no"):
        await ScriptedModel({"probe": [Refused("no")]}).ask(roles.PROBE, GIVEN)
    with pytest.raises(Refused, match="no"):
        await ScriptedModel({"probe": lambda given: Refused("no")}).ask(roles.PROBE, GIVEN)


async def test_a_reply_of_the_wrong_shape_is_a_bad_reply() -> None:
    with pytest.raises(BadReply, match="GistOut"):
        await ScriptedModel({"gist": [{"memory": ""}]}).ask(roles.GIST, roles.PassageIn(text="x"))


async def test_calls_side_by_side_have_depth_one_and_chains_count() -> None:
    model = ScriptedModel({"probe": lambda given: {"probes": []}})
    with meter() as m:
        await asyncio.gather(*(model.ask(roles.PROBE, GIVEN) for _ in range(5)))
        await model.ask(roles.PROBE, GIVEN)
    usage = m.usage()
    assert (usage.total.calls, usage.depth, usage.total.cost) == (6, 2, 0.0)
    assert usage.total.input_tokens > 0


async def test_the_limit_bounds_what_runs_together_and_queueing_adds_no_depth() -> None:
    model = ScriptedModel({"probe": lambda given: {"probes": []}}, latency=0.02, limit=2)
    with meter() as m:
        await asyncio.gather(*(model.ask(roles.PROBE, GIVEN) for _ in range(6)))
    usage = m.usage()
    assert usage.depth == 1
    assert usage.model_seconds >= 0.058
