"""A layer that is a state: groups of passages that keep their identity while their members change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import pytest
from tests.memory.memories import EMBEDDER, build_layers, keep_replies, put_text, remove_documents
from tests.store.plain_store import PlainStore

from tomewise.language.roles import SUMMARISE, SummaryIn
from tomewise.memory.ask_each import ask_each
from tomewise.memory.build_records import record_build
from tomewise.store.contract import Store
from tomewise.store.lifetimes import Lifetime
from tomewise.store.lookups import find_keys
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel, check_state_layer
from tomewise.types import Change, Estimate, LanguageModel, LayerReport, Node, NodeId, Report


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
        for start in range(0, max(1, len(change.added)), 2):
            await self.take_batch(change.added[start : start + 2], () if start else change.removed, report)
        return LayerReport(layer=self.name, added=len(change.added))

    async def estimate(self, change: Change) -> Estimate:
        return Estimate(layer=self.name)

    async def take_batch(self, keys: Sequence[int], removed: Sequence[NodeId], report: Report) -> None:
        known = {node.id: dict.fromkeys(node.data["members"]) for node in self._store.nodes(self.name).values()}
        members = {group: {id: None for id in ids if id not in removed} for group, ids in known.items()}
        for passage in self._store.passages(keys).values():
            for word in filter(str.istitle, passage.text.split()):
                members.setdefault(f"group/{word}", {})[passage.id] = None
        changed = sorted(group for group, ids in members.items() if ids != known.get(group))
        inputs = {group: self._make_input(members[group]) for group in changed if members[group]}
        replies = await ask_each(self._model, SUMMARISE, inputs, report, "groups summarised")
        nodes = [
            Node(id=id, layer=self.name, text=out.summary, sources=tuple(members[id]), data={"members": [*members[id]]})
            for id, out in replies.items()
        ]
        self.commit(keys, nodes, [group for group in changed if not members[group]])

    def commit(self, keys: Sequence[int], nodes: list[Node], empty: Sequence[NodeId]) -> None:
        stored = find_keys(self._store, [node.id for node in nodes])
        with self._store.write() as change:
            change.put_nodes([node for node in nodes if node.id not in stored], lifetime=self.lifetime)
            change.update_nodes([node for node in nodes if node.id in stored], lifetime=self.lifetime)
            change.remove_nodes(find_keys(self._store, empty).values())
            change.record_intake(self.name, keys)
            record_build(change, self.name, {})

    def _make_input(self, members: dict[NodeId, None]) -> SummaryIn:
        passages = self._store.passages(find_keys(self._store, members).values())
        return SummaryIn(texts=sorted(passage.text for passage in passages.values()), max_tokens=100)


class TwoCommits(Groups):
    """Takes the passages in after the commit of their groups."""

    def commit(self, keys: Sequence[int], nodes: list[Node], empty: Sequence[NodeId]) -> None:
        super().commit((), nodes, empty)
        with self._store.write() as change:
            change.record_intake(self.name, keys)


class Hoarder(Groups):
    """Keeps groups whose passages are gone."""

    async def take_batch(self, keys: Sequence[int], removed: Sequence[NodeId], report: Report) -> None:
        await super().take_batch(keys, (), report)


class Restless(Groups):
    """Gives its nodes other ids in each history."""

    histories = count()

    def commit(self, keys: Sequence[int], nodes: list[Node], empty: Sequence[NodeId]) -> None:
        odd = Node(id=f"group/{next(self.histories)}", layer=self.name, text="", sources=(), data={"members": []})
        super().commit(keys, [*nodes, odd], empty)


class Hidden(Groups):
    """Keeps its nodes in a node layer that it does not name."""

    writes = ("others",)


class Single(Groups):
    """Takes all in as one batch."""

    async def update(self, change: Change, report: Report) -> LayerReport:
        await self.take_batch(change.added, change.removed, report)
        return LayerReport(layer=self.name)


def check_groups(store: Store) -> None:
    """No summary is stale, and no group is empty."""
    texts = {passage.id: passage.text for passage in store.passages().values()}
    for node in store.nodes("groups").values():
        assert node.data["members"], f"{node.id} is empty"
        assert node.text == " | ".join(sorted(texts[id] for id in node.data["members"])), "a stale summary"


def accept_two(store: Store) -> None:
    assert len(store.nodes("groups")) < 3, "too many groups"


@pytest.fixture(params=["sqlite", "plain"])
def stores(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    numbers = count()
    return PlainStore if request.param == "plain" else lambda: SqlStore.open(tmp_path / f"{next(numbers)}.tome")


def make_groups(store: Store, kind: type[Groups] = Groups, *, forgets: bool = False) -> list[Groups]:
    model = ScriptedModel({"summarise": lambda given: {"summary": " | ".join(given.texts)}})
    return [kind(store, model if forgets else keep_replies(model, store))]


async def test_groups_are_a_state(stores: Callable[[], Store]) -> None:
    await check_state_layer(make_groups, stores, EMBEDDER, check_groups)


async def test_a_group_keeps_its_key_while_its_members_change(stores: Callable[[], Store]) -> None:
    store = stores()
    for name in ("d0", "d1"):
        put_text(store, name, f"Ada saw {name}.")
        await build_layers(make_groups(store), store)
        (key,) = find_keys(store, ["group/Ada"]).values()
    remove_documents(store, "d0")
    await build_layers(make_groups(store), store)
    assert {key: node.text for key, node in store.nodes("groups").items()} == {key: "Ada saw d1."}


@pytest.mark.parametrize(
    ("kind", "more", "check", "message"),
    [
        (TwoCommits, {}, check_groups, "a batch and its intake must be one commit"),
        (Hoarder, {}, lambda _: None, "has no source left"),
        (Restless, {}, lambda _: None, "equal histories"),
        (Hidden, {}, check_groups, "name in `writes` each node layer"),
        (Single, {}, check_groups, "batches of one or two passages"),
        (Groups, {"forgets": True}, check_groups, "repeat no finished call"),
        (Groups, {}, accept_two, "too many groups"),
    ],
)
async def test_what_is_no_state_is_refused(
    kind: type[Groups], more: dict[str, bool], check: Callable[[Store], None], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        await check_state_layer(lambda store: make_groups(store, kind, **more), PlainStore, EMBEDDER, check)
