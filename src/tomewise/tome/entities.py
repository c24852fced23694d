"""What the graphs of a tome hold on an entity: its facts, its neighbours, and its passages with their gists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from tomewise.errors import NotBuilt, UnknownName, suggest
from tomewise.language.fences import oneline
from tomewise.memory.gists import NAME as GISTS
from tomewise.memory.graph.entity_kinds import find_kinds
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.contract import Store
from tomewise.store.lookups import find_derived, find_keys, read_sources
from tomewise.types import Noun, Passage, PassageId

_ENTITIES = "entities:"  # the layer of the entities of a graph begins so, see `memory.graph.graph_names`
_MOST_SIMILAR = 20
_SHOWN = 5  # similar names in a message
_LONGEST_NAME = 300  # characters of a name that a message repeats


@dataclass(frozen=True, slots=True)
class GraphFact(Noun):
    """A fact of a graph in words."""

    text: str
    graph: str
    """The name of the graph."""


@dataclass(frozen=True, slots=True)
class Neighbour(Noun):
    """An entity at the other end of facts."""

    name: str
    facts: int
    """How many these are."""


@dataclass(frozen=True, slots=True)
class Entity(Noun):
    """What the graphs hold on an entity; or only names that are similar."""

    name: str
    """The name as the graph has it."""
    kind: str = ""
    """Its kind, such as "person", where the graph or the name shows it."""
    facts: tuple[GraphFact, ...] = ()
    """Its facts, by graph."""
    passages: tuple[Passage, ...] = ()
    """The passages that name it."""
    gists: Mapping[PassageId, str] = field(default_factory=dict)
    """The gist of each passage that has one, by the id of the passage."""
    similar: tuple[str, ...] = ()
    """Names that contain its words, if no graph has it."""
    neighbours: tuple[Neighbour, ...] = ()
    """The entities at the other end of its facts, the most frequent first."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many facts, passages and neighbours it has in all."""

    def page(self, start: int, limit: int) -> Entity:
        """The entity with so many of its facts, passages and neighbours each, from `start` on."""
        part = slice(start, start + limit)
        passages = self.passages[part]
        gists = {passage.id: self.gists[passage.id] for passage in passages if passage.id in self.gists}
        return replace(self, facts=self.facts[part], passages=passages, neighbours=self.neighbours[part], gists=gists)


def find_entity(name: str, store: Store) -> Entity:
    """The entity of this name in all graphs; if no graph has it, the names that contain its words.

    Raises NotBuilt where no graph is built, and UnknownName where no name contains the words.
    """
    graphs = [layer.removeprefix(_ENTITIES) for layer in store.layers() if layer.startswith(_ENTITIES)]
    if not graphs:
        raise NotBuilt("no graph is built in this tome, so it knows no entities: run `tome build --system hipporag2`")
    wanted = normalise_name(name)
    ids = {graph: GraphNames.read(f"graph:{graph}").entity(wanted) for graph in graphs}
    known = find_keys(store, ids.values())
    if keys := {graph: known[id] for graph, id in ids.items() if id in known}:
        return _read_entity(wanted, keys, store)
    names = {node.text for graph in graphs for node in store.nodes(_ENTITIES + graph).values()}
    known_names = sorted(names, key=lambda text: (len(text), text))
    similar = [text for text in known_names if wanted and set(wanted.split()) <= set(text.split())]
    if not similar:
        near = suggest(wanted, known_names)
        raise UnknownName(f"no entity {_shorten(name)!r} in the graphs of this tome: {near}search finds words in texts")
    return Entity(wanted, similar=tuple(similar[:_MOST_SIMILAR]))


def read_entity(name: str, store: Store) -> Entity:
    """The entity of this name in all graphs. Raises NotBuilt, and UnknownName, which names the most similar ones."""
    found = find_entity(name, store)
    if found.similar:
        similar = " or ".join(repr(text) for text in found.similar[:_SHOWN])
        more = f" ({len(found.similar) - _SHOWN} more have these words)" if len(found.similar) > _SHOWN else ""
        raise UnknownName(f"no entity is called just {_shorten(name)!r}: did you mean {similar}?{more}")
    return found


def _read_entity(name: str, entities: Mapping[str, int], store: Store) -> Entity:
    """The entity with this node key in each of these graphs."""
    kind, facts = "", list[GraphFact]()
    sources: dict[int, None] = {}
    neighbours: Counter[str] = Counter()
    for graph, key in entities.items():
        kind = kind or find_kinds({key: name}, GraphNames.read(f"graph:{graph}"), store)[key]
        sources |= dict.fromkeys(read_sources(store, [key], _ENTITIES + graph).get(key, ()))
        ends = [f"ends:{graph}"]
        fact_keys = store.edges_at(ends, [key], "b")[:, 0].astype(int).tolist()
        facts += [GraphFact(node.text, graph) for node in store.nodes_at(dict.fromkeys(fact_keys)).values()]
        others = Counter(store.edges_at(ends, fact_keys, "a")[:, 1].astype(int).tolist())
        del others[key]
        for end, node in store.nodes_at(others).items():
            neighbours[node.text] += others[end]
    passages = store.passages(sources)
    found = sorted(neighbours.items(), key=lambda pair: (-pair[1], pair[0]))
    return Entity(
        name,
        kind=kind,
        facts=tuple(facts),
        passages=tuple(passages.values()),
        gists=_find_gists(passages, store),
        neighbours=tuple(Neighbour(*pair) for pair in found),
        counts={"facts": len(facts), "passages": len(passages), "neighbours": len(found)},
    )


def _find_gists(passages: Mapping[int, Passage], store: Store) -> dict[PassageId, str]:
    made = find_derived(store, passages, f"made-of:{GISTS}")
    texts = store.nodes_at(chain.from_iterable(made.values()))
    return {passages[key].id: texts[gists[0]].text for key, gists in made.items() if gists}


def _shorten(name: str) -> str:
    return oneline(name)[:_LONGEST_NAME]
