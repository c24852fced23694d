"""Several neighbouring passages in one call: groups, items that cannot be used, what is kept, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.memory.memories import EMBEDDER, build_layer, build_layers, keep_replies, list_texts, put_passages

from tomewise import Tome
from tomewise.errors import BadReply, Refused, UsageError
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.roles import EXTRACT_FACTS, Batch, ExtractIn, PassageIn
from tomewise.language.together import ask_together, make_batch
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.neighbours import group_neighbours
from tomewise.run import ASKED_ALONE, meter
from tomewise.store.export import export
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel
from tomewise.types import Document

LINES = tuple(f"Ada Marsh saw boat number {number} at Skerry." for number in range(1, 8))
OpenStore = Callable[[], SqlStore]


@pytest.fixture
def story(store: SqlStore) -> SqlStore:
    put_passages(store, "story", *LINES)
    return store


def write_gist(given: PassageIn) -> dict[str, Any]:
    return {"notes": "", "memory": f"In short: {given.text}"}


def list_facts(given: PassageIn) -> dict[str, Any]:
    return {"entities": ["Ada Marsh"], "triples": [["Ada Marsh", "saw", given.text.split(" at ")[0]]]}


def play_each(play: Callable[[Any], dict[str, Any]]) -> Callable[[Any], Any]:
    """A reply for one passage, or for each of a batch under its label."""

    def reply(given: Any) -> Any:
        if not isinstance(given, Batch):
            return play(given)
        return {"passages": [{"label": f"P{n}", **play(each)} for n, each in enumerate(given.passages, start=1)]}

    return reply


def make_model(**settings: Any) -> ScriptedModel:
    return ScriptedModel({"gist": play_each(write_gist), "extract_facts": play_each(list_facts)}, **settings)


def list_asked(model: ScriptedModel) -> list[list[str]]:
    """The texts that each call showed."""
    return [[p.text for p in c.given.passages] if isinstance(c.given, Batch) else [c.given.text] for c in model.calls]


# ---------------------------------------------------------------- groups


def test_groups_follow_the_position_in_the_document_and_equal_passages_are_asked_once() -> None:
    inputs = {key: PassageIn(text=f"text {key}") for key in range(9)} | {9: PassageIn(text="text 8")}
    positions = {key: ("a", key) if key < 7 else ("b", key - 7) for key in range(10)}
    for order in (inputs, dict(reversed(inputs.items()))):
        groups = group_neighbours(order, positions, 3)
        assert groups.keys == ((0, 1, 2), (3, 4, 5), (6,), (7, 8))
        assert groups.copies == {9: 8}
    assert [len(keys) for keys in group_neighbours(inputs, positions, 1).keys] == [1] * 9


# ---------------------------------------------------------------- items that cannot be used

INPUTS = [ExtractIn(text=text) for text in LINES[:4]]
GOOD = [{"label": f"P{n}", **list_facts(given)} for n, given in enumerate(INPUTS, start=1)]


@pytest.mark.parametrize(
    ("items", "alone"),
    [
        pytest.param(GOOD, [], id="good"),
        pytest.param(
            [{**GOOD[0], "label": 1}, {**GOOD[1], "label": "passage 2"}, *GOOD[2:]], [], id="other forms of labels"
        ),
        pytest.param(GOOD[::-1], [], id="another order"),
        pytest.param(GOOD[:3], [3], id="missing"),
        pytest.param([*GOOD, {**GOOD[1]}], [1], id="twice"),
        pytest.param([*GOOD[:3], {**GOOD[3], "label": "P9"}], [3], id="unknown"),
        pytest.param([*GOOD[1:], {**GOOD[0], "label": None}], [0], id="no label"),
        pytest.param([{"label": "P1"}, "P2", None, *GOOD[2:]], [0, 1], id="no fields, no objects"),
        pytest.param([{**GOOD[0], "triples": "none"}, *GOOD[1:]], [0], id="another type"),
        pytest.param([{"label": "P1", "entities": ["Zanzibar"], "triples": []}, *GOOD[1:]], [0], id="another text"),
    ],
)
async def test_what_is_missing_or_malformed_is_asked_alone(items: list[Any], alone: list[int]) -> None:
    model = ScriptedModel({"extract_facts": lambda g: {"passages": items} if isinstance(g, Batch) else list_facts(g)})
    with meter() as used:
        outputs = await ask_together(model, EXTRACT_FACTS, INPUTS, 4)
    assert used.fallbacks == ({ASKED_ALONE: len(alone)} if alone else {})
    assert [output.triples for output in outputs] == [list_facts(given)["triples"] for given in INPUTS]
    assert list_asked(model) == [list(LINES[:4]), *([LINES[index]] for index in alone)]


@pytest.mark.parametrize("error", [Refused("no"), BadReply("no JSON")])
async def test_after_a_failed_call_every_passage_is_asked_alone(story: SqlStore, error: Exception) -> None:
    def reply(given: Any) -> Any:
        return error if isinstance(given, Batch) or "number 2 " in given.text else write_gist(given)

    model = ScriptedModel({"gist": reply})
    report = await build_layer(GistsLayer(story, model, together=4), story)
    assert len(model.calls) == 2 + 7
    assert (report.added, list(report.failed.values())) == (6, [str(error)])
    assert report.notes == (f"fallback: {ASKED_ALONE}: 7",)


def test_a_reply_without_one_usable_item_is_repaired() -> None:
    role, given = make_batch(EXTRACT_FACTS, INPUTS[:2], 2)
    assert role.output_tokens == 2 * EXTRACT_FACTS.output_tokens
    with pytest.raises(BadReply, match="P1, P2"):
        role.accept(given, role.output(passages=[{"label": "P1", "entities": ["Zanzibar"]}]))
    role.accept(given, role.output(passages=GOOD[:1]))


# ---------------------------------------------------------------- what is kept


async def test_passages_that_move_to_another_group_repeat_no_call(story: SqlStore) -> None:
    model = make_model()
    layer = GistsLayer(story, keep_replies(model, story), together=3)
    await build_layer(layer, story)
    model.calls.clear()
    put_passages(story, "story", "A new beginning.", *LINES)
    await build_layer(layer, story)
    # Before the second passage stands another text now; what is before the others is as it was.
    assert list_asked(model) == [["A new beginning.", LINES[0]]]
    assert sorted(list_texts(story, "gists")) == sorted(f"In short: {text}" for text in ("A new beginning.", *LINES))


async def test_with_the_extractive_model_the_memory_is_the_same_at_any_size(open_store: OpenStore) -> None:
    def make(store: SqlStore, together: int = 3) -> Sequence[Any]:
        model = keep_replies(ExtractiveModel(EMBEDDER), store)
        graphs = [GraphLayer(store, model, EMBEDDER, calls=calls, together=together) for calls in (1, 2)]
        return [GistsLayer(store, model, together=together), *graphs]

    exports = []
    for together in (1, 4):
        store = open_store()
        put_passages(store, "story", *LINES)
        put_passages(store, "twin", *LINES[:2], "Tom Hale rowed.")
        await build_layers(make(store, together), store)
        exports.append(list(export(store)))
    assert len(exports[0]) > 20
    assert exports[0] == exports[1]


# ---------------------------------------------------------------- costs and settings


def test_a_tome_says_that_it_was_built_with_another_size(tmp_path: Any) -> None:
    with Tome.open(tmp_path / "a.tome", model=make_model(), embedder=EMBEDDER) as tome:
        tome.add(Document(id="a", text="Ada Marsh saw boat number 1 at Skerry."))
        # All three read the same graph, which is up to date after the first build.
        for system, is_noted in (
            ("associative together=4", False),
            ("associative", True),
            ("hipporag2 extraction=facts together=2", True),
        ):
            notes = [note for layer in tome.build(system).layers for note in layer.notes]
            assert any("together=4 read what was there" in note and "--again" in note for note in notes) == is_noted
            assert any("together" in note for note in notes) == is_noted
        with pytest.raises(UsageError, match="together"):
            tome.build("cogitorag together=0")
