"""What stands round a model: the cache of replies, budgets, the stop at failures, slots, and waits before a retry."""

import asyncio
import random
from dataclasses import replace
from unittest.mock import AsyncMock

import pytest
from tests.patience import SOON

from tomewise.errors import BadReply, BudgetExceeded, KeepsFailing, ModelUnavailable, Refused, StoreError, UsageError
from tomewise.language import roles
from tomewise.language.budget import Budget, stop_after
from tomewise.language.cached import Cache
from tomewise.language.call_slots import CallSlots
from tomewise.language.prompts import Prompts
from tomewise.language.retry import AttemptFailed, Backoff, retry
from tomewise.language.wrapped import SharedModel, Wrapped, find_abilities, find_name
from tomewise.run import ModelCall, change_run, meter, open_run, report_call
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Abilities, Limit

GIVEN = roles.FuseIn(question="Who hid the letter?", cues=["Mara held it last."])
OTHER = roles.FuseIn(question="Who hid the letter?", cues=["Tom held it last."])
REPLY = {"cue": "Mara hid it."}


class Calls:
    """A cache in memory. Without room it refuses what changes it."""

    def __init__(self, *, full=False):
        self.kept = {}
        self.full = full

    async def get(self, key, *, since=""):
        return self.kept.get(key)

    async def keep(self, key, *, role, model, reply, since=""):
        await asyncio.sleep(0)
        self.refuse_if_full()
        self.kept[key] = reply

    async def drop(self, key):
        self.refuse_if_full()
        self.kept.pop(key, None)

    def refuse_if_full(self):
        if self.full:
            raise StoreError("the disk is full")


def make_model(**options):
    return ScriptedModel({"fuse": lambda given: REPLY}, **options)


def cache(model, calls=None, prompts=None):
    return Wrapped(model, Cache(prompts or Prompts(), calls or Calls()))


def limit(model, **limits):
    """The model within a budget, and the budget."""
    budget = Budget(Limit(**limits), name=model.name)
    return Wrapped(model, budget.ask), budget


def stop(model, most):
    return Wrapped(model, stop_after(most))


def make_key(role, given, *, prompts=None, **options):
    return Cache(prompts or Prompts(), Calls()).make_key(make_model(**options), role, given)


async def fuse(model, given=GIVEN):
    return (await model.ask(roles.FUSE, given)).cue


async def fuse_often(model, times):
    """The cues or errors of equal asks at the same time."""
    return await asyncio.gather(*(fuse(model) for _ in range(times)), return_exceptions=True)


async def test_what_a_model_says_of_itself_holds_for_it_inside_wrappers_too():
    small, large = make_model(name="small"), make_model(name="large")
    small.abilities = Abilities(prepare=AsyncMock(), close=AsyncMock(), names={"gist": "brief"})
    large.abilities = Abilities(prepare=AsyncMock(), close=AsyncMock(), samples=True, measure_reply=AsyncMock())
    wrapped = cache(stop(Wrapped(small, models={"fuse": large, "answer": large}), 20))
    assert [find_abilities(wrapped, role) for role in (roles.FUSE, roles.GIST)] == [large.abilities, small.abilities]
    assert [find_name(wrapped, role) for role in (roles.FUSE, roles.GIST, roles.ENCODE)] == ["large", "brief", "small"]
    for abilities in (find_abilities(wrapped), find_abilities(SharedModel(wrapped))):
        await abilities.prepare()
        await abilities.close()
    for inside in (small, large):
        inside.abilities.prepare.assert_awaited_once_with()
        inside.abilities.close.assert_awaited_once_with()


async def test_wrappers_are_asked_from_the_first_to_the_last_and_may_reply_themselves():
    order = []

    def note(name, *, replies=False):
        async def wrapper(model, role, given):
            order.append(name)
            return roles.CueOut(cue=name) if replies else await model.ask(role, given)

        return wrapper

    assert await fuse(Wrapped(Wrapped(make_model(), note("c")), note("a"), note("b"))) == "Mara hid it."
    assert await fuse(Wrapped(make_model(), note("d"), note("e", replies=True), note("f"))) == "e"
    assert order == ["a", "b", "c", "d", "e"]


