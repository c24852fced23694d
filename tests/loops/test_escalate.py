"""One shot first; then what the question needs, of what is built, within the limit on calls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.loops.doubles import converse

from tomewise.calls import CallCount
from tomewise.errors import UsageError
from tomewise.loops import escalate
from tomewise.loops.escalate import Way
from tomewise.testing import check_loop
from tomewise.types import Answer, Event, Lagging, Question

DECLINED = Answer(text="", resolved=False, supported="none", missing="who paid the clerk")
FULL = Answer(text="at nine")
PARTLY = Answer(text="perhaps at nine", supported="partly", missing="the day")
ASKED, WHOLE = Question(text="When did the tide turn?"), Question(text="List all keepers.")


class Fixed:
    """A loop with a fixed answer that remembers what it was asked."""

    def __init__(self, answer: Answer, most: float | None = 1) -> None:
        self.answer = answer
        self.asked: list[Question] = []
        self.calls = CallCount("some" if most is None else f"{most:g}", most)

    async def run(self, question):
        self.asked.append(question)
        yield Event(name="worked", summary="answer: fixed")
        yield Answer(text="a guess") if question.force and not self.answer.resolved else self.answer


class Reader(Fixed):
    """A loop that estimates its calls; None: it cannot be asked."""

    def __init__(self, calls: int | None) -> None:
        super().__init__(FULL, None)
        self.estimated = calls

    async def estimate_calls(self, question):
        if self.estimated is None:
            raise UsageError("the window is too small")
        return self.estimated


def Escalate(*ways, **limits):  # noqa: N802 - the class, with a rule that is plain to see
    return escalate.Escalate(*ways, find_whole=lambda text: "list" if text == WHOLE.text else "", **limits)


class FixedLag:
    """Layers that were never built, and layers that are behind."""

    def __init__(self, unbuilt, behind):
        self.unbuilt, self.behind = unbuilt, behind

    def find_lag(self, *, strict):
        return dict.fromkeys((*self.unbuilt, *(self.behind if strict else ())), 1)

    async def describe(self, question):
        return Lagging(layers=self.behind) if self.behind else None


def way(name, answer=FULL, most=33, lag=(), behind=()):
    return Way(name, Fixed(answer, most), FixedLag(lag, behind))


def names(events):
    return [event.detail["chosen"] for event in events if event.name == "chosen"]


async def test_a_full_answer_is_the_answer():
    first, deeper = way("hybrid", FULL, 1), way("comorag")
    events, answer = await converse(Escalate(first, [deeper], []), ASKED)
    assert (answer, names(events), deeper.loop.asked) == (FULL, ["hybrid"], [])
    assert events[-1].summary == "reason: hybrid: answered, and the evidence holds all of it"


@pytest.mark.parametrize(
    ("first", "because"), [(DECLINED, "declined; missing: who paid the clerk"), (PARTLY, "partly")]
)
async def test_what_is_declined_or_in_doubt_goes_to_the_first_loop_that_is_built(first, because):
    ladder = [way("comorag", lag=("tree", "episodes")), way("hipporag2+probe"), way("hybrid+probe")]
    loop = Escalate(way("hybrid", first, 1), ladder, [])
    events, answer = await converse(loop, ASKED)
    assert (answer.text, names(events)) == ("at nine", ["hybrid", "hipporag2+probe"])
    chosen = [event for event in events if event.name == "chosen"][-1]
    assert because in chosen.detail["because"]
    assert chosen.detail["passed over"] == {"comorag": "needs tree, episodes"}
    assert chosen.detail["build would help"] == ["comorag"]
    assert "comorag (needs tree, episodes), build would help: comorag" in chosen.summary
    assert ladder[0].loop.asked == ladder[2].loop.asked == []
    assert [event.name for event in events] == ["chosen", "worked", "stopped", "chosen", "worked"]
    assert (await check_loop(loop, ASKED)).resolved


async def test_memory_that_lags_answers_and_says_so_but_not_a_strict_question():
    first, ladder = way("hybrid", DECLINED, 1), [way("comorag", behind=("tree",)), way("hybrid+probe")]
    events, answer = await converse(Escalate(first, ladder, []), ASKED)
    assert (names(events)[-1], answer.lagging) == ("comorag", Lagging(layers=("tree",)))
    events, answer = await converse(Escalate(first, ladder, []), replace(ASKED, strict=True))
    assert (names(events)[-1], answer.lagging) == ("hybrid+probe", None)
    assert events[-2].detail["passed over"] == {"comorag": "needs tree"}


async def test_an_answer_in_doubt_stands_where_the_longer_loop_declines():
    for first, text in ((PARTLY, PARTLY.text), (DECLINED, "")):
        _, answer = await converse(Escalate(way("hybrid", first, 1), [way("hybrid+probe", DECLINED)], []), ASKED)
        assert answer.text == text


async def test_nothing_built_leaves_the_first_answer_and_says_which_build_would_help():
    ladder = [way("comorag", lag=("tree",)), way("raptor+probe", lag=("tree",))]
    events, answer = await converse(Escalate(way("hybrid", DECLINED, 1), ladder, []), ASKED)
    assert (answer, names(events)) == (DECLINED, ["hybrid", "none"])
    assert events[-1].detail["build would help"] == ["comorag", "raptor+probe"]


async def test_a_guess_is_asked_of_the_last_loop_alone():
    first, deeper = way("hybrid", DECLINED, 1), way("hybrid+probe", DECLINED)
    force = Question(text=ASKED.text, force=True)
    _, answer = await converse(Escalate(first, [deeper], []), force)
    assert ([q.force for q in first.loop.asked], [q.force for q in deeper.loop.asked]) == ([False], [True])
    assert answer.text == "a guess"
    first = way("hybrid", DECLINED, 1)
    _, answer = await converse(Escalate(first, [way("comorag", lag=("tree",))], []), force)
    assert ([q.force for q in first.loop.asked], answer.text) == ([True], "a guess")


async def test_a_question_for_the_whole_text_goes_to_the_loop_that_reads_it():
    first, whole = way("hybrid", FULL, 1), way("cosmir", most=None)
    events, answer = await converse(Escalate(first, [way("comorag")], [whole]), WHOLE)
    assert (answer, names(events), first.loop.asked) == (FULL, ["cosmir"], [])
    assert events[0].detail["because"] == "the question needs the whole text (list)"


@pytest.mark.parametrize(
    ("calls", "chosen"), [(20, ["cosmir"]), (21, ["none", "comorag"]), (None, ["none", "comorag"])]
)
async def test_a_whole_text_is_read_if_its_estimate_is_within_the_limit(calls, chosen):
    first, deeper, reader = way("hybrid", FULL, 1), way("comorag", PARTLY), Reader(calls)
    loop = Escalate(first, [deeper], [Way("cosmir", reader)], reading=20)
    events, answer = await converse(loop, WHOLE)
    assert (names(events), first.loop.asked) == (chosen, [])
    assert answer == (FULL if chosen == ["cosmir"] else PARTLY)
    reasons = {21: "would take 21 calls, 20 are allowed for reading the whole text", None: "the window is too small"}
    assert events[0].detail["passed over"] == ({"cosmir": reasons[calls]} if calls in reasons else {})


async def test_a_reader_that_states_no_calls_is_passed_over_and_nothing_built_leaves_one_shot():
    first, deeper = way("hybrid", FULL, 1), way("comorag", lag=("tree",))
    loop = Escalate(first, [deeper], [way("cosmir", most=None)], reading=20)
    events, answer = await converse(loop, WHOLE)
    assert (names(events), answer) == (["none", "none", "hybrid"], FULL)
    assert "does not say how many calls" in events[0].detail["passed over"]["cosmir"]
    assert events[1].detail["build would help"] == ["comorag"]


async def test_without_a_loop_that_reads_the_whole_text_it_says_so_and_goes_on():
    loop = Escalate(way("hybrid", DECLINED, 1), [way("hybrid+probe")], [Way("cosmir", None)])
    events, answer = await converse(loop, WHOLE)
    assert names(events) == ["none", "hybrid+probe"]
    assert events[0].detail["passed over"] == {"cosmir": "not a system here"}
    assert answer == FULL


async def test_the_limit_on_calls_holds():
    ladder = [way("comorag", most=33), way("own", most=None), way("short", most=5)]
    loop = Escalate(way("hybrid", DECLINED, 1), ladder, [way("cosmir", most=None)], budget=20)
    events, _ = await converse(loop, ASKED)
    assert names(events) == ["hybrid", "short"]
    reasons = {"comorag": "may take 33 calls, 19 are left", "own": "states no upper limit of its calls"}
    assert events[-2].detail["passed over"] == reasons
    events, _ = await converse(loop, WHOLE)
    assert names(events)[0] == "none"
    events, answer = await converse(Escalate(way("hybrid", DECLINED, 1), ladder, [], budget=3), ASKED)
    assert (names(events), answer) == (["hybrid", "none"], DECLINED)
    with pytest.raises(UsageError, match="hybrid alone may take 2"):
        Escalate(way("hybrid", FULL, 2), [], [], budget=1)


@pytest.mark.parametrize(
    ("mosts", "budget", "most"),
    [((33, 49), 0, 50), ((33, None), 0, None), ((33, None), 40, 40), ((5,), 40, 6), ((), 0, 1)],
)
def test_the_calls_are_those_of_the_first_way_and_of_one_other(mosts, budget, most):
    ways = [way(f"w{number}", most=each) for number, each in enumerate(mosts)]
    calls = Escalate(way("hybrid", FULL, 1), ways, [Way("cosmir", None)], budget=budget).calls
    assert calls.most == most
    assert calls.formula.startswith("1, then those of the system that is chosen")
