"""Checks of layers: of functions of what they need, and of states that grow batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

from tomewise.memory.building import build, estimate
from tomewise.memory.grounds import find_grounds
from tomewise.run import meter
from tomewise.store.contract import Store, Write
from tomewise.store.export import export
from tomewise.store.records import BUILDS, PASSAGES
from tomewise.testing.store_checks import document_of, put_document
from tomewise.types import Document, Embedder, Layer, LayerReport

_STATE_TEXTS = (
    "Ada Marsh kept the lighthouse at Skerry.",
    "The keeper met Tom Hale in May 1911.",
    "Tom Hale sold Ada Marsh a boat.",
    "Ida Poe wrote to Ada Marsh about the boat.",
    "The lighthouse at Skerry was sold to Ida Poe.",
)
_DOCUMENTS = [document_of(f"d{number}", text) for number, text in enumerate(_STATE_TEXTS)]


async def check_layer(
    make: Callable[[Store], Sequence[Layer]], stores: Callable[[], Store], embedder: Embedder
) -> None:
    """Check that a layer is a pure function of its passages.

    Documents added in any order give the same memory; a document that is added and removed leaves no trace; a layer
    that is up to date adds nothing. `make` returns the layer after those it needs, `stores` a new empty store.
    """
    forward, backward = stores(), stores()
    for document in _DOCUMENTS[:3]:
        put_document(forward, embedder, document)
        await _build_layers(make(forward), forward)
    for document in _DOCUMENTS[2::-1]:
        put_document(backward, embedder, document)
    await _build_layers(make(backward), backward)
    whole = list(export(forward))
    assert whole == list(export(backward)), "the order of adding must not matter"
    reports = await _build_layers(make(forward), forward)
    assert not any(report.added for report in reports), "a layer that is up to date must add nothing"
    put_document(forward, embedder, document_of("guest", "Ada Marsh wrote to Ida Poe about the boat."))
    await _build_layers(make(forward), forward)
    assert list(export(forward)) != whole, "a new document must be remembered"
    with forward.write() as change:
        change.remove_document("guest")
    await _build_layers(make(forward), forward)
    assert list(export(forward)) == whole, "adding and removing a document must leave no trace"


async def check_mapped_layer(
    make: Callable[[Store], Sequence[Layer]], stores: Callable[[], Store], embedder: Embedder
) -> None:
    """Check a layer that asks about each passage or node below it, such as a `MappedLayer`: also as in `check_layer`.

    The estimate has the calls of the build; a build that is stopped repeats no call; a node goes with what it was made
    from. `make` returns the layer after those it needs, with a model that keeps its replies (as in a kit); `stores` a
    new empty store.
    """
    await check_layer(make, stores, embedder)
    trial = _Trial(make, stores, embedder, lambda _: None)
    whole = trial.fill_store()
    commits, calls = await trial.build(whole)
    for stop in range(commits):
        await trial.check_stopped_build(stop, whole, calls)
    store = trial.fill_store()
    await build(make(store)[:-1], store, lambda _: None)
    foreseen = (await estimate(make(store), store))[-1]
    _, calls = await trial.build(store)
    assert foreseen.cost.calls == calls, "an estimate must have the calls of the build"
    await trial.check_removals(store, _DOCUMENTS)
    assert not any(store.node_keys(name) for name in make(store)[-1].writes), "a node must go with its sources"


async def check_state_layer(
    make: Callable[[Store], Sequence[Layer]],
    stores: Callable[[], Store],
    embedder: Embedder,
    check: Callable[[Store], None],
) -> None:
    """Check a layer whose state grows batch by batch, so that it may depend on the order of the passages.

    Each batch is one commit, with the record of its passages, and leaves a valid state; a build that is stopped between
    two batches goes on with the next one and repeats no call; equal histories give equal memories; after a removal no
    node is left without a source. `make` returns the layer, with batches of one or two passages and a model that keeps
    its replies (as in a kit), after the layers that it needs; `stores` a new empty store.
    `check` raises AssertionError if the state of the layer in a store breaks a rule of the layer.
    """
    trial = _Trial(make, stores, embedder, check)
    whole, again = trial.fill_store(), trial.fill_store()
    commits, calls = await trial.build(whole)
    assert commits > 1, "give the layer batches of one or two passages, so that there is more than one"
    await trial.build(again)
    assert list(export(again)) == list(export(whole)), "equal histories must give equal memories"
    for stop in range(1, commits):
        other_commits = await trial.check_stopped_build(stop, whole, calls)
        assert stop + other_commits == commits, "a stopped build must go on with the next batch"
    assert (await trial.build(whole))[0] == 0, "a layer that is up to date must change nothing"
    await trial.check_removals(whole, (*_DOCUMENTS[::2], *_DOCUMENTS[1::2]))
    put_document(whole, embedder, _DOCUMENTS[0])
    assert (await trial.build(whole))[0] > 0, "a document that comes after a removal must be read"


class _Stopped(Exception):
    """The build was stopped between two commits."""


@dataclass(eq=False)
class _WatchedStore:
    """A store that checks each commit which changes the memory, and refuses to begin the one after `stop` of them."""

    store: Store
    check: Callable[[Store], None]
    stop: int | None
    commits: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    @contextmanager
    def write(self) -> Iterator[Write]:
        if self.commits == self.stop:
            raise _Stopped
        memory, intake = self._read()
        with self.store.write() as change:
            yield change
        memory_after, intake_after = self._read()
        if (memory, intake) != (memory_after, intake_after):
            self.commits += 1
            assert memory == memory_after or intake != intake_after, "a batch and its intake must be one commit"
            self.check(self.store)

    def _read(self) -> tuple[list[str], object]:
        """The memory without the intake; the intake and the removals that layers have yet to follow."""
        lines = list(export(self.store))
        intake = [line for line in lines if '"kind": "intake"' in line]
        removals = {layer: self.store.find_removed_ids(layer) for layer in self.store.notes(BUILDS)}
        return [line for line in lines if line not in set(intake)], (intake, removals)


@dataclass(frozen=True)
class _Trial:
    """Builds a layer on stores that hold the same documents. `check` is made of the store after each commit."""

    make: Callable[[Store], Sequence[Layer]]
    stores: Callable[[], Store]
    embedder: Embedder
    check: Callable[[Store], None]

    def fill_store(self) -> Store:
        """A new store with all documents."""
        store = self.stores()
        for document in _DOCUMENTS:
            put_document(store, self.embedder, document)
        return store

    async def build(self, store: Store, stop: int | None = None) -> tuple[int, int]:
        """Build, and stop after so many commits. Returns the number of commits, and that of calls."""
        watched = _WatchedStore(store, self.check, stop)
        with meter() as used, suppress(_Stopped):
            await _build_layers(self.make(cast("Store", watched)), store)
        return watched.commits, used.measure_cost().calls

    async def check_stopped_build(self, stop: int, whole: Store, calls: int) -> int:
        """Check that a build which goes on after a stop ends like the `whole` one. Returns how many commits it had."""
        store = self.fill_store()
        _, first_calls = await self.build(store, stop)
        commits, other_calls = await self.build(store)
        assert first_calls + other_calls == calls, "a stopped build must repeat no finished call"
        assert list(export(store)) == list(export(whole)), "a stopped build must end like one that was not"
        return commits

    async def check_removals(self, store: Store, documents: Sequence[Document]) -> None:
        """Remove one document after the other, and build after each."""
        for document in documents:
            with store.write() as change:
                change.remove_document(document.id)
            await self.build(store)
            _check_grounds(self.make(store)[-1], store)


def _check_grounds(layer: Layer, store: Store) -> None:
    for node_layer in layer.writes:
        for leaves in find_grounds(store, store.node_keys(node_layer), node_layer).values():
            layers = {node.layer for node in store.nodes_at(leaves).values()}
            assert layers.isdisjoint(layer.writes), f"a node of {node_layer} has no source left: remove it"


async def _build_layers(layers: Sequence[Layer], store: Store) -> Sequence[LayerReport]:
    """Build layers, and check that no reply fails, and that they name all node layers which hold nodes."""
    reports = await build(layers, store, lambda _: None)
    named = {PASSAGES, *(name for layer in layers for name in layer.writes)}
    unnamed = [name for name, counts in store.layers().items() if counts["nodes"] and name not in named]
    assert not unnamed, f"nodes in {unnamed}: a layer must name in `writes` each node layer that holds its nodes"
    failed = {report.layer: report.failed for report in reports if report.failed}
    assert not failed, f"no reply may fail in this check: {failed}"
    return reports
