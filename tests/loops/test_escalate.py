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
FULL = Answer(text="at nine", claimed="full", statements=(Statement(text="at nine", end=7, support="quoted"),))
UNPROVED = replace(FULL, statements=(Statement(text="at nine", end=7),))
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


def make_loop(first, thorough=None, whole=None, *, before=(), reading=0):
    """The loop, with a rule that is plain to see. `first` is the last quick way, or its answer."""
    first = first if isinstance(first, Way) else way("hybrid", first, 1)
    find_whole = {WHOLE.text: "list"}
    return Escalate(
        [*before, first],
        thorough or way("investigate"),
        whole or way("reader", most=None),
        find_whole=lambda text: find_whole.get(text, ""),
        reading=reading,
    )


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
    thorough = way("investigate")
    events, chosen, answer = await play(FULL, thorough)
    assert (answer, chosen, thorough.loop.asked) == (FULL, ["hybrid"], [])
    assert events[-1].summary == "reason: hybrid: answered, and its weakest statement is quoted"


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
    nothing = Answer(text="", resolved=False, only_quotes=True)
    assert (await play(nothing))[1] == ["hybrid", "investigate"]
    assert (await play(replace(nothing, statements=(Statement(text="It rained."),))))[1] == ["hybrid"]


@pytest.mark.parametrize(("first", "text"), [(PARTLY, PARTLY.text), (DECLINED, "")])
async def test_an_answer_in_doubt_stands_where_the_thorough_way_declines(first, text):
    assert (await play(first, way("investigate", DECLINED)))[-1].text == text


async def test_a_guess_is_asked_of_the_thorough_way_alone():
    first, thorough = way("hybrid", DECLINED, 1), way("investigate", DECLINED)
    _, _, answer = await play(first, thorough, question=replace(ASKED, force=True))
    assert [[q.force for q in each.loop.asked] for each in (first, thorough)] == [[False], [True]]
    assert answer.text == "a guess"


READING = "would take 21 calls, 20 are allowed for reading the whole text"
UNSTATED = "does not say how many calls it takes, 20 are allowed for reading the whole text"


@pytest.mark.parametrize(
    ("whole", "reading", "obstacle"),
    [
        (way("reader", most=None), 0, ""),
        (Way("reader", Reader(20)), 20, ""),
        (Way("reader", Reader(21)), 20, READING),
        (way("reader", most=None), 20, UNSTATED),
        (Way("reader", Reader(None)), 20, "the window is too small"),
    ],
    ids=["no limit", "within the limit", "beyond the limit", "not stated", "cannot be asked"],
)
async def test_a_question_for_the_whole_text_goes_to_the_way_that_may_read_it(whole, reading, obstacle):
    first = way("hybrid", FULL, 1)
    thorough = way("investigate", PARTLY)
    events, names, answer = await play(first, thorough, whole, question=WHOLE, reading=reading)
    assert first.loop.asked == []
    assert (names, answer) == ((["none", "investigate"], PARTLY) if obstacle else (["reader"], FULL))
    assert events[0].detail["passed_over"] == ({"reader": obstacle} if obstacle else {})
    assert events[0].detail["because"] == "the question needs the whole text (list)"


@pytest.mark.parametrize(
    ("thorough", "whole", "reading", "most"),
    [(33, 5, 0, None), (33, 5, 20, 34), (33, 5, 40, 40), (None, 5, 40, None)],
)
def test_the_calls_are_those_of_a_quick_way_and_the_thorough_one_or_of_the_whole_text(thorough, whole, reading, most):
    reader = way("reader", most=whole) if whole else None
    calls = make_loop(FULL, way("investigate", most=thorough), reader, reading=reading).calls
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