# ---------------------------------------------------------------- the cache


async def test_an_equal_ask_is_one_call_and_costs_nothing():
    inside, calls = make_model(), Calls()
    first = await cache(inside, calls).ask(roles.FUSE, GIVEN)
    with meter() as m:
        again = await cache(inside, calls).ask(roles.FUSE, GIVEN)
    assert first == again == roles.CueOut(cue="Mara hid it.")
    assert (len(inside.calls), m.measure_cost().calls) == (1, 0)


async def test_the_key_covers_role_prompt_model_input_and_schema(tmp_path):
    class Longer(roles.CueOut):
        why: str = ""

    (tmp_path / "fuse.md").write_text("Mine: {{ question }}", encoding="utf-8")
    encode = roles.EncodeIn(question="q", probe="p", layer="tree", evidence=[])
    keys = [
        make_key(roles.FUSE, GIVEN),
        make_key(roles.FUSE, OTHER),
        make_key(roles.ENCODE, encode),
        make_key(replace(roles.FUSE, output=Longer), GIVEN),
        make_key(replace(roles.FUSE, tags=("cue",)), GIVEN),
        make_key(roles.FUSE, GIVEN, name="other"),
        make_key(roles.FUSE, GIVEN, prompts=Prompts(tmp_path)),
        make_key(roles.FUSE, OTHER, prompts=Prompts(tmp_path)),
    ]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 64 for key in keys)
    assert keys[0] == make_key(roles.FUSE, GIVEN.model_copy())


async def test_failures_are_not_kept():
    calls = Calls()
    cached = cache(ScriptedModel({"fuse": [Refused("no"), {"clue": 1}, REPLY]}), calls)
    for error in (Refused, BadReply):
        with pytest.raises(error):
            await fuse(cached)
        assert calls.kept == {}
    assert await fuse(cached) == "Mara hid it."


@pytest.mark.parametrize("stale", ['{"clue": "x"}', "not JSON", '{"cue": {"was": 3}}'])
async def test_what_no_longer_fits_is_asked_again(stale):
    calls = Calls()
    cached = cache(make_model(), calls)
    key = make_key(roles.FUSE, GIVEN)
    calls.kept[key] = stale
    assert await fuse(cached) == "Mara hid it."
    assert calls.kept == {key: '{"cue":"Mara hid it."}'}


async def test_equal_asks_side_by_side_are_one_call():
    inside = make_model(latency=0.01)
    cached = cache(inside)
    outputs = await asyncio.gather(*(cached.ask(roles.FUSE, given) for given in (GIVEN, GIVEN, OTHER, GIVEN)))
    assert [call.given for call in inside.calls] == [GIVEN, OTHER]
    assert len({id(output) for output in outputs}) == 4


@pytest.mark.parametrize("error", [Refused, ModelUnavailable])
async def test_a_failure_of_the_model_reaches_all_who_wait_for_it(error):
    inside = ScriptedModel({"fuse": [error("no")]}, latency=0.01)
    assert [type(outcome) for outcome in await fuse_often(cache(inside), 3)] == [error] * 3
    assert len(inside.calls) == 1


@pytest.mark.parametrize("error", [BudgetExceeded, KeepsFailing, ValueError])
async def test_what_ends_one_run_ends_no_equal_ask_of_another(error):
    inside = ScriptedModel({"fuse": [error("mine alone"), REPLY]}, latency=0.01)
    first, *later = await fuse_often(cache(inside), 3)
    assert type(first) is error
    assert later == ["Mara hid it."] * 2
    assert len(inside.calls) == 2


async def test_a_reply_that_cannot_be_kept_is_used_with_one_warning_for_all_of_a_run():
    cached = cache(make_model(), Calls(full=True))
    with pytest.warns(UserWarning, match="not kept") as warned, open_run():
        assert [await fuse(cached, given) for given in (GIVEN, OTHER)] == ["Mara hid it."] * 2
    assert len(warned) == 1


