"""The tree that grows: against a slow reading of MemTree, and its rules after any history."""

from __future__ import annotations

import asyncio
import math
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.plain_store import PlainStore

from tomewise.errors import BadReply
from tomewise.language.cached import Cached
from tomewise.language.prompts import Prompts
from tomewise.memory.building import build, estimate
from tomewise.memory.growing_tree.memtree_layer import MemTreeLayer
from tomewise.memory.growing_tree.memtree_names import USUAL, MemTreeNames, MemTreeRules
from tomewise.memory.summary_picture import draw_tree
from tomewise.store.lookups import read_edges, read_vectors
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_state_layer, document_of, put_document
from tomewise.tome.tome import Tome

EMBEDDER = HashEmbedder(32)
TOPICS = ("the tide and the harbour pilot", "a ledger of grain and barley", "the school bell and the teacher")
PAPER = MemTreeRules(batch=1)
DEEP = MemTreeRules(batch=3, depth_scale=15.0)


def write_text(number):
    return f"{TOPICS[number % 3]} and {TOPICS[number % 2]} on day {number % 4} note{number}"


def join_words(given):
    """All words that it read, each once: so a text says which passages it tells of."""
    return {"summary": " ".join(dict.fromkeys(" ".join(given.texts).split()))}


def make_model():
    return ScriptedModel({"aggregate": join_words})


def fill(store, numbers, write=write_text):
    for number in numbers:
        put_document(store, EMBEDDER, document_of(f"d{number:03}", write(number)))


def remove(store, numbers):
    with store.write() as change:
        for number in numbers:
            change.remove_document(f"d{number:03}")


def build_layer(store, model, rules=USUAL):
    return asyncio.run(build([MemTreeLayer(store, model, EMBEDDER, rules)], store, lambda _: None))[0]


def read_tree(store, rules):
    """The tree as nested tuples of the numbers of passages; of each node (text or None, children)."""
    names = MemTreeNames.from_rules(rules)
    passages = {key: int(passage.document[1:]) for key, passage in store.passages().items()}
    links = [(int(a), int(b)) for a, b, _ in read_edges(store, names.links).rows.tolist()]
    texts = {int(a): int(b) for a, b, _ in read_edges(store, names.texts).rows.tolist()}
    due = {int(a) for a, _, flag in read_edges(store, names.texts).rows.tolist() if flag}
    places = set(store.node_keys(names.places))
    intake = store.intake(names.layer)
    known = intake.done | intake.failed.keys()
    parents = [b for _, b in links]
    assert len(parents) == len(set(parents)), "a node has one parent"
    assert set(store.nodes(names.layer)) == set(texts.values()), "each text belongs to a place"

    def read(key):
        if key in passages:
            return passages[key]
        children = tuple(sorted((read(child) for a, child in links if a == key), key=first))
        text = store.nodes_at([texts[key]])[texts[key]].text if key in texts else None
        return (text, key in due, children)

    tops = [key for key in (*known, *places) if key not in set(parents)]
    return tuple(sorted((read(key) for key in tops), key=first))


def first(tree):
    return min(list_leaves(tree))


def list_leaves(tree):
    return [tree] if isinstance(tree, int) else [leaf for child in tree[2] for leaf in list_leaves(child)]


def list_nodes(tree, depth=1):
    if not isinstance(tree, int):
        yield tree, depth
        for child in tree[2]:
            yield from list_nodes(child, depth + 1)


class SlowTree:
    """MemTree as the paper tells it: one passage after the other, each node of the way written again."""

    def __init__(self, scale):
        self.scale = scale
        self.root = {"text": "", "children": []}

    def insert(self, number, text):
        leaf = {"text": text, "vector": embed(text), "children": [], "number": number}
        node, depth, way = self.root, 0, []
        while True:
            scored = [(round(float(child["vector"] @ leaf["vector"]), 6), child) for child in node["children"]]
            best = max((score for score, _ in scored), default=-1.0)
            if best < 0.4 * math.exp(0.5 * depth / self.scale):
                node["children"].append(leaf)
                break
            nearest = [child for score, child in scored if score == best]
            assert len(nearest) == 1, "this reading knows no ties"
            (child,) = nearest
            if not child["children"]:
                old = dict(child)
                del child["number"]
                child["children"] = [old, leaf]
                way.append(child)
                break
            node, depth = child, depth + 1
            way.append(node)
        for node in way:
            node["text"] = " ".join(dict.fromkeys(f"{node['text']} {text}".split()))
            node["vector"] = embed(node["text"])

    def read(self, node=None):
        children = (node or self.root)["children"]
        found = [
            (child["text"], False, self.read(child)) if child["children"] else child["number"] for child in children
        ]
        return tuple(sorted(found, key=first))


