"""The tree that grows: against a slow reading of MemTree, and its rules after any history."""

from __future__ import annotations

import math
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.memories import (
    EMBEDDER,
    TOPICS,
    build_layer,
    keep_replies,
    put_numbered,
    put_text,
    remove_documents,
    remove_numbered,
)
from tests.store.plain_store import PlainStore

from tomewise.errors import BadReply
from tomewise.memory.building import estimate
from tomewise.memory.growing_tree.memtree_layer import MemTreeLayer
from tomewise.memory.growing_tree.memtree_names import USUAL, MemTreeNames, MemTreeRules
from tomewise.store.lookups import read_edges, read_vectors
from tomewise.testing import ScriptedModel, check_state_layer
from tomewise.types import Document

MANY = MemTreeRules(batch=64)
DEEP = MemTreeRules(batch=3, depth_scale=15.0)
PLAIN = MemTreeRules(aggregation=False)


def write_text(number):
    return f"{TOPICS[number % 3]} and {TOPICS[number % 2]} on day {number % 4} note{number}"


def write_equal(_):
    return "the same form again"


def join_words(given):
    """All words that it read, each once: so a text says which passages it tells of."""
    return {"summary": " ".join(dict.fromkeys(" ".join(given.texts).split()))}


def make_model():
    return ScriptedModel({"aggregate": join_words})


async def build_tree(store, model=None, rules=USUAL):
    return await build_layer(MemTreeLayer(store, model or make_model(), EMBEDDER, rules), store)


async def fill_tree(numbers, rules=USUAL, write=write_text):
    """A store with the tree of these passages, and the model that wrote it."""
    store, model = PlainStore(), make_model()
    put_numbered(store, numbers, write)
    await build_tree(store, model, rules)
    return store, model


def read_tree(store, rules=USUAL):
    """The tree as nested tuples: numbers of passages, and of each node (text or None, whether it is due, children)."""
    names = MemTreeNames(rules.layer)
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
        children = tuple(sorted((read(child) for a, child in links if a == key), key=find_first))
        text = store.nodes_at([texts[key]])[texts[key]].text if key in texts else None
        return (text, key in due, children)

    tops = [key for key in (*known, *places) if key not in set(parents)]
    return tuple(sorted((read(key) for key in tops), key=find_first))


def find_first(tree):
    return min(list_leaves(tree))


def list_leaves(tree):
    return [tree] if isinstance(tree, int) else [leaf for child in tree[-1] for leaf in list_leaves(child)]


def list_nodes(tree, depth=1):
    if not isinstance(tree, int):
        yield tree, depth
        for child in tree[2]:
            yield from list_nodes(child, depth + 1)


def list_all_nodes(store, rules=USUAL):
    return [found for top in read_tree(store, rules) for found in list_nodes(top)]


def drop_texts(tree):
    return tree if isinstance(tree, int) else tuple(drop_texts(child) for child in tree[2])


def find_texts(store):
    return {node.id: node.text for node in store.nodes("memtree").values()}


def read_notes(text):
    """The numbers of the passages that a text tells of."""
    return {int(word[4:]) for word in text.split() if word.startswith("note")}


