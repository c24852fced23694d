"""Schemata: overlapping clusters of passages and of their summaries, grown batch by batch (CAM, section 4.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from tomewise.calls import NO_CALLS, CallCount
from tomewise.concurrency import run_in_thread
from tomewise.extras import GRAPH
from tomewise.language.per_role import find_name
from tomewise.language.roles import SUMMARISE, SummaryIn
from tomewise.memory.ask_each import run_each
from tomewise.memory.schemata.catalog import Catalog, Cluster
from tomewise.memory.schemata.cluster_summaries import summarise
from tomewise.memory.schemata.levels import FIRST_LABEL, MOST_LEVELS, Level, grow_levels, make_unclustered_level
from tomewise.memory.schemata.network import LinkRules, Links, count_linked, find_links
from tomewise.memory.schemata.schemata_names import SchemataNames
from tomewise.memory.schemata.schemata_state import BaseLevel, load_base_level, load_labels, load_shared, write_levels
from tomewise.memory.step_reports import sum_tokens
from tomewise.types import Change, Embedder, Estimate, LanguageModel, LayerReport, Node, NodeId, Report, content_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import Store
    from tomewise.store.write_contract import Write

_REPLY_SHARE = 0.8  # of the bound that a summary reaches on average; for estimates
_ENOUGH = 50  # passages whose similarities set a threshold that later batches keep
_GROWTH = 4  # a tome with so many times the passages that set the threshold sets it again


@dataclass(frozen=True, slots=True)
class _Threshold:
    """`theta`, or None if all passages have to set it; how many passages set it; and the theta that is outgrown."""

    theta: float | None
    passages: int
    outgrown: float | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    """One batch: the new state, the clusters that need a node, and those whose summary is out of date."""

    base: BaseLevel
    theta: float
    threshold: _Threshold
    levels: list[Level]
    levels_before: int
    catalog: Catalog
    stored: frozenset[int]
    stale: list[Cluster]
    failed: frozenset[int]


class SchemataLayer:
    """A hierarchy that grows by assimilation and accommodation; a state to which `batch` passages are added at a time.

    A batch adds its links, clusters what they change, and summarises the clusters whose members or members' summaries
    changed; all is committed together. The nodes of this layer are the clusters of two or more vertices; a vertex
    alone in its cluster is a vertex of the next level too. A node keeps its id while its members change. A large
    cluster is summarised in parts, and the parts together, so that a new member changes few calls. Removing a document
    is the same mechanism without new links.

    Without `split`, a vertex is in one cluster alone. Without `hierarchy` there are links, but no clusters. `entities`
    is the node layer of a graph's entities: passages that see an entity of at most k passages are linked too, with the
    threshold as their score.

    Unlike the other layers, the result depends on the order in which passages came; equal histories give equal results.
    Without a threshold in `rules`, the passages set it once there are 50, and again when there are 4 times as many as
    set it. Then all is linked and clustered again, and all nodes are new.
    """

    extra = GRAPH

    def __init__(
        self,
        store: Store,
        model: LanguageModel,
        embedder: Embedder,
        *,
        rules: LinkRules | None = None,
        split: bool = True,
        hierarchy: bool = True,
        entities: str = "",
        batch: int | None = None,
    ) -> None:
        self._store = store
        self._model = model
        self._embedder = embedder
        self._rules = rules or LinkRules()
        self._split = split
        self._hierarchy = hierarchy
        self._entities = entities
        self._batch = batch
        self.names = SchemataNames.from_settings(self._rules, split=split, hierarchy=hierarchy, entities=entities)
        self.name = self.names.layer
        self.needs = ("passages", entities) if entities else ("passages",)
        self.writes = (self.name,)

    @property
    def calls(self) -> CallCount:
        """A cluster of n members takes fewer than n + 1 calls. Each link is in two clusters of its level at most.

        So level 1 takes at most 2k calls a passage. Every higher level has fewer clusters than the one below it, which
        has at most k a passage, each with at most 2k links. Links from shared entities are not counted in the limit.
        """
        if not self._hierarchy:
            return NO_CALLS
        k = self._rules.k
        most = 2 * k + (MOST_LEVELS - 1) * 2 * k * k if self._split else MOST_LEVELS
        return CallCount(
            "1 for every 4 to 12 passages or 12 to 36 summaries in a cluster that is new or has changed", most
        )

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Add the new passages, batch by batch. A cluster whose summary failed is tried again by the next build."""
        known = (await run_in_thread(self._store.intake, self.name)).failed
        fresh = [key for key in change.added if key not in known]
        size = self._batch or max(1, len(fresh))
        batches = [fresh[start : start + size] for start in range(0, max(1, len(fresh)), size)]
        reports = [await self._add_batch(batch, report) for batch in batches]
        return LayerReport(
            layer=self.name,
            added=sum(each.added for each in reports),
            removed=sum(each.removed for each in reports),
            failed=reports[-1].failed,
            notes=reports[-1].notes,
        )

    async def estimate(self, change: Change) -> Estimate:
        """The calls of one batch, exact. A new summary counts with the beginnings of its parts as its text."""
        plan = await run_in_thread(self._plan, change.added)
        inputs: list[SummaryIn] = []

        async def record_input(summary_input: SummaryIn) -> str:
            inputs.append(summary_input)
            characters = int(_REPLY_SHARE * 4 * summary_input.max_tokens)
            return " ".join(summary_input.texts)[:characters]

        texts = await run_in_thread(self._load_texts, plan)
        for cluster in plan.stale:
            texts[cluster.label] = await summarise(cluster, texts, record_input)
        return Estimate(
            layer=self.name,
            model=find_name(self._model, SUMMARISE),
            calls=len(inputs),
            input_tokens=await sum_tokens(inputs, partial(self._model.count_input_tokens, SUMMARISE)),
            output_tokens=int(_REPLY_SHARE * sum(summary_input.max_tokens for summary_input in inputs)),
        )

    async def _add_batch(self, batch: Sequence[int], report: Report) -> LayerReport:
        plan = await run_in_thread(self._plan, batch)
        texts = await run_in_thread(self._load_texts, plan)
        failed: dict[int, str] = {}
        made: dict[int, None] = {}
        calls = 0

        async def ask(summary_input: SummaryIn) -> str:
            nonlocal calls
            calls += 1
            return (await self._model.ask(SUMMARISE, summary_input)).summary

        async def summarise_one(cluster: Cluster) -> str:
            return await summarise(cluster, texts, ask)

        for level, group in groupby(plan.stale, key=lambda cluster: cluster.level):
            clusters = {cluster.label: cluster for cluster in group}
            label = f"schemata of level {level} summarised"
            replies = await run_each(clusters, summarise_one, report, label)
            texts |= replies
            made |= dict.fromkeys(replies)
            failed |= replies.failed
        summaries = {label: texts[label] for label in made}
        vectors = await run_in_thread(self._embedder.embed, list(summaries.values()))
        return await run_in_thread(self._commit, plan, batch, summaries, vectors, failed, calls)

    def _plan(self, batch: Sequence[int]) -> _Plan:
        record = self._store.builds().get(self.name, {})
        intake = self._store.intake(self.name)
        known = intake.done | intake.failed.keys()
        fresh = frozenset(batch)
        if self._entities:
            passages = frozenset(self._store.node_keys("passages"))
            known, fresh = known & passages, fresh & passages
        threshold = self._choose_threshold(record.get("network", {}), len(known), len(known | fresh))
        if threshold.theta is None:
            known, fresh = frozenset(), known | fresh  # all are linked again
        base = load_base_level(self._store, self.names, known, fresh)
        added, theta = find_links(base.passages, base.links, base.fresh, replace(self._rules, theta=threshold.theta))
        links = _join_links(base.links, added)
        if self._entities:
            shared = load_shared(self._store, self._entities, base.keys, self._rules.k)
            links = _join_links(links, replace(shared, weights=np.full(len(shared.a), theta)))
        levels_before = record.get("levels", 0)
        # Labels of links that no longer exist would hold clusters together, so they are dropped with the threshold.
        before = load_labels(self._store, self.names, levels_before if threshold.outgrown is None else 0)
        if self._hierarchy:
            levels = grow_levels(base.keys, links, before, self._rules.k, split=self._split)
        else:
            levels = make_unclustered_level(base.keys, links)
        catalog = Catalog.from_levels(levels, base.passages.positions)
        stamps = self._store.node_field(self.name, "stamp")
        stale = catalog.list_stale(stamps)
        failed = frozenset(intake.failed)
        return _Plan(base, theta, threshold, levels, levels_before, catalog, frozenset(stamps), stale, failed)

    def _choose_threshold(self, network: Mapping[str, Any], known: int, passages: int) -> _Threshold:
        """The threshold of the rules, or the one that earlier batches set, unless the tome has grown too much since.

        The more passages there are, the more alike is the nearest one, and the higher is the threshold.
        """
        if self._rules.theta is not None:
            return _Threshold(self._rules.theta, 0)
        if known < _ENOUGH:
            return _Threshold(None, passages)
        theta, theta_passages = network["theta"], network.get("theta_passages", network["passages"])
        if passages >= _GROWTH * theta_passages:
            return _Threshold(None, passages, outgrown=theta)
        return _Threshold(theta, theta_passages)

    def _load_texts(self, plan: _Plan) -> dict[int, str]:
        """The texts that exist of the members of the stale clusters."""
        wanted = {child for cluster in plan.stale for child in cluster.children}
        passages = self._store.passages(key for key in wanted - plan.stored if key < FIRST_LABEL)
        texts = {key: passage.content for key, passage in passages.items()}
        return texts | {key: node.text for key, node in self._store.nodes_at(wanted & plan.stored).items()}

    def _commit(
        self, plan: _Plan, batch: Sequence[int], made: Mapping[int, str], vectors: NDArray[np.float32],
        failed: Mapping[int, str], calls: int,
    ) -> LayerReport:  # fmt: skip
        """Write a batch, which took `calls`. `made` are the new summaries by label, each with its row of `vectors`."""
        leaves = {key: reason for label, reason in failed.items() for key in plan.catalog.find_leaves(label)}
        taken = {*batch, *plan.failed} - leaves.keys()
        obsolete = plan.stored - frozenset(plan.catalog.labels.tolist())
        ids, born = self._name_nodes(plan)
        with self._store.write() as change:
            keys = self._put_nodes(change, plan, ids, made)
            change.remove_nodes(obsolete)  # after the nodes above have their new sources
            change.remove_vectors(self.name, [keys[label] for label in failed])
            change.replace_vectors(self.name, [keys[label] for label in made], vectors)
            write_levels(change, self._store, self.names, plan.levels, plan.levels_before, keys)
            change.record_intake(self.name, taken, leaves)
            change.record_build(self.name, self._make_record(plan, born, calls))
        return LayerReport(
            layer=self.name, added=len(made), removed=len(obsolete), failed=leaves, notes=tuple(self._list_notes(plan))
        )

    def _list_notes(self, plan: _Plan) -> Iterator[str]:
        passages = len(plan.base.keys)
        if passages and not plan.levels:
            yield f"no two of {passages:,} passages are alike enough to be linked: theta is {plan.theta:g}"
        elif plan.levels and not self._hierarchy:
            yield f"{len(plan.levels[0].links.a):,} links between {passages:,} passages, no summaries"
        if plan.threshold.outgrown is not None:
            yield (
                f"theta was {plan.threshold.outgrown:g} and is now {plan.theta:g}: the tome has grown, so all "
                f"{passages:,} passages were linked and clustered again"
            )

    def _put_nodes(
        self, change: Write, plan: _Plan, ids: Mapping[int, NodeId], made: Mapping[int, str]
    ) -> dict[int, int]:
        """Write the stale clusters level by level, as sources must exist. Returns their keys by label."""
        keys: dict[int, int] = {}
        for _, group in groupby(plan.stale, key=lambda cluster: cluster.level):
            nodes = {each.label: _make_node(each, self.name, ids, made.get(each.label, "")) for each in group}
            known = [node for label, node in nodes.items() if label in plan.stored]
            fresh = [node for label, node in nodes.items() if label not in plan.stored]
            at = change.update_nodes(known, lifetime="any") | change.put_nodes(fresh, lifetime="any")
            keys |= {label: at[node.id] for label, node in nodes.items()}
        return keys

    def _name_nodes(self, plan: _Plan) -> tuple[dict[int, NodeId], int]:
        """The ids of the stale clusters and their children by key or label, and how many nodes were born so far."""
        born = int(self._store.builds().get(self.name, {}).get("born", 0))
        children = {child for cluster in plan.stale for child in cluster.children}
        known = (children | {cluster.label for cluster in plan.stale}) & plan.stored
        ids = {key: node.id for key, node in self._store.nodes_at(known).items()}
        passages = self._store.passages(key for key in children - plan.stored if key < FIRST_LABEL)
        ids |= {key: passage.id for key, passage in passages.items()}
        for cluster in plan.stale:
            if cluster.label not in ids:
                ids[cluster.label] = content_id(self.name, born, cluster.stamp)
                born += 1
        return ids, born

    def _make_record(self, plan: _Plan, born: int, calls: int) -> dict[str, Any]:
        linked = count_linked(plan.levels[0].links) if plan.levels else 0
        network = {
            "alpha": self._rules.alpha,
            "sigma": self._rules.sigma,
            "k": self._rules.k,
            "theta": plan.theta,
            "theta_passages": plan.threshold.passages,
            "passages": len(plan.base.keys),
            "isolated": len(plan.base.keys) - linked,
            "clusters": np.bincount(plan.catalog.levels)[1:].tolist(),
            "calls": calls,
        }
        return {
            "model": find_name(self._model, SUMMARISE),
            "network": network,
            "visits": sum(level.clusters.visits for level in plan.levels),
            "unsettled": sum(level.clusters.unsettled for level in plan.levels),
            "levels": len(plan.levels),
            "born": born,
        }


def _make_node(cluster: Cluster, layer: str, ids: Mapping[int, NodeId], text: str) -> Node:
    """The node of a cluster. One whose summary failed has no text and no stamp, so that the next build tries again."""
    return Node(
        id=ids[cluster.label],
        layer=layer,
        text=text,
        sources=tuple(ids[child] for child in cluster.children),
        level=cluster.level,
        position=cluster.position,
        data={"stamp": cluster.stamp if text else ""},
    )


def _join_links(known: Links, added: Links) -> Links:
    return Links.from_pairs(
        np.concatenate((known.a, added.a)),
        np.concatenate((known.b, added.b)),
        np.concatenate((known.weights, added.weights)),
    )
