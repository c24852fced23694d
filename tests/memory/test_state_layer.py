"""The check of layers that are states: one that it accepts, and what it says of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.memory.memories import EMBEDDER, keep_replies
from tests.store.plain_store import PlainStore

from tomewise.language.roles import SUMMARISE, SummaryIn
from tomewise.memory.ask_each import ask_each
from tomewise.memory.build_records import record_build
from tomewise.store.contract import Store
from tomewise.testing import ScriptedModel, check_state_layer
from tomewise.types import Change, Estimate, LanguageModel, LayerReport, Node, NodeId, Report


class Batches:
    """A summary of each two passages that come together; it goes with either."""

    name = "batches"
    needs = ("passages",)
    writes = ("batches",)

    def __init__(self, store: Store, model: LanguageModel) -> None:
        self._store = store
        self._model = model

    async def update(self, change: Change, report: Report) -> LayerReport:
        self.drop(change.removed)
        for start in range(0, len(change.added), 2):
            await self.take_batch(change.added[start : start + 2], report)
        return LayerReport(layer=self.name, added=len(change.added))

    async def estimate(self, change: Change) -> Estimate:
        return Estimate(layer=self.name)

    def drop(self, removed: Sequence[NodeId]) -> None:
        nodes = self._store.nodes(self.name).items()
        lost = [key for key, node in nodes if not set(removed).isdisjoint(node.data["of"])]
        if removed:
            with self._store.write() as change:
                change.remove_nodes(lost)
                change.record_intake(self.name, ())
                record_build(change, self.name, {})

    async def take_batch(self, keys: Sequence[int], report: Report) -> None:
        passages = list(self._store.passages(keys).values())
        given = SummaryIn(texts=[passage.text for passage in passages], max_tokens=100)
        replies = await ask_each(self._model, SUMMARISE, {0: given}, report, "batches summarised")
        ids = tuple(passage.id for passage in passages)
        text = replies[0].summary
        self.commit(keys, Node(id=f"batch/{ids[0]}", layer=self.name, text=text, sources=ids, data={"of": [*ids]}))

    def commit(self, keys: Sequence[int], node: Node) -> None:
        with self._store.write() as change:
            change.put_nodes([node], lifetime="layer")
            change.record_intake(self.name, keys)
            record_build(change, self.name, {})


class TwoCommits(Batches):
    """Takes the passages in after the commit of their summary."""

    def commit(self, keys: Sequence[int], node: Node) -> None:
        super().commit((), node)
        with self._store.write() as change:
            change.record_intake(self.name, keys)


class Hoarder(Batches):
    """Keeps summaries whose passages are gone."""

    def drop(self, removed: Sequence[NodeId]) -> None:
        super().drop(["none"] if removed else [])


def make_layers(store: Store, kind: type[Batches] = Batches, *, forgets: bool = False) -> list[Batches]:
    model = ScriptedModel({"summarise": lambda given: {"summary": " | ".join(given.texts)}})
    return [kind(store, model if forgets else keep_replies(model, store))]


def check_batches(store: Store) -> None:
    texts = {passage.id: passage.text for passage in store.passages().values()}
    for node in store.nodes("batches").values():
        assert node.text == " | ".join(texts[id] for id in node.data["of"])


async def test_batches_are_a_state() -> None:
    await check_state_layer(make_layers, PlainStore, EMBEDDER, check_batches)


@pytest.mark.parametrize(
    ("kind", "more", "check", "message"),
    [
        (TwoCommits, {}, check_batches, "a batch and its intake must be one commit"),
        (Hoarder, {}, lambda _: None, "has no source left"),
        (Batches, {"forgets": True}, check_batches, "repeat no finished call"),
    ],
)
async def test_what_is_no_state_is_refused(
    kind: type[Batches], more: dict[str, bool], check: Callable[[Store], None], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        await check_state_layer(lambda store: make_layers(store, kind, **more), PlainStore, EMBEDDER, check)