class SlowTree:
    """MemTree as the paper tells it: one passage after the other, each node of the way written again.

    With `batched`, the vector of a node is the mean of its passages in place of that of its text: so texts that are
    written at the end of a batch do not matter before.
    """

    def __init__(self, scale, *, batched=False):
        self.scale = scale
        self.batched = batched
        self.root = {"text": "", "children": []}

    def insert(self, number, text):
        vector = embed(text)
        leaf = {"text": text, "vector": vector, "all": [vector], "children": [], "number": number}
        node, depth, way = self.root, 0, []
        while True:
            scored = [(round(float(child["vector"] @ vector), 6), child) for child in node["children"]]
            best = max((score for score, _ in scored), default=-1.0)
            if best < 0.4 * math.exp(0.5 * depth / self.scale):
                node["children"].append(leaf)
                break
            nearest = [child for score, child in scored if score == best]
            assert len(nearest) == 1, "this reading knows no ties"
            (child,) = nearest
            way.append(child)
            if not child["children"]:
                child["children"] = [dict(child), leaf]
                del child["number"]
                break
            node, depth = child, depth + 1
        for node in way:
            node["text"] = " ".join(dict.fromkeys(f"{node['text']} {text}".split()))
            node["all"] = [*node["all"], vector]
            mean = sum(node["all"])
            node["vector"] = mean / np.linalg.norm(mean) if self.batched else embed(node["text"])

    def read(self, node=None):
        children = (node or self.root)["children"]
        found = [
            (child["text"], False, self.read(child)) if child["children"] else child["number"] for child in children
        ]
        return tuple(sorted(found, key=find_first))


def embed(text):
    return EMBEDDER.embed([text])[0].astype(np.float64)


@pytest.mark.parametrize("scale", [1.0, 4.0, 15.0])
async def test_batches_of_one_are_the_paper(scale):
    rules = MemTreeRules(batch=1, depth_scale=scale)
    store, model = await fill_tree(range(40), rules)
    slow = SlowTree(scale)
    for number in range(40):
        slow.insert(number, write_text(number))
    assert read_tree(store, rules) == slow.read()
    assert max(depth for _, depth in list_all_nodes(store, rules)) >= 2
    assert len(model.calls) <= rules.most_nodes_above * 40
    vectors = read_vectors(store, MemTreeNames(rules.layer).layer)
    texts = [store.nodes_at([key])[key].text for key in vectors.keys.tolist()]
    assert np.allclose(vectors.rows, EMBEDDER.embed(texts))


async def test_a_batch_is_placed_by_the_vectors_from_before_it():
    store, model = await fill_tree(range(20), MANY)
    slow = SlowTree(1.0, batched=True)
    for number in range(20):
        slow.insert(number, write_text(number))
    assert tuple(map(drop_texts, read_tree(store, MANY))) == tuple(map(drop_texts, slow.read()))
    assert len(model.calls) == len(list_all_nodes(store, MANY)) > 0, "each node is written once"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "remove"]), st.sets(st.integers(0, 40), min_size=1, max_size=12), st.booleans()
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=30)
@given(STEPS, st.sampled_from([MANY, USUAL, DEEP, MemTreeRules(batch=5, depth_scale=3.0)]), st.integers(2, 5))
async def test_after_any_history_the_tree_is_sound(steps, rules, every):
    """Also when some calls fail: their texts stay, tell of nothing that is gone, and are due."""
    store, present, calls = PlainStore(), set(), count()
    fails = False

    def reply(given):
        return BadReply("no") if fails and next(calls) % every == 0 else join_words(given)

    model = ScriptedModel({"aggregate": reply})
    for kind, numbers, fails in steps:  # noqa: B007 - the model reads it
        if kind == "add":
            put_numbered(store, sorted(numbers - present), write_text)
            present |= numbers
        else:
            remove_numbered(store, numbers & present)
            present -= numbers
            check_nothing_gone(store, rules, present)
        await build_tree(store, model, rules)
        check_tree(store, rules, present)
    fails = False
    assert not (await build_tree(store, model, rules)).failed
    check_tree(store, rules, present)
    assert not store.intake(MemTreeNames(rules.layer).layer).failed
    before = len(model.calls)
    await build_tree(store, model, rules)
    assert len(model.calls) == before


def check_nothing_gone(store, rules, present):
    for node in store.nodes(MemTreeNames(rules.layer).layer).values():
        assert read_notes(node.text) <= present, "no text tells of what is gone"


