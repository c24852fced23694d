"""Memory layers by name: Tomewise's own, and those of plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.memory import episodes, gists, pages, summaries
from tomewise.memory.communities.communities_layer import CommunitiesLayer
from tomewise.memory.communities.community_names import COMMUNITIES, CommunityNames
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.memory.growing_tree.memtree_layer import MemTreeLayer
from tomewise.memory.growing_tree.memtree_names import MEMTREE
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.memory.schemata.schemata_names import SCHEMATA
from tomewise.memory.tree import tree_layer
from tomewise.plugins import call_part, find_plugin, list_names, refuse_hidden
from tomewise.store.contract import Store
from tomewise.systems.kit import Kit
from tomewise.types import Embedder, LanguageModel, Layer

_OWN: Mapping[str, Callable[[Store, LanguageModel, Embedder], Layer]] = {
    gists.NAME: lambda store, model, _: gists.GistsLayer(store, model),
    summaries.NAME: lambda store, model, _: summaries.SummariesLayer(store, model),
    episodes.NAME: episodes.EpisodesLayer,
    pages.NAME: pages.PagesLayer,
    tree_layer.NAME: tree_layer.TreeLayer,
    MEMTREE: MemTreeLayer,
    SCHEMATA: SchemataLayer,
}
_GRAPH = "graph:passages-triples"
_PARTS_OF_GRAPHS = frozenset(("graph", "entities", "facts", "mentions", "descriptions"))


def make_layers(kit: Kit, *names: str) -> tuple[Layer, ...]:
    """The layers of these names with their usual settings, each after the layers that it needs.

    A name is that of one of Tomewise's layers, such as `gists` or `graph:gists-triples`, or of a plugin's. Raises
    UnknownName, UsageError, and MissingDependency for a plugin that cannot be imported.
    """
    found: dict[str, Layer] = {}

    def add(name: str, above: tuple[str, ...]) -> None:
        layer = None if name in above else _make_layer(name, kit)
        if layer is None:
            return  # a build says which need nothing provides
        for need in layer.needs:
            add(need, (*above, name))
        found.setdefault(layer.name, layer)

    for name in names:
        add(name, ())
        if name not in found:
            known = [*_OWN, _GRAPH, COMMUNITIES, *list_names("layers")]
            raise UnknownName(f"{name!r} is not a layer: {suggest(name, known)}known are {', '.join(known)}")
    return tuple(found.values())


def _make_layer(name: str, kit: Kit) -> Layer | None:
    """The layer of that name, or the graph that writes the node layer of that name; None without one."""
    if name in _OWN:
        refuse_hidden("layers", name)
        return _OWN[name](kit.store, kit.model, kit.embedder)
    kind, _, instance = name.partition(":")
    if kind == COMMUNITIES:
        communities = CommunityNames.read(name)
        return CommunitiesLayer(kit.store, kit.model, kit.embedder, communities.graph, words=communities.words)
    if kind in _PARTS_OF_GRAPHS and instance and name not in list_names("layers"):
        graph = GraphNames.read(f"graph:{instance}")
        return GraphLayer(
            kit.store, kit.model, kit.embedder,
            source=graph.source, style=graph.style, calls=graph.calls, gleanings=graph.gleanings,
        )  # fmt: skip
    make = find_plugin("layers", name)
    if make is None:
        return None
    layer = call_part("layers", name, make, kit.store, kit.model, kit.embedder) if callable(make) else make
    if not isinstance(layer, Layer) or layer.name != name:
        raise UsageError(f"the plugin {name!r} made {layer!r}, which is not a layer of that name")
    return layer
