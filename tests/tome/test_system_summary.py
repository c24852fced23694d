"""What `tome systems NAME` states, and that the parts keep to the calls that they state."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field
from tests.stories import put_texts
from tests.test_ablations import EMBEDDER, QUESTION, TEXTS, make_model

from tomewise.calls import NO_CALLS, NOT_STATED, CallCount, sum_calls
from tomewise.memory.building import build
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit, System, answer_once
from tomewise.systems.registry import SYSTEMS, choose_variant, parse_variants
from tomewise.tome.system_summary import describe_type, summarise_system
from tomewise.types import Question

VARIANTS = parse_variants(["all", *(f"{name}:all" for name in SYSTEMS if "+" not in name), "comorag stride=1 levels=2"])
# Searches that find little at a time, so that a loop goes on to its last cycle.
DEEPEST = {
    "comorag": 33,
    "comorag:as published": 65,
    "raptor+probe": 33,
    "hipporag2+probe": 49,
    "cogitorag": 2,
    "graphrag:drift": 17,
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


DEEP = "comorag cycles=3 limit=1 semantic=0 recall=associative"  # here no two probes of a cycle share a call


@pytest.mark.parametrize("text", ["hybrid+probe cycles=4 limit=1", DEEP, "naive", "hipporag2"])
def test_the_bound_of_a_question_is_reached(text, tmp_path):
    """A bound that no run reaches would say little: here every cycle finds something new, and each answer fails."""
    (variant,) = parse_variants([text])
    most = summarise_system(variant).ask.most
    assert most is not None
    _, asked = run_scripted(variant, tmp_path)
    assert most - 1 <= len(asked) <= most  # a single cue is not fused, so the first cycle has one call less


def test_formulas_come_from_the_parts(tmp_path):
    formulas = {name: summarise_system(parse_variants([name])[0]) for name in SYSTEMS}
    assert formulas["naive"].ask.formula == "1"
    assert formulas["comorag"].ask.formula == "2 + 6 a cycle + 1 for a forced answer, at most 33 in 5 cycles"
    assert formulas["hipporag2"].index.formula == "1 a passage"
    assert formulas["cosmir"].ask.formula == "1 + 3 a chunk, at most 20% of the text read twice + 1"
    (waves,) = parse_variants(["cosmir:without recovery wave=8"])
    assert summarise_system(waves).ask.formula == "1 + 1 a chunk + 2 a wave of 8 + 1"
    assert formulas["chain_of_agents"].ask.formula == "1 a chunk + 1"
    assert "gists: 1 a passage and 1 more" in formulas["cogitorag"].index.formula
    (two,) = parse_variants(["hipporag2 extraction='entities then triples'"])
    assert summarise_system(two).index == CallCount("2 a passage", 2)


class _Loop:
    async def run(self, question):
        yield None


def test_a_loop_from_outside_need_not_state_its_calls():
    class Searching:
        async def retrieve(self, query, limit, *, within=None):
            return []

    def own(kit: Kit) -> System:
        return System(loop=_Loop())

    def around(kit: Kit) -> System:
        return answer_once(kit, Searching(), 3, 500)

    assert summarise_system(choose_variant(own)).ask == NOT_STATED
    assert summarise_system(choose_variant(around)).ask == CallCount("1 + not stated", None)
    assert sum_calls([CallCount("1", 1), NOT_STATED]).most is None


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (int, "integer"),
        (Annotated[int, Field(ge=0, lt=9)], "integer from 0 below 9"),
        (Literal["a", "b"], '"a" | "b"'),
        (Literal["a"], '"a"'),
        (Mapping[str, int], "object"),
        (int | None, "integer | null"),
        (Any, "any value"),
        (Path, "string"),
        (Kit, "Kit"),
    ],
)
def test_types_in_words(type_, words):
    assert words in describe_type(type_)


def test_the_command_shows_one_system(command):
    ran = command("systems", "comorag cycles=2")
    assert ran.code == 0
    for line in ("ask: 2 + 6 a cycle", "at most 15 in 2 cycles", "cycles (integer from 0) default 5, here 2"):
        assert line in ran.out
    assert "without veridical: veridical=0" in ran.out
    assert "episodes (from passages)" in ran.out
    shown = json.loads(command("systems", "cogitorag", "--json").out)
    assert shown["ask"] == {"formula": "1 + 1", "most": 2}
    assert [layer["name"] for layer in shown["layers"]] == ["gists", "graph:gists-triples"]
    assert shown["ablations"]["without diffusion"] == {"spreading": "one step"}
    settings = {setting["name"]: setting for setting in shown["settings"]}
    alpha = {"name": "alpha", "type": "number from 0", "default": 2.0, "required": False, "value": 2.0}
    assert alpha.items() <= settings["alpha"].items()
    assert shown["kind"] == "one search"
    limit = {"help": "pieces of evidence that a search finds at most", "multiplies": "evidence", "most": 1000}
    assert limit.items() <= settings["limit"].items()
    assert command("systems", "comorga").code == 2
