"""Bringing memory layers up to date: in the order of what they need, side by side where they can."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from tomewise.concurrency import side_by_side
from tomewise.errors import BudgetExceeded
from tomewise.language.cached import ask_anew
from tomewise.language.repairs import collect_repairs
from tomewise.types import Change, Estimate, Layer, LayerReport, Report

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore


Provide = Callable[[Layer], Awaitable[LayerReport | None]]


async def build(
    layers: Sequence[Layer], store: SqliteStore, report: Report, *, provide: Provide | None = None
) -> list[LayerReport]:
    """Update each layer that has something to take in; a layer waits only for the layers that it needs.

    `provide` may give a layer, once what it needs is there, some of what it would otherwise ask for.
    Raises the first error that stops a layer; layers that were finished by then stay built. Where it is a budget that
    is used up, layers end by themselves, so that no reply that was paid for is lost.
    """
    order = _by_name(layers)
    tasks: dict[str, asyncio.Task[LayerReport | None]] = {}
    refused: list[BudgetExceeded] = []

    async def one(layer: Layer) -> LayerReport | None:
        for need in layer.needs:
            if need in tasks and await tasks[need] is None:
                return None
        mark = (await asyncio.to_thread(store.builds)).get(layer.name, {}).get("again", "")
        provided = await provide(layer) if provide else None
        change = await asyncio.to_thread(pending, layer, store)
        if not change:
            return provided or LayerReport(layer=layer.name)
        try:
            built = await _update(layer, change, store, report, mark)
        except BudgetExceeded as error:
            refused.append(error)
            return None
        return _both(provided, built) if provided else built

    async with side_by_side() as group:
        for layer in order.values():
            tasks[layer.name] = group.create_task(one(layer))
    if refused:
        raise refused[0]
    return [built for task in tasks.values() if (built := task.result())]


async def estimate(layers: Sequence[Layer], store: SqliteStore) -> list[Estimate]:
    """What a build would ask of the model, layer by layer. Asks nothing."""
    order = _by_name(layers)
    found = []
    for layer in order.values():
        change = await asyncio.to_thread(pending, layer, store)
        asks = bool(change) or await asyncio.to_thread(_waits, layer, order, store)
        found.append(await layer.estimate(change) if asks else Estimate(layer=layer.name))
    return found


def pending(layer: Layer, store: SqliteStore) -> Change:
    """What has happened below a layer since it was last updated."""
    seen = store.seen(layer.name)
    record = store.builds().get(layer.name, {})
    return Change(
        added=tuple(store.untaken(layer.name, layer.needs)),
        removed=record.get("seen", seen) != seen,
    )


def behind(layers: Sequence[Layer], store: SqliteStore) -> Mapping[str, int]:
    """Layers that were never built, or lag behind, with the number of nodes they have yet to take in.

    Nodes that failed do not count: what could be remembered of the rest is usable.
    """
    lag: dict[str, int] = {}
    for layer in layers:
        change = pending(layer, store)
        waiting = set(change.added) - set(store.intake(layer.name).failed) if change.added else ()
        if waiting or change.removed:
            lag[layer.name] = len(waiting)
    return lag


async def _update(layer: Layer, change: Change, store: SqliteStore, report: Report, mark: str) -> LayerReport:
    """Update a layer, and count what became of the replies it had; `mark` has them asked for anew."""
    with collect_repairs() as mended, ask_anew(mark):
        try:
            return await layer.update(change, report)
        finally:
            if mended:
                await asyncio.to_thread(_count, store, layer.name, asdict(mended))


def _count(store: SqliteStore, layer: str, counts: Mapping[str, int]) -> None:
    with store.write() as change:
        change.count_replies(layer, counts)


def _both(first: LayerReport, then: LayerReport) -> LayerReport:
    return replace(then, added=first.added + then.added, notes=(*first.notes, *then.notes))


def _waits(layer: Layer, named: Mapping[str, Layer], store: SqliteStore) -> bool:
    """Whether a layer below has something to take in, so that this one will have too."""
    below = [named[need] for need in layer.needs if need in named]
    return any(bool(pending(one, store)) or _waits(one, named, store) for one in below)


def _by_name(layers: Sequence[Layer]) -> dict[str, Layer]:
    """Layers once each, every layer after those that it needs."""
    named = {layer.name: layer for layer in layers}
    order: dict[str, Layer] = {}

    def place(layer: Layer) -> None:
        for need in layer.needs:
            if need in named:
                place(named[need])
        order.setdefault(layer.name, layer)

    for layer in layers:
        place(layer)
    return order
