"""Gists: each passage restated so that every sentence can be understood on its own (CogitoRAG, section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tomewise.calls import CallCount
from tomewise.concurrency import gather_calls, run_in_thread
from tomewise.errors import ModelError
from tomewise.fallbacks import GIST_REPEATED, GIST_REPLACED, count_fallbacks, write_notes
from tomewise.language.per_role import find_name
from tomewise.language.roles import GIST, GistIn, GistOut
from tomewise.language.together import ask_together, catch_failure, reckon_together
from tomewise.memory.ask_each import run_groups
from tomewise.memory.inventions import find_unsupported
from tomewise.memory.leading import find_leads
from tomewise.memory.neighbours import Groups, add_size, check_size, group_neighbours
from tomewise.memory.reply_lengths import Typical, estimate_reply_tokens
from tomewise.memory.steps import sum_tokens
from tomewise.types import (
    Change,
    Estimate,
    LanguageModel,
    LayerReport,
    Node,
    Passage,
    Report,
    content_id,
)

if TYPE_CHECKING:
    from tomewise.store.contract import Store

NAME = "gists"
_TYPICAL = Typical(12, 1.04)  # the memory is about as long as the passage, and the notes take one line


@dataclass(frozen=True, slots=True)
class _Gist:
    memory: str
    data: Mapping[str, Any]


class GistsLayer:
    """One gist per passage, checked against the passage and what stands before it; a pure function of its documents.

    The paper's reply has two fields: the memory is the gist, and the notes are kept in `data`. When the memory names
    something that these do not support (`inventions.find_unsupported`), the model is asked once more and gets
    the list of what to leave out. When the second memory still names such things, the text of the passage becomes the
    gist, with `fallback` in `data`. The unsupported names are in `data` under `unsupported`. Deviation: the paper does
    not check, and its code falls back only when a call fails. Gists have no vectors, because recall does not search
    them.
    """

    name = NAME
    kind = "gist"
    needs = ("passages",)
    writes = (NAME,)

    def __init__(self, store: Store, model: LanguageModel, *, together: int = 1) -> None:
        self.together = check_size(together)
        self._store = store
        self._model = model

    @property
    def calls(self) -> CallCount:
        again = "1 more if its gist invents names"
        if self.together == 1:
            return CallCount(f"1 a passage and {again}, at most 2 a passage", 2)
        return CallCount(f"1 for {self.together} passages, 1 a passage whose part of it is unusable, and {again}", 2.5)

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Restate the new passages. A passage whose call failed is recorded, and the next build restates it."""
        passages, inputs = await run_in_thread(self._load, change)
        groups = self._group(passages, inputs)
        with count_fallbacks() as counts:
            asked = {key: inputs[key] for keys in groups.keys for key in keys}
            replies = await run_groups(asked, groups.keys, self._write_gists, report, "gists written")
        gists = groups.share(replies, inputs)
        nodes = {key: _make_node(passages[key], gist) for key, gist in gists.items()}
        fallbacks = {
            GIST_REPEATED: sum("unsupported" in gist.data for gist in gists.values()),
            GIST_REPLACED: sum("fallback" in gist.data for gist in gists.values()),
            **counts,
        }
        await run_in_thread(self._commit, nodes, gists.failed, fallbacks)
        notes = tuple(write_notes(fallbacks))
        return LayerReport(layer=NAME, added=len(nodes), failed=dict(gists.failed), notes=notes)

    async def estimate(self, change: Change) -> Estimate:
        """One call for each distinct passage, or for `together` neighbours. Calls after a bad gist are not foreseen."""
        passages, loaded = await run_in_thread(self._load, change)
        groups = [[loaded[key] for key in keys] for keys in self._group(passages, loaded).keys]
        inputs = [given for group in groups for given in group]
        return Estimate(
            layer=NAME,
            model=find_name(self._model, GIST),
            calls=len(groups),
            input_tokens=await sum_tokens(
                groups, lambda group: reckon_together(self._model, GIST, group, self.together)
            ),
            output_tokens=await estimate_reply_tokens(
                self._store, self._model, GIST, _TYPICAL, inputs, [gist_input.text for gist_input in inputs]
            ),
        )

    def _group(self, passages: Mapping[int, Passage], inputs: Mapping[int, GistIn]) -> Groups[int]:
        positions = {key: (passages[key].document, passages[key].position) for key in inputs}
        return group_neighbours(inputs, positions, self.together)

    def _load(self, change: Change) -> tuple[dict[int, Passage], dict[int, GistIn]]:
        """The new passages, and what the model is given for each."""
        passages = self._store.passages(change.added)
        leads = find_leads(self._store, passages.values())
        return passages, {
            key: GistIn(text=passage.text, title=passage.title, before=leads[passage.id])
            for key, passage in passages.items()
        }

    async def _write_gists(self, given: Sequence[GistIn]) -> list[_Gist | ModelError]:
        replies = await ask_together(self._model, GIST, given, self.together)
        pairs = zip(given, replies, strict=True)
        return await gather_calls(catch_failure(self._check_gist(*pair)) for pair in pairs)

    async def _check_gist(self, given: GistIn, reply: GistOut | ModelError) -> _Gist:
        if isinstance(reply, ModelError):
            raise reply
        ground = "\n".join(filter(None, given.grounds))
        inventions = await run_in_thread(find_unsupported, reply.memory, ground)
        if not inventions:
            return _Gist(reply.memory, {"notes": reply.notes})
        # The input differs from the first, so that the cache does not return the first reply.
        reply = await self._model.ask(GIST, given.model_copy(update={"avoid": inventions}))
        remaining = await run_in_thread(find_unsupported, reply.memory, ground)
        if not remaining:
            return _Gist(reply.memory, {"notes": reply.notes, "unsupported": inventions})
        return _Gist(given.text, {"notes": "", "unsupported": remaining, "fallback": True})

    def _commit(self, nodes: Mapping[int, Node], failed: Mapping[int, str], fallbacks: Mapping[str, int]) -> None:
        """Write gists. The build record counts `fallbacks` over all builds; a removal does not lower the counts."""
        record = self._store.builds().get(NAME, {})
        before = record.get("fallbacks", {})
        counts = {kind: before.get(kind, 0) + fallbacks.get(kind, 0) for kind in (*before, *fallbacks)}
        sizes = add_size(record, self.together)
        with self._store.write() as change:
            change.put_nodes(list(nodes.values()))
            change.record_intake(NAME, nodes, failed)
            name = find_name(self._model, GIST)
            change.record_build(NAME, {"model": name, "fallbacks": counts, "together": sizes})


def _make_node(passage: Passage, gist: _Gist) -> Node:
    return Node(
        id=content_id("g", passage.id, gist.memory),
        layer=NAME,
        text=gist.memory,
        sources=(passage.id,),
        position=passage.position,
        data=gist.data,
    )
