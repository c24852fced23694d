import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tomewise.errors import BadReply, BudgetExceeded, KeepsFailing, ModelError, ModelUnavailable, Refused, StoreError
from tomewise.evaluate.replay import ReplayedModel
from tomewise.language import roles
from tomewise.language.budget import Budgeted
from tomewise.language.cached import Cached
from tomewise.language.failures import StopAtFailures
from tomewise.language.prompts import Prompts, render_once
from tomewise.language.usage import report_call
from tomewise.meter import ModelCall
from tomewise.run import meter, open_run
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import LanguageModel

GIVEN = roles.FuseIn(question="Who hid the letter?", cues=["Mara held it last."])
OTHER = roles.FuseIn(question="Who hid the letter?", cues=["Tom held it last."])
REPLY = {"cue": "Mara hid it."}


class Calls:
    """A cache in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def get(self, key: str, *, since: str = "") -> str | None:
        return self.kept.get(key)

    async def keep(self, key: str, *, role: str, model: str, reply: str, since: str = "") -> None:
        await asyncio.sleep(0)
        self.kept[key] = reply

    async def drop(self, key: str) -> None:
        self.kept.pop(key, None)


class FullCalls(Calls):
    """A cache with no room."""

    async def keep(self, key: str, *, role: str, model: str, reply: str, since: str = "") -> None:
        raise StoreError("the disk is full")

    async def drop(self, key: str) -> None:
        raise StoreError("the disk is full")


def model(**options: Any) -> ScriptedModel:
    return ScriptedModel({"fuse": lambda given: REPLY}, **options)


def test_every_wrapper_is_a_model_like_the_one_inside() -> None:
    inside = model(name="m", window=99)
    for wrapper in (Cached(inside, Prompts(), Calls()), Budgeted(inside), StopAtFailures(inside, 20)):
        assert isinstance(wrapper, LanguageModel)
        assert (wrapper.name, wrapper.window) == ("m", 99)
        assert wrapper.count_input_tokens(roles.FUSE, GIVEN) == inside.count_input_tokens(roles.FUSE, GIVEN)


async def test_closing_a_wrapper_closes_the_model() -> None:
    class Closing(ScriptedModel):
        closed = 0

        async def close(self) -> None:
            self.closed += 1

    inside = Closing({})
    await Cached(Budgeted(StopAtFailures(inside, 20)), Prompts(), Calls()).close()
    await Budgeted(model()).close()
    assert inside.closed == 1


async def test_a_wrapper_measures_replies_as_the_model_does_or_not_at_all() -> None:
    class Free(ScriptedModel):
        async def measure_reply(self, role: Any, given: Any) -> int:
            return 7

    for inside, tokens in ((Free({}), 7), (model(), None)):
        wrapped = Cached(Budgeted(StopAtFailures(inside, 20)), Prompts(), Calls())
        assert await wrapped.measure_reply(roles.FUSE, GIVEN) == tokens


async def test_a_model_that_is_replayed_stays_open() -> None:
    closed = []

    class Closing(ScriptedModel):
        async def close(self) -> None:
            closed.append(self)

    await ReplayedModel(Closing({})).close()
    assert closed == [], "the caller that made the model closes it"


# ---------------------------------------------------------------- Cached


async def test_an_equal_ask_is_one_call_and_costs_nothing() -> None:
    inside, calls = model(), Calls()
    first = await Cached(inside, Prompts(), calls).ask(roles.FUSE, GIVEN)
    with meter() as m:
        again = await Cached(inside, Prompts(), calls).ask(roles.FUSE, GIVEN)
    assert first == again == roles.CueOut(cue="Mara hid it.")
    assert (len(inside.calls), m.usage().total.calls) == (1, 0)


async def test_the_key_covers_role_prompt_model_and_input(tmp_path: Any) -> None:
    (tmp_path / "fuse.md").write_text("Mine: {{ question }}", encoding="utf-8")
    encode = roles.EncodeIn(question="q", probe="p", layer="tree", evidence=[])
    keys = [
        Cached(model(), Prompts(), Calls()).make_key(roles.FUSE, GIVEN),
        Cached(model(), Prompts(), Calls()).make_key(roles.FUSE, OTHER),
        Cached(model(), Prompts(), Calls()).make_key(roles.ENCODE, encode),
        Cached(model(name="other"), Prompts(), Calls()).make_key(roles.FUSE, GIVEN),
        Cached(model(), Prompts(tmp_path), Calls()).make_key(roles.FUSE, GIVEN),
        Cached(model(), Prompts(tmp_path), Calls()).make_key(roles.FUSE, OTHER),
    ]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 64 for key in keys)
    assert keys[0] == Cached(model(), Prompts(), Calls()).make_key(roles.FUSE, GIVEN.model_copy())


async def test_a_prompt_is_rendered_once_for_the_key_and_for_the_model() -> None:
    class Rendering(ScriptedModel):
        async def ask(self, role: Any, given: Any) -> Any:
            seen.append(prompts.render(role, given))
            return await super().ask(role, given)

    class Counted(Prompts):
        rendered = 0

        def _render(self, role: Any, given: Any) -> str:
            self.rendered += 1
            return super()._render(role, given)

    prompts, seen = Counted(), list[str]()
    cached = Cached(Budgeted(Rendering({"fuse": lambda given: REPLY})), prompts, Calls())
    for each in (GIVEN, OTHER, GIVEN):
        await cached.ask(roles.FUSE, each)
    assert prompts.rendered == 3
    assert seen == [Prompts().render(roles.FUSE, each) for each in (GIVEN, OTHER)]
    changed = OTHER.model_copy()
    with render_once():
        first = prompts.render(roles.FUSE, changed)
        assert prompts.render(roles.FUSE, GIVEN) != first
    changed.cues = ["Nobody held it."]
    assert prompts.render(roles.FUSE, changed) != first  # nothing is remembered after an ask


def test_the_key_covers_the_schema_of_the_reply() -> None:
    class Longer(roles.CueOut):
        why: str = ""

    cached = Cached(model(), Prompts(), Calls())
    assert cached.make_key(roles.FUSE, GIVEN) != cached.make_key(replace(roles.FUSE, output=Longer), GIVEN)


async def test_failures_are_not_kept() -> None:
    inside, calls = ScriptedModel({"fuse": [Refused("no"), {"cue": 1}, REPLY]}), Calls()
    cached = Cached(inside, Prompts(), calls)
    for error in (Refused, BadReply):
        with pytest.raises(error):
            await cached.ask(roles.FUSE, GIVEN)
        assert calls.kept == {}
    assert (await cached.ask(roles.FUSE, GIVEN)).cue == "Mara hid it."


@pytest.mark.parametrize("stale", ['{"clue": "x"}', "not JSON", '{"cue": 3}'])
async def test_what_no_longer_fits_is_asked_again(stale: str) -> None:
    inside, calls = model(), Calls()
    cached = Cached(inside, Prompts(), calls)
    calls.kept[cached.make_key(roles.FUSE, GIVEN)] = stale
    assert (await cached.ask(roles.FUSE, GIVEN)).cue == "Mara hid it."
    assert calls.kept == {cached.make_key(roles.FUSE, GIVEN): '{"cue":"Mara hid it."}'}


async def test_equal_asks_side_by_side_are_one_call() -> None:
    inside = model(latency=0.01)
    cached = Cached(inside, Prompts(), Calls())
    asks = [cached.ask(roles.FUSE, given) for given in (GIVEN, GIVEN, OTHER, GIVEN)]
    outputs = await asyncio.gather(*asks)
    assert [call.given for call in inside.calls] == [GIVEN, OTHER]
    assert len({id(output) for output in outputs}) == 4


@pytest.mark.parametrize("error", [Refused, ModelUnavailable])
async def test_a_failure_of_the_model_reaches_all_who_wait_for_it(error: type[Exception]) -> None:
    inside = ScriptedModel({"fuse": [error("no")]}, latency=0.01)
    cached = Cached(inside, Prompts(), Calls())
    outcomes = await asyncio.gather(*(cached.ask(roles.FUSE, GIVEN) for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [error] * 3
    assert len(inside.calls) == 1


@pytest.mark.parametrize("error", [BudgetExceeded, KeepsFailing, ValueError])
async def test_what_ends_one_run_ends_no_equal_ask_of_another(error: type[Exception]) -> None:
    inside = ScriptedModel({"fuse": [error("mine alone"), REPLY]}, latency=0.01)
    cached = Cached(inside, Prompts(), Calls())
    first, *later = await asyncio.gather(*(cached.ask(roles.FUSE, GIVEN) for _ in range(3)), return_exceptions=True)
    assert type(first) is error
    assert [output.cue for output in later] == ["Mara hid it."] * 2
    assert len(inside.calls) == 2


async def test_a_reply_that_cannot_be_kept_is_used_with_one_warning_for_all_of_a_run() -> None:
    cached = Cached(model(), Prompts(), FullCalls())
    with pytest.warns(UserWarning, match="not kept") as warned, open_run():
        cues = [(await cached.ask(roles.FUSE, given)).cue for given in (GIVEN, OTHER)]
    assert cues == ["Mara hid it."] * 2
    assert len(warned) == 1


async def test_a_run_that_must_keep_ends_at_a_reply_that_cannot_be_kept() -> None:
    cached = Cached(model(), Prompts(), FullCalls())
    with pytest.raises(StoreError, match="full"), open_run(must_keep=True):
        await cached.ask(roles.FUSE, GIVEN)


async def test_a_failure_is_raised_as_it_is_where_the_earlier_reply_cannot_be_dropped() -> None:
    cached = Cached(ScriptedModel({"fuse": [Refused("no")]}), Prompts(), FullCalls())
    with pytest.warns(UserWarning, match="full"), pytest.raises(Refused), open_run(fresh_mark="new"):
        await cached.ask(roles.FUSE, GIVEN)


async def test_if_the_asker_gives_up_the_next_one_asks() -> None:
    inside = model(latency=0.5)
    cached = Cached(inside, Prompts(), Calls())
    first = asyncio.create_task(cached.ask(roles.FUSE, GIVEN))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(cached.ask(roles.FUSE, GIVEN))
    third = asyncio.create_task(cached.ask(roles.FUSE, GIVEN))
    await asyncio.sleep(0.01)
    first.cancel()
    assert (await second).cue == (await third).cue == "Mara hid it."
    assert len(inside.calls) == 2
    assert first.cancelled()


# ---------------------------------------------------------------- Budgeted


async def test_calls_are_limited_exactly_also_side_by_side() -> None:
    inside = model(latency=0.01)
    budgeted = Budgeted(inside, calls=3)
    outcomes = await asyncio.gather(*(budgeted.ask(roles.FUSE, GIVEN) for _ in range(5)), return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == ["CueOut"] * 3 + ["BudgetExceeded"] * 2
    assert (len(inside.calls), budgeted.spent.calls) == (3, 3)
    with pytest.raises(BudgetExceeded, match="limit of 3 calls of scripted"):
        await budgeted.ask(roles.FUSE, GIVEN)


async def test_replies_from_a_cache_use_no_budget() -> None:
    calls = Calls()
    cached = Cached(Budgeted(model(), calls=1), Prompts(), calls)
    for _ in range(3):
        assert (await cached.ask(roles.FUSE, GIVEN)).cue == "Mara hid it."
    over = Budgeted(Cached(model(), Prompts(), calls), calls=1)
    for _ in range(3):
        await over.ask(roles.FUSE, GIVEN)
    assert over.spent.calls == 0


async def test_a_call_that_fails_counts_as_one_that_was_sent() -> None:
    budgeted = Budgeted(ScriptedModel({"fuse": [ModelError("gone"), REPLY]}), calls=1)
    with meter() as seen, pytest.raises(ModelError, match="gone"):
        await budgeted.ask(roles.FUSE, GIVEN)
    assert budgeted.spent.calls == seen.total.calls == 1
    with pytest.raises(BudgetExceeded, match="1 calls"):
        await budgeted.ask(roles.FUSE, GIVEN)


async def test_tokens_are_limited() -> None:
    inside = model()
    prompt = inside.count_input_tokens(roles.FUSE, GIVEN)
    with pytest.raises(BudgetExceeded, match=rf"0 of {prompt - 1} tokens .* needs {prompt}"):
        await Budgeted(inside, tokens=prompt - 1).ask(roles.FUSE, GIVEN)
    budgeted = Budgeted(inside, tokens=prompt)
    await budgeted.ask(roles.FUSE, GIVEN)
    with pytest.raises(BudgetExceeded, match=f"of {prompt} tokens"):
        await budgeted.ask(roles.FUSE, GIVEN)
    assert len(inside.calls) == 1


class Priced(ScriptedModel):
    """Costs what the test sets; None if the price is unknown."""

    cost: float | None = 0.5

    async def ask(self, role: Any, given: Any) -> Any:
        report_call(ModelCall(role.name, "m", 0, 1, input_tokens=1, output_tokens=1, cost=self.cost))
        return roles.CueOut(cue="x")


async def test_money_is_limited() -> None:
    budgeted = Budgeted(Priced({}), money=1.0)
    await budgeted.ask(roles.FUSE, GIVEN)
    await budgeted.ask(roles.FUSE, GIVEN)
    with pytest.raises(BudgetExceeded, match=r"1\.0000 of 1 dollars"):
        await budgeted.ask(roles.FUSE, GIVEN)


async def test_a_limit_of_nothing_lets_free_calls_go() -> None:
    announcing, silent = Budgeted(model(), money=0.0), Priced({})
    silent.cost = 0.0
    for budgeted in (announcing, Budgeted(silent, money=0.0)):
        for _ in range(2):
            await budgeted.ask(roles.FUSE, GIVEN)
        assert budgeted.spent.calls == 2


async def test_money_cannot_be_limited_without_a_price() -> None:
    inside = Priced({})
    inside.cost = None
    budgeted = Budgeted(inside, money=1.0)
    await budgeted.ask(roles.FUSE, GIVEN)
    with pytest.raises(BudgetExceeded, match="price of scripted is unknown"):
        await budgeted.ask(roles.FUSE, GIVEN)
