"""A short text at once; else one shot first, then what the question and its answer need, of what is built."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.loops.doubles import converse

from tomewise.calls import CallCount
from tomewise.errors import BadReply, BudgetExceeded, UsageError
from tomewise.language.budget import Budget
from tomewise.language.wrapped import Wrapped
from tomewise.loops.escalate import Escalate, Way
from tomewise.run import REPLY_SKIPPED, change_run, meter
from tomewise.testing import ScriptedModel, check_loop
from tomewise.types import Answer, Cost, Coverage, Event, Limit, Question, Scope, Statement

DECLINED = Answer(text="", resolved=False, claimed="none", missing="who paid the clerk")
FULL = Answer(text="at nine", claimed="full", statements=(Statement(text="at nine", end=7, support="quoted"),))
UNPROVED = replace(FULL, statements=(Statement(text="at nine", end=7),))
PARTLY = Answer(text="perhaps at nine", claimed="partly", missing="the day")
LISTED = replace(FULL, reach="list", item="a keeper")
COUNTED = replace(FULL, reach="count", item="tide")
COMPUTED = Answer(text="376", reach="count")
ASKED = Question(text="When did the tide turn?")
LONG = 100_000


class Fixed:
    """A loop with a fixed answer, or error, that remembers what it was asked."""

    calls = CallCount("1", 1)

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def run(self, question):
        self.asked.append(question)
        yield Event(name="worked", summary="answer: fixed")
        if isinstance(self.answer, Exception):
            raise self.answer
        yield Answer(text="a guess") if question.force and not self.answer.resolved else self.answer


class Reader(Fixed):
    """A loop that reads texts of so many tokens, at once up to 50,000; None: it can read none."""

    def __init__(self, tokens, answer=FULL):
        super().__init__(answer)
        self.tokens = tokens

    async def measure(self, question, most):
        if self.tokens is None:
            raise UsageError("the window is too small")
        calls = 1 if self.tokens <= 50_000 else 9
        return Cost(calls=calls, input_tokens=self.tokens) if self.tokens <= most else None


def make_loop(first, thorough=None, whole=None, *, before=(), **options):
    """The loop. `first` is the last quick way, or its answer."""
    first = first if isinstance(first, Way) else way("hybrid", first)
    whole = whole or Reader(LONG)
    thorough = thorough or way("investigate")
    loops = {"quick": [*before, first], "thorough": thorough, "whole": whole}
    return Escalate(**loops, short=20_000, fair=40_000, **{"model": ScriptedModel({}), "price": time, **options})


def time(cost):
    """What a model costs that reads 1,000 tokens in a second."""
    return replace(cost, model_seconds=cost.input_tokens / 1_000)


async def play(*ways, question=ASKED, **options):
    """The events, the names of what was chosen, and the answer."""
    events, answer = await converse(make_loop(*ways, **options), question)
    return events, [event.detail["chosen"] for event in events if event.name == "chosen"], answer


class FixedLag:
    """Layers that were never built."""

    def __init__(self, unbuilt):
        self.unbuilt = unbuilt

    def find_lag(self, *, current):
        return dict.fromkeys(self.unbuilt, 1)

    async def describe(self, question):
        return None


def way(name, answer=FULL, lag=()):
    return Way(name, Fixed(answer), FixedLag(lag))


async def test_a_full_answer_is_the_answer():
    thorough = way("investigate")
    events, chosen, answer = await play(FULL, thorough)
    assert (answer, chosen, thorough.loop.asked) == (FULL, ["hybrid"], [])
    assert events[-1].summary == "reason: hybrid: answered, and its weakest statement is quoted"
    assert make_loop(FULL).calls.formula == "1, then those of the system that is chosen"


@pytest.mark.parametrize(
    ("first", "because"),
    [(DECLINED, "declined; missing: who paid the clerk"), (PARTLY, "partly"), (UNPROVED, "not supported")],
)
async def test_what_is_declined_or_in_doubt_goes_on_after_the_first_quick_way_that_is_built(first, because):
    before = [way("associative", lag=("graph",)), way("short", first)]
    events, chosen, answer = await play(FULL, before=before)
    assert (answer.text, chosen) == ("at nine", ["short", "investigate"])
    quick, thorough = (event for event in events if event.name == "chosen")
    assert because in thorough.detail["because"]
    assert quick.detail["passed_over"] == {"associative": "needs graph"}
    assert "associative (needs graph), build would help: associative" in quick.summary
    assert before[0].loop.asked == []
    assert [event.name for event in events] == ["chosen", "worked", "stopped", "chosen", "worked"]
    assert (await check_loop(make_loop(FULL, before=before), ASKED)).resolved


async def test_without_a_model_the_thorough_way_goes_on_where_nothing_could_be_quoted():
    nothing = Answer(text="", resolved=False)
    assert (await play(nothing))[1] == ["hybrid", "investigate"]
    quoting = replace(nothing, only_quotes=True, statements=(Statement(text="It rained."),))
    assert (await play(quoting))[1] == ["hybrid"]


@pytest.mark.parametrize(("first", "text"), [(PARTLY, PARTLY.text), (DECLINED, "")])
async def test_an_answer_in_doubt_stands_where_the_thorough_way_declines(first, text):
    assert (await play(first, way("investigate", DECLINED)))[-1].text == text


async def test_a_guess_is_asked_of_the_last_way_alone():
    first, thorough, whole = way("hybrid", DECLINED), way("investigate", DECLINED), Reader(100, DECLINED)
    _, _, answer = await play(first, thorough, question=replace(ASKED, force=True))
    assert [[q.force for q in each.loop.asked] for each in (first, thorough)] == [[False], [True]]
    assert answer.text == "a guess"
    assert (await play(first, thorough, whole, question=replace(ASKED, force=True)))[-1].text == "a guess"


@pytest.mark.parametrize("answer", [FULL, PARTLY, DECLINED, LISTED])
async def test_a_short_text_is_read_at_once_and_nothing_goes_on(answer):
    first, thorough = way("hybrid"), way("investigate")
    _, chosen, found = await play(first, thorough, Reader(20_000, answer))
    assert (chosen, found, first.loop.asked, thorough.loop.asked) == (["whole"], answer, [], [])


async def test_a_reply_that_cannot_be_used_goes_on_and_a_limit_does_not():
    assert (await play(BadReply("no JSON")))[1:] == (["hybrid", "investigate"], FULL)
    assert (await play(FULL, None, Reader(100, BadReply("no JSON"))))[1:] == (["whole", "investigate"], FULL)
    with pytest.raises(BudgetExceeded):
        await play(BudgetExceeded("no more"))


async def test_an_answer_in_doubt_stands_where_what_goes_on_has_no_usable_reply():
    with meter() as used:
        events, chosen, answer = await play(PARTLY, way("investigate", BadReply("no JSON")))
    assert (chosen, answer) == (["hybrid", "investigate"], PARTLY)
    assert events[-1].detail["reason"] == "no JSON"
    assert used.fallbacks[REPLY_SKIPPED] == 1, "which its coverage counts as a failed step"
    with pytest.raises(BadReply):
        await play(DECLINED, way("investigate", BadReply("no JSON")))


@pytest.mark.parametrize(("tokens", "last"), [(40_000, "whole"), (40_001, "investigate")])
async def test_a_fair_text_is_read_at_once_where_the_first_answer_does_not_suffice(tokens, last):
    assert (await play(PARTLY, None, Reader(tokens)))[1] == ["hybrid", last]
    assert (await play(FULL, None, Reader(tokens)))[1] == ["hybrid"]


@pytest.mark.parametrize("reach", ["whole", "list", "count"])
async def test_a_question_for_all_has_all_read_whatever_its_first_answer(reach):
    first, whole = replace(FULL, reach=reach, item="tide"), Reader(LONG, replace(FULL, text="all of it"))
    events, chosen, answer = await play(first, None, whole)
    assert (chosen, answer.text, answer.reach) == (["hybrid", "whole"], "all of it", reach)
    assert events[-2].detail["because"].startswith(f"the question asks for all ({reach}); answered")
    assert (await play(first, None, Reader(LONG, DECLINED)))[-1] == first


BUDGET = Limit(tokens=LONG - 1)
READ = "to read it would take 9 calls and 100,000 tokens, about 1.7 minutes"


@pytest.mark.parametrize(
    ("tokens", "budget", "obstacle"),
    [
        (LONG, None, ""),
        (600_001, None, "to read it would take 9 calls and 600,001 tokens, about 10.0 minutes (`--effort whole` does)"),
        (600_001, Limit(minutes=11), ""),
        (1_000_001, None, "more than 1,000,000 tokens would be read (`--effort whole` does)"),
        (1_000_001, Limit(tokens=1_100_000, minutes=20), ""),
        (LONG, BUDGET, "more than 99,999 tokens would be read (`--effort whole` does)"),
        (LONG, Limit(calls=8), READ + ", more than the limit of 8 calls leaves"),
        (LONG, Limit(dollars=1.0), ""),  # nobody knows what it costs
        (None, None, "the window is too small"),
    ],
)
@pytest.mark.parametrize("of_run", [True, False])
async def test_beyond_the_budget_the_first_answer_stands_or_the_thorough_way_goes_on(tokens, budget, obstacle, of_run):
    first, doubtful = replace(FULL, reach="whole"), replace(PARTLY, reach="whole")
    account = budget and Budget(budget, name="a model")
    model = Wrapped(ScriptedModel({}), *([account.ask] if account and not of_run else []))
    with change_run(budget=account if of_run else None):
        _, chosen, _ = await play(first, None, Reader(tokens), model=model)
        assert chosen == ["hybrid", "none" if obstacle else "whole"]
        events, chosen, _ = await play(doubtful, None, Reader(tokens), model=model)
    assert chosen == ["hybrid", "investigate" if obstacle else "whole"]
    assert events[-2].detail["passed_over"].get("whole", "").startswith(obstacle)


@pytest.mark.parametrize(("claimed", "tokens"), [(FULL, 100), (PARTLY, 40_000)])
async def test_a_text_is_not_read_at_once_where_the_budget_does_not_leave_that(claimed, tokens):
    _, before, _ = await play(claimed, None, Reader(tokens))
    with change_run(budget=Budget(Limit(tokens=tokens - 1), name="a model")):
        _, chosen, _ = await play(claimed, None, Reader(tokens))
    assert ("whole" in before, chosen[0], "whole" in chosen) == (True, "hybrid", False)


async def test_where_the_budget_ends_on_the_way_the_first_answer_stands_and_says_so():
    ends = BudgetExceeded("the limit of 3 calls is used up")
    events, _, answer = await play(replace(FULL, reach="whole"), None, Reader(LONG, ends))
    assert (answer.text, answer.statements) == (FULL.text, FULL.statements)
    assert "the limit of 3 calls is used up" in answer.coverage.remark
    assert events[-1].detail["reason"] == str(ends)
    with pytest.raises(BudgetExceeded):
        await play(replace(DECLINED, reach="whole"), None, Reader(LONG, ends))


@pytest.mark.parametrize("reach", ["whole", "list", "part", "count"])
async def test_what_a_question_names_narrows_what_is_read_for_all(reach):
    heron = Scope(documents=frozenset(["heron.md"]))

    async def narrow(question):
        return heron, ("Project Heron",)

    whole = Reader(LONG)
    _, chosen, answer = await play(replace(FULL, reach=reach), None, whole, narrow=narrow)
    if reach == "part":
        assert (chosen, answer.within, answer.named) == (["hybrid"], None, ())
        return
    is_narrowed = reach != "count"
    assert [question.within for question in whole.asked] == [heron if is_narrowed else None]
    assert (answer.within, answer.named) == ((heron, ("Project Heron",)) if is_narrowed else (None, ()))
    compute, _ = make_computing(COMPUTED)
    if reach == "list":
        answer = (await play(LISTED, narrow=narrow, collect=compute))[-1]
        assert (answer.text, answer.within, answer.named) == (COMPUTED.text, heron, ("Project Heron",))


def make_computing(answer):
    """A function that computes, and what it was asked."""
    asked = []

    async def compute(question, item):
        asked.append(item)
        return answer

    return compute, asked


@pytest.mark.parametrize(("first", "computes", "chosen"), [(COUNTED, "count", "find"), (LISTED, "collect", "collect")])
async def test_code_answers_what_counts_words_and_what_lists_things(first, computes, chosen):
    compute, asked = make_computing(COMPUTED)
    _, names, answer = await play(first, **{computes: compute})
    assert (names, answer, asked) == (["hybrid", chosen], COMPUTED, [first.item])
    _, names, _ = await play(first, **{computes: make_computing(None)[0]})
    assert names == ["hybrid", chosen, "whole"]
    for unfit in (replace(ASKED, options=("one", "two")), replace(ASKED, instructions="in Latin")):
        assert (await play(first, question=unfit, **{computes: compute}))[1] == ["hybrid", "whole"]
    assert (await play(replace(first, item=""), **{computes: compute}))[1] == ["hybrid", "whole"]
    assert asked == [first.item]


async def test_a_list_beyond_the_limit_is_not_collected_and_words_are_counted():
    compute, _ = make_computing(COMPUTED)
    with change_run(budget=Budget(BUDGET, name="a model")):
        assert (await play(LISTED, collect=compute))[1] == ["hybrid", "none"]
        assert (await play(COUNTED, count=compute))[1] == ["hybrid", "find"]


async def test_of_a_text_that_was_read_at_once_words_are_counted_and_lists_stand():
    compute, _ = make_computing(COMPUTED)
    assert (await play(FULL, None, Reader(100, COUNTED), count=compute))[1:] == (["whole", "find"], COMPUTED)
    assert (await play(FULL, None, Reader(100, LISTED), collect=compute))[1:] == (["whole"], LISTED)
    cut = replace(LISTED, coverage=Coverage(dropped=3))
    assert (await play(FULL, None, Reader(100, cut), collect=compute))[1:] == (["whole", "collect"], COMPUTED)
