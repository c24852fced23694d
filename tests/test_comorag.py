"""ComoRAG as published, over its own layers: ways in which the released code strays from the paper are absent.

The rows are numbered as in the comparison of code and paper: duplicates, budgets, options, failure test, fusing, errors
of the model. The others are of the loop alone: see `tests/loops/test_probe.py`.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from tests.stories import put_texts

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import ModelUnavailable
from tomewise.loops.evidence import make_token_counter
from tomewise.memory.building import build
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble, list_ablations
from tomewise.testing.scripted import NotingEmbedder, ScriptedModel
from tomewise.types import Answer, Event, Question

PASSAGES = 30
STEM = "When did the tide turn?"
ABLATIONS = list_ablations("comorag")
PUBLISHED = ABLATIONS["as published"]
DECLINED = {"answer": "*"}
ANSWERED = {"answer": "at nine"}


EMBEDDER = HashEmbedder()


def scene(number: int) -> str:
    return f"Scene {number}: the tide turned at {number} and Ada Marsh wrote that down in book {number % 7}."


def make_model(answers: list[Any], **others: Any) -> ScriptedModel:
    """Summaries that name what they sum up, no facts, probes and cues that name their input; `answers` in turn."""
    replies: dict[str, Any] = {
        "narrate": lambda given: {"summary": f"Episode of {given.texts[0][:8]} to {given.texts[-1][:8]}, the tide."},
        "summarise": lambda given: {"summary": f"Sum of {' '.join(text[:9] for text in given.texts)}, the tide."},
        "extract_facts": lambda given: {"entities": ["Ada Marsh", given.text[:8]], "triples": []},
        "probe": lambda given: {"probes": [f"tide probe {len(given.past_probes) + n}" for n in range(3)]},
        "encode": lambda given: {"cue": f"cue of {given.probe} in {given.layer}"},
        "fuse": lambda given: {"cue": f"fused {len(given.cues)}"},
        "answer": answers,
    }
    return ScriptedModel({**replies, **others})


@pytest.fixture(scope="module", autouse=True)
def _quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "umap", None)  # what is clustered by does not matter here
        yield


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A story of so many passages that nothing was built for, and one whose layers are built."""
    folder = tmp_path_factory.mktemp("library")
    store = SqlStore.open(folder / "new.tome")
    put_texts(store, EMBEDDER, "story", *(scene(number) for number in range(PASSAGES)))
    store.close()
    shutil.copy(folder / "new.tome", folder / "built.tome")
    store = SqlStore.open(folder / "built.tome")
    asyncio.run(build_layers(store, make_model([])))
    store.close()
    return folder


@pytest.fixture
def open_copy(library, tmp_path):
    """A copy of a tome of the library."""
    opened = []

    def copy(name: str) -> SqlStore:
        opened.append(SqlStore.open(shutil.copy(library / name, tmp_path / name)))
        return opened[-1]

    yield copy
    for store in opened:
        store.close()


@pytest.fixture
def new(open_copy):
    return open_copy("new.tome")


@pytest.fixture
def store(open_copy):
    return open_copy("built.tome")


async def build_layers(store: SqlStore, model: ScriptedModel) -> None:
    await build(assemble("comorag", Kit(store, model, EMBEDDER)).layers, store, lambda _: None)


async def ask_question(
    store: SqlStore, model: ScriptedModel, question: Question | str = STEM, base: Any = PUBLISHED,
    embedder: Any = EMBEDDER, **settings: Any,
) -> tuple[list[Event], Answer]:  # fmt: skip
    """The events and the answer of ComoRAG over the story, as published but for the settings given."""
    system = assemble("comorag", Kit(store, model, embedder), **{**base, **settings})
    question = Question(text=question) if isinstance(question, str) else question
    *events, answer = [what async for what in system.loop.run(question)]
    return events, answer


def list_inputs(model: ScriptedModel, role: str) -> list[Any]:
    return [call.given for call in model.calls if call.role == role]


def list_recalls(events: list[Event], *steps: int) -> list[Mapping[str, Any]]:
    return [event.detail for event in events if event.name == "recalled" and (not steps or event.step in steps)]


async def test_row_02_what_was_read_is_found_by_no_later_search_and_leaves_its_place_to_what_lies_deeper(store):
    events, _ = await ask_question(store, make_model([DECLINED] * 3 + [ANSWERED]), limit=2)
    found = [(unit["layer"], piece["node"]) for unit in list_recalls(events) for piece in unit["evidence"]]
    assert Counter(Counter(found).values()) == {1: len(found)}
    veridical = [len(unit["evidence"]) for unit in list_recalls(events) if unit["layer"] == "veridical"]
    assert veridical == [2] * (1 + 3 * 3), "each search finds two that no other had read"


