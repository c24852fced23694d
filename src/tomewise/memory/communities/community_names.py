"""The names of communities and their reports in the store, which the layer and recall share."""

from __future__ import annotations

from dataclasses import dataclass

from tomewise.language.roles.community_roles import REPORT_WORDS
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.records import PASSAGES
from tomewise.types import NodeId, content_id

COMMUNITIES = "communities"
_USUAL = GraphNames(PASSAGES, "relations", gleanings=1)


@dataclass(frozen=True)
class CommunityNames:
    """The names for the communities of a graph, whose reports have so many `words` at most.

    Node layers: that of the `layer`, whose nodes are communities, and `reports`, the nodes of which have vectors. Edge
    spaces: `members` (community, entity), `related` (entity, entity, weight; each pair once, and each entity with
    itself by the sum of its weights), `about` (report, community), and `made-of:REPORTS` (report, and what it rests on:
    facts, mentions, other reports).
    """

    graph: GraphNames = _USUAL
    words: int = REPORT_WORDS

    @classmethod
    def read(cls, layer: str) -> CommunityNames:
        """The names of the communities of this layer: the inverse of `layer`."""
        _, _, instance = layer.partition(":")
        graph, _, words = instance.partition(",words=")
        return cls(GraphNames.read(f"graph:{graph}") if graph else _USUAL, int(words or REPORT_WORDS))

    @property
    def layer(self) -> str:
        return f"{COMMUNITIES}{self._instance}"

    @property
    def reports(self) -> str:
        return f"reports{self._instance}"

    @property
    def members(self) -> str:
        return f"drawn-from:{self.layer}"

    @property
    def related(self) -> str:
        return f"related{self._instance}"

    @property
    def about(self) -> str:
        return f"about{self._instance}"

    def community(self, number: int) -> NodeId:
        """The node id of a community."""
        return content_id("k", self.layer, number)

    def report(self, digest: str) -> NodeId:
        """The node id of the report about a community with this content."""
        return content_id("r", self.reports, digest)

    @property
    def _instance(self) -> str:
        words = "" if self.words == REPORT_WORDS else f",words={self.words}"
        graph = "" if self.graph == _USUAL and not words else self.graph.instance
        return f":{graph}{words}" if graph else ""
