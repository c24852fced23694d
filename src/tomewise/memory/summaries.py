"""Summaries of single passages, the source of the graph in CogitoRAG's ablation (table 7, "Summary")."""

from __future__ import annotations

from tomewise.language.roles import SUMMARISE, SummaryIn, SummaryOut
from tomewise.memory.mapped import MappedLayer
from tomewise.memory.token_estimates import Typical
from tomewise.types import Node, Passage

NAME = "summaries"
_TOKENS = 120  # a summary is at most this long


class SummariesLayer(MappedLayer[Passage, SummaryIn, SummaryOut]):
    """One summary per passage; a pure function of its passages.

    Recall does not search summaries, so recipes make them without an embedder.
    """

    name = NAME
    kind = "summary"
    role = SUMMARISE
    label = "passages summarised"
    prefix = "s"
    typical = Typical(8, 0.4)

    def make_input(self, source: Passage, /) -> SummaryIn:
        """The passage with its title."""
        return SummaryIn(texts=[source.content], max_tokens=_TOKENS)

    def make_nodes(self, source: Passage, reply: SummaryOut, /) -> list[Node]:
        """One summary."""
        return [self.make_node(source, reply.summary)]
