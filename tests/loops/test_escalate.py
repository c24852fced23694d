"""One shot first; then what the question needs, of what is built, within the limit on calls."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from tests.loops.doubles import converse

from tomewise.calls import CallCount
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import UsageError
from tomewise.loops.escalate import Escalate, Way
from tomewise.loops.whole_form import WholeForm, find_forms
from tomewise.testing import check_loop
from tomewise.types import Answer, Event, Question, Statement

DECLINED = Answer(text="", resolved=False, claimed="none", missing="who paid the clerk")
FULL = Answer(text="at nine")
PARTLY = Answer(text="perhaps at nine", claimed="partly", missing="the day")
ASKED, WHOLE = Question(text="When did the tide turn?"), Question(text="List all keepers.")


class Fixed:
    """A loop with a fixed answer that remembers what it was asked."""

    def __init__(self, answer, most):
        self.answer = answer
        self.asked = []
        self.calls = CallCount("some" if most is None else f"{most:g}", most)

    async def run(self, question):
        self.asked.append(question)
        yield Event(name="worked", summary="answer: fixed")
        yield Answer(text="a guess") if question.force and not self.answer.resolved else self.answer


class Reader(Fixed):
    """A loop that estimates its calls; None: it cannot be asked."""

    def __init__(self, calls):
        super().__init__(FULL, None)
        self.estimated = calls

    async def estimate_calls(self, question):
        if self.estimated is None:
            raise UsageError("the window is too small")
        return self.estimated


def make_loop(first, deeper=(), whole=(), **limits):
    """The loop, with a rule that is plain to see. `first` is the first way, or its answer."""
    first = first if isinstance(first, Way) else way("hybrid", first, 1)
    return Escalate(first, deeper, whole, find_whole=lambda text: "list" if text == WHOLE.text else "", **limits)


async def play(*ways, question=ASKED, **limits):
    """The events, the names of what was chosen, and the answer."""
    events, answer = await converse(make_loop(*ways, **limits), question)
    return events, [event.detail["chosen"] for event in events if event.name == "chosen"], answer


class FixedLag:
    """Layers that were never built."""

    def __init__(self, unbuilt):
        self.unbuilt = unbuilt

    def find_lag(self, *, current):
        return dict.fromkeys(self.unbuilt, 1)

    async def describe(self, question):
        return None


def way(name, answer=FULL, most=33, lag=()):
    return Way(name, Fixed(answer, most), FixedLag(lag))


async def test_a_full_answer_is_the_answer():
    deeper = way("comorag")
    events, chosen, answer = await play(FULL, [deeper])
    assert (answer, chosen, deeper.loop.asked) == (FULL, ["hybrid"], [])
    assert events[-1].summary == "reason: hybrid: answered, and the evidence holds all of it"


@pytest.mark.parametrize(
    ("first", "because"), [(DECLINED, "declined; missing: who paid the clerk"), (PARTLY, "partly")]
)
async def test_what_is_declined_or_in_doubt_goes_to_the_first_loop_that_is_built(first, because):
    ladder = [way("comorag", lag=("tree", "episodes")), way("hipporag2+probe"), way("hybrid+probe")]
    events, chosen, answer = await play(first, ladder)
    assert (answer.text, chosen) == ("at nine", ["hybrid", "hipporag2+probe"])
    event = [event for event in events if event.name == "chosen"][-1]
    assert because in event.detail["because"]
    assert event.detail["passed_over"] == {"comorag": "needs tree, episodes"}
    assert event.detail["build_would_help"] == ["comorag"]
    assert "comorag (needs tree, episodes), build would help: comorag" in event.summary
    assert ladder[0].loop.asked == ladder[2].loop.asked == []
    assert [event.name for event in events] == ["chosen", "worked", "stopped", "chosen", "worked"]
    assert (await check_loop(make_loop(first, ladder), ASKED)).resolved


async def test_without_a_model_the_next_loop_goes_on_where_nothing_could_be_quoted():
    nothing = Answer(text="", resolved=False, only_quotes=True)
    assert (await play(nothing, [way("comorag")]))[1] == ["hybrid", "comorag"]
    assert (await play(replace(nothing, statements=(Statement(text="It rained."),)), [way("comorag")]))[1] == ["hybrid"]


@pytest.mark.parametrize(("first", "text"), [(PARTLY, PARTLY.text), (DECLINED, "")])
async def test_an_answer_in_doubt_stands_where_the_longer_loop_declines(first, text):
    assert (await play(first, [way("hybrid+probe", DECLINED)]))[-1].text == text


@pytest.mark.parametrize(("lag", "of_first", "of_deeper"), [((), [False], [True]), (("tree",), [True], [])])
async def test_a_guess_is_asked_of_the_last_loop_alone(lag, of_first, of_deeper):
    first, deeper = way("hybrid", DECLINED, 1), way("comorag", DECLINED, lag=lag)
    _, _, answer = await play(first, [deeper], question=replace(ASKED, force=True))
    assert [[q.force for q in each.loop.asked] for each in (first, deeper)] == [of_first, of_deeper]
    assert answer.text == "a guess"


READING = "would take 21 calls, 20 are allowed for reading the whole text"


@pytest.mark.parametrize(
    ("whole", "reading", "chosen", "passed_over"),
    [
        (way("cosmir", most=None), 0, ["cosmir"], {}),
        (Way("cosmir", Reader(20)), 20, ["cosmir"], {}),
        (Way("cosmir", Reader(21)), 20, ["none", "comorag"], {"cosmir": READING}),
        (Way("cosmir", Reader(None)), 20, ["none", "comorag"], {"cosmir": "the window is too small"}),
        (Way("cosmir", None), 0, ["none", "comorag"], {"cosmir": "not a system here"}),
    ],
    ids=["no limit", "within the limit", "beyond the limit", "cannot be asked", "not known"],
)
async def test_a_question_for_the_whole_text_goes_to_the_loop_that_may_read_it(whole, reading, chosen, passed_over):
    first = way("hybrid", FULL, 1)
    ways = [first, [way("comorag", PARTLY)], [whole]]
    events, names, answer = await play(*ways, question=WHOLE, reading=reading)
    assert (names, first.loop.asked) == (chosen, [])
    assert answer == (FULL if chosen == ["cosmir"] else PARTLY)
    assert events[0].detail["passed_over"] == passed_over
    if chosen == ["cosmir"]:
        assert events[0].detail["because"] == "the question needs the whole text (list)"


async def test_a_reader_that_states_no_calls_is_passed_over_and_nothing_built_leaves_one_shot():
    ways = [FULL, [way("comorag", lag=("tree",))], [way("cosmir", most=None)]]
    events, chosen, answer = await play(*ways, question=WHOLE, reading=20)
    assert (chosen, answer) == (["none", "none", "hybrid"], FULL)
    assert "does not say how many calls" in events[0].detail["passed_over"]["cosmir"]
    assert events[1].detail["build_would_help"] == ["comorag"]


async def test_the_limit_on_calls_holds():
    ladder = [way("comorag", most=33), way("own", most=None), way("short", most=5)]
    whole = [way("cosmir", most=None)]
    events, chosen, _ = await play(DECLINED, ladder, whole, budget=20)
    assert chosen == ["hybrid", "short"]
    reasons = {"comorag": "may take 33 calls, 19 are left", "own": "states no upper limit of its calls"}
    assert events[-2].detail["passed_over"] == reasons
    assert (await play(DECLINED, ladder, whole, question=WHOLE, budget=20))[1][0] == "none"
    _, chosen, answer = await play(DECLINED, ladder, budget=3)
    assert (chosen, answer) == (["hybrid", "none"], DECLINED)
    with pytest.raises(UsageError, match="hybrid alone may take 2"):
        make_loop(way("hybrid", FULL, 2), budget=1)


@pytest.mark.parametrize(
    ("mosts", "budget", "most"),
    [((33, 49), 0, 50), ((33, None), 0, None), ((33, None), 40, 40), ((5,), 40, 6), ((), 0, 1)],
)
def test_the_calls_are_those_of_the_first_way_and_of_one_other(mosts, budget, most):
    ways = [way(f"w{number}", most=each) for number, each in enumerate(mosts)]
    calls = make_loop(FULL, ways, [Way("cosmir", None)], budget=budget).calls
    assert calls.most == most
    assert calls.formula.startswith("1, then those of the system that is chosen")


# ---------------------------------------------------------------- which questions need the whole text


@pytest.fixture(scope="module")
def rule() -> WholeForm:
    return WholeForm(choose_embedder("bundled"))


WHOLE_TEXT = """Summarise the meeting.
Give me a short overview of the report.
How many times was the clock stopped?
List the characters.
What themes recur?
Who are all the suspects?
What is the main theme?
How does her view of him change throughout the novel?
What is the story about?"""
OF_A_PART = """Who put out the light?
Why did all the sailors leave?
How many boats did Tom Hale own?
When did the meeting begin?
How often does the ferry run on Sundays?
What is the main topic of chapter 2?
Which entire document was lost?"""


@pytest.mark.parametrize("question", WHOLE_TEXT.splitlines())
def test_what_needs_the_whole_text(rule: WholeForm, question: str) -> None:
    assert rule.find_reason(question)


@pytest.mark.parametrize("question", [*OF_A_PART.splitlines(), "", " ", "?"])
def test_what_does_not(rule: WholeForm, question: str) -> None:
    assert rule.find_reason(question) == ""


def test_a_long_question_is_read_in_bounded_time() -> None:
    start = time.process_time()
    for text in ("how many " * 50_000, "from " * 90_000, "which " * 80_000, "list " * 80_000):
        find_forms(text)
    WholeForm(HashEmbedder(384)).find_reason("how many " * 50_000)
    assert time.process_time() - start < 2