def embed(text):
    return EMBEDDER.embed([text])[0].astype(np.float64)


@pytest.mark.parametrize("scale", [1.0, 4.0, 15.0])
def test_batches_of_one_are_the_paper(scale):
    rules = MemTreeRules(batch=1, depth_scale=scale)
    store, slow, model = PlainStore(), SlowTree(scale), make_model()
    fill(store, range(40))
    for number in range(40):
        slow.insert(number, write_text(number))
    build_layer(store, model, rules)
    assert read_tree(store, rules) == slow.read()
    assert max(depth for top in slow.read() for _, depth in list_nodes(top)) >= 2
    calls = len(model.calls)
    assert calls <= rules.most_nodes_above * 40
    vectors = read_vectors(store, MemTreeNames.from_rules(rules).layer)
    texts = [store.nodes_at([key])[key].text for key in vectors.keys.tolist()]
    assert np.allclose(vectors.rows, EMBEDDER.embed(texts))


def test_a_batch_is_placed_by_the_vectors_from_before_it():
    """One batch: no text is written before its end, so means of passages stand in for all nodes."""
    store, model = PlainStore(), make_model()
    fill(store, range(20))
    build_layer(store, model)
    means = {"children": []}
    for number in range(20):
        vector = embed(write_text(number))
        node, depth, way = means, 0, []
        while True:
            scored = [(round(float(scale(sum(c["all"])) @ vector), 6), at) for at, c in enumerate(node["children"])]
            best = max(scored, default=(-1.0, 0))
            if best[0] < 0.4 * math.exp(0.5 * depth):
                break
            child = node["children"][best[1]]
            way.append(child)
            if not child["children"]:
                child["children"] = [dict(child)]
                node = child
                break
            node, depth = child, depth + 1
        node["children"].append({"number": number, "all": [vector], "children": []})
        for each in way:
            each["all"] = [*each["all"], vector]

    def read(node):
        found = [read(child) if child["children"] else child["number"] for child in node["children"]]
        return tuple(sorted(found, key=lambda each: min(flatten(each))))

    def drop_texts(tree):
        return tree if isinstance(tree, int) else tuple(drop_texts(child) for child in tree[2])

    assert tuple(drop_texts(top) for top in read_tree(store, USUAL)) == read(means)
    nodes = [node for top in read_tree(store, USUAL) for node, _ in list_nodes(top)]
    assert len(model.calls) == len(nodes) > 0, "each node is written once"


def scale(vector):
    return vector / np.linalg.norm(vector)


def flatten(tree):
    return [tree] if isinstance(tree, int) else [leaf for child in tree for leaf in flatten(child)]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "remove"]), st.sets(st.integers(0, 40), min_size=1, max_size=12), st.booleans()
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.sampled_from([USUAL, PAPER, DEEP, MemTreeRules(batch=5, depth_scale=3.0)]), st.integers(2, 5))
def test_after_any_history_the_tree_is_sound(steps, rules, every):
    """Also when some calls fail: their texts stay, tell of nothing that is gone, and are due."""
    store, present, calls = PlainStore(), set(), count()
    fails = False

    def reply(given):
        return BadReply("no") if fails and next(calls) % every == 0 else join_words(given)

    model = ScriptedModel({"aggregate": reply})
    for kind, numbers, fails in steps:  # noqa: B007 - the model reads it
        if kind == "add":
            fill(store, sorted(numbers - present))
            present |= numbers
        else:
            remove(store, numbers & present)
            present -= numbers
            check_texts(store, rules, present, is_built=False)
        build_layer(store, model, rules)
        check_tree(store, rules, present)
    fails = False
    report = build_layer(store, model, rules)
    assert not report.failed
    check_tree(store, rules, present)
    assert not store.intake(MemTreeNames.from_rules(rules).layer).failed
    before = len(model.calls)
    build_layer(store, model, rules)
    assert len(model.calls) == before


def check_tree(store, rules, present):
    tops = read_tree(store, rules)
    leaves = [leaf for top in tops for leaf in list_leaves(top)]
    assert sorted(leaves) == sorted(present), "each passage is a leaf once"
    for top in tops:
        for node, depth in list_nodes(top):
            assert len(node[2]) > 1
            assert depth <= rules.most_nodes_above
    check_texts(store, rules, present, is_built=True)


