"""The answer is shown while it is written, and nothing of it that does not count in the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import pytest

from tomewise.errors import BadReply
from tomewise.loops.answer_parts import answer_whole, ask_answer, hold_back
from tomewise.loops.desk import make_answer_input
from tomewise.run import change_run, current_run
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Event, Question

FULL = {
    "reasoning": "The clerk was there.",
    "supported": "full",
    "answer": 'The clerk "Ada" 😀 forged it.',
    "quotes": [],
}


BAD = BadReply("no")
DOCTOR = '{"supported": "full", "answer": "The doctor", "quotes": 3}'


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


def read(events: Sequence[Event]) -> list[str]:
    """What a reader sees after each event."""
    seen = [""]
    for event in events:
        assert event.name == "answer_part"
        seen.append(event.detail["text"] if event.detail["replace"] else seen[-1] + event.detail["text"])
    return seen[1:]


async def show(reply: Any, *, may_decline: bool = True, options: Sequence[str] = (), **model: Any) -> list[str]:
    """What a reader sees after each part of one reply, also of one that cannot be used."""
    events: list[Event] = []
    given = make_answer_input(Question(text="Who?", options=tuple(options)), [], may_decline=may_decline)
    asking = ask_answer(StreamingModel({"answer": [reply]}, **model), given)
    with change_run(on_part=events.append), pytest.raises(BadReply) if reply is BAD else nullcontext():
        await asking
    return read(events)


async def test_the_answer_grows_from_its_first_letters_and_escapes_are_shown_whole() -> None:
    seen = await show(FULL)
    assert (len(seen[0]), seen[-1]) == (2, FULL["answer"])
    assert len(seen) > 10
    assert all(later.startswith(earlier) for earlier, later in pairwise(seen))
    escaped = await show(FULL, texts=[json.dumps(FULL)])
    assert escaped[-1] == FULL["answer"]
    assert not any("\\" in text for text in escaped)


@pytest.mark.parametrize(
    "declined",
    [
        {"answer": "* (not stated anywhere)", "supported": "full"},
        {"answer": "  (*) nothing", "supported": "partly"},
        {"answer": "The widow, I guess.", "supported": "none"},
        {"answer": " . ", "supported": "full"},
    ],
)
@pytest.mark.parametrize("order", [("supported", "answer"), ("answer", "supported")])
async def test_nothing_of_a_declined_answer_is_shown(declined: dict[str, str], order: Sequence[str]) -> None:
    assert await show(declined, texts=[json.dumps({name: declined[name] for name in order})]) == []


@pytest.mark.parametrize(
    ("text", "answer", "settings", "first"),
    [
        # The JSON is found where a whole reply would have it.
        ('Sure! Here it is:\n```json\n{"supported": "full", "answer": "Ada"}\n```', "Ada", {}, "A"),
        (
            '<think>{"supported": "full", "answer": "Bo"}</think>{"supported": "full", "answer": "Ada"}',
            "Ada",
            {},
            "A",
        ),
        # A support that comes late shows the answer late; a forced guess is shown at once.
        ('{"answer": "The clerk.", "quotes": [], "supported": "full"}', "The clerk.", {}, "The clerk."),
        ('{"answer": "The widow.", "supported": "none"}', "The widow.", {"may_decline": False}, "T"),
        # An emphasised answer is shown once it cannot be the signal.
        (
            '{"supported": "full", "answer": "*Dracula* is the title."}',
            "*Dracula* is the title.",
            {},
            "*Dracula*",
        ),
    ],
)
async def test_an_answer_is_shown_from_where_it_counts(text, answer, settings, first) -> None:
    supported = "none" if settings else "full"
    seen = await show({"answer": answer, "supported": supported}, texts=[text], **settings)
    assert (seen[0], seen[-1]) == (first, answer)


@pytest.mark.parametrize(
    "text", ["plain words", "[1, 2]", '{"answer": {"a": "b"}, "supported": "full"}', '{"answer": null', "{{{{", ""]
)
async def test_what_is_not_the_answer_is_not_shown(text: str) -> None:
    assert await show(FULL, texts=[text]) == []


async def test_no_parts_of_the_signal_of_a_choice_or_for_callers_who_want_it_whole() -> None:
    assert await show({"answer": "*"}, may_decline=False) == []
    assert await show({**FULL, "choice": "A"}, options=["the clerk", "the widow"]) == []
    with answer_whole():
        assert await show(FULL) == []


@pytest.mark.parametrize(
    ("reply", "last"),
    [(FULL, FULL["answer"]), ({"answer": "*", "supported": "none"}, ""), (BAD, "")],
    ids=["repaired", "declined", "unusable"],
)
async def test_what_was_shown_of_a_draft_is_taken_back(reply, last) -> None:
    seen = await show(reply, **({"texts": [DOCTOR]} if reply is BAD else {"drafts": [DOCTOR]}))
    assert seen.count("The doctor") == seen.count("") == 1
    assert seen[seen.index("The doctor") + 1] == ""
    assert seen[-1] == last


async def test_a_long_reply_is_read_in_linear_time() -> None:
    seen = await show(FULL, texts=['{"supported": "full", "answer": "' + "x" * 150_000])
    assert 10 < len(seen) < 3000
    assert seen[-1] == FULL["answer"], "the answer that counts takes the place of what was written"


async def test_what_need_not_be_the_last_answer_is_shown_only_if_it_is() -> None:
    partly = {**FULL, "supported": "partly"}
    assert (await show(partly))[-1] == FULL["answer"]
    with hold_back("none", "partly"):
        assert await show(partly) == []
        assert (await show(FULL))[-1] == FULL["answer"]
