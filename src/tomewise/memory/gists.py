"""Gists: each passage restated so that every sentence can be understood on its own (CogitoRAG, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from tomewise.language.roles import GIST, GistIn, GistOut
from tomewise.memory.leading import find_leads
from tomewise.memory.mapped import MappedLayer
from tomewise.memory.token_estimates import Typical
from tomewise.types import Node, Passage

NAME = "gists"


class GistsLayer(MappedLayer[Passage, GistIn, GistOut]):
    """One gist per passage, proved by the passage and the text before it; a pure function of its documents.

    The paper's reply has two fields: the memory is the gist, and the notes are in `data`. Recall does not search gists,
    so recipes make them without an embedder.
    """

    name = NAME
    kind = "gist"
    role = GIST
    label = "gists written"
    prefix = "g"
    typical = Typical(12, 1.04)  # the memory is about as long as the passage, and the notes take one line

    def make_inputs(self, sources: Sequence[Passage]) -> list[GistIn]:
        """Each passage with the text before it."""
        leads = find_leads(self._store, sources)
        return [GistIn(text=passage.text, title=passage.title, before=leads[passage.id]) for passage in sources]

    def make_nodes(self, source: Passage, reply: GistOut, /) -> list[Node]:
        """One gist."""
        return [self.make_node(source, reply.memory, notes=reply.notes)]