def check_texts(store, rules, present, *, is_built):
    names = MemTreeNames.from_rules(rules)
    for node in store.nodes(names.layer).values():
        assert read_notes(node.text) <= present, "no text tells of what is gone"
    if is_built:
        late = {int(store.passages([key])[key].document[1:]) for key in store.intake(names.layer).failed}
        for top in read_tree(store, rules):
            for node, _ in list_nodes(top):
                words = read_notes(node[0] or "")
                missing = set(list_leaves(node)) - words
                assert missing <= late, "a passage of which a text does not tell is due"
                assert not missing or node[1] or node[0] is None
                assert words <= set(list_leaves(node))


def read_notes(text):
    """The numbers of the passages that a text tells of."""
    return {int(word[4:]) for word in text.split() if word.startswith("note")}


def test_the_depth_follows_from_the_threshold():
    """Literally no cosine reaches the threshold of depth 2; passages of equal text go down as far as it lets them."""
    for rules, deepest in ((USUAL, 2), (PAPER, 2), (MemTreeRules(batch=1, depth_scale=15.0), 28)):
        assert rules.most_nodes_above == deepest
        assert rules.find_threshold(deepest - 1) <= 1 < rules.find_threshold(deepest)
        store = PlainStore()
        fill(store, range(40), lambda _: "the same form again")
        build_layer(store, make_model(), rules)
        depths = [depth for top in read_tree(store, rules) for _, depth in list_nodes(top)]
        assert max(depths) <= deepest


def test_ties_go_to_the_smallest_id():
    store = PlainStore()
    fill(store, range(4), lambda _: "the same form again")
    build_layer(store, make_model(), PAPER)
    ids = {int(passage.document[1:]): passage.id for passage in store.passages().values()}
    ((_, _, children),) = read_tree(store, PAPER)
    (below,) = [child for child in children if not isinstance(child, int)]
    assert min((ids[number], number) for number in (0, 1))[1] in list_leaves(below)


@pytest.mark.parametrize("kind", [SqlStore, PlainStore])
@pytest.mark.parametrize("rules", [PAPER, MemTreeRules(batch=2), MemTreeRules(batch=1, depth_scale=15.0)])
def test_it_is_a_state(tmp_path, kind, rules):
    numbers = count()

    def open_new():
        return PlainStore() if kind is PlainStore else SqlStore.open(tmp_path / f"{next(numbers)}.tome")

    def make(store):
        return [MemTreeLayer(store, Cached(make_model(), Prompts(), store.calls), EMBEDDER, rules)]

    def check(store):
        names = MemTreeNames.from_rules(rules)
        leaves = [leaf for top in read_documents(store, names) for leaf in top]
        assert len(leaves) == len(set(leaves)) == len(store.intake(names.layer).done)

    asyncio.run(check_state_layer(make, open_new, EMBEDDER, check))


def read_documents(store, names):
    """The passages below each node that has no parent."""
    links = [(int(a), int(b)) for a, b, _ in read_edges(store, names.links).rows.tolist()]
    intake, places = store.intake(names.layer).done, set(store.node_keys(names.places))

    def leaves(key):
        return [leaf for a, child in links if a == key for leaf in leaves(child)] if key in places else [key]

    below = {child for _, child in links}
    return [leaves(key) for key in sorted(intake | places) if key not in below]


def test_a_removal_takes_the_texts_above_at_once_and_the_build_makes_them_from_their_children():
    store, model = PlainStore(), make_model()
    fill(store, range(12))
    build_layer(store, model)
    (first_top, *_) = [top for top in read_tree(store, USUAL) if not isinstance(top, int) and len(list_leaves(top)) > 3]
    gone = list_leaves(first_top)[0]
    untouched = [top for top in read_tree(store, USUAL) if gone not in list_leaves(top)]
    remove(store, [gone])
    assert not any(f"note{gone} " in f"{node.text} " for node in store.nodes("memtree").values())
    before = len(model.calls)
    build_layer(store, model)
    assert [top for top in read_tree(store, USUAL) if top in untouched] == untouched
    for call in model.calls[before:]:
        assert not call.given.has_text
        assert call.given.children == len(call.given.texts)


