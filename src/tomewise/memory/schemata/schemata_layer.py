"""Schemata: overlapping clusters of passages and of their summaries, a function of the passages (CAM, section 4.1).

The store keeps lists, links of all levels, and clusters with their members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tomewise.calls import NO_CALLS, CallCount
from tomewise.concurrency import run_in_thread
from tomewise.errors import BadReply
from tomewise.extras import GRAPH
from tomewise.language.roles import SUMMARISE, SummaryIn
from tomewise.language.usage import estimate_tokens
from tomewise.language.wrapped import find_name, find_room
from tomewise.memory.ask_each import run_each
from tomewise.memory.build_records import read_build, record_build
from tomewise.memory.edge_rows import write_edges
from tomewise.memory.proving import ask_proved
from tomewise.memory.schemata.hierarchy import Hierarchy, Level, fill_clusters, grow_hierarchy
from tomewise.memory.schemata.network import Floats, Ints, Links, Lists, Passages, complete_lists
from tomewise.memory.schemata.published import (
    dump_labels,
    find_partners,
    grow_levels,
    join_graph,
    load_labels,
    name_levels,
)
from tomewise.memory.schemata.schemata_names import USUAL, SchemataNames, SchemataRules
from tomewise.memory.token_estimates import estimate_asks
from tomewise.store.contract import Store, Vectors
from tomewise.store.lookups import read_edges, read_pairs, read_vectors
from tomewise.types import (
    Change,
    Embedder,
    Estimate,
    LanguageModel,
    LayerReport,
    Node,
    NodeId,
    Passage,
    Report,
    content_id,
)

_UNKNOWN = -2  # the key of a cluster without a node; -1 is that of no member
_SUMMARY_TOKENS = 150
_WINDOW_SHARE = 0.8  # of the window that texts may take: the prompt has words of its own
_REPLY_SHARE = 0.8  # of the bound that a summary reaches on average; for estimates


@dataclass(frozen=True, eq=False)
class Base:
    """The passages in document order: their keys (n,), which are new to the layer, and the lists of the others."""

    keys: Ints
    is_new: NDArray[np.bool_]
    passages: Passages
    lists: Lists


@dataclass(frozen=True, eq=False)
class Stored:
    """The clusters of the last build that are left; `keys` are those of passages and nodes by name (see `Level`)."""

    hierarchy: Hierarchy
    keys: Ints

    def match_clusters(self, hierarchy: Hierarchy) -> Ints:
        """The keys of passages and of the nodes with the members of these clusters, by name, else -1."""
        stored = _find_member_keys(self.hierarchy.children, self.keys)
        known = dict(zip(stored, self.keys[self.hierarchy.passages :].tolist(), strict=True))
        keys = np.concatenate((self.keys[: hierarchy.passages], np.full(len(hierarchy.children), _UNKNOWN)))
        for height in range(1, 1 + int(hierarchy.heights.max(initial=0))):
            at = np.flatnonzero(hierarchy.heights == height)
            members = _find_member_keys(hierarchy.children[at], keys)
            keys[hierarchy.passages + at] = [known.get(each, _UNKNOWN) for each in members]
        keys[keys == _UNKNOWN] = -1
        return keys


def _find_member_keys(children: Ints, keys: Ints) -> list[bytes]:
    """The keys of the members of each cluster, ascending, as bytes."""
    rows = np.sort(np.where(children < 0, -1, keys[children]), axis=1)
    return [row[row != -1].tobytes() for row in rows]


def load_base(store: Store, names: SchemataNames, k: int) -> Base:
    """The passages of the tome, and the lists of those that the layer has processed."""
    keys, documents, positions = store.passage_order()
    intake = store.intake(names.layer)
    known = np.fromiter({*intake.done, *intake.failed}, np.int64)
    is_new = ~np.isin(keys, known)
    columns = read_vectors(store, "passages")
    passages = Passages(columns.rows, np.searchsorted(columns.keys, keys), documents, positions)
    table = read_edges(store, names.lists).rows
    owners, partners = find_indices(keys, table[:, 0]), find_indices(keys, table[:, 1])
    is_known = (owners >= 0) & (partners >= 0)
    is_known[is_known] = ~(is_new[owners[is_known]] | is_new[partners[is_known]])
    lists = Lists.from_entries(len(keys), k, owners[is_known], partners[is_known], table[is_known, 2])
    return Base(keys, is_new, passages, lists)


def load_stored(store: Store, names: SchemataNames, passages: Ints) -> Stored:
    """The clusters of the last build. `passages` are the keys of all passages."""
    parents, members = read_pairs(store, names.sources).T
    nodes, owners = np.unique(parents, return_inverse=True)  # a node is older than those made from it
    keys = np.concatenate((passages, nodes))
    children = fill_clusters(owners, find_indices(keys, members), len(nodes), room=None)
    return Stored(Hierarchy(len(passages), children), keys)


def load_shared(store: Store, base: Base, rules: SchemataRules) -> Links:
    """Links between passages that see the same entity, for entities that 2 to k passages see.

    An entity of more passages says little of each of them. (The paper does not state its rule.)
    """
    from scipy.sparse import csr_array, triu

    entities, passages = read_pairs(store, f"seen-in:{rules.entities}").T
    indices = find_indices(base.keys, passages)
    _, groups, sizes = np.unique(entities[indices >= 0], return_inverse=True, return_counts=True)
    is_rare = sizes[groups] <= rules.k
    groups, seen = groups[is_rare], indices[indices >= 0][is_rare]
    table = csr_array((np.ones(len(seen)), (groups, seen)), shape=(len(sizes), len(base.keys)))
    a, b = (ends.astype(np.int64) for ends in triu(table.T @ table, 1).nonzero())
    return Links.from_pairs(a, b, base.passages.score(a, b, rules))


def find_indices(keys: Ints, wanted: Floats | Ints) -> Ints:
    """The index in `keys` (n,), which are distinct and in any order, of each key wanted; -1 for other keys."""
    wanted = wanted.astype(np.int64)
    table = np.full(1 + max(int(keys.max(initial=0)), int(wanted.max(initial=0))), -1, np.int64)
    table[keys] = np.arange(len(keys))
    return table[wanted]


@dataclass(frozen=True)
class _Plan:
    """What a build has to do. Clusters are given by their index in `hierarchy`, vertices by their names (see `Level`).

    `keys` are those of the passages and of the nodes that stay, by name, -1 for a cluster without a node. `asked` are
    the clusters to summarise, and `known`, by name, those of their members that exist. `labels` are what the next batch
    of clusters as published needs.
    """

    base: Base
    hierarchy: Hierarchy
    levels: Sequence[Level]
    keys: Ints
    asked: Sequence[int]
    known: Mapping[int, Passage | Node]
    labels: Mapping[str, Any]

    def list_texts(self) -> dict[int, str]:
        """The texts of what is known, by name."""
        return {name: each.content if isinstance(each, Passage) else each.text for name, each in self.known.items()}


class SchemataLayer:
    """A hierarchy of clusters of passages, whose nodes are their summaries; see `SchemataRules`.

    Links, clusters and nodes depend on the passages alone, not on the order in which these came; those as published
    depend on the batches. The lists of best partners are kept exact, and clusters are made from them at each update. A
    cluster with the same members as before keeps its node, so that only changed ones are summarised.
    """

    extra = GRAPH

    def __init__(self, store: Store, model: LanguageModel, embedder: Embedder, rules: SchemataRules = USUAL) -> None:
        self._store = store
        self._model = model
        self._embedder = embedder
        self._rules = rules
        self.names = SchemataNames(rules.layer)
        self.name = self.names.layer
        self.needs = ("passages", rules.entities) if rules.entities else ("passages",)
        self.writes = (self.name,)

    @property
    def calls(self) -> CallCount:
        """A level has fewer clusters than the passages or clusters below it."""
        if not self._rules.levels:
            return NO_CALLS
        bounds = "" if self._rules.are_published else " of 3 to 16, in all about 1 for 4 passages"
        return CallCount(f"1 for each new or changed cluster{bounds}", self._rules.levels)

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Summarise the clusters that changed. A cluster whose summary failed is tried again by the next build."""
        plan = await run_in_thread(self._plan)
        texts = plan.list_texts()
        heights, passages = plan.hierarchy.heights, plan.hierarchy.passages
        failed: dict[int, str] = {}

        async def summarise(cluster: int) -> str:
            return (await ask_proved(self._model, SUMMARISE, self._make_input(plan.hierarchy, cluster, texts))).summary

        for height in range(1, 1 + int(heights.max(initial=0))):
            clusters = {cluster: cluster for cluster in plan.asked if heights[cluster] == height}
            replies = await run_each(clusters, summarise, report, f"schemata of level {height} summarised")
            texts |= {passages + cluster: text for cluster, text in replies.items()}
            failed |= replies.failed
        made = [texts[passages + cluster] for cluster in plan.asked if cluster not in failed]
        vectors = await run_in_thread(self._embedder.embed, made)
        return await run_in_thread(self._commit, plan, change, texts, vectors, failed)

    async def estimate(self, change: Change) -> Estimate:
        """The calls of one update, exact. A new summary counts with the beginnings of its texts."""
        plan = await run_in_thread(self._plan)
        texts = plan.list_texts()
        inputs = []
        for cluster in plan.asked:
            inputs.append(self._make_input(plan.hierarchy, cluster, texts))
            text = " ".join(inputs[-1].texts)[: int(_REPLY_SHARE * 4 * _SUMMARY_TOKENS)]
            texts[plan.hierarchy.passages + cluster] = text
        output_tokens = _REPLY_SHARE * _SUMMARY_TOKENS * len(inputs)
        return await estimate_asks(self.name, self._model, SUMMARISE, inputs, output_tokens)

    def _plan(self) -> _Plan:
        base = load_base(self._store, self.names, self._rules.k)
        cluster = self._cluster_as_published if self._rules.are_published else self._cluster
        hierarchy, levels, labels = cluster(base)
        keys = load_stored(self._store, self.names, base.keys).match_clusters(hierarchy)
        asked = np.flatnonzero(keys[hierarchy.passages :] < 0).tolist()
        members = hierarchy.list_children(asked)
        wanted = {name: key for name, key in zip(members, keys[members].tolist(), strict=True) if key >= 0}
        passages = self._store.passages(wanted.values())
        found: dict[int, Passage | Node] = {**passages}
        found |= self._store.nodes_at(set(wanted.values()) - passages.keys())
        known = {name: found[key] for name, key in wanted.items()}
        return _Plan(base, hierarchy, levels, keys, asked, known, labels)

    def _cluster(self, base: Base) -> tuple[Hierarchy, Sequence[Level], Mapping[str, Any]]:
        complete_lists(base.passages, base.lists, base.is_new, self._rules)
        links = base.lists.link()
        if self._rules.entities:
            links = links.join(load_shared(self._store, base, self._rules))
        return *grow_hierarchy(links, base.lists.partners, self._rules), {}

    def _cluster_as_published(self, base: Base) -> tuple[Hierarchy, Sequence[Level], Mapping[str, Any]]:
        """Take in what is new as one batch. After a removal, and with another embedder, all is new."""
        ids = [passage.id for passage in self._store.passages(base.keys.tolist()).values()]
        data, embedder = read_build(self._store, self.name).get("published", {}), self._embedder.name
        known, linked = load_labels(data if data.get("embedder") == embedder else {}, ids)
        new = np.flatnonzero([each not in linked for each in ids])
        pairs = find_partners(base.passages, new, self._rules)
        if self._rules.entities:
            shared = load_shared(self._store, base, self._rules)
            pairs += zip(shared.a.tolist(), shared.b.tolist(), strict=True)
        grown = grow_levels(join_graph(known[0] if known else {}, pairs), known, self._rules)
        return *name_levels(grown, base.passages, self._rules), {"embedder": embedder, **dump_labels(grown, ids)}

    def _commit(
        self, plan: _Plan, change: Change, texts: Mapping[int, str], vectors: Vectors, failed: Mapping[int, str]
    ) -> LayerReport:
        """Write what changed. `vectors` are those of the new summaries, in their order; `texts` are by name."""
        store, passages = self._store, plan.hierarchy.passages
        made = [cluster for cluster in plan.asked if cluster not in failed]
        nodes = self._make_nodes(plan, texts, failed)
        lost = {
            key: reason
            for cluster, reason in failed.items()
            for key in plan.base.keys[plan.hierarchy.find_leaves([cluster])].tolist()
        }
        obsolete = np.setdiff1d(store.node_keys(self.name), plan.keys).tolist()
        keys = plan.keys.copy()
        with store.write() as writing:
            writing.remove_nodes(obsolete)
            put = writing.put_nodes(sorted(nodes.values(), key=lambda node: node.level))  # after their members
            keys[[passages + cluster for cluster in nodes]] = [put[node.id] for node in nodes.values()]
            if nodes:
                writing.put_vectors(self.name, keys[[passages + cluster for cluster in made]].tolist(), vectors)
            owners, partners, scores = plan.base.lists.list_entries()
            write_edges(writing, store, self.names.lists, keys[owners], keys[partners], scores)
            for number, level_links in enumerate(plan.levels):
                write_edges(writing, store, self.names.links(number), *level_links.find_ends(keys))
            for number in range(len(plan.levels), read_build(store, self.name).get("levels", 0)):
                writing.remove_edges(self.names.links(number))
            writing.record_intake(self.name, {*change.added, *store.intake(self.name).failed} - lost.keys(), lost)
            record_build(writing, self.name, self._make_record(plan, len(made)))
        notes: tuple[str, ...] = ()
        if not self._rules.levels:
            notes = (f"{len(plan.levels[0].links.a):,} links between {passages:,} passages, no summaries",)
        return LayerReport(layer=self.name, added=len(nodes), removed=len(obsolete), failed=lost, notes=notes)

    def _make_nodes(self, plan: _Plan, texts: Mapping[int, str], failed: Mapping[int, str]) -> dict[int, Node]:
        """The nodes of the clusters without one, by cluster."""
        hierarchy, nodes = plan.hierarchy, dict[int, Node]()
        ids: dict[int, NodeId] = {name: each.id for name, each in plan.known.items()}
        positions = {name: each.position for name, each in plan.known.items()}
        for cluster in plan.asked:
            name, members = hierarchy.passages + cluster, hierarchy.list_children([cluster])
            ids[name] = content_id(self.name, *(ids[member] for member in members))
            positions[name] = min(positions[member] for member in members)
            if cluster in failed:
                continue
            nodes[cluster] = Node(
                id=ids[name],
                layer=self.name,
                text=texts[name],
                sources=tuple(ids[member] for member in members if member - hierarchy.passages not in failed),
                level=int(hierarchy.heights[cluster]),
                position=positions[name],
            )
        return nodes

    def _make_record(self, plan: _Plan, calls: int) -> dict[str, Any]:
        lowest = plan.hierarchy.children[plan.hierarchy.children < plan.hierarchy.passages]
        network = {
            "alpha": self._rules.alpha,
            "sigma": self._rules.sigma,
            "k": self._rules.k,
            "theta": self._rules.theta if self._rules.are_published else None,
            "passages": plan.hierarchy.passages,
            "outside": plan.hierarchy.passages - len(np.unique(lowest[lowest >= 0])),
            "clusters": np.bincount(plan.hierarchy.heights)[1:].tolist(),
            "calls": calls,
        }
        record = {"model": find_name(self._model, SUMMARISE), "network": network, "levels": len(plan.levels)}
        return {**record, "published": plan.labels} if plan.labels else record

    def _make_input(self, hierarchy: Hierarchy, cluster: int, texts: Mapping[int, str]) -> SummaryIn:
        """The texts of the members of a cluster, save for those without a summary, as far as the window holds them.

        Clusters as published have no bound. Raises BadReply if no member has a text.
        """
        found = [texts[name] for name in hierarchy.list_children([cluster]) if texts.get(name)]
        if not found:
            raise BadReply("none of the members of the cluster could be summarised")
        room = _WINDOW_SHARE * find_room(self._model, SUMMARISE)
        sizes = accumulate(map(estimate_tokens, found))
        fitting = [text for text, size in zip(found, sizes, strict=True) if size <= room]
        return SummaryIn(texts=fitting or found[:1], max_tokens=_SUMMARY_TOKENS)
