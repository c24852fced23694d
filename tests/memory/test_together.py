"""Several neighbouring passages in one call: groups, items that cannot be used, what is kept, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tomewise import Tome
from tomewise.errors import BadReply, BudgetExceeded, ModelUnavailable, Refused, UsageError
from tomewise.evaluate.memories import build_layers
from tomewise.fallbacks import ASKED_ALONE, write_notes
from tomewise.language.cached import Cached
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.language.roles import EXTRACT_FACTS, GIST, ExtractIn, GistIn, PassageIn
from tomewise.language.together import Batch, ask_together, make_batch, make_batch_role
from tomewise.memory.build_records import forget_layer
from tomewise.memory.building import build, estimate
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.neighbours import group_neighbours
from tomewise.memory.renewal import forget_memory
from tomewise.run import meter
from tomewise.store.export import export
from tomewise.store.records import BUILDS, SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_layer
from tomewise.types import Document, Passage, Progress, content_id

EMBEDDER = HashEmbedder(32)
LINES = tuple(f"Ada Marsh saw boat number {number} at Skerry." for number in range(1, 8))


def quiet(_: Progress) -> None:
    pass


def put(store: SqlStore, name: str, texts: Sequence[str]) -> None:
    """Add a document that is cut into these texts."""
    passages, start = [], 0
    for position, text in enumerate(texts):
        end = start + len(text)
        node = content_id("p", name, start, end, text)
        passages.append(Passage(id=node, document=name, position=position, start=start, end=end, text=text))
        start = end + 1
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(EMBEDDER.dimensions))
        keys = change.put_document(Document(id=name, text="\n".join(texts)), content_id("d", *texts), passages)
        change.put_vectors("passages", keys, EMBEDDER.embed(texts))


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    store = SqlStore.open(tmp_path / "a.tome")
    put(store, "story", LINES)
    return store


def gist(given: PassageIn) -> dict[str, Any]:
    return {"notes": "", "memory": f"In short: {given.text}"}


def facts(given: PassageIn) -> dict[str, Any]:
    return {"entities": ["Ada Marsh"], "triples": [["Ada Marsh", "saw", given.text.split(" at ")[0]]]}


def by_passage(play: Callable[[Any], dict[str, Any]]) -> Callable[[Any], Any]:
    """A reply for one passage, or for each of a batch under its label."""

    def reply(given: Any) -> Any:
        if not isinstance(given, Batch):
            return play(given)
        return {"passages": [{"label": f"P{n}", **play(each)} for n, each in enumerate(given.passages, start=1)]}

    return reply


def list_texts(model: ScriptedModel) -> list[list[str]]:
    """The texts that each call showed."""
    return [[p.text for p in c.given.passages] if isinstance(c.given, Batch) else [c.given.text] for c in model.calls]


def texts(store: SqlStore) -> list[str]:
    return sorted(node.text for node in store.nodes("gists").values())


ALL = sorted(f"In short: {text}" for text in LINES)


# ---------------------------------------------------------------- groups


def test_groups_follow_the_position_in_the_document_and_equal_passages_are_asked_once() -> None:
    inputs = {key: PassageIn(text=f"text {key}") for key in range(9)} | {9: PassageIn(text="text 8")}
    positions = {key: ("a", key) if key < 7 else ("b", key - 7) for key in range(10)}
    for order in (inputs, dict(reversed(inputs.items()))):
        groups = group_neighbours(order, positions, 3)
        assert groups.keys == ((0, 1, 2), (3, 4, 5), (6,), (7, 8))
        assert groups.copies == {9: 8}
    assert [len(keys) for keys in group_neighbours(inputs, positions, 1).keys] == [1] * 9


async def test_one_call_holds_neighbours_of_one_document(store: SqlStore) -> None:
    put(store, "another", ("Tom Hale sold a boat.",))
    model = ScriptedModel({"gist": by_passage(gist)})
    await build([GistsLayer(store, model, together=3)], store, quiet)
    wanted = [list(LINES[:3]), list(LINES[3:6]), [LINES[6]], ["Tom Hale sold a boat."]]
    assert sorted(list_texts(model)) == sorted(wanted)
    assert texts(store) == sorted([*ALL, "In short: Tom Hale sold a boat."])
    assert store.notes(BUILDS)["gists"]["together"] == [3]


@pytest.mark.parametrize("together", [0, 17])
def test_a_size_that_no_call_may_hold_is_refused(store: SqlStore, together: int) -> None:
    with pytest.raises(UsageError, match="1 to 16"):
        GistsLayer(store, ScriptedModel({}), together=together)
    with pytest.raises(UsageError, match="one text at a time"):
        GraphLayer(store, ScriptedModel({}), EMBEDDER, style="relations", together=2)


# ---------------------------------------------------------------- items that cannot be used

INPUTS = [ExtractIn(text=text) for text in LINES[:4]]
GOOD = [{"label": f"P{n}", **facts(given)} for n, given in enumerate(INPUTS, start=1)]


@pytest.mark.parametrize(
    ("items", "alone"),
    [
        (GOOD, []),
        ([{**GOOD[0], "label": 1}, {**GOOD[1], "label": "passage 2"}, *GOOD[2:]], []),
        (GOOD[::-1], []),
        (GOOD[:3], [3]),  # missing
        ([*GOOD, {**GOOD[1]}], [1]),  # twice
        ([*GOOD[:3], {**GOOD[3], "label": "P9"}], [3]),  # unknown
        ([*GOOD[1:], {**GOOD[0], "label": None}], [0]),
        ([{"label": "P1"}, "P2", None, *GOOD[2:]], [0, 1]),  # no fields, no objects
        ([{**GOOD[0], "triples": "none"}, *GOOD[1:]], [0]),  # of another type
        ([{"label": "P1", "entities": ["Zanzibar"], "triples": []}, *GOOD[1:]], [0]),  # of another text
    ],
    ids=str,
)
async def test_what_is_missing_or_malformed_is_asked_alone(items: list[Any], alone: list[int]) -> None:
    model = ScriptedModel({"extract_facts": lambda g: {"passages": items} if isinstance(g, Batch) else facts(g)})
    outputs = await ask_together(model, EXTRACT_FACTS, INPUTS, 4)
    assert [output.triples for output in outputs] == [facts(given)["triples"] for given in INPUTS]
    assert list_texts(model) == [list(LINES[:4]), *([LINES[index]] for index in alone)]


@pytest.mark.parametrize("error", [Refused("no"), BadReply("no JSON")])
async def test_after_a_failed_call_every_passage_is_asked_alone(store: SqlStore, error: Exception) -> None:
    def reply(given: Any) -> Any:
        if isinstance(given, Batch) or "number 2 " in given.text:
            return error
        return gist(given)

    model = ScriptedModel({"gist": reply})
    (report,) = await build([GistsLayer(store, model, together=4)], store, quiet)
    assert len(model.calls) == 2 + 7
    assert (report.added, list(report.failed.values())) == (6, [str(error)])
    assert list(report.notes) == write_notes({ASKED_ALONE: 7})
    assert store.notes(BUILDS)["gists"]["fallbacks"][ASKED_ALONE] == 7


def test_a_reply_without_one_usable_item_is_repaired() -> None:
    role = make_batch_role(EXTRACT_FACTS, 2)
    given = make_batch(INPUTS[:2], 2)
    assert role.output_tokens == 2 * EXTRACT_FACTS.output_tokens
    with pytest.raises(BadReply, match="P1, P2"):
        role.accept(given, role.output(passages=[{"label": "P1", "entities": ["Zanzibar"]}]))
    role.accept(given, role.output(passages=GOOD[:1]))


@pytest.mark.parametrize("error", [ModelUnavailable("down"), BudgetExceeded("spent")])
async def test_an_error_that_every_call_would_raise_is_raised(error: Exception) -> None:
    model = ScriptedModel({"gist": lambda given: error})
    with pytest.raises(type(error)):
        await ask_together(model, GIST, [GistIn(text=text) for text in LINES[:2]], 2)
    assert len(model.calls) == 1


# ---------------------------------------------------------------- what is kept


async def test_a_build_that_was_stopped_repeats_no_call(store: SqlStore) -> None:
    down = True

    def reply(given: Any) -> Any:
        last = given.passages[-1].text if isinstance(given, Batch) else given.text
        return ModelUnavailable("down") if down and last == LINES[-1] else by_passage(facts)(given)

    model = ScriptedModel({"extract_facts": reply}, limit=1)
    layer = GraphLayer(store, Cached(model, Prompts(), store.calls), EMBEDDER, together=2)
    with pytest.raises(ModelUnavailable):
        await build([layer], store, quiet)
    store.calls.close()
    model.calls.clear()
    down = False
    reopened = SqlStore.open(store.path)
    layer = GraphLayer(reopened, Cached(model, Prompts(), reopened.calls), EMBEDDER, together=2)
    await build([layer], reopened, quiet)
    repeated = [text for call in list_texts(model) for text in call]
    assert len(repeated) < len(LINES)
    assert LINES[-1] in repeated
    model.calls.clear()
    forget_memory([], [layer], reopened)
    with reopened.write() as change:
        forget_layer(change, layer.name)
    await build([layer], reopened, quiet)
    assert model.calls == []


async def test_passages_that_move_to_another_group_repeat_no_call(store: SqlStore) -> None:
    model = ScriptedModel({"gist": by_passage(gist)})
    layer = GistsLayer(store, Cached(model, Prompts(), store.calls), together=3)
    await build([layer], store, quiet)
    model.calls.clear()
    put(store, "story", ("A new beginning.", *LINES))
    await build([layer], store, quiet)
    # Before the second passage stands another text now; what is before the others is as it was.
    assert list_texts(model) == [["A new beginning.", LINES[0]]]
    assert texts(store) == sorted([*ALL, "In short: A new beginning."])


async def test_replies_of_calls_of_another_size_are_not_used(store: SqlStore) -> None:
    model = ScriptedModel({"gist": by_passage(gist)})
    cached = Cached(model, Prompts(), store.calls)
    # Of the third size, a group of one passage is the same request as for the first size.
    for together, calls in ((1, 7), (4, 2), (3, 2), (4, 0)):
        model.calls.clear()
        layer = GistsLayer(store, cached, together=together)
        with store.write() as change:
            change.remove_nodes(store.node_keys("gists"))
            forget_layer(change, "gists")
        await build([layer], store, quiet)
        assert len(model.calls) == calls


async def test_a_build_that_asks_again_does_not_use_what_was_kept(store: SqlStore) -> None:
    model = ScriptedModel({"gist": by_passage(gist)})
    layer = GistsLayer(store, Cached(model, Prompts(), store.calls), together=4)
    for _ in range(2):
        await build([layer], store, quiet)
        forget_memory(["gists"], [layer], store)
    assert len(model.calls) == 4


@pytest.mark.parametrize("calls", [1, 2])
async def test_it_is_a_pure_function_of_the_passages(tmp_path: Path, calls: Any) -> None:
    model = ExtractiveModel(EMBEDDER)
    numbers = iter(range(10))

    def make(store: SqlStore) -> Sequence[Any]:
        gists = GistsLayer(store, model, together=3)
        return [gists, GraphLayer(store, model, EMBEDDER, source="gists", calls=calls, together=3)]

    await check_layer(make, lambda: SqlStore.open(tmp_path / f"{next(numbers)}.tome"), EMBEDDER)


@pytest.mark.parametrize("calls", [1, 2])
async def test_the_extractive_model_makes_the_same_memory_at_any_size(tmp_path: Path, calls: Any) -> None:
    exports = []
    for together in (1, 4):
        store = SqlStore.open(tmp_path / f"{together}.tome")
        put(store, "story", LINES)
        put(store, "twin", [*LINES[:2], "Tom Hale rowed."])
        model = Cached(ExtractiveModel(EMBEDDER), Prompts(), store.calls)
        gists = GistsLayer(store, model, together=together)
        graphs = [
            GraphLayer(store, model, EMBEDDER, source=source, calls=calls, together=together)
            for source in ("passages", "gists")
        ]
        await build([gists, *graphs], store, quiet)
        exports.append(list(export(store)))
    assert len(exports[0]) > 20
    assert exports[0] == exports[1]


# ---------------------------------------------------------------- costs and settings


@pytest.mark.parametrize("calls", [1, 2])
async def test_the_estimate_has_the_exact_calls_and_shows_the_saving(tmp_path: Path, calls: Any) -> None:
    used = {}
    for together in (1, 3):
        store = SqlStore.open(tmp_path / f"{together}.tome")
        put(store, "story", LINES)
        put(store, "twin", LINES)
        model = Cached(ExtractiveModel(EMBEDDER), Prompts(), store.calls)
        layers = [
            GistsLayer(store, model, together=together),
            GraphLayer(store, model, EMBEDDER, calls=calls, together=together),
        ]
        foreseen = await estimate(layers, store)
        with meter() as spent:
            await build(layers, store, quiet)
        total = spent.usage().total
        assert sum(each.calls for each in foreseen) == total.calls == (1 + calls) * (7 if together == 1 else 3)
        tokens = sum(each.input_tokens for each in foreseen)
        assert abs(tokens - total.input_tokens) <= 0.1 * total.input_tokens
        used[together] = total.calls
    assert used[3] < used[1]


def test_the_prompt_shows_each_passage_under_its_label_and_what_stood_before_once() -> None:
    inputs = [
        GistIn(text=text, title="Tale", before="The Lamp\n\n" + before)
        for text, before in zip(LINES[:3], ("Dawn.", LINES[0], "A gap."), strict=True)
    ]
    prompt = Prompts().render(make_batch_role(GIST, 3), make_batch(inputs, 4))
    single = Prompts().render(GIST, inputs[0])
    assert prompt.startswith(single[: single.index("<before>")])
    for number, text in enumerate(LINES[:3], start=1):
        assert f'<passage label="P{number}" title="Tale">\n{text}\n</passage>' in prompt
    assert prompt.count(LINES[0]) == 1
    assert '<before label="P1">\nThe Lamp\n\nDawn.' in prompt
    assert '<before label="P2">' not in prompt
    assert '<before label="P3">\nThe Lamp\n\nA gap.' in prompt
    assert "P1 30, P2 30, P3 30." in prompt


async def test_an_experiment_says_that_systems_with_two_sizes_share_a_graph(store: SqlStore) -> None:
    model = ScriptedModel({"extract_facts": by_passage(facts)})
    layers = [GraphLayer(store, model, EMBEDDER, together=together) for together in (1, 4)]
    first, second = [await build_layers(store, [layer], None, quiet) for layer in layers]
    assert first.notes == ()
    assert "together=1 read what was there" in second.notes[0]


def test_a_tome_says_that_it_was_built_with_another_size(tmp_path: Path) -> None:
    model = ScriptedModel({"extract_facts": by_passage(facts)})
    with Tome.open(tmp_path / "a.tome", model=model, embedder=EMBEDDER) as tome:
        tome.add(Document(id="a", text="Ada Marsh saw boat number 1 at Skerry."))
        report = tome.build("associative together=4")
        assert not any("together" in note for layer in report.layers for note in layer.notes)
        for system in ("associative", "hipporag2 together=2"):  # both read the same graph, which is up to date
            report = tome.build(system)
            notes = [note for layer in report.layers for note in layer.notes]
            assert any("together=4 read what was there" in note and "--again" in note for note in notes)
        with pytest.raises(UsageError, match="together"):
            tome.build("cogitorag together=0")
