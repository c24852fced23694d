"""The names of the parts of one graph in the store, which layers and recall share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tomewise.errors import UnknownName
from tomewise.types import Layer, NodeId, content_id

Style: TypeAlias = Literal["triples", "relations"]
Calls: TypeAlias = Literal[1, 2]
FACT = "fact"  # the kind of evidence that facts are
_LAYER = re.compile(
    r"graph:(?P<source>.+?)-(?P<style>triples|relations)(?P<two>-in-2-calls)?(-gleaned-(?P<gleanings>[1-9]\d*))?"
)


@dataclass(frozen=True)
class GraphNames:
    """The names in a graph, made from its source layer, the style of its extractions, and the calls for each text.

    `gleanings` are further calls for each text that read what earlier ones missed.

    Node layers: `entities` and `facts`, which several passages share; in the relations style also `mentions` (what one
    passage says about one entity). Vector spaces have the names of their
    node layers. Edge spaces: `ends` (fact, entity, 0 for the head and 1 for the tail), `synonyms` (entity, entity,
    cosine; the smaller node id first), `mentioned` (mention, entity, 1), and the store's own `seen-in:` and `made-of:`.
    """

    source: str
    style: Style
    calls: Calls = 1
    gleanings: int = 0

    @classmethod
    def read(cls, layer: str) -> GraphNames:
        """The names of the graph of this layer: the inverse of `layer`. Raises UnknownName."""
        found = _LAYER.fullmatch(layer)
        if found is None:
            raise UnknownName(f"{layer!r} is not the name of a graph, such as graph:passages-triples")
        style: Style = "triples" if found["style"] == "triples" else "relations"
        return cls(found["source"], style, 2 if found["two"] else 1, int(found["gleanings"] or 0))

    @property
    def instance(self) -> str:
        calls = "" if self.calls == 1 else f"-in-{self.calls}-calls"
        gleanings = f"-gleaned-{self.gleanings}" if self.gleanings else ""
        return f"{self.source}-{self.style}{calls}{gleanings}"

    @property
    def layer(self) -> str:
        return f"graph:{self.instance}"

    @property
    def entities(self) -> str:
        return f"entities:{self.instance}"

    @property
    def facts(self) -> str:
        return f"facts:{self.instance}"

    @property
    def mentions(self) -> str:
        return f"mentions:{self.instance}"

    @property
    def ends(self) -> str:
        return f"ends:{self.instance}"

    @property
    def synonyms(self) -> str:
        return f"synonyms:{self.instance}"

    @property
    def mentioned(self) -> str:
        return f"mentioned:{self.instance}"

    def entity(self, name: str) -> NodeId:
        """The node id of an entity by its normalised name."""
        return content_id("e", self.instance, name)

    def fact(self, key: tuple[str, ...]) -> NodeId:
        """The node id of a fact by its key."""
        return content_id("f", self.instance, *key)


def find_graph(layers: Iterable[Layer]) -> GraphNames | None:
    """The graph that the first of these layers writes which has `names` of one; None without such a layer."""
    names = (getattr(layer, "names", None) for layer in layers)
    return next((each for each in names if isinstance(each, GraphNames)), None)
