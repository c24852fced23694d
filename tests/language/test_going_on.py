"""Replies that were cut and go on: what came is kept, and what is written again stands once."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.language.openai_server import OpenAIServer, in_turn, open_chat, reply_with

from tomewise.language.chat import ChatModel
from tomewise.language.reply import join_reply, leave_last_word
from tomewise.language.roles import ANSWER, AnswerIn, AnswerOut
from tomewise.language.usage import estimate_tokens
from tomewise.language.wrapped import find_room

pytestmark = pytest.mark.usefixtures("here")  # no key, no proxy
HEAD = '{"quotes": [], "reasoning": "They are counted.", "supported": "full", "answer": "'
ASKED = AnswerIn(question="Who lit each lamp?")
NUMBERS = st.lists(st.integers(100, 999), min_size=8, max_size=40, unique=True)
LATIN = NUMBERS.flatmap(
    lambda numbers: st.lists(st.sampled_from([" ", ", ", "\n"]), min_size=len(numbers), max_size=len(numbers)).map(
        lambda gaps: "".join(f"word{number}{gap}" for number, gap in zip(numbers, gaps, strict=True)).rstrip(" ,\n")
    )
)
CHINESE = st.lists(st.integers(0x4E00, 0x9FFF).map(chr), min_size=60, max_size=90, unique=True).map("".join)


@given(LATIN, st.data())
def test_words_that_are_written_again_stand_once_and_no_other_is_lost(text: str, data: st.DataObject) -> None:
    begun = leave_last_word(text[: data.draw(st.integers(1, len(text) - 1))])
    words = begun.split()
    again = data.draw(st.integers(2, 6).filter(lambda count: count <= len(words)) if words[1:] else st.just(0))
    start = begun.rindex(words[-again]) if again else len(begun)
    assert join_reply(begun, text[start:]) == text
    assert join_reply(begun, text[len(begun) :]) == text, "nothing is written again"


@given(CHINESE, st.data())
def test_a_script_without_blanks_is_compared_sign_by_sign(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(45, len(text) - 1))
    again = data.draw(st.integers(4, 30))
    assert join_reply(leave_last_word(text[:cut]), text[cut - again :]) == text
    assert join_reply(leave_last_word(text[:cut]), text[cut:]) == text


@given(st.sampled_from(["7, ", "no ", "10 20 ", "Ada lit it. "]), st.integers(1, 5), st.integers(1, 5))
def test_what_repeats_before_the_seam_is_not_taken_for_a_repetition(unit: str, behind: int, more: int) -> None:
    before = behind + more
    assert join_reply(unit * before, unit * behind + "end") == unit * (before + behind) + "end"


@pytest.mark.parametrize(
    ("begun", "rest", "joined"),
    [
        ("The scores were 7, 7, 7, 7", "7, 8 and 9.", "The scores were 7, 7, 7, 7, 8 and 9."),
        ("He had ha", "had enough of it.", "He had had enough of it."),
        ("It was said that that", "that man came.", "It was said that that man came."),
        (r"- one\n- two\n- thr", r"- three\n- four", r"- one\n- two\n- three\n- four"),
        (r"1. Ada\n2. Bo", r"2. Boris\n3. Clara", r"1. Ada\n2. Boris\n3. Clara"),
        (r"| x1 | y1 |\n| x2 | y", "| x2 | y2 |", r"| x1 | y1 |\n| x2 | y2 |"),
        ("He counted 7 a", "- 8 of them", "He counted 7 - 8 of them"),
        ("a | 10 | 10 | 1", "10 | 12 |", "a | 10 | 10 | 10 | 12 |"),
    ],
)
def test_no_value_is_lost_at_a_seam(begun: str, rest: str, joined: str) -> None:
    assert join_reply(leave_last_word(begun), rest) == joined
    assert join_reply(leave_last_word(f"{HEAD}So: {begun}"), f'{rest}"}}') == f'{HEAD}So: {joined}"}}'


async def go_on(begun: str, *more: str) -> AnswerOut:
    """The answer of a model that is cut after `begun`, and then writes `more`."""
    replies = [reply_with(begun, finish="length"), *map(reply_with, more)]
    async with open_chat(*replies) as (model, _):
        return await model.ask(ANSWER, ASKED)


ITEMS = [f"- lamp {number} is here" for number in range(80)]
BEGUN = HEAD + r"\n".join(ITEMS) + r"\n- lamp 80 is he"
WHOLE = "\n".join([*ITEMS, '- lamp 80 is here\n- lamp "81" is here'])
REST = r'here\n- lamp \"81\" is here", "missing": ""}'


def test_a_table_that_is_cut_anywhere_is_joined_as_it_was() -> None:
    table = HEAD + r"| Name | Born |\n|---|---|\n| Ada Marsh | 1812 |\n| Bo Reed | 1820 |" + '"}'
    cuts = (leave_last_word(table[:cut]) for cut in range(len(HEAD) + 3, len(table) - 2))
    assert {join_reply(begun, table[len(begun) :]) for begun in cuts} == {table}


@pytest.mark.parametrize(
    "rest",
    ["Here Ada remained until 1950.\nThen she left.", 'x = d["a"]\ny = 2\nThat is all.', "```py\nx = 1\n```\nStop."],
)
async def test_no_line_of_a_plain_rest_is_taken_for_a_frame(rest: str) -> None:
    output = await go_on(HEAD + "It is so: ", rest)
    assert (output.answer, output.unfinished) == (f"It is so: {rest}", "")


@pytest.mark.parametrize(
    "rest",
    [
        REST,
        'here\n- lamp "81" is here',
        'here\n- lamp "81" is here"}\nThat is all.',
        f"Sure! Here is the rest:\n\n{REST}",
        f"```json\n{REST}\n```",
        '```\nhere\n- lamp "81" is here\n```',
        HEAD + REST,
        json.dumps({"quotes": [], "supported": "full", "answer": WHOLE}),
        f"<think>Where was I?</think>{REST}",
    ],
)
async def test_a_rest_is_read_in_whichever_form_it_comes(rest: str) -> None:
    output = await go_on(BEGUN, rest)
    assert (output.answer, output.unfinished, output.claim) == (WHOLE, "", "full")


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("I'm sorry, I cannot continue.", "wrote no more"),
        (HEAD + r"\n".join(ITEMS[:9]) + '"}', "wrote no more"),
        ('{"missing": "', "wrote no more"),
        ('here", "missing": \\', "wrote no more"),
        (r"\alpha is the first", "wrote no more"),
    ],
)
async def test_what_came_is_kept_where_its_rest_is_none(rest: str, reason: str) -> None:
    output = await go_on(BEGUN, rest)
    assert output.answer.splitlines()[:80] == ITEMS
    assert reason in output.unfinished


def test_a_new_item_beside_an_unfinished_one_has_a_line_of_its_own() -> None:
    assert join_reply("- one is here\n- two ", "- three is here") == "- one is here\n- two\n- three is here"


def test_equal_lines_of_prose_stay() -> None:
    assert join_reply("7\n7\n", "7\n8") == "7\n7\n7\n8"


async def test_a_new_object_is_no_rest_of_prose() -> None:
    output = await go_on("\n".join(ITEMS), HEAD + '- lamp 1"}')
    assert output.answer.splitlines()[:79] == ITEMS[:79]
    assert "wrote no more" in output.unfinished


@pytest.mark.parametrize(
    ("name", "window"), [("gpt-4", None), ("large", 8_192), ("large", 9_000), ("qwen2.5-1.5b", 32_768)]
)
async def test_a_prompt_leaves_the_room_that_its_reply_may_take(name: str, window: int | None) -> None:
    with OpenAIServer(in_turn(reply_with(HEAD + 'Ada"}'))) as server:
        model = ChatModel(f"openai:{name}", base_url=server.url, api_key="k", window=window)
        await model.ask(ANSWER, ASKED)
        assert model.window - find_room(model, ANSWER) == server.requests[0]["max_tokens"]
        await model.close()


async def test_a_request_to_go_on_fits_the_window_with_all_that_is_sent() -> None:
    long = AnswerIn(question="Who? " * 2_200)
    with OpenAIServer(in_turn(reply_with(BEGUN, finish="length"), reply_with(REST))) as server:
        model = ChatModel("openai:large", base_url=server.url, api_key="k", window=9_000)
        output = await model.ask(ANSWER, long)
        assert (output.answer, output.unfinished) == (WHOLE, "")
        again = server.requests[1]
        sent = sum(estimate_tokens(message["content"]) for message in again["messages"])
        assert sent + again["max_tokens"] <= 9_000
        assert again["max_tokens"] < ANSWER.output_tokens, "the window is what bounds it"
        await model.close()
