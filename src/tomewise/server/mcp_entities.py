"""What the graphs of a tome hold on an entity: its facts, and the passages in which it is seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tomewise.errors import NotBuilt, UnknownName
from tomewise.memory.graph.entities import normalise_name
from tomewise.names import suggest
from tomewise.server.mcp_documents import show_name

if TYPE_CHECKING:
    from tomewise.store.contract import Store
    from tomewise.types import Passage

_ENTITIES = "entities:"  # the layer of the entities of a graph begins so, see `memory.graph.graph_names`
_MOST_SIMILAR = 20


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """The facts of an entity, each with the name of its graph, and its passages; or only names that are similar."""

    name: str
    facts: tuple[tuple[str, str], ...] = ()
    passages: tuple[Passage, ...] = ()
    similar: tuple[str, ...] = ()


def find_entity(name: str, store: Store) -> FoundEntity:
    """The entity of this name in all graphs; if no graph has it, the names that contain its words.

    Raises NotBuilt where no graph is built, and UnknownName where no name contains the words.
    """
    graphs = [layer.removeprefix(_ENTITIES) for layer in store.layers() if layer.startswith(_ENTITIES)]
    if not graphs:
        raise NotBuilt("no graph is built in this tome, so it knows no entities: build a system with one, as hipporag2")
    wanted = normalise_name(name)
    names = {graph: {node.text: key for key, node in store.nodes(_ENTITIES + graph).items()} for graph in graphs}
    keys = {graph: known[wanted] for graph, known in names.items() if wanted in known}
    if keys:
        facts = tuple((text, graph) for graph, key in keys.items() for text in _find_facts(key, graph, store))
        return FoundEntity(wanted, facts, tuple(_find_passages(keys, store)))
    known_names = sorted({text for known in names.values() for text in known}, key=lambda text: (len(text), text))
    similar = [text for text in known_names if wanted and set(wanted.split()) <= set(text.split())]
    if not similar:
        near = suggest(wanted, known_names)
        raise UnknownName(
            f"no entity {show_name(name)!r} in the graphs of this tome: {near}search finds words in texts"
        )
    return FoundEntity(wanted, similar=tuple(similar[:_MOST_SIMILAR]))


def _find_facts(entity: int, graph: str, store: Store) -> list[str]:
    facts = store.neighbours(f"ends:{graph}", [entity])[:, 0].astype(int).tolist()
    return [node.text for node in store.nodes_at(dict.fromkeys(facts)).values()]


def _find_passages(entities: dict[str, int], store: Store) -> Iterator[Passage]:
    keys = [
        source for graph, key in entities.items() for source in store.sources([key], _ENTITIES + graph).get(key, ())
    ]
    yield from store.passages(dict.fromkeys(keys)).values()