async def test_a_run_that_must_keep_ends_at_a_reply_that_cannot_be_kept():
    with pytest.raises(StoreError, match="full"), open_run(must_keep=True):
        await fuse(cache(make_model(), Calls(full=True)))


async def test_if_the_asker_gives_up_the_next_one_asks():
    inside = make_model(latency=0.2)
    cached = cache(inside)
    first = asyncio.create_task(fuse(cached))
    await asyncio.sleep(0.01)
    later = asyncio.gather(fuse(cached), fuse(cached))
    await asyncio.sleep(0.01)
    first.cancel()
    assert await later == ["Mara hid it."] * 2
    assert len(inside.calls) == 2
    assert first.cancelled()


# ---------------------------------------------------------------- budgets


async def test_calls_are_limited_exactly_also_side_by_side():
    inside = make_model(latency=0.01)
    budgeted, budget = limit(inside, calls=3)
    outcomes = await fuse_often(budgeted, 5)
    assert [type(outcome) for outcome in outcomes] == [str] * 3 + [BudgetExceeded] * 2
    assert (len(inside.calls), budget.spent.calls) == (3, 3)
    with pytest.raises(BudgetExceeded, match="limit of 3 calls of scripted"):
        await fuse(budgeted)


async def test_replies_from_a_cache_use_no_budget():
    calls = Calls()
    (inside, _), (outside, budget) = limit(make_model(), calls=1), limit(cache(make_model(), calls), calls=1)
    for model in (cache(inside, calls), outside):
        assert [await fuse(model) for _ in range(3)] == ["Mara hid it."] * 3
    assert budget.spent.calls == 0


class Silent(ScriptedModel):
    """Announces no request."""

    def __init__(self, cost):
        super().__init__({})
        self.price = cost

    async def ask(self, role, given):
        report_call(ModelCall(role.name, "m", 0, 1, input_tokens=1, output_tokens=1, dollars=self.price))
        return roles.CueOut(cue="x")


@pytest.mark.parametrize(
    ("cost", "money", "calls", "says"),
    [(0.5, 1.0, 2, r"1\.0000 of 1 dollars"), (None, 1.0, 1, "price of scripted is unknown"), (0.0, 0.0, 9, None)],
)
async def test_money_is_limited_for_a_model_that_announces_nothing(cost, money, calls, says):
    budgeted, budget = limit(Silent(cost), dollars=money)
    for _ in range(calls):
        await fuse(budgeted)
    assert budget.spent.calls == calls
    if says:
        with pytest.raises(BudgetExceeded, match=says):
            await fuse(budgeted)


# ---------------------------------------------------------------- a model that only fails


async def collect_errors(model, times):
    """The type of the error of each ask, one ask after another; str for a reply."""
    return [type((await fuse_often(model, 1))[0]) for _ in range(times)]


BAD = BadReply("no")


async def test_failures_with_no_reply_between_them_end_the_work_with_what_it_cost_and_kept():
    model = stop(ScriptedModel({"fuse": [BAD, BAD, REPLY, BAD, BAD, BAD]}), 3)
    with open_run():
        assert await collect_errors(model, 5) == [BadReply, BadReply, str, BadReply, BadReply]
        with pytest.raises(KeepsFailing, match=r"3 calls .* no\. Kept: 1 .* Spent: 6 requests") as raised:
            await fuse(model)
    assert isinstance(raised.value, ModelUnavailable), "every further call would fail too"


@pytest.mark.parametrize("error", [ModelUnavailable("gone"), BudgetExceeded("used up")])
async def test_what_ends_the_work_anyway_stays_as_it_is(error):
    with open_run():
        assert await collect_errors(stop(ScriptedModel({"fuse": [error]}), 1), 1) == [type(error)]


