"""Bring memory layers up to date: each after the layers it needs, and independent ones side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tomewise.concurrency import run_in_thread, run_side_by_side
from tomewise.errors import BudgetExceeded, UsageError
from tomewise.extras import require_extra
from tomewise.language.cached import prove_room
from tomewise.memory.build_records import add_flags, change_record, count_replies, read_build
from tomewise.memory.step_reports import watch_steps
from tomewise.run import change_run, meter, write_notes
from tomewise.store.contract import Store
from tomewise.store.records import BUILDS, PASSAGES
from tomewise.types import Change, Estimate, Event, Layer, LayerReport, Progress, Report

Builds = Mapping[str, Mapping[str, Any]]  # the build records by layer
Provide = Callable[[Layer], Awaitable[LayerReport | None]]


async def build(
    layers: Sequence[Layer], store: Store, report: Report, *, provide: Provide | None = None
) -> list[LayerReport]:
    """Update each layer that has new nodes to process; a layer waits only for the layers that it needs.

    `provide` may supply a layer with results that the layer would otherwise ask a model for. It runs once the layers
    that this layer needs are built.
    A layer may state the `extra` of Tomewise that it needs; MissingDependency is raised before any layer begins.
    Raises the first error that stops a layer; layers that are finished stay built. After BudgetExceeded the other
    running layers still end by themselves, so that no reply that was paid for is lost. Failures of all layers count
    together for KeepsFailing. Raises StoreError before the first call where the replies could not be kept, and at the
    first one that could not be.
    """
    order = _sort_layers(layers)
    if pending := await run_in_thread(_count_pending, layers, store):
        await prove_room(store.calls, pending)
    providers = {layer.name: [below.name for below in _find_providers(layer, layers)] for layer in layers}
    tasks: dict[str, asyncio.Task[LayerReport | None]] = {}
    budget_errors: list[BudgetExceeded] = []

    async def build_one(layer: Layer) -> LayerReport | None:
        for below in providers[layer.name]:
            if await tasks[below] is None:
                return None
        mark = (await run_in_thread(read_build, store, layer.name)).get("again", "")
        provided = await provide(layer) if provide else None
        change = await run_in_thread(find_changes, layer, store, layers)
        if not change:
            await run_in_thread(_record_writes, layer, store)
            return provided or LayerReport(layer=layer.name)
        try:
            built = await _update(layer, change, store, report, mark)
        except BudgetExceeded as error:
            budget_errors.append(error)
            return None
        await run_in_thread(_record_writes, layer, store)
        if not provided:
            return built
        return replace(built, added=provided.added + built.added, notes=(*provided.notes, *built.notes))

    def report_wait(wait: Event) -> None:
        report(Progress(label="waiting", done=0, total=0, note=wait.summary))

    with watch_steps(report), change_run(on_wait=report_wait, must_keep=True):
        async with run_side_by_side() as group:
            for layer in order.values():
                tasks[layer.name] = group.create_task(build_one(layer))
    if budget_errors:
        raise budget_errors[0]
    return [built for task in tasks.values() if (built := task.result())]


async def estimate(layers: Sequence[Layer], store: Store, report: Report = lambda _: None) -> list[Estimate]:
    """Estimate the model calls of a build, layer by layer, without asking the model. Raises MissingDependency."""
    order = _sort_layers(layers)
    estimates: list[Estimate] = []
    with watch_steps(report):
        for layer in order.values():
            report(Progress(label="layers estimated", done=len(estimates), total=len(order)))
            change = await run_in_thread(find_changes, layer, store, layers)
            has_work = bool(change) or await run_in_thread(_has_changes_below, layer, layers, store)
            estimates.append(await layer.estimate(change) if has_work else Estimate(layer=layer.name))
    report(Progress(label="layers estimated", done=len(order), total=len(order)))
    return estimates


def find_changes(layer: Layer, store: Store, layers: Sequence[Layer] = ()) -> Change:
    """Find what changed in the layers below this layer since its last update.

    `layers` are those of the same build; what other layers write is known from the records of their builds. Raises
    UsageError for a need that nothing provides.
    """
    below = _find_node_layers(layer, layers, store.notes(BUILDS))
    return Change(added=tuple(store.find_pending_keys(layer.name, below)), removed=store.find_removed_ids(layer.name))


def _count_pending(layers: Sequence[Layer], store: Store) -> int:
    """How many nodes were added or removed that a layer has yet to process."""
    changes = [find_changes(layer, store, layers) for layer in layers]
    return sum(len(change.added) + len(change.removed) for change in changes)


@dataclass(frozen=True)
class Backlog:
    """What layers have yet to process: the keys of new nodes by layer. Layers that are up to date are left out.

    The layers `removed` have yet to process removals, `unbuilt` have processed nothing so far.
    """

    new_keys: Mapping[str, frozenset[int]]
    removed: frozenset[str]
    unbuilt: frozenset[str]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many nodes each of the layers has yet to process."""
        return {name: len(keys) for name, keys in self.new_keys.items()}


