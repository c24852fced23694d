"""Schemata: overlapping clusters of passages and of their summaries, a function of the passages (CAM, section 4.1).

The store keeps lists, links of all levels, and clusters with their members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tomewise.calls import NO_CALLS, CallCount
from tomewise.concurrency import run_in_thread
from tomewise.errors import BadReply
from tomewise.extras import GRAPH
from tomewise.language.forwarding import find_name
from tomewise.language.roles import SUMMARISE, SummaryIn
from tomewise.memory.ask_each import run_each
from tomewise.memory.build_records import read_build, record_build
from tomewise.memory.edge_rows import write_edges
from tomewise.memory.schemata.hierarchy import Hierarchy, Level, fill_clusters, grow_hierarchy
from tomewise.memory.schemata.network import Floats, Ints, Links, Lists, Passages, complete_lists
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
    """The clusters of the last build that are left.

    `keys` are those of the passages and of the clusters' nodes, by name (see `Level`); `usable` (clusters,) says which
    summaries may go on.
    """

    hierarchy: Hierarchy
    keys: Ints
    usable: NDArray[np.bool_]

    def match_clusters(self, hierarchy: Hierarchy) -> Ints:
        """The keys of passages and of the nodes with the members of these clusters, by name, else -1."""
        stored = _find_member_keys(self.hierarchy.children, self.keys)
        stored_keys = self.keys[self.hierarchy.passages :].tolist()
        known = {
            row.tobytes(): key for row, key, usable in zip(stored, stored_keys, self.usable, strict=True) if usable
        }
        keys = np.concatenate((self.keys[: hierarchy.passages], np.full(len(hierarchy.children), _UNKNOWN)))
        for height in range(1, 1 + int(hierarchy.heights.max(initial=0))):
            at = np.flatnonzero(hierarchy.heights == height)
            rows = _find_member_keys(hierarchy.children[at], keys)
            keys[hierarchy.passages + at] = [known.get(row.tobytes(), _UNKNOWN) for row in rows]
        keys[keys == _UNKNOWN] = -1
        return keys

    def find_heirs(self, hierarchy: Hierarchy, clusters: Ints) -> Iterator[tuple[int, int, float]]:
        """For clusters, the key of the node with the most similar passages below it, and the share that differs."""
        leaves, stored = hierarchy.leaves[clusters], self.hierarchy.leaves
        shared = (leaves @ stored.T).tocoo()
        rows, columns = shared.coords
        larger = np.maximum(np.diff(leaves.indptr)[rows], np.diff(stored.indptr)[columns])
        distances = np.where(self.usable[columns], 1 - shared.data / larger, 2.0)
        order = np.lexsort((columns, distances, rows))
        firsts, at = np.unique(rows[order], return_index=True)
        best = order[at]
        keys = self.keys[self.hierarchy.passages + columns[best]]
        yield from zip(clusters[firsts].tolist(), keys.tolist(), distances[best].tolist(), strict=True)


def _find_member_keys(children: Ints, keys: Ints) -> Ints:
    """Rows of the keys of members, ascending, -1 for none."""
    return np.sort(np.where(children < 0, -1, keys[children]), axis=1)


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


def load_stored(store: Store, names: SchemataNames, passages: Ints, without: Collection[int]) -> Stored:
    """The clusters of the last build; summaries `without` may not go on. `passages` are the keys of all passages."""
    parents, members = read_pairs(store, names.sources).T
    nodes, owners = np.unique(parents, return_inverse=True)  # a node is older than those made from it
    keys = np.concatenate((passages, nodes))
    children = fill_clusters(owners, find_indices(keys, members), len(nodes))
    usable = ~np.isin(nodes, np.fromiter(without, np.int64, len(without)))
    return Stored(Hierarchy(len(passages), children), keys, usable)


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

    `keys` are those of the passages and of the nodes that stay, by name, -1 for a cluster without a node. `carried` are
    the clusters that take over the summary of an old node: its key, and the share of passages that have changed since
    that summary was made. `asked` are the clusters to summarise; `older` counts the nodes that stay with such a share.
    `known` are, by name, the members of all these clusters that exist, and the nodes whose summaries are taken over.
    """

    base: Base
    hierarchy: Hierarchy
    levels: Sequence[Level]
    keys: Ints
    carried: Mapping[int, tuple[int, float]]
    asked: Sequence[int]
    older: int
    known: Mapping[int, Passage | Node]

    def list_texts(self) -> dict[int, str]:
        """The texts of what is known, by name."""
        return {name: each.content if isinstance(each, Passage) else each.text for name, each in self.known.items()}


