"""What is near to a query in a graph of relations: entities, their relations, and their passages (GraphRAG's local)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tomewise.memory.graph.fact_ends import FactEnds, read_fact_ends
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.array_types import join_keys, sort_keys
from tomewise.recall.entity_graph import EntityGraph, make_entity, make_fact
from tomewise.recall.ranking import as_evidence, name_in_order, pair_scores
from tomewise.store.contract import Readable
from tomewise.store.lookups import name_sources, read_sources, select_within
from tomewise.types import Embedder, Evidence, Node, Scope

Pair = tuple[int, int]
_SAID = 3  # facts of a pair that are shown, the strongest
_MOST_PASSAGES = 500  # that are ranked


@dataclass(frozen=True)
class LocalRelations:
    """What was found, the nearest entity first.

    `keys` are those of the entities. `relations` has an entry for each beginning of the list of entities: the relations
    of the first entity, of the first two, and so on.
    """

    keys: Sequence[int]
    entities: Sequence[Evidence]
    relations: Sequence[Sequence[Evidence]]
    passages: Sequence[Evidence]


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Related pairs of entities by key, the facts of each, and how many neighbours an entity has."""

    facts: Mapping[Pair, Sequence[int]]
    degrees: Mapping[int, float]
    names: Mapping[int, Node]

    def rank(self, pair: Pair) -> tuple[float, str, str]:
        """Those first whose ends have most neighbours, ties by id."""
        a, b = sorted(self.names[key].id for key in pair)
        return -(self.degrees[pair[0]] + self.degrees[pair[1]]), a, b


@dataclass(frozen=True)
class LocalGraph:
    """Searches a graph of relations around the `entities` nearest to a query, each with so many `relations` at most.

    Relations are pairs of entities with what facts say of them. For each beginning of the list of entities these are
    all pairs inside of it, then pairs with an entity outside: those first whose outer end is related with most of the
    entities, then those whose ends have most neighbours, at most so many for each entity. Passages stand in the order
    of the entities; those of one entity by how many of its relations they state.
    """

    store: Readable
    embedder: Embedder
    names: GraphNames
    entities: int = 20
    relations: int = 10

    def find(self, query: str, within: Scope | None) -> LocalRelations:
        """What is near to a query, within a scope."""
        scope = within or Scope()
        graph = EntityGraph(self.store, self.names)
        found = graph.find_nearest(self.embedder.embed([query])[0], self.entities, scope)
        seen = self._find_passages([each.key for each in found], within)
        # An entity that leads to no passage is not shown.
        found = [each for each in found if seen[each.key]]
        keys = [each.key for each in found]
        pairs = self._load_pairs(keys, within)
        steps = [self._choose_pairs(keys[:count], pairs) for count in range(1, 1 + len(keys))]
        shown = self._describe_pairs({pair for step in steps for pair in step}, pairs, within)
        passages = self.store.passages({passage for key in keys for passage in seen[key]})
        ranked = self._rank_passages(keys, pairs, seen)
        return LocalRelations(
            keys=keys,
            entities=[
                make_entity(each, name_in_order(seen[each.key], passages), title=each.name, score=each.score)
                for each in found
            ],
            relations=[[shown[pair] for pair in step] for step in steps],
            passages=[as_evidence(passages[key], 0.0) for key in ranked if key in passages],
        )

    def _load_pairs(self, keys: Sequence[int], within: Scope | None) -> _Pairs:
        ends = read_fact_ends(self.store, self.names)
        ends = ends.select(ends.heads != ends.tails)
        near = ends.select_at(sort_keys(keys))
        allowed = self.store.keys_within(within, self.names.facts)
        near = near if allowed is None else near.select(np.isin(near.keys, allowed))
        related: defaultdict[Pair, list[int]] = defaultdict(list)
        for key, head, tail in near.list_rows():
            related[min(head, tail), max(head, tail)].append(key)
        entities = {key for pair in related for key in pair}
        return _Pairs(related, _count_neighbours(ends, entities), self.store.nodes_at(entities))

    def _choose_pairs(self, keys: Sequence[int], pairs: _Pairs) -> list[Pair]:
        chosen = set(keys)
        inside = [pair for pair in pairs.facts if chosen.issuperset(pair)]
        outside = [pair for pair in pairs.facts if len(chosen & set(pair)) == 1]
        links = Counter(key for pair in outside for key in pair if key not in chosen)

        inside.sort(key=pairs.rank)
        outside.sort(key=lambda pair: (-max(links[key] for key in pair), pairs.rank(pair)))
        return [*inside, *outside[: self.relations * len(keys)]]

    def _describe_pairs(self, wanted: Collection[Pair], pairs: _Pairs, within: Scope | None) -> dict[Pair, Evidence]:
        """Each pair as evidence: what its strongest facts say, under the names of its ends."""
        nodes = self.store.nodes_at({key for pair in wanted for key in pairs.facts[pair]})

        def rank(key: int) -> tuple[float, str]:
            return -float(nodes[key].data.get("strength", 1.0)), nodes[key].id

        strongest_facts = {
            pair: sorted((key for key in pairs.facts[pair] if key in nodes), key=rank)[:_SAID] for pair in wanted
        }
        sources = name_sources(
            self.store, {key for keys in strongest_facts.values() for key in keys}, self.names.facts, within
        )
        return {
            pair: make_fact(
                nodes[keys[0]].id,
                "\n".join(dict.fromkeys(str(nodes[key].data.get("description") or nodes[key].text) for key in keys)),
                tuple(dict.fromkeys(source for key in keys for source in sources[key])),
                title=f"{nodes[keys[0]].data['head']}, {nodes[keys[0]].data['tail']}",
            )
            for pair, keys in strongest_facts.items()
            if keys
        }

    def _find_passages(self, entities: Sequence[int], within: Scope | None) -> dict[int, list[int]]:
        """For each of these entities the keys of the passages within a scope in which it is seen."""
        seen = read_sources(self.store, entities, self.names.entities)
        allowed = select_within(self.store, {key for found in seen.values() for key in found}, within)
        return {entity: [key for key in found if key in allowed] for entity, found in seen.items()}

    def _rank_passages(self, keys: Sequence[int], pairs: _Pairs, seen: Mapping[int, Sequence[int]]) -> list[int]:
        stated = read_sources(self.store, {key for facts in pairs.facts.values() for key in facts}, self.names.facts)
        ranked: dict[int, None] = {}
        for entity in keys:
            own = [facts for pair, facts in pairs.facts.items() if entity in pair]
            counts = Counter(passage for facts in own for passage in {each for key in facts for each in stated[key]})
            # A stable sort: passages that state equally many stay in document order.
            ranked |= dict.fromkeys(sorted(seen[entity], key=lambda passage: -counts[passage]))
        return [*ranked][:_MOST_PASSAGES]


def _count_neighbours(ends: FactEnds, entities: Collection[int]) -> dict[int, float]:
    """How many others each of these related entities is related with."""
    near = ends.select_at(sort_keys(entities))
    low, high = np.minimum(near.heads, near.tails), np.maximum(near.heads, near.tails)
    pairs = np.unique(join_keys(low, high))
    return pair_scores(*np.unique(np.divmod(pairs, 1 << 32), return_counts=True))
