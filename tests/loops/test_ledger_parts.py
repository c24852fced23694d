"""How much of a text and of a ledger fits into a window, with the prompts of a real model."""

from __future__ import annotations

import re

import pytest
from tests.loops.doubles import Shelves, make_desk

from tomewise.errors import UsageError
from tomewise.language.chat import ChatModel
from tomewise.loops.chunking import Chunking
from tomewise.loops.ledger_parts import Cycle, LedgerParts
from tomewise.loops.single_note import NoteReading
from tomewise.types import Question

ASKED = Question(text="Who kept the light?")
OF_FACT = 60  # tokens of a fact with its quotation, as a strong model writes it


def make_parts(window, **cycle):
    desk = make_desk(None, ChatModel("openai:test", window=window))
    return LedgerParts(Shelves({}), desk, Chunking(desk, size=64_000), Cycle(**cycle))


@pytest.mark.parametrize(
    ("window", "facts", "chunk"), [(8_192, 30, 3_000), (16_384, 80, 8_000), (131_072, 130, 64_000)]
)
def test_chunk_and_ledger_are_in_balance(window, facts, chunk):
    parts = make_parts(window)
    assert parts.measure_ledger(ASKED) >= facts * OF_FACT
    assert parts.measure_chunk(ASKED) >= chunk
    assert parts.measure_ledger(ASKED) <= 8_000


def test_a_window_that_is_too_small_is_refused_with_what_is_needed():
    with pytest.raises(UsageError, match=r"openai:test takes 4,096 tokens, .* needs [\d,]+: .* set `window`") as error:
        make_parts(4_096).measure_chunk(ASKED)
    needed = int(re.search(r"needs ([\d,]+)", str(error.value))[1].replace(",", ""))
    assert make_parts(needed).measure_ledger(ASKED) >= 990
    with pytest.raises(UsageError, match="too few"):
        make_parts(needed - 10).measure_chunk(ASKED)
    with pytest.raises(UsageError, match="3,000 tokens, too few"):
        NoteReading(make_desk(None, ChatModel("openai:test", window=3_000)), words=400).measure_room(ASKED)


def test_a_ledger_without_a_limit_needs_no_room_of_its_own():
    assert make_parts(16_384, memory=0).measure_ledger(ASKED) is None


@pytest.mark.parametrize(
    ("chunk", "left", "facts"),
    [(64_000, None, 60), (8_000, 9_000, 40), (8_000, 1_200, 20), (8_000, 0, 8), (100, 999, 8)],
)
def test_the_facts_that_are_asked_for_scale_with_the_chunk_and_with_what_is_left(chunk, left, facts):
    assert make_parts(16_384).count_wanted(chunk, left) == facts