def test_a_text_of_which_the_call_failed_stays_and_is_due():
    def reply(given):
        return BadReply("no") if any("note9" in text for text in given.texts) else join_words(given)

    store, model = PlainStore(), ScriptedModel({"aggregate": reply})
    fill(store, range(9))
    build_layer(store, make_model())
    texts = {node.id: node.text for node in store.nodes("memtree").values()}
    fill(store, [9])
    report = build_layer(store, model)
    assert len(report.failed) == 1
    assert {node.id: node.text for node in store.nodes("memtree").values() if node.id in texts} == texts
    report = build_layer(store, make_model())
    assert not report.failed
    assert any("note9" in node.text for node in store.nodes("memtree").values())


def test_many_new_texts_are_folded():
    store, model = PlainStore(), make_model()
    fill(store, range(3), lambda number: f"the same form again {'word ' * 1800} note{number}")
    build_layer(store, model, MemTreeRules(batch=64))
    parts = [call.given for call in model.calls]
    assert len(parts) > len(store.nodes("memtree"))
    assert all(sum(len(text) for text in given.texts) < 4 * 3500 + 9000 for given in parts)
    assert [given.has_text for given in parts].count(True) == len(parts)


def test_without_aggregation_nothing_is_asked():
    store, model = PlainStore(), make_model()
    rules = MemTreeRules(aggregation=False)
    fill(store, range(12))
    build_layer(store, model, rules)
    assert not model.calls
    nodes = [node for top in read_tree(store, rules) for node, _ in list_nodes(top)]
    assert nodes
    for text, _, children in nodes:
        leaves = [write_text(number) for child in children for number in list_leaves((None, None, (child,)))]
        assert sorted(text.splitlines()) == sorted(leaves)


@pytest.mark.parametrize("rules", [USUAL, MemTreeRules(batch=30), MemTreeRules(aggregation=False)])
def test_the_estimate_of_one_batch_is_exact(rules):
    store, model = PlainStore(), make_model()
    layer = MemTreeLayer(store, model, EMBEDDER, rules)
    fill(store, range(30))
    for numbers in ((), (3, 4, 5, 6, 7, 8)):
        remove(store, numbers)
        (foreseen,) = asyncio.run(estimate([layer], store))
        before = len(model.calls)
        build_layer(store, model, rules)
        assert foreseen.calls == len(model.calls) - before


def test_the_estimate_of_many_batches_is_near():
    store, model = PlainStore(), make_model()
    rules = MemTreeRules(batch=4)
    fill(store, range(40))
    (foreseen,) = asyncio.run(estimate([MemTreeLayer(store, model, EMBEDDER, rules)], store))
    build_layer(store, model, rules)
    assert 0.5 <= foreseen.calls / len(model.calls) <= 2


def test_its_picture_is_the_tree():
    store = PlainStore()
    fill(store, range(12))
    build_layer(store, make_model())
    picture = draw_tree(store, "memtree")
    texts = {node.id: node.text for node in picture.nodes if node.group != "passages"}
    tops = [top for top in read_tree(store, USUAL) if not isinstance(top, int)]
    assert sorted(texts.values()) == sorted(text for top in tops for (text, _, _), _ in list_nodes(top))
    assert len(picture.links) == sum(len(children) for top in tops for (_, _, children), _ in list_nodes(top))


def test_a_renamed_document_keeps_its_place_and_can_go(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    for number in range(6):
        (files / f"{number}.txt").write_text(write_text(number))
    with Tome.open(tmp_path / "a.tome", embedder=EMBEDDER, model=make_model()) as tome:
        tome.add(files, sync=True)
        tome.build("memtree")
        texts = sorted(node.text for node in tome.store.nodes("memtree").values())
        (files / "1.txt").rename(files / "moved.txt")
        tome.add(files, sync=True)
        assert sorted(node.text for node in tome.store.nodes("memtree").values()) == texts
        (files / "1.txt").write_text(write_text(7))
        tome.add(files, sync=True)
        tome.build("memtree")
        (files / "moved.txt").unlink()
        tome.add(files, sync=True)
        tome.build("memtree")
        names = MemTreeNames()
        places = read_edges(tome.store, names.texts).rows[:, 0].astype(int).tolist()
        assert sorted(places) == sorted(tome.store.node_keys(names.places))
        notes = [read_notes(node.text) for node in tome.store.nodes("memtree").values()]
    assert set().union(*notes) <= {0, 2, 3, 4, 5, 7}
    assert any(7 in each for each in notes)
