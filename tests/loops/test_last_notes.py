"""What a loop concluded last is in its last prompt, or was cut by the budget."""

from __future__ import annotations

import pytest
from tests.loops.doubles import EMBEDDER
from tests.stories import put_texts

from tomewise.language.extractive import ExtractiveModel
from tomewise.loops.evidence import FENCE, make_token_counter
from tomewise.memory.building import build
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import parse_variant
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Question

COUNT = make_token_counter(EMBEDDER)
THINGS = "amber tide lamp rope harbour frost ledger bell anchor chalk barley owl".split()
QUESTION = Question(text="Why did Ada Moy leave the lamp?")


def write_passage(number: int) -> str:
    thing, beside = THINGS[number % 12], THINGS[number * 5 % 11]
    return f"On day {number} Ada Moy kept the {thing} and the {beside}. " + f"The {thing} lay by the {beside}. " * 25


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = SqlStore.open(tmp_path_factory.mktemp("last") / "a.tome")
    put_texts(made, EMBEDDER, "story", *map(write_passage, range(36)))
    yield made
    made.close()


async def play(store, system: str, context: int, words: int) -> tuple[list[str], list[str]]:
    """What the last prompt notes, and the conclusions that were written for it: they stand in no passage."""
    written: list[tuple[int, str]] = []

    def conclude(about: str) -> str:
        attempts = [call.given.question for call in model.calls if call.role == "answer"]
        conclusion = f"So number {len(written)} of {about} concludes."
        written.append((attempts.count(QUESTION.text), conclusion))
        return "Ada sold it then. " * (words // 4) + conclusion

    replies = {
        "answer": lambda given: {"answer": "*" if given.question == QUESTION.text else conclude(given.question)},
        "probe": lambda given: {"probes": THINGS[len(given.past_probes) :][:3]},
        "encode": lambda given: {"cue": conclude(given.probe), "labels": ["E1", "E2"]},
        "fuse": lambda _: {"cue": conclude("all")},
        "step": lambda given: {"subquestion": THINGS[len(given.asked)], "finished": len(given.asked) > 2},
    }
    model = ScriptedModel(replies, others=ExtractiveModel(EMBEDDER))
    wired = parse_variant(f"{system} context={context}").wire(Kit(store, model, EMBEDDER))
    await build(wired.layers, store, lambda _: None)
    await answer_question(wired, QUESTION)
    last = max((attempt for attempt, _ in written), default=0)
    assert written, "the loop concluded something"
    return model.calls[-1].given.notes, [text for attempt, text in written if attempt == last]


SYSTEMS = ("comorag cycles=2", "hybrid+probe cycles=2", "investigate cycles=2", "hybrid+stepwise")


@pytest.mark.parametrize("context", [1200, 6000])
@pytest.mark.parametrize("system", SYSTEMS)
async def test_every_conclusion_is_in_the_last_prompt(store, system, context):
    notes, last = await play(store, system, context, 0)
    assert [text for text in last if not any(text in note for note in notes)] == []


@pytest.mark.parametrize("context", [1200, 6000])
@pytest.mark.parametrize("system", SYSTEMS[:-1])
async def test_what_the_budget_cuts_keeps_its_conclusion(store, system, context):
    notes, last = await play(store, system, context, 160)
    assert notes
    assert all(note.endswith("concludes.") for note in notes)
    missing = [text for text in last if not any(text in note for note in notes)]
    used = sum(size + FENCE for size in COUNT(notes))
    assert not missing or used + 100 + FENCE > context // 6, "only for want of room"


@pytest.mark.parametrize("window", [3000, 30000])
async def test_the_reader_of_thoughts_sees_what_was_collected_last(store, window):
    replies = {
        "answer": lambda _: {"answer": "*"},
        "think": lambda given: {"thought": f"It is about the {THINGS[len(given.thoughts)]}."},
    }
    model = ScriptedModel(replies, window=window)
    events = (
        await answer_question(parse_variant("hybrid+interleave").wire(Kit(store, model, EMBEDDER)), QUESTION)
    ).events
    shown = {piece.text for piece in model.calls[-1].given.evidence}
    searched = [event.detail["evidence"] for event in events if event.name == "searched"]
    new = [found for found in searched if found]
    assert new[-1][0]["text"] in shown
    assert window < 30000 or {piece["text"] for found in new for piece in found} == shown