async def test_row_03_relevance_decides_what_fits_and_layers_have_their_shares(store):
    model, budget = make_model([ANSWERED]), 700
    events, _ = await ask_question(store, model, context=budget, limit=PASSAGES)
    (attempt,) = list_inputs(model, "answer")
    count = make_token_counter(EMBEDDER)
    size = {piece.text: tokens + 12 for piece in attempt.evidence for tokens in count([piece.text])}
    shown = {
        kind: [piece.text for piece in attempt.evidence if piece.kind == kind]
        for kind in ("passage", "summary", "episode")
    }
    ranked = {unit["layer"]: [piece["text"] for piece in unit["evidence"]] for unit in list_recalls(events)}
    passages, largest = shown["passage"], max(size.values())
    assert 2 < len(passages) < PASSAGES
    assert {*passages} == {*ranked["veridical"][: len(passages)]}, "the most relevant and not the earliest"
    assert {*passages} != {scene(number) for number in range(len(passages))}
    assert passages == sorted(passages, key=lambda text: int(text.split()[1][:-1])), "in order"
    used = {kind: sum(size[text] for text in texts) for kind, texts in shown.items()}
    assert abs(used["passage"] - budget * 9 // 13) <= largest, "its 8 parts and that of history, which has nothing"
    assert 0 < used["episode"] <= budget * 2 // 13 + largest
    assert 0 < used["summary"] <= budget * 2 // 13 + largest
    assert sum(used.values()) <= budget


async def test_row_03_cues_and_history_count_too(store):
    model = make_model(
        [DECLINED] * 3 + [ANSWERED],
        encode=lambda given: {"cue": f"{given.probe} {'tide ' * 60}"},
        fuse=lambda _: {"cue": "so much " * 400},
    )
    budget = 700
    await ask_question(store, model, context=budget, cycles=2)
    count = make_token_counter(EMBEDDER)
    for attempt in list_inputs(model, "answer"):
        texts = [*(piece.text for piece in attempt.evidence), *attempt.notes]
        assert 0 < sum(count(texts)) <= budget
        assert attempt.evidence, "however long cues are"


async def test_row_04_options_reach_the_answering_role_alone_and_it_may_always_decline_but_at_the_end(store):
    question = Question(text=STEM, options=("by lamplight", "at noon"))
    model, heard = make_model([DECLINED] * 3 + [{"answer": "at noon", "choice": "B"}]), NotingEmbedder()
    _, answer = await ask_question(store, model, question, embedder=heard, cycles=2, limit=2)
    assert answer.choice == "B"
    attempts = list_inputs(model, "answer")
    assert [attempt.may_decline for attempt in attempts] == [True, True, True, False]
    assert all(attempt.options == list(question.options) for attempt in attempts)
    assert {call.role for call in model.calls if "lamplight" in call.given.model_dump_json()} == {"answer"}
    assert heard.texts
    assert not [text for text in heard.texts if "lamplight" in text]


@pytest.mark.parametrize("text", ["*.", '"*"', ""])
async def test_row_05_a_failure_in_any_dress_starts_the_loop(store, text):
    model = make_model([{"answer": text}, ANSWERED])
    _, answer = await ask_question(store, model)
    assert len(list_inputs(model, "probe")) == 1
    assert (answer.text, answer.forced) == ("at nine", False)


async def test_row_10_fused_is_the_half_of_the_pool_before_the_cycle_that_is_nearest_to_the_question(store):
    cues = {"veridical": "the lamp was lit", "semantic": STEM, "episodic": "bread and butter"}
    model = make_model(
        [DECLINED] * 3 + [ANSWERED], encode=lambda given: {"cue": f"{cues[given.layer]} {given.probe[:0]}"}
    )
    events, _ = await ask_question(store, model, limit=2, cycles=2)
    first, second = list_inputs(model, "fuse")
    assert first.cues == [STEM], "of three cues half is one"
    units = sum(bool(unit["evidence"]) for unit in list_recalls(events, 0, 1))
    assert len(second.cues) == units // 2
    ranking = EMBEDDER.embed(list(cues.values())) @ EMBEDDER.embed([STEM])[0]
    nearness = dict(zip(cues.values(), ranking.tolist(), strict=True))
    assert [nearness[cue] for cue in second.cues] == sorted((nearness[cue] for cue in second.cues), reverse=True)


GONE = ModelUnavailable("quota is used up")


@pytest.mark.parametrize("role", ["narrate", "summarise", "extract_facts"])
async def test_row_12_nor_does_it_become_a_memory(new, role):
    with pytest.raises(ModelUnavailable, match="quota"):
        await build_layers(new, make_model([], **{role: lambda _: GONE}))
    for layer in new.layers():
        assert not [node.text for node in new.nodes(layer).values() if "quota" in node.text or not node.text]


@pytest.mark.parametrize(
    ("settings", "used", "resolved"),
    [
        (PUBLISHED, {"answer": 4, "probe": 2, "fuse": 2, "encode": 14}, True),
        ({}, {"answer": 3, "probe": 2, "fuse": 1, "encode": 4}, False),
    ],
    ids=["as published", "best so far"],
)
async def test_the_best_so_far_takes_fewer_calls_and_declines_in_the_end(store, settings, used, resolved):
    model = make_model([DECLINED] * 3 + [ANSWERED])
    _, answer = await ask_question(store, model, base=settings, cycles=2, limit=2)
    assert answer.resolved == resolved
    assert Counter(call.role for call in model.calls) == used
