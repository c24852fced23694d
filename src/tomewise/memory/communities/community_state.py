"""The communities of a tome and the graph that they divide: as the store has them, and as they are written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tomewise.memory.build_records import read_build
from tomewise.memory.communities.community_names import CommunityNames
from tomewise.memory.communities.partition import Community, Partition, WeightedGraph
from tomewise.memory.communities.report_inputs import Relation, ReportEntity
from tomewise.memory.edge_rows import group_pairs
from tomewise.memory.graph.fact_ends import read_fact_ends
from tomewise.store.contract import Readable, Store
from tomewise.store.lookups import find_derived, read_edges, read_pairs
from tomewise.types import Node, content_id

Pair = tuple[int, int]
_LEAST_STRENGTH = 0.1  # of a fact that a model calls worth nothing: the pair is related all the same
_DESCRIBED = 3  # mentions of an entity that reports show: the oldest, so that later ones do not change a report


@dataclass(frozen=True)
class StoredCommunities:
    """The communities in a store by key: their nodes, members and parents, and the nodes of the reports about them.

    `about` has the key of each report.
    """

    nodes: Mapping[int, Node]
    members: Mapping[int, set[int]]
    parents: Mapping[int, int | None]
    about: Mapping[int, int]
    reports: Mapping[int, Node]

    @classmethod
    def read(cls, store: Readable, names: CommunityNames) -> StoredCommunities:
        nodes, reports = store.nodes(names.layer), store.nodes(names.reports)
        numbers = {node.data["number"]: key for key, node in nodes.items()}
        parents = {key: numbers.get(node.data["parent"]) for key, node in nodes.items()}
        pairs = read_pairs(store, names.about).tolist()
        about = {community: report for report, community in pairs if report in reports and community in nodes}
        found = {community: reports[report] for community, report in about.items()}
        return cls(nodes, group_pairs(store, names.members), parents, about, found)

    def find_homes(self) -> dict[int, int]:
        """The deepest community of each entity."""
        homes: dict[int, int] = {}
        for community in sorted(self.members, key=lambda key: self.nodes[key].level):
            homes |= dict.fromkeys(self.members[community], community)
        return homes


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report with its key, and the keys of what it rests on."""

    key: int
    node: Node
    grounds: set[int]


@dataclass(eq=False)
class CommunityState:
    """A graph of relations, the communities of the last build, and what has changed since.

    A vertex is the place of an entity among the names in order; `keys` and `entities` are by vertex. `facts` has the
    facts of each pair of vertices, `weights` the sum of their strengths, once for each passage that states one; the
    weights of the last build are `old_related`. `nodes` are the keys of the communities of the last build by number,
    which are `stored`, and `reports` those that exist, by the digest of their community.
    """

    keys: list[int]
    entities: list[Node]
    fact_nodes: Mapping[int, Node]
    facts: Mapping[Pair, list[int]]
    weights: Mapping[Pair, float]
    old_related: Mapping[Pair, float]
    partition: Partition
    nodes: Mapping[int, int]
    stored: Mapping[int, Community]
    reports: Mapping[str, StoredReport]

    @cached_property
    def graph(self) -> WeightedGraph:
        return WeightedGraph((a, b, self.weights[a, b]) for a, b in sorted(self.weights))

    @cached_property
    def related(self) -> dict[Pair, float]:
        """The edges to store: the weights of pairs, and with itself of each entity the sum of its weights."""
        edges = {(self.keys[a], self.keys[b]): weight for (a, b), weight in self.weights.items()}
        sums = {vertex: sum(weights.values()) for vertex, weights in self.graph.neighbours.items()}
        return edges | {(self.keys[vertex], self.keys[vertex]): weight for vertex, weight in sums.items()}

    @cached_property
    def touched(self) -> set[int]:
        """The vertices with an edge that is new, gone, or of another weight."""
        changed = {key for pair, _ in self.related.items() ^ self.old_related.items() for key in pair}
        return {vertex for vertex, key in enumerate(self.keys) if key in changed}

    def list_inner_pairs(self) -> dict[int, list[Pair]]:
        """The related pairs of which both ends are in a community, by its number, in order."""
        communities = self.partition.communities.values()
        inner = {each.number: self.graph.list_inner(each.members) for each in communities}
        return {number: [(a, b) for a, b, _ in edges] for number, edges in inner.items() if edges}

    def make_digest(self, community: Community, pairs: Iterable[Pair]) -> str:
        """What a report about this community has to be new for: its members, and the facts between them."""
        members = sorted(self.entities[vertex].text for vertex in community.members)
        facts = sorted(self.fact_nodes[key].id for pair in pairs for key in self.facts[pair])
        return content_id("d", len(members), *members, *facts)

    def make_relations(self, pairs: Iterable[Pair]) -> list[Relation]:
        """The relations of these pairs; of each the strongest facts first."""
        facts, relations = self.fact_nodes, []
        for pair in pairs:
            ranked = sorted(self.facts[pair], key=lambda key: (-read_strength(facts[key]), key))
            texts = {key: str(facts[key].data.get("description") or facts[key].text) for key in ranked}
            relations.append(Relation(pair, texts))
        return relations


