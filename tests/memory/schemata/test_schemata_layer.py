"""The layer of schemata: its state in the store, batch by batch."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from tests.store.plain_store import PlainStore

from tomewise.errors import BadReply
from tomewise.language.cached import Cached
from tomewise.language.prompts import Prompts
from tomewise.memory.building import build, estimate
from tomewise.memory.schemata.catalog import Catalog
from tomewise.memory.schemata.levels import FIRST_LABEL, grow_levels
from tomewise.memory.schemata.network import LinkRules, Links
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.memory.schemata.schemata_names import SchemataNames
from tomewise.memory.schemata.schemata_state import load_labels
from tomewise.store.sqlite.sqlite_store import SqliteStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_state_layer, document_of, put_document

EMBEDDER = HashEmbedder(32)
RULES = LinkRules(theta=0.2, k=4)
NAMES = SchemataNames.from_settings(RULES, split=True, hierarchy=True, entities="")
NAME = NAMES.layer
TOPICS = ("the tide and the harbour pilot", "a ledger of grain and barley", "the school bell and the teacher")


def make_model():
    return ScriptedModel({"summarise": lambda given: {"summary": " / ".join(text[:30] for text in given.texts)}})


def fill(store, count, start=0):
    for number in range(start, start + count):
        text = f"{TOPICS[number % 3]} on day {number % 7} note {number}"
        put_document(store, EMBEDDER, document_of(f"d{number:03}", text))


def build_layer(store, model, **options):
    layer = SchemataLayer(store, model, EMBEDDER, rules=options.pop("rules", RULES), **options)
    return asyncio.run(build([layer], store, lambda _: None))[0]


def assert_sound(store) -> None:
    """The stored state is that of its own levels, and each summary was made from what its cluster holds."""
    records = {name: record for name, record in store.builds().items() if name.startswith("schemata")}
    if not records:
        return
    ((name, record),) = records.items()
    names = SchemataNames(name)
    keys = np.array(store.node_keys("passages"), np.int64)
    table = store.edges(names.links(0)).rows
    order = {key: place for place, key in enumerate(keys.tolist())}
    a = np.array([order[int(key)] for key in table[:, 0]], np.int64)
    b = np.array([order[int(key)] for key in table[:, 1]], np.int64)
    labels = load_labels(store, names, record["levels"])
    levels = grow_levels(keys, Links.from_pairs(a, b, table[:, 2]), labels, record["network"]["k"])
    assert len(levels) == record["levels"]
    stored = store.nodes(name)
    catalog = Catalog.from_levels(levels, np.zeros(len(keys), np.int64))
    clusters = {cluster.label: cluster for cluster in catalog.list_clusters()}
    assert clusters.keys() == stored.keys(), "each cluster has a node, and each node is a cluster"
    assert all(label < FIRST_LABEL for label in clusters)
    sources = store.sources(stored, name)
    for label, cluster in clusters.items():
        assert stored[label].data["stamp"] == cluster.stamp, "no summary is stale"
        assert sorted(sources[label]) == sorted(cluster.children), "links up and down agree"
    linked = {int(key) for key in table[:, :2].ravel()}
    below = {child for cluster in clusters.values() for child in cluster.children}
    tops = {name for level in levels for name in level.names.tolist()} - below
    reached = set()
    front = list(tops | (stored.keys() - below))
    while front:
        key = front.pop()
        reached.add(key)
        front += [child for child in (clusters[key].children if key in clusters else ()) if child not in reached]
    assert linked <= reached, "every linked passage is below a top"


@pytest.mark.parametrize("kind", [SqliteStore, PlainStore])
def test_it_is_a_state_layer(tmp_path, kind) -> None:
    numbers = iter(range(1000))

    def open_new():
        return PlainStore() if kind is PlainStore else SqliteStore.open(tmp_path / f"{next(numbers)}.tome")

    def make(store):
        model = Cached(make_model(), Prompts(), store.calls)
        return [SchemataLayer(store, model, EMBEDDER, rules=LinkRules(theta=0.05, k=3), batch=2)]

    asyncio.run(check_state_layer(make, open_new, EMBEDDER, assert_sound))


def test_batches_and_removals_leave_a_sound_state(tmp_path) -> None:
    store = SqliteStore.open(tmp_path / "a.tome")
    fill(store, 30)
    build_layer(store, make_model())
    assert_sound(store)
    first = {node.id for node in store.nodes(NAME).values()}
    assert first
    fill(store, 6, start=30)
    model = make_model()
    build_layer(store, model)
    assert_sound(store)
    assert first & {node.id for node in store.nodes(NAME).values()}, "clusters that grow keep their ids"
    with store.write() as change:
        for number in (3, 4, 5, 30):
            change.remove_document(f"d{number:03}")
    build_layer(store, make_model())
    assert_sound(store)
    with store.write() as change:
        for number in range(36):
            change.remove_document(f"d{number:03}")
    build_layer(store, make_model())
    assert store.nodes(NAME) == {}
    assert not len(store.edges(NAMES.links(0)).rows)


def test_an_update_asks_for_changed_clusters_alone(tmp_path) -> None:
    store = SqliteStore.open(tmp_path / "a.tome")
    fill(store, 60)
    whole = make_model()
    build_layer(store, whole)
    put_document(store, EMBEDDER, document_of("zzz", f"{TOPICS[0]} on day 3 note 999"))
    part = make_model()
    layer = SchemataLayer(store, part, EMBEDDER, rules=RULES)
    (planned,) = asyncio.run(estimate([layer], store))
    build_layer(store, part)
    assert 0 < len(part.calls) < len(whole.calls)
    assert planned.calls == len(part.calls), "the estimate of calls is exact"
    again = make_model()
    build_layer(store, again)
    assert not again.calls


def test_a_failed_summary_is_recorded_and_made_later(tmp_path) -> None:
    store = SqliteStore.open(tmp_path / "a.tome")
    fill(store, 30)
    refusals = iter([True])

    def refuse_once(given):
        if next(refusals, False):
            raise BadReply("no")
        return {"summary": " / ".join(text[:30] for text in given.texts)}

    report = build_layer(store, ScriptedModel({"summarise": refuse_once}))
    assert report.failed
    assert any(not node.text for node in store.nodes(NAME).values())
    report = build_layer(store, make_model())
    assert not report.failed
    assert all(node.text for node in store.nodes(NAME).values())
    assert_sound(store)


def test_the_threshold_is_set_once_from_enough_passages(tmp_path) -> None:
    store = SqliteStore.open(tmp_path / "a.tome")
    fill(store, 55)
    build_layer(store, make_model(), rules=LinkRules())
    theta = store.builds()["schemata"]["network"]["theta"]
    assert store.builds()["schemata"]["network"]["isolated"] <= 0.15 * 55
    fill(store, 10, start=55)
    build_layer(store, make_model(), rules=LinkRules())
    assert store.builds()["schemata"]["network"]["theta"] == theta


def list_lowest(store):
    """The ids of the passages of each cluster of level 1."""
    ids = {key: passage.id for key, passage in store.passages().items()}
    clusters = [key for key, node in store.nodes("schemata").items() if node.level == 1]
    return sorted(sorted(ids[key] for key in keys) for keys in store.sources(clusters, "schemata").values())


def test_a_tome_that_has_outgrown_its_threshold_is_built_as_a_new_one(tmp_path) -> None:
    grown, new = (SqliteStore.open(tmp_path / name) for name in ("a.tome", "b.tome"))
    fill(grown, 55)
    assert not build_layer(grown, make_model(), rules=LinkRules()).notes
    first = grown.builds()["schemata"]["network"]
    fill(grown, 219 - 55, start=55)
    build_layer(grown, make_model(), rules=LinkRules())
    kept = grown.builds()["schemata"]["network"]
    assert (kept["theta"], kept["theta_passages"], kept["passages"]) == (first["theta"], 55, 219)
    fill(grown, 1, start=219)
    model = make_model()
    layer = SchemataLayer(grown, model, EMBEDDER, rules=LinkRules())
    (planned,) = asyncio.run(estimate([layer], grown))
    (note,) = build_layer(grown, model, rules=LinkRules()).notes
    assert planned.calls == len(model.calls), "the estimate counts the calls for all passages"
    assert_sound(grown)
    fill(new, 220)
    build_layer(new, make_model(), rules=LinkRules())
    network, expected = (store.builds()["schemata"]["network"] for store in (grown, new))
    assert {**network, "calls": 0} == {**expected, "calls": 0}, "where a large cluster is cut depends on keys"
    assert network["theta_passages"] == 220
    assert f"theta was {first['theta']:g} and is now {network['theta']:g}" in note
    assert list_lowest(grown) == list_lowest(new) != []


def test_without_links_it_says_so(tmp_path) -> None:
    store = SqliteStore.open(tmp_path / "a.tome")
    fill(store, 2)
    report = build_layer(store, make_model(), rules=LinkRules(theta=0.99))
    assert report.notes == ("no two of 2 passages are alike enough to be linked: theta is 0.99",)
    report = build_layer(store, make_model(), hierarchy=False)
    assert report.notes == ("1 links between 2 passages, no summaries",)