def find_backlog(layers: Sequence[Layer], store: Store) -> Backlog:
    """What these layers have yet to process.

    Nodes that failed do not count: the memory made from the other nodes is usable.
    """
    new_keys: dict[str, frozenset[int]] = {}
    removed: list[str] = []
    for layer in layers:
        change = find_changes(layer, store, layers)
        failed = store.intake(layer.name, change.added).failed if change.added else {}
        fresh = frozenset(change.added).difference(failed)
        if fresh or change.removed:
            new_keys[layer.name] = fresh
        if change.removed:
            removed.append(layer.name)
    unbuilt = (name for name, fresh in new_keys.items() if fresh and not store.count_taken(name))
    return Backlog(new_keys, frozenset(removed), frozenset(unbuilt))


def _find_providers(layer: Layer, layers: Sequence[Layer]) -> list[Layer]:
    """The layers, among these, that write what a layer needs."""
    needs = set(layer.needs)
    return [below for below in layers if below.name != layer.name and not needs.isdisjoint((below.name, *below.writes))]


def _find_node_layers(layer: Layer, layers: Sequence[Layer], builds: Builds) -> tuple[str, ...]:
    """The node layers that a layer reads, each once.

    A need is the name of a layer, which means all node layers that it writes, or the name of a node layer. Layers that
    are not among `layers` are known by the records of their builds. Raises UsageError for a need that nothing provides.
    """
    # Layers that are wired now come last: what they write counts, not what they wrote once.
    writes = {name: tuple(record.get("writes", (name,))) for name, record in builds.items()}
    writes |= {wired.name: wired.writes for wired in layers} | {PASSAGES: (PASSAGES,)}
    known = {node_layer for node_layers in writes.values() for node_layer in node_layers}
    found: dict[str, None] = {}
    for need in layer.needs:
        if need in writes:
            found |= dict.fromkeys(writes[need])
        elif need in known:
            found[need] = None
        else:
            raise UsageError(
                f"the layer {layer.name} needs {need!r}, which no layer of this system writes and which was never "
                f"built: put the layer that writes it before {layer.name} (known are {', '.join(sorted(writes))})"
            )
    return tuple(found)


async def _update(layer: Layer, change: Change, store: Store, report: Report, mark: str) -> LayerReport:
    """Update a layer and record what came of replies; a `mark` makes it ask again instead of using the cache."""
    with meter() as used, change_run(fresh_mark=mark):
        try:
            built = await layer.update(change, report)
        finally:
            if used.repaired or used.refused:
                counts = {"repaired": used.repaired, "refused": used.refused}
                await run_in_thread(count_replies, store, layer.name, counts)
    if used.flags:  # a build that was stopped judges the same replies again
        await run_in_thread(add_flags, store, layer.name, used.flags)
    return replace(built, notes=(*built.notes, *write_notes(used)))


def _record_writes(layer: Layer, store: Store) -> None:
    """Record what a built layer writes, unless it is known: a layer without a record writes to its own name."""
    record = store.note(BUILDS, layer.name)
    if record is not None and tuple(record.get("writes", (layer.name,))) != layer.writes:
        with store.write() as change:
            change_record(change, layer.name, writes=list(layer.writes))


def _has_changes_below(layer: Layer, layers: Sequence[Layer], store: Store) -> bool:
    """Whether a layer below has new nodes to process, so that this layer will have new nodes too."""
    return any(
        bool(find_changes(below, store, layers)) or _has_changes_below(below, layers, store)
        for below in _find_providers(layer, layers)
    )


def _sort_layers(layers: Sequence[Layer]) -> dict[str, Layer]:
    """Sort layers so that each comes once, after the layers that it needs.

    Raises UsageError for a circle of needs, MissingDependency where the extra that a layer states is not installed.
    """
    order: dict[str, Layer] = {}

    def visit(layer: Layer, above: tuple[str, ...]) -> None:
        if layer.name in above:
            raise UsageError(f"layers need each other: {' needs '.join((*above, layer.name))}; remove one of the needs")
        for below in _find_providers(layer, layers):
            visit(below, (*above, layer.name))
        order.setdefault(layer.name, layer)

    for layer in layers:
        visit(layer, ())
    for layer in layers:
        if extra := getattr(layer, "extra", ""):
            require_extra(extra, f"the layer {layer.name}")
    return order
