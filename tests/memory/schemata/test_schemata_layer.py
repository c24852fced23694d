"""The layer of schemata: equal for equal passages, whatever their history, and few calls for a change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.memories import EMBEDDER, TOPICS, build_layer, put_numbered, put_text, remove_numbered
from tests.store.plain_store import PlainStore

from tomewise.errors import BadReply
from tomewise.memory.building import estimate
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.memory.schemata.schemata_names import USUAL, SchemataNames, SchemataRules
from tomewise.store.export import export
from tomewise.testing import ScriptedModel, check_layer

NAMES = SchemataNames()
NAME = NAMES.layer
EXACT = SchemataRules(k=4)
EXACT_NAME = SchemataNames(EXACT.layer).layer


def make_model():
    return ScriptedModel({"summarise": lambda given: {"summary": " / ".join(text[:30] for text in given.texts)}})


def write_text(number, version=0):
    return f"{TOPICS[number % 3]} and {TOPICS[number % 2]} on day {number % 7} note {number}{' again' * version}"


def fill(store, numbers):
    put_numbered(store, numbers, write_text)


async def build_schemata(store, rules=USUAL, model=None):
    return await build_layer(SchemataLayer(store, model or make_model(), EMBEDDER, rules), store)


async def count_calls(store, rules=USUAL):
    model = make_model()
    await build_schemata(store, rules, model)
    return len(model.calls)


def read_memory(store):
    """The export without settings: an empty tome has none."""
    return [line for line in export(store) if '"kind": "setting"' not in line]


async def make_fresh(numbers, rules=EXACT, version=lambda number: 0):
    store = PlainStore()
    put_numbered(store, numbers, lambda number: write_text(number, version(number)))
    await build_schemata(store, rules)
    return store


@pytest.mark.parametrize("rules", [USUAL, EXACT, SchemataRules(clusters="disjoint")])
async def test_it_is_a_function_of_its_passages(open_store, rules) -> None:
    for open_new in (PlainStore, open_store) if rules is USUAL else (PlainStore,):
        await check_layer(lambda store: [SchemataLayer(store, make_model(), EMBEDDER, rules)], open_new, EMBEDDER)


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "remove", "replace"]), st.sets(st.integers(0, 59), min_size=1)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=30)
@given(STEPS, st.booleans())
async def test_any_history_ends_as_a_fresh_build_does(steps, builds_between) -> None:
    store, versions = PlainStore(), {}
    for verb, numbers in steps:
        for number in sorted(numbers, key=lambda number: number * 17 % 61):  # not in document order
            if verb == "remove":
                remove_numbered(store, [number] if versions.pop(number, None) is not None else [])
            elif verb == "replace" or number not in versions:
                versions[number] = versions.get(number, -1) + 1
                put_text(store, f"d{number:03}", write_text(number, versions[number]))
        if builds_between:
            await build_schemata(store, EXACT)
    await build_schemata(store, EXACT)
    fresh = await make_fresh(sorted(versions), version=versions.__getitem__)
    assert read_memory(store) == read_memory(fresh)


async def test_only_changed_clusters_are_summarised_and_the_estimate_says_how_many(store) -> None:
    fill(store, range(90))
    whole = await count_calls(store)
    before = {node.id for node in store.nodes(NAME).values()}
    fill(store, [90])
    (planned,) = await estimate([SchemataLayer(store, make_model(), EMBEDDER)], store)
    assert 0 < planned.cost.calls == await count_calls(store) < whole / 2
    assert len(before & {node.id for node in store.nodes(NAME).values()}) > len(before) / 2
    assert await count_calls(store) == 0


@pytest.mark.parametrize("fails", [2, 1000])
async def test_what_failed_is_recorded_and_made_later(store, fails) -> None:
    fill(store, range(30))
    refusals = iter(range(fails))

    def refuse_first(given):
        if next(refusals, None) is not None:
            return BadReply("no")
        return {"summary": " / ".join(text[:30] for text in given.texts)}

    report = await build_schemata(store, EXACT, ScriptedModel({"summarise": refuse_first}))
    assert {"no"} <= set(report.failed.values())
    assert set(report.failed.values()) <= {"no", "none of the members of the cluster could be summarised"}
    whole = await make_fresh(range(30))
    assert len(store.nodes(EXACT_NAME)) == max(0, len(whole.nodes(EXACT_NAME)) - fails)
    assert not (await build_schemata(store, EXACT)).failed
    assert read_memory(store) == read_memory(whole)