class SchemataLayer:
    """A hierarchy of clusters of passages, whose nodes are their summaries; see `SchemataRules`.

    Links and clusters depend on the passages alone, not on the order in which these came. The lists of best partners
    are kept exact, and clusters are made from them at each update. A cluster with the same members as before keeps its
    node, so that only changed ones are summarised. A summary of summaries whose passages have hardly changed goes on as
    the summary of the cluster that is most like its own; with `renew` 0 all changed ones are made again, so that the
    nodes depend on the passages alone too. A summary made with a passage that was removed never goes on.
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
        return CallCount(
            "1 for each new or changed cluster of 3 to 16, in all about 1 for 4 passages", self._rules.levels
        )

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Summarise the clusters that changed. A cluster whose summary failed is tried again by the next build."""
        plan = await run_in_thread(self._plan, bool(change.removed))
        texts = plan.list_texts()
        heights, passages = plan.hierarchy.heights, plan.hierarchy.passages
        failed: dict[int, str] = {}

        async def summarise(cluster: int) -> str:
            return (await self._model.ask(SUMMARISE, _make_input(plan.hierarchy, cluster, texts))).summary

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
        plan = await run_in_thread(self._plan, bool(change.removed))
        texts = plan.list_texts()
        inputs = []
        for cluster in plan.asked:
            inputs.append(_make_input(plan.hierarchy, cluster, texts))
            text = " ".join(inputs[-1].texts)[: int(_REPLY_SHARE * 4 * _SUMMARY_TOKENS)]
            texts[plan.hierarchy.passages + cluster] = text
        output_tokens = _REPLY_SHARE * _SUMMARY_TOKENS * len(inputs)
        return await estimate_asks(self.name, self._model, SUMMARISE, inputs, output_tokens)

    def _plan(self, has_removals: bool) -> _Plan:
        base = load_base(self._store, self.names, self._rules.k)
        complete_lists(base.passages, base.lists, base.is_new, self._rules)
        links = base.lists.link(self._rules)
        if self._rules.entities:
            links = links.join(load_shared(self._store, base, self._rules))
        hierarchy, levels = grow_hierarchy(links, base.lists.partners, self._rules)
        schemata = self._store.nodes(self.name)
        drifts = {key: float(drift) for key, node in schemata.items() if (drift := node.data.get("drift"))}
        # What is older than its members may tell of a passage that is gone.
        stored = load_stored(self._store, self.names, base.keys, without=drifts if has_removals else ())
        keys = stored.match_clusters(hierarchy)
        missing = np.flatnonzero(keys[hierarchy.passages :] < 0)
        carried = {
            cluster: (heir, drift)
            for cluster, heir, distance in stored.find_heirs(hierarchy, missing[hierarchy.heights[missing] > 1])
            if (drift := distance + drifts.get(heir, 0.0)) <= self._rules.renew
        }
        asked = [cluster for cluster in missing.tolist() if cluster not in carried]
        members = hierarchy.list_children(missing.tolist())
        wanted = {name: key for name, key in zip(members, keys[members].tolist(), strict=True) if key >= 0}
        wanted |= {hierarchy.passages + cluster: heir for cluster, (heir, _) in carried.items()}
        passages = self._store.passages(wanted.values())
        found: dict[int, Passage | Node] = {**passages}
        found |= self._store.nodes_at(set(wanted.values()) - passages.keys())
        known = {name: found[key] for name, key in wanted.items()}
        return _Plan(base, hierarchy, levels, keys, carried, asked, len(drifts.keys() & set(keys.tolist())), known)

    def _commit(
        self, plan: _Plan, change: Change, texts: Mapping[int, str], vectors: Vectors, failed: Mapping[int, str]
    ) -> LayerReport:
        """Write what changed. `vectors` are those of the new summaries, in their order; `texts` are by name."""
        store, passages = self._store, plan.hierarchy.passages
        made = [cluster for cluster in plan.asked if cluster not in failed]
        nodes = self._make_nodes(plan, texts, failed)
        heirs = [heir for heir, _ in plan.carried.values()]
        rows = np.concatenate((vectors, store.rows(self.name, heirs))) if heirs else vectors
        lost = {
            key: reason
            for cluster, reason in failed.items()
            for key in plan.base.keys[plan.hierarchy.leaves[[cluster]].indices].tolist()
        }
        obsolete = np.setdiff1d(store.node_keys(self.name), plan.keys).tolist()
        keys = plan.keys.copy()
        with store.write() as writing:
            writing.remove_nodes(obsolete)
            put = writing.put_nodes(sorted(nodes.values(), key=lambda node: node.level))  # after their members
            keys[[passages + cluster for cluster in nodes]] = [put[node.id] for node in nodes.values()]
            if nodes:
                node_keys = keys[[passages + cluster for cluster in (*made, *plan.carried)]].tolist()
                writing.put_vectors(self.name, node_keys, rows)
            owners, partners, scores = plan.base.lists.list_entries()
            write_edges(writing, store, self.names.lists, keys[owners], keys[partners], scores)
            for number, level_links in enumerate(plan.levels):
                write_edges(writing, store, self.names.links(number), *level_links.find_ends(keys))
            for number in range(len(plan.levels), read_build(store, self.name).get("levels", 0)):
                writing.remove_edges(self.names.links(number))
            writing.record_intake(self.name, {*change.added, *store.intake(self.name).failed} - lost.keys(), lost)
            record_build(writing, self.name, self._make_record(plan, len(made), nodes))
        notes: tuple[str, ...] = ()
        if not self._rules.levels:
            notes = (f"{len(plan.levels[0].links.a):,} links between {passages:,} passages, no summaries",)
        return LayerReport(layer=self.name, added=len(nodes), removed=len(obsolete), failed=lost, notes=notes)

    def _make_nodes(self, plan: _Plan, texts: Mapping[int, str], failed: Mapping[int, str]) -> dict[int, Node]:
        """The nodes of the clusters without one, by cluster."""
        hierarchy, nodes = plan.hierarchy, dict[int, Node]()
        ids: dict[int, NodeId] = {name: each.id for name, each in plan.known.items()}
        for cluster in sorted((*plan.asked, *plan.carried)):
            name, members = hierarchy.passages + cluster, hierarchy.list_children([cluster])
            ids[name] = content_id(self.name, *(ids[member] for member in members))
            if cluster in failed:
                continue
            _, drift = plan.carried.get(cluster, (0, 0.0))
            nodes[cluster] = Node(
                id=ids[name],
                layer=self.name,
                text=texts[name],
                sources=tuple(ids[member] for member in members if member - hierarchy.passages not in failed),
                level=int(hierarchy.heights[cluster]),
                position=int(plan.base.passages.positions[hierarchy.leaves[[cluster]].indices.min()]),
                data={"drift": f"{drift:.6f}"} if drift else {},
            )
        return nodes

    def _make_record(self, plan: _Plan, calls: int, nodes: Mapping[int, Node]) -> dict[str, Any]:
        lowest = plan.hierarchy.children[plan.hierarchy.children < plan.hierarchy.passages]
        network = {
            "alpha": self._rules.alpha,
            "sigma": self._rules.sigma,
            "k": self._rules.k,
            "theta": self._rules.theta,
            "passages": plan.hierarchy.passages,
            "outside": plan.hierarchy.passages - len(np.unique(lowest[lowest >= 0])),
            "clusters": np.bincount(plan.hierarchy.heights)[1:].tolist(),
            "older": plan.older + sum(bool(node.data) for node in nodes.values()),
            "calls": calls,
        }
        return {"model": find_name(self._model, SUMMARISE), "network": network, "levels": len(plan.levels)}


def _make_input(hierarchy: Hierarchy, cluster: int, texts: Mapping[int, str]) -> SummaryIn:
    """The texts of the members of a cluster, save for those without a summary. Raises BadReply if none has one."""
    found = [texts[name] for name in hierarchy.list_children([cluster]) if texts.get(name)]
    if not found:
        raise BadReply("none of the members of the cluster could be summarised")
    return SummaryIn(texts=found, max_tokens=_SUMMARY_TOKENS)
