"""Recall over the tree: all levels together, compared with a plain search, and from the top down."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tomewise.recall.derived import Grounds
from tomewise.recall.tree_search import CollapsedTree, TreeTraversal
from tomewise.store.lookups import find_keys
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, check_retriever, document_of, put_document
from tomewise.types import Embedder, Node

EMBEDDER = HashEmbedder(64)
TEXTS = (
    "Ada kept the light on the rock.",
    "The keeper trimmed the lamp at night.",
    "Tom sold a boat in the harbour.",
    "The harbour froze that winter.",
    "A judge heard the case of the boat.",
    "The clerk wrote the verdict down.",
)
SUMMARIES = (
    ("light", "Ada the keeper kept the lamp.", (0, 1), 1),
    ("harbour", "Tom sold a boat before the harbour froze.", (2, 3), 1),
    ("court", "A judge gave a verdict on the boat.", (4, 5), 1),
    ("shore", "Ada and Tom lived by the sea and its harbour.", ("light", "harbour"), 2),
    ("town", "In the town a judge sat.", ("court",), 2),
)


def grow(store: SqlStore, embedder: Embedder) -> None:
    """Add the nodes of SUMMARIES, which were made from the passages of TEXTS."""
    passages = {passage.document: passage.id for passage in store.passages().values()}
    ids = {number: passages[f"d{number}"] for number in range(len(TEXTS))}
    for name, text, members, level in SUMMARIES:
        sources = tuple(ids[member] if isinstance(member, int) else member for member in members)
        with store.write() as change:
            keys = change.put_nodes([Node(id=name, layer="tree", text=text, sources=sources, level=level)])
            change.put_vectors("tree", list(keys.values()), embedder.embed([text]))


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    store = SqlStore.open(tmp_path / "a.tome")
    for number, text in enumerate(TEXTS):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    grow(store, EMBEDDER)
    return store


async def test_retrievers_keep_the_contract(store: SqlStore) -> None:
    await check_retriever(CollapsedTree(store, EMBEDDER), "Who sold the boat in the harbour?", store)
    await check_retriever(TreeTraversal(store, EMBEDDER), "Who sold the boat in the harbour?", store)


async def test_the_collapsed_tree_ranks_all_levels_as_one(store: SqlStore) -> None:
    query = "the boat in the harbour"
    found = await CollapsedTree(store, EMBEDDER).retrieve(query, 7)
    texts = [*TEXTS, *(text for _, text, _, _ in SUMMARIES)]
    cosines = EMBEDDER.embed(texts) @ EMBEDDER.embed([query])[0]
    expected = [texts[place] for place in np.argsort(-cosines)[:7]]
    assert [piece.text for piece in found] == expected
    assert [piece.layer for piece in found] == ["passages" if text in TEXTS else "tree" for text in expected]
    assert [piece.score for piece in found] == pytest.approx(sorted(cosines, reverse=True)[:7], abs=1e-6)


async def test_evidence_rests_on_the_passages_below(store: SqlStore) -> None:
    found = {piece.node: piece for piece in await CollapsedTree(store, EMBEDDER).retrieve("sea", 20)}
    passages = {passage.text: passage.id for passage in store.passages().values()}
    assert found["shore"].sources == tuple(passages[text] for text in TEXTS[:4])
    assert found["court"].sources == tuple(passages[text] for text in TEXTS[4:])
    assert found[passages[TEXTS[0]]].sources == (passages[TEXTS[0]],)


async def test_a_walk_down_sees_only_the_children_of_what_it_kept(store: SqlStore) -> None:
    found = await TreeTraversal(store, EMBEDDER, top_k=1).retrieve("Ada and the sea", 20)
    assert sorted(piece.node for piece in found if piece.layer == "tree") == ["light", "shore"]
    assert [piece.text for piece in found if piece.layer == "passages"] == [TEXTS[0]]
    broad = await TreeTraversal(store, EMBEDDER, top_k=2).retrieve("Ada and the sea", 20)
    assert {piece.node for piece in broad if piece.layer == "tree"} >= {"shore", "town", "light"}
    assert len(broad) == 6
    scores = [piece.score for piece in broad]
    assert scores == sorted(scores, reverse=True)
    assert await TreeTraversal(store, EMBEDDER, top_k=2).retrieve("Ada and the sea", 3) == broad[:3]


async def test_without_summaries_the_passages_are_searched(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "b.tome")
    assert await CollapsedTree(store, EMBEDDER).retrieve("boat", 3) == []
    assert await TreeTraversal(store, EMBEDDER).retrieve("boat", 3) == []
    for number, text in enumerate(TEXTS):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    collapsed = await CollapsedTree(store, EMBEDDER).retrieve("Tom sold a boat", 2)
    assert collapsed == await TreeTraversal(store, EMBEDDER).retrieve("Tom sold a boat", 2)
    assert collapsed[0].text == TEXTS[2]


async def test_what_was_removed_is_not_found(store: SqlStore) -> None:
    with store.write() as change:
        change.remove_document("d0")  # and with it the summaries made from it
    for retriever in (CollapsedTree(store, EMBEDDER), TreeTraversal(store, EMBEDDER, top_k=20)):
        nodes = {piece.node for piece in await retriever.retrieve("Ada and the sea", 20)}
        assert nodes.isdisjoint({"light", "shore"})
        assert nodes >= {"town", "court"}


def test_grounds_are_read_once_and_again_when_the_tree_has_changed(store: SqlStore) -> None:
    asked: list[list[int]] = []

    class Watched(SqlStore):
        def sources(self, keys, layer):
            asked.append(sorted(keys))
            return super().sources(keys, layer)

    watched = Watched.open(store.path)
    keys = find_keys(watched, ["light", "shore", "town"])
    passages = [passage.id for passage in watched.passages().values()]
    tree_grounds = Grounds(watched, "tree")
    expected = {keys["light"]: tuple(passages[:2]), keys["shore"]: tuple(passages[:4])}
    assert tree_grounds.find_passages_below(expected) == expected
    asked.clear()
    assert tree_grounds.find_passages_below(expected) == expected
    assert asked == []
    assert tree_grounds.find_passages_below([keys["town"]]) == {keys["town"]: tuple(passages[4:])}
    with store.write() as change:
        change.remove_document("d4")
        (made,) = change.put_nodes([Node(id="rest", layer="tree", text="rest", sources=(passages[5],))]).values()
    assert tree_grounds.find_passages_below([keys["town"], made]) == {keys["town"]: (), made: (passages[5],)}
