"""Gists: each passage restated so that every sentence can be understood on its own (CogitoRAG, section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tomewise.calls import CallCount
from tomewise.concurrency import gather_calls, run_in_thread
from tomewise.errors import ModelError
from tomewise.language.roles import GIST, GistIn, GistOut
from tomewise.language.together import ask_together, catch_failure
from tomewise.memory.build_records import read_build
from tomewise.memory.leading import find_leads
from tomewise.memory.mapped import MappedLayer, PlanResult
from tomewise.memory.token_estimates import Typical
from tomewise.run import GIST_REPEATED, GIST_REPLACED
from tomewise.text.grounds import Grounds
from tomewise.types import Node, Passage

NAME = "gists"


@dataclass(frozen=True, slots=True)
class _Gist:
    memory: str
    data: Mapping[str, Any]


class GistsLayer(MappedLayer[Passage, GistIn, _Gist]):
    """One gist per passage, checked against the passage and the text before it; a pure function of its documents.

    The paper's reply has two fields: the memory is the gist, and the notes are in `data`. When the memory names
    something that these do not support (`Grounds.find_missing`), the model is asked once more and gets
    the list of what to leave out. When the second memory still names such things, the text of the passage becomes the
    gist, with `fallback` in `data`. The unsupported names are in `data` under `unsupported`. Deviation: the paper does
    not check, and its code falls back only when a call fails. Recall does not search gists, so recipes make them
    without an embedder.
    """

    name = NAME
    kind = "gist"
    role = GIST
    label = "gists written"
    prefix = "g"
    typical = Typical(12, 1.04)  # the memory is about as long as the passage, and the notes take one line

    @property
    def calls(self) -> CallCount:
        again = "1 more if its gist invents names"
        if self.together == 1:
            return CallCount(f"1 a passage and {again}, at most 2 a passage", 2)
        return CallCount(f"1 for {self.together} passages, 1 a passage whose part of it is unusable, and {again}", 2.5)

    def make_inputs(self, sources: Sequence[Passage]) -> list[GistIn]:
        """Each passage with the text before it."""
        leads = find_leads(self._store, sources)
        return [GistIn(text=passage.text, title=passage.title, before=leads[passage.id]) for passage in sources]

    def make_nodes(self, source: Passage, reply: _Gist, /) -> list[Node]:
        """One gist."""
        return [self.make_node(source, reply.memory, **reply.data)]

    async def ask_group(self, inputs: Sequence[GistIn]) -> list[_Gist | ModelError]:
        """The gists of neighbours, each checked."""
        replies = await ask_together(self._model, GIST, inputs, self.together)
        pairs = zip(inputs, replies, strict=True)
        return await gather_calls(catch_failure(self._check_gist(*pair)) for pair in pairs)

    def count_replaced(self, replies: Iterable[_Gist]) -> dict[str, int]:
        """The gists that named what the passage does not support."""
        gists = list(replies)
        return {
            GIST_REPEATED: sum("unsupported" in gist.data for gist in gists),
            GIST_REPLACED: sum("fallback" in gist.data for gist in gists),
        }

    def make_record(self, result: PlanResult[Passage, GistIn, _Gist]) -> dict[str, Any]:
        """With the fallbacks of all builds; a removal does not lower the counts."""
        before = read_build(self._store, NAME).get("fallbacks", {})
        fallbacks = result.fallbacks
        counts = {kind: before.get(kind, 0) + fallbacks.get(kind, 0) for kind in (*before, *fallbacks)}
        return {**super().make_record(result), "fallbacks": counts}

    async def _check_gist(self, role_input: GistIn, reply: GistOut | ModelError) -> _Gist:
        if isinstance(reply, ModelError):
            raise reply
        grounds = await run_in_thread(Grounds, [*filter(None, role_input.grounds)])
        inventions = await run_in_thread(grounds.find_missing, reply.memory)
        if not inventions:
            return _Gist(reply.memory, {"notes": reply.notes})
        # The input differs from the first, so that the cache does not return the first reply.
        reply = await self._model.ask(GIST, role_input.model_copy(update={"avoid": inventions}))
        remaining = await run_in_thread(grounds.find_missing, reply.memory)
        if not remaining:
            return _Gist(reply.memory, {"notes": reply.notes, "unsupported": inventions})
        return _Gist(role_input.text, {"notes": "", "unsupported": remaining, "fallback": True})
