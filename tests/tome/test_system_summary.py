"""What `tome systems NAME` states, and that the parts keep to the calls that they state."""

from __future__ import annotations

import asyncio
import sys

import pytest
from tests.stories import put_texts
from tests.test_ablations import EMBEDDER, QUESTION, TEXTS, make_model

from tomewise.calls import NO_CALLS
from tomewise.memory.building import build
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import SYSTEMS, parse_variants
from tomewise.tome.system_summary import summarise_system
from tomewise.types import Question

VARIANTS = parse_variants(["all", *(f"{name}:all" for name in SYSTEMS if "+" not in name), "comorag stride=1 levels=2"])
# Searches that find little at a time, so that a loop goes on to its last cycle.
DEEPEST = {
    "comorag": 65,
    "investigate": 33,
    "cogitorag": 2,
    "graphrag:drift": 67,
}


@pytest.fixture(scope="module", autouse=True)
def without_umap():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "umap", None)  # it takes seconds to import
        yield


def run_scripted(variant, tmp_path):
    """The calls of a build, and those of a question."""
    store = SqlStore.open(tmp_path / "a.tome")
    put_texts(store, EMBEDDER, "story", *TEXTS)
    built, asked = make_model(), make_model()
    asyncio.run(build(variant.wire(Kit(store, built, EMBEDDER)).layers, store, lambda _: None))
    asyncio.run(answer_question(variant.wire(Kit(store, asked, EMBEDDER)), Question(text=QUESTION, force=True)))
    store.close()
    return built.calls, asked.calls


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_scripted_run_keeps_to_the_stated_calls(variant, tmp_path):
    stated = summarise_system(variant)
    built, asked = run_scripted(variant, tmp_path)
    assert stated.index.most is not None
    assert len(built) <= stated.index.most * len(TEXTS)
    assert bool(built) == (stated.index != NO_CALLS)
    if stated.ask.most is None:
        # The bound depends on the length of the texts, or on the system that is chosen.
        assert any(words in stated.ask.formula for words in ("a chunk", "a batch of reports", "that is chosen"))
        return
    assert 1 <= len(asked) <= stated.ask.most
    if variant.name in DEEPEST:
        assert stated.ask.most == DEEPEST[variant.name]


DEEP = "comorag cycles=3 limit=1 semantic=0"


@pytest.mark.parametrize("text", ["hybrid+probe cycles=4 limit=1", DEEP, "naive", "hipporag2"])
def test_the_bound_of_a_question_is_reached(text, tmp_path):
    """A bound that no run reaches would say little: here every cycle finds something new, and each answer fails."""
    (variant,) = parse_variants([text])
    most = summarise_system(variant).ask.most
    assert most is not None
    _, asked = run_scripted(variant, tmp_path)
    assert most - 1 <= len(asked) <= most  # a single cue is not fused, so the first cycle has one call less