async def test_each_piece_of_work_counts_for_itself_and_nothing_outside_of_one():
    model = stop(ScriptedModel({"fuse": [BAD] * 7}), 3)
    for _ in range(2):
        with open_run():
            assert await collect_errors(model, 2) == [BadReply] * 2
    assert await collect_errors(model, 3) == [BadReply] * 3


# ---------------------------------------------------------------- slots


async def take_slots(slots, order, *names):
    async def take(name):
        async with slots.take():
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*map(take, names))


async def test_the_shortest_queue_goes_first_and_each_keeps_its_order():
    slots, order = CallSlots(1), []
    async with asyncio.TaskGroup() as group:
        with change_run(queue=object()):
            group.create_task(take_slots(slots, order, *(f"a{number}" for number in range(6))))
        for _ in range(2):
            await asyncio.sleep(0)
        with change_run(queue=object()):
            group.create_task(take_slots(slots, order, "b0", "b1"))
    assert order == ["a0", "a1", "b0", "b1", "a2", "a3", "a4", "a5"]


async def test_who_goes_ahead_waits_for_nobody_of_the_same_queue():
    slots, order = CallSlots(1), []

    async def go_ahead():
        async with slots.take(ahead=True):
            order.append("repair")

    async with asyncio.TaskGroup() as group:
        group.create_task(take_slots(slots, order, "a0", "a1", "a2"))
        for _ in range(2):
            await asyncio.sleep(0)
        group.create_task(go_ahead())
    assert order == ["a0", "a1", "repair", "a2"], "a1 had its slot before"
    async with asyncio.timeout(SOON), slots.take():
        pass


@pytest.mark.parametrize("seed", range(8))
async def test_never_more_than_the_limit_and_nobody_is_forgotten(seed):
    dice = random.Random(seed)
    limit = dice.randint(1, 4)
    slots = CallSlots(limit)
    inside = most = done = 0

    async def enter():
        nonlocal inside, most, done
        async with slots.take():
            inside += 1
            most = max(most, inside)
            try:
                await asyncio.sleep(dice.choice([0, 0, 0.001]))
            finally:
                inside -= 1
        done += 1

    tasks = []
    for _ in range(40):
        with change_run(queue=object()):
            tasks.append(asyncio.create_task(enter()))
        if dice.random() < 0.4:
            await asyncio.sleep(0)
        if dice.random() < 0.3:
            dice.choice(tasks).cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert most <= limit
    assert done + sum(isinstance(each, asyncio.CancelledError) for each in ended) == 40
    await asyncio.wait_for(enter(), SOON)  # no slot was lost


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_lets_nothing_through_is_refused(limit):
    with pytest.raises(UsageError, match=f"a limit of {limit} calls"):
        CallSlots(limit)


# ---------------------------------------------------------------- waits before a retry


def test_waits_double_vary_and_end_at_the_longest():
    backoff = Backoff(retries=9, first=1.0, longest=10.0)
    for attempt, most in enumerate([1.0, 2.0, 4.0, 8.0, 10.0, 10.0]):
        waits = {backoff.delay(attempt, None) for _ in range(50)}
        assert all(most / 2 <= wait <= most for wait in waits)
        assert len(waits) > 1
    assert backoff.delay(0, 7.0) == 7.0
    assert backoff.delay(0, 300.0) == 300.0


async def test_waits_are_logged_and_told_where_the_server_asks_for_them_and_without_keys(caplog):
    reported, waited = [], []

    async def fail():
        raise AttemptFailed(ModelUnavailable("http://user:secret@host did not reply"), passes=True, retry_after=300.0)

    async def sleep(seconds):
        waited.append(seconds)

    with caplog.at_level("INFO", "tomewise"), change_run(on_wait=reported.append), pytest.raises(AttemptFailed):
        await retry(fail, Backoff(retries=2, first=0.0, longest=9.0), sleep)
    assert caplog.messages == [
        f"try {number} of 3 in 300 s, as the server asks: http://[hidden]@host did not reply" for number in (2, 3)
    ]
    assert [wait.summary for wait in reported] == caplog.messages
    assert waited == [300.0, 300.0]
