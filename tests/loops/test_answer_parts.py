"""The answer is shown while it is written, and nothing of it that does not count in the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from tests.loops.doubles import converse, make_desk

from tomewise.errors import BadReply
from tomewise.loops.answer_parts import answer_whole, ask_answer, show_only_full
from tomewise.loops.desk import make_answer_input
from tomewise.loops.escalate import Escalate, Way
from tomewise.run import change_run, current_run
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Event, Question

FULL = {
    "reasoning": "The clerk was there.",
    "supported": "full",
    "answer": 'The clerk "Ada" 😀 forged it.',
    "quotes": [],
}


class StreamingModel(ScriptedModel):
    """Writes each reply character by character. `drafts` are written before it, and count for nothing."""

    def __init__(self, replies: Any, drafts: Sequence[str] = (), texts: Sequence[str] = ()) -> None:
        super().__init__(replies)
        self._drafts = drafts
        self._texts = texts

    async def ask(self, role: Any, given: Any) -> Any:
        listener = current_run().find_listener(role)
        try:
            reply = await super().ask(role, given)
            texts = self._texts or [reply.model_dump_json()]
        except BadReply:
            texts = self._texts
            raise
        finally:
            for text in (*self._drafts, *texts) if listener else ():
                listener.begin()
                for sign in text:
                    listener.hear(sign)
        return reply


async def show(
    reply: dict[str, Any], *, may_decline: bool = True, options: Sequence[str] = (), **model: Any
) -> list[Event]:
    """The parts of one reply."""
    events: list[Event] = []
    given = make_answer_input(Question(text="Who?", options=tuple(options)), [], may_decline=may_decline)
    with change_run(on_part=events.append):
        await ask_answer(StreamingModel({"answer": [reply]}, **model), given)
    return events


def read(events: Sequence[Event]) -> list[str]:
    """What a reader sees after each event."""
    seen = [""]
    for event in events:
        assert event.name == "answer_part"
        seen.append(event.detail["text"] if event.detail["replace"] else seen[-1] + event.detail["text"])
    return seen[1:]


async def test_the_answer_grows() -> None:
    seen = read(await show(FULL))
    assert seen[0] == "T"
    assert seen[-1] == FULL["answer"]
    assert len(seen) > 10
    assert all(later.startswith(earlier) for earlier, later in pairwise(seen))


async def test_escapes_are_shown_whole() -> None:
    events = await show(FULL, texts=[json.dumps(FULL)])
    assert read(events)[-1] == FULL["answer"]
    assert not any("\\" in event.detail["text"] for event in events)


@pytest.mark.parametrize(
    "declined",
    [
        {"answer": "*", "supported": "none"},
        {"answer": "* (not stated anywhere)", "supported": "full"},
        {"answer": "  (*) nothing", "supported": "partly"},
        {"answer": "The widow, I guess.", "supported": "none"},
        {"answer": "", "supported": "full"},
        {"answer": " . ", "supported": "full"},
    ],
)
@pytest.mark.parametrize("order", [("supported", "answer"), ("answer", "supported")])
async def test_nothing_of_a_declined_answer_is_shown(declined: dict[str, str], order: Sequence[str]) -> None:
    assert await show(declined, texts=[json.dumps({name: declined[name] for name in order})]) == []


async def test_a_forced_guess_is_shown_at_once() -> None:
    text = '{"answer": "The widow.", "supported": "none"}'
    assert read(await show(json.loads(text), may_decline=False, texts=[text]))[0] == "T"
    assert await show({"answer": "*"}, may_decline=False) == []


async def test_an_emphasised_answer_is_shown_once_it_cannot_be_the_signal() -> None:
    seen = read(await show({"supported": "full", "answer": "*Dracula* is the title."}))
    assert seen[0] == "*Dracula*"
    assert seen[-1] == "*Dracula* is the title."


async def test_a_support_that_comes_late_shows_the_answer_late() -> None:
    seen = read(await show(FULL, texts=['{"answer": "The clerk.", "quotes": [], "supported": "full"}']))
    assert seen[0] == "The clerk."


async def test_a_repaired_reply_replaces_what_was_shown() -> None:
    events = await show(FULL, drafts=['{"supported": "full", "answer": "The doctor", "quotes": 3}'])
    seen = read(events)
    assert "The doctor" in seen
    assert seen[seen.index("The doctor") + 1] == ""
    assert seen[-1] == FULL["answer"]
    assert [event.detail["replace"] for event in events].count(True) == 1


async def test_what_was_shown_of_a_reply_that_is_then_declined_or_unusable_is_taken_back() -> None:
    draft = '{"supported": "full", "answer": "The doctor", "quotes": 3}'
    assert read(await show({"answer": "*", "supported": "none"}, drafts=[draft]))[-1] == ""
    events: list[Event] = []
    with change_run(on_part=events.append), pytest.raises(BadReply):
        await ask_answer(
            StreamingModel({"answer": [BadReply("no")]}, texts=[draft]), make_answer_input(Question(text="?"), [])
        )
    assert read(events)[-1] == ""


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('Sure! Here it is:\n```json\n{"supported": "full", "answer": "Ada"}\n```', "A"),
        ('<think>{"supported": "full", "answer": "Bo"}</think>{"supported": "full", "answer": "Ada"}', "A"),
        ('{"reply": {"supported": "full", "answer": "Ada"}}', "A"),
        ('{"supported": "full", "reasoning": "two\nlines", "answer": "Ada"}', "A"),
    ],
)
async def test_the_json_is_found_where_a_whole_reply_would_have_it(text: str, first: str) -> None:
    seen = read(await show({"answer": "Ada", "supported": "full"}, texts=[text]))
    assert (seen[0], seen[-1]) == (first, "Ada")


@pytest.mark.parametrize(
    "text", ["plain words", "[1, 2]", '{"answer": {"a": "b"}, "supported": "full"}', '{"answer": null', "{{{{", ""]
)
async def test_what_is_not_the_answer_is_not_shown(text: str) -> None:
    assert await show(FULL, texts=[text]) == []


async def test_a_long_reply_is_read_in_linear_time() -> None:
    events = await show(FULL, texts=['{"supported": "full", "answer": "' + "x" * 150_000])
    assert 10 < len(events) < 3000
    assert read(events)[-1] == FULL["answer"], "the answer that counts takes the place of what was written"


async def test_options_and_callers_who_want_it_whole_get_no_parts() -> None:
    assert await show({**FULL, "choice": "A"}, options=["the clerk", "the widow"]) == []
    with answer_whole():
        assert await show(FULL) == []


async def test_what_need_not_be_the_last_answer_is_shown_only_if_it_is() -> None:
    partly = {**FULL, "supported": "partly"}
    assert read(await show(partly))[-1] == FULL["answer"]
    with show_only_full():
        assert await show(partly) == []
        assert read(await show(FULL))[-1] == FULL["answer"]


class Asking:
    """A loop that asks once."""

    def __init__(self, model: Any, store: Any) -> None:
        self._model = model
        self._desk = make_desk(store, model)

    async def run(self, question: Question) -> Any:
        prepared = await self._desk.prepare(question, [], budget=6000)
        yield await self._desk.answer(question, prepared)


async def test_a_first_answer_after_which_another_way_goes_on_is_not_shown(here: Any) -> None:

    store = SqlStore.open(here / "a.tome")
    partly, full = (
        {"answer": "Perhaps the doctor.", "supported": "partly"},
        {"answer": "The clerk.", "supported": "full"},
    )
    first, second = (Asking(StreamingModel({"answer": [reply]}), store) for reply in (partly, full))
    events: list[Event] = []
    with change_run(on_part=events.append):
        loop = Escalate(Way("one", first), [Way("two", second)], [], find_whole=lambda _: "")
        _, answer = await converse(loop, Question(text="Who?"))
    assert answer.text == "The clerk."
    assert read(events)[-1] == "The clerk."
    assert not any("Perhaps" in seen for seen in read(events))
    store.close()