def read_strength(fact: Node) -> float:
    """How strong a model calls a relation."""
    return max(float(fact.data.get("strength", 1.0)), _LEAST_STRENGTH)


def load_state(store: Store, names: CommunityNames) -> CommunityState:
    """The graph as it is, and the communities of the last build without the entities that are gone."""
    entities = store.nodes(names.graph.entities)
    keys = sorted(entities, key=lambda key: entities[key].text)
    vertices = {key: vertex for vertex, key in enumerate(keys)}
    fact_nodes = store.nodes(names.graph.facts)
    facts, weights = _read_weights(store, names, vertices, fact_nodes)
    members, rests_on = (group_pairs(store, space) for space in (names.members, f"made-of:{names.reports}"))
    communities: dict[int, Community] = {}
    nodes: dict[int, int] = {}
    for key, node in store.nodes(names.layer).items():
        number, parent = int(node.data["number"]), node.data["parent"]
        communities[number] = Community(number, node.level, parent, {vertices[entity] for entity in members[key]})
        nodes[number] = key
    related = read_edges(store, names.related).rows.tolist()
    return CommunityState(
        keys=keys,
        entities=[entities[key] for key in keys],
        fact_nodes=fact_nodes,
        facts=facts,
        weights=weights,
        old_related={(int(a), int(b)): weight for a, b, weight in related},
        partition=Partition(communities, int(read_build(store, names.layer).get("made", 0))),
        nodes=nodes,
        stored=deepcopy(communities),
        reports={
            node.data["digest"]: StoredReport(key, node, rests_on[key])
            for key, node in store.nodes(names.reports).items()
        },
    )


def load_entities(
    store: Store, names: CommunityNames, state: CommunityState, wanted: Collection[int]
) -> dict[int, ReportEntity]:
    """How reports show the entities of these vertices."""
    keys = [state.keys[vertex] for vertex in sorted(wanted)]
    derived = find_derived(store, keys, names.graph.mentioned)
    mentions = {entity: sorted(found)[:_DESCRIBED] for entity, found in derived.items()}
    nodes = store.nodes_at(key for found in mentions.values() for key in found)
    shown: dict[int, ReportEntity] = {}
    for vertex in wanted:
        found = [nodes[key] for key in mentions[state.keys[vertex]]]
        texts = dict.fromkeys(text for node in found if (text := str(node.data.get("description") or "")))
        name = next((str(node.data["name"]) for node in found), state.entities[vertex].text)
        shown[vertex] = ReportEntity(name, " ".join(texts), tuple(node.id for node in found))
    return shown


def _read_weights(
    store: Store, names: CommunityNames, vertices: Mapping[int, int], fact_nodes: Mapping[int, Node]
) -> tuple[dict[Pair, list[int]], dict[Pair, float]]:
    ends = read_fact_ends(store, names.graph)
    seen = read_pairs(store, f"seen-in:{names.graph.facts}")[:, 0]
    counts = np.bincount(seen, minlength=1 + int(ends.keys.max(initial=0)))
    facts: defaultdict[Pair, list[int]] = defaultdict(list)
    weights: defaultdict[Pair, float] = defaultdict(float)
    for key, head, tail in ends.list_rows():
        if head == tail or key not in fact_nodes:
            continue
        a, b = sorted((vertices[head], vertices[tail]))
        facts[a, b].append(key)
        weights[a, b] += read_strength(fact_nodes[key]) * int(counts[key])
    return dict(facts), {pair: round(weight, 6) for pair, weight in weights.items()}
