"""A layer that is a state: groups of passages that keep their identity while their members change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, count
from pathlib import Path

import numpy as np
import pytest
from tests.store.plain_store import PlainStore

from tomewise.language.cached import Cached
from tomewise.language.prompts import Prompts
from tomewise.language.roles import SUMMARISE, SummaryIn
from tomewise.memory.ask_each import ask_each
from tomewise.memory.build_records import record_build
from tomewise.memory.building import build
from tomewise.store.contract import Store
from tomewise.store.lifetimes import Lifetime
from tomewise.store.lookups import find_keys, read_edges, read_sources, read_vectors
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_state_layer, document_of, put_document
from tomewise.types import Change, Estimate, LanguageModel, LayerReport, Node, NodeId, Report

EMBEDDER = HashEmbedder(16)
NEAR = "near:groups"  # group, group, and how many passages they share


def summarise(given: SummaryIn) -> dict[str, str]:
    return {"summary": " | ".join(given.texts)}


class Groups:
    """A group for each name in the passages, two passages a batch. A group keeps its node while its members change."""

    name = "groups"
    needs = ("passages",)
    writes = ("groups",)
    lifetime: Lifetime = "layer"

    def __init__(self, store: Store, model: LanguageModel) -> None:
        self._store = store
        self._model = model

    async def update(self, change: Change, report: Report) -> LayerReport:
        batches = [change.added[start : start + 2] for start in range(0, len(change.added), 2)] or [()]
        for number, batch in enumerate(batches):
            await self.take_batch(batch, change.removed if number == 0 else (), report)
        return LayerReport(layer=self.name, added=len(change.added))

    async def estimate(self, change: Change) -> Estimate:
        return Estimate(layer=self.name)

    async def take_batch(self, keys: Sequence[int], removed: Sequence[NodeId], report: Report) -> None:
        old = {node.id: node for node in self._store.nodes(self.name).values()}
        members = {group: dict.fromkeys(node.data["members"]) for group, node in old.items()}
        touched = {group for group, ids in members.items() if not ids.keys().isdisjoint(removed)}
        for group in touched:
            members[group] = dict.fromkeys(id for id in members[group] if id not in removed)
        for passage in self._store.passages(keys).values():
            for word in passage.text.rstrip(".").split():
                if word.istitle():
                    members.setdefault(f"group/{word}", {})[passage.id] = None
                    touched.add(f"group/{word}")
        inputs = {group: self._make_input(members[group]) for group in sorted(touched) if members[group]}
        replies = await ask_each(self._model, SUMMARISE, inputs, report, "groups summarised")
        nodes = [
            Node(id=id, layer=self.name, text=out.summary, sources=tuple(members[id]), data={"members": [*members[id]]})
            for id, out in replies.items()
        ]
        empty = [group for group in touched if not members[group]]
        self.commit(keys, [node for node in nodes if node.id not in old], [n for n in nodes if n.id in old], empty)

    def commit(self, keys: Sequence[int], fresh: list[Node], known: list[Node], empty: Sequence[NodeId]) -> None:
        with self._store.write() as change:
            at = change.put_nodes(fresh, lifetime=self.lifetime) | change.update_nodes(known, lifetime=self.lifetime)
            change.remove_nodes(find_keys(self._store, empty).values())
            texts = [node.text for node in (*fresh, *known)]
            change.put_vectors(self.name, list(at.values()), EMBEDDER.embed(texts), replace=True)
            change.record_intake(self.name, keys)
            record_build(change, self.name, {})
            later = {**self._store.nodes(self.name), **{at[node.id]: node for node in (*fresh, *known)}}
            wanted = count_shared({key: node for key, node in later.items() if node.id not in empty})
            have = {(int(a), int(b)): shared for a, b, shared in read_edges(self._store, NEAR).rows.tolist()}
            pairs = {name: as_array(pairs) for name, pairs in split_pairs(have, wanted).items()}
            change.remove_edges(NEAR, pairs["gone"])
            new = np.concatenate((pairs["other"], pairs["new"]))
            change.put_edges(NEAR, new[:, 0], new[:, 1], weigh(new, wanted), replace=True)

    def _make_input(self, members: Mapping[NodeId, None]) -> SummaryIn:
        passages = self._store.passages(find_keys(self._store, members).values())
        return SummaryIn(texts=sorted(passage.text for passage in passages.values()), max_tokens=100)


Pairs = dict[tuple[int, int], float]


def count_shared(groups: Mapping[int, Node]) -> Pairs:
    shared = {
        (a, b): float(len(set(groups[a].data["members"]) & set(groups[b].data["members"])))
        for a, b in combinations(sorted(groups), 2)
    }
    return {pair: size for pair, size in shared.items() if size}


def split_pairs(have: Pairs, wanted: Pairs) -> dict[str, list[tuple[int, int]]]:
    return {
        "gone": [pair for pair in have if pair not in wanted],
        "other": [pair for pair, weight in have.items() if wanted.get(pair, weight) != weight],
        "new": [pair for pair in wanted if pair not in have],
    }


def as_array(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array(pairs, np.int64).reshape(-1, 2)


def weigh(pairs: np.ndarray, weights: Pairs) -> np.ndarray:
    return np.array([weights[a, b] for a, b in pairs.tolist()], np.float64)


def check_groups(store: Store) -> None:
    """No summary is stale, links are those of the members, and no group is empty."""
    groups, passages = store.nodes("groups"), store.passages()
    for key, node in groups.items():
        sources = read_sources(store, [key], "groups")[key]
        assert sources, f"{node.id} is empty"
        assert {passages[source].id for source in sources} == set(node.data["members"])
        assert node.text == " | ".join(sorted(passages[source].text for source in sources)), "a stale summary"
        assert all(f"{node.id.removeprefix('group/')}" in passages[source].text for source in sources)
    rows = {(int(a), int(b)): shared for a, b, shared in read_edges(store, NEAR).rows.tolist()}
    assert rows == count_shared(groups)


@pytest.fixture(params=["sqlite", "plain"])
def stores(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    numbers = count()
    return PlainStore if request.param == "plain" else lambda: SqlStore.open(tmp_path / f"{next(numbers)}.tome")


def make_groups(store: Store, kind: type[Groups] = Groups) -> list[Groups]:
    return [kind(store, Cached(ScriptedModel({"summarise": summarise}), Prompts(), store.calls))]


async def test_groups_are_a_state(stores: Callable[[], Store]) -> None:
    await check_state_layer(make_groups, stores, EMBEDDER, check_groups)


async def test_a_group_keeps_its_key_while_its_members_change(stores: Callable[[], Store]) -> None:
    store = stores()
    for name in ("d0", "d1"):
        put_document(store, EMBEDDER, document_of(name, f"Ada saw {name}."))
        await build(make_groups(store), store, lambda _: None)
        (key,) = find_keys(store, ["group/Ada"]).values()
    with store.write() as change:
        change.remove_document("d0")
    await build(make_groups(store), store, lambda _: None)
    assert {key: node.text for key, node in store.nodes("groups").items()} == {key: "Ada saw d1."}
    assert np.allclose(read_vectors(store, "groups").rows, EMBEDDER.embed(["Ada saw d1."]))


class TwoCommits(Groups):
    """Takes the passages in after the commit of their groups."""

    def commit(self, keys: Sequence[int], fresh: list[Node], known: list[Node], empty: Sequence[NodeId]) -> None:
        super().commit((), fresh, known, empty)
        with self._store.write() as change:
            change.record_intake(self.name, keys)


class Hoarder(Groups):
    """Keeps groups whose passages are gone."""

    async def take_batch(self, keys: Sequence[int], removed: Sequence[NodeId], report: Report) -> None:
        await super().take_batch(keys, (), report)


class Restless(Groups):
    """Gives its nodes other texts in each history."""

    histories = count()

    def commit(self, keys: Sequence[int], fresh: list[Node], known: list[Node], empty: Sequence[NodeId]) -> None:
        fresh.append(
            Node(id=f"group/{next(self.histories)}", layer=self.name, text="", sources=(), data={"members": []})
        )
        super().commit(keys, fresh, known, empty)


class Hidden(Groups):
    """Keeps its nodes in a node layer that it does not name."""

    writes = ("others",)


class Single(Groups):
    """Takes all in as one batch."""

    async def update(self, change: Change, report: Report) -> LayerReport:
        await self.take_batch(change.added, change.removed, report)
        return LayerReport(layer=self.name)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (TwoCommits, "a batch and its intake must be one commit"),
        (Hoarder, "has no source left"),
        (Restless, "equal histories"),
        (Hidden, "name in `writes` each node layer"),
        (Single, "batches of one or two passages"),
    ],
)
async def test_what_is_no_state_is_refused(kind: type[Groups], message: str, stores: Callable[[], Store]) -> None:
    with pytest.raises(AssertionError, match=message):
        await check_state_layer(lambda store: make_groups(store, kind), stores, EMBEDDER, lambda _: None)


async def test_a_model_that_forgets_its_replies_is_noticed(stores: Callable[[], Store]) -> None:
    with pytest.raises(AssertionError, match="repeat no finished call"):
        await check_state_layer(
            lambda store: [Groups(store, ScriptedModel({"summarise": summarise}))], stores, EMBEDDER, check_groups
        )


async def test_an_unsound_state_is_noticed_at_its_commit(stores: Callable[[], Store]) -> None:
    def refuse(store: Store) -> None:
        assert len(store.nodes("groups")) < 3, "too many groups"

    with pytest.raises(AssertionError, match="too many groups"):
        await check_state_layer(make_groups, stores, EMBEDDER, refuse)