def check_tree(store, rules, present):
    check_nothing_gone(store, rules, present)
    leaves = [leaf for top in read_tree(store, rules) for leaf in list_leaves(top)]
    assert sorted(leaves) == sorted(present), "each passage is a leaf once"
    failed = store.intake(MemTreeNames(rules.layer).layer).failed
    late = {int(passage.document[1:]) for passage in store.passages(failed).values()}
    for (text, is_due, children), depth in list_all_nodes(store, rules):
        assert len(children) > 1
        assert depth <= rules.most_nodes_above
        below, words = {leaf for child in children for leaf in list_leaves(child)}, read_notes(text or "")
        assert below - words <= late, "a passage of which a text does not tell is due"
        assert below <= words or is_due or text is None
        assert words <= below


async def test_the_depth_follows_from_the_threshold():
    """Literally no cosine reaches the threshold of depth 2; passages of equal text go down as far as it lets them."""
    for rules, deepest in ((MANY, 2), (USUAL, 2), (MemTreeRules(batch=1, depth_scale=15.0), 28)):
        assert rules.most_nodes_above == deepest
        assert rules.find_threshold(deepest - 1) <= 1 < rules.find_threshold(deepest)
        store, _ = await fill_tree(range(40), rules, write_equal)
        assert max(depth for _, depth in list_all_nodes(store, rules)) <= deepest


@pytest.mark.parametrize("rules", [USUAL, MemTreeRules(batch=2)])
async def test_it_is_a_state(open_store, rules):
    def make(store):
        return [MemTreeLayer(store, keep_replies(make_model(), store), EMBEDDER, rules)]

    open_new = open_store if rules is USUAL else PlainStore
    await check_state_layer(make, open_new, EMBEDDER, lambda store: read_tree(store, rules))


async def test_many_new_texts_are_folded():
    store, model = await fill_tree(range(3), MANY, lambda number: f"the same form again {'word ' * 1800} note{number}")
    parts = [call.given for call in model.calls]
    assert len(parts) > len(store.nodes(MANY.layer))
    assert all(sum(len(text) for text in given.texts) < 4 * 3500 + 9000 for given in parts)
    assert all(given.has_text for given in parts)


async def test_without_aggregation_nothing_is_asked():
    store, model = await fill_tree(range(12), PLAIN)
    assert not model.calls
    nodes = list_all_nodes(store, PLAIN)
    assert nodes
    for node, _ in nodes:
        assert sorted(node[0].splitlines()) == sorted(map(write_text, list_leaves(node)))


@pytest.mark.parametrize(
    ("rules", "inexact"), [(MANY, 0), (MemTreeRules(batch=30), 0), (PLAIN, 0), (MemTreeRules(batch=4), 1)]
)
async def test_the_estimate_of_one_batch_is_exact_and_that_of_many_is_near(rules, inexact):
    store, model = PlainStore(), make_model()
    put_numbered(store, range(30), write_text)
    for numbers in ((), (3, 4, 5, 6, 7, 8)):
        remove_numbered(store, numbers)
        model.calls.clear()
        (foreseen,) = await estimate([MemTreeLayer(store, model, EMBEDDER, rules)], store)
        await build_tree(store, model, rules)
        assert foreseen.cost.calls == pytest.approx(len(model.calls), rel=0.5 * inexact)


async def test_a_moved_document_keeps_its_place_and_can_go():
    store, _ = await fill_tree(range(6))
    texts = sorted(find_texts(store).values())
    with store.write() as change:
        change.move_document("d001", Document(id="moved", text=store.document("d001").text), "digest")
    await build_tree(store)
    assert sorted(find_texts(store).values()) == texts
    put_text(store, "d001", write_text(7))
    await build_tree(store)
    remove_documents(store, "moved")
    await build_tree(store)
    names = MemTreeNames()
    places = read_edges(store, names.texts).rows[:, 0].astype(int).tolist()
    assert sorted(places) == sorted(store.node_keys(names.places))
    assert 7 in set().union(*map(read_notes, find_texts(store).values())) <= {0, 2, 3, 4, 5, 7}
