"""Gists: each passage restated so that every sentence can be understood on its own (CogitoRAG, section 4.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tomewise.fallbacks import GIST_REPEATED, GIST_REPLACED, write_notes
from tomewise.language.per_role import find_name
from tomewise.language.roles import GIST, GistIn
from tomewise.memory.ask_each import run_each
from tomewise.memory.inventions import find_unsupported
from tomewise.memory.reply_lengths import Typical, estimate_reply_tokens
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
    from tomewise.store.sqlite.store import SqliteStore

NAME = "gists"
_TYPICAL = Typical(12, 1.04)  # the memory is about as long as the passage, and the notes take one line


@dataclass(frozen=True, slots=True)
class _Gist:
    memory: str
    data: Mapping[str, Any]


class GistsLayer:
    """One gist per passage, checked against the passage; a pure function of its passages.

    The paper's reply has two fields: the memory is the gist, and the notes are kept in `data`. When the memory names
    something that its passage does not support (`inventions.find_unsupported`), the model is asked once more and gets
    the list of what to leave out. When the second memory still names such things, the text of the passage becomes the
    gist, with `fallback` in `data`. The unsupported names are in `data` under `unsupported`. Deviation: the paper does
    not check, and its code falls back only when a call fails. Gists have no vectors, because recall does not search
    them.
    """

    name = NAME
    needs = ("passages",)
    writes = (NAME,)

    def __init__(self, store: SqliteStore, model: LanguageModel) -> None:
        self._store = store
        self._model = model

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Restate the new passages. A passage whose call failed is recorded, and the next build restates it."""
        passages = await asyncio.to_thread(self._store.passages, change.added)
        gists = await run_each(passages, self._write_gist, report, "gists written")
        nodes = {key: _make_node(passages[key], gist) for key, gist in gists.items()}
        fallbacks = {
            GIST_REPEATED: sum("unsupported" in gist.data for gist in gists.values()),
            GIST_REPLACED: sum("fallback" in gist.data for gist in gists.values()),
        }
        await asyncio.to_thread(self._commit, nodes, gists.failed, fallbacks)
        notes = tuple(write_notes(fallbacks))
        return LayerReport(layer=NAME, added=len(nodes), failed=dict(gists.failed), notes=notes)

    async def estimate(self, change: Change) -> Estimate:
        """One call for each distinct passage. Second calls after an unsupported gist are not foreseen."""
        passages = await asyncio.to_thread(self._store.passages, change.added)
        inputs = list({(p.title, p.text): GistIn(text=p.text, title=p.title) for p in passages.values()}.values())
        return Estimate(
            layer=NAME,
            model=find_name(self._model, GIST),
            calls=len(inputs),
            input_tokens=sum(self._model.reckon(GIST, gist_input) for gist_input in inputs),
            output_tokens=await estimate_reply_tokens(
                self._store, self._model, GIST, _TYPICAL, inputs, [gist_input.text for gist_input in inputs]
            ),
        )

    async def _write_gist(self, passage: Passage) -> _Gist:
        gist_input = GistIn(text=passage.text, title=passage.title)
        reply = await self._model.ask(GIST, gist_input)
        inventions = await asyncio.to_thread(find_unsupported, reply.memory, passage.content)
        if not inventions:
            return _Gist(reply.memory, {"notes": reply.notes})
        # The input differs from the first, so that the cache does not return the first reply.
        reply = await self._model.ask(GIST, gist_input.model_copy(update={"avoid": inventions}))
        remaining = await asyncio.to_thread(find_unsupported, reply.memory, passage.content)
        if not remaining:
            return _Gist(reply.memory, {"notes": reply.notes, "unsupported": inventions})
        return _Gist(passage.text, {"notes": "", "unsupported": remaining, "fallback": True})

    def _commit(self, nodes: Mapping[int, Node], failed: Mapping[int, str], fallbacks: Mapping[str, int]) -> None:
        """Write gists. The build record counts `fallbacks` over all builds; a removal does not lower the counts."""
        before = self._store.builds().get(NAME, {}).get("fallbacks", {})
        counts = {kind: count + before.get(kind, 0) for kind, count in fallbacks.items()}
        with self._store.write() as change:
            change.put_nodes(list(nodes.values()))
            change.record_intake(NAME, nodes, failed)
            change.record_build(NAME, {"model": find_name(self._model, GIST), "fallbacks": counts})


def _make_node(passage: Passage, gist: _Gist) -> Node:
    return Node(
        id=content_id("g", passage.id, gist.memory),
        layer=NAME,
        text=gist.memory,
        sources=(passage.id,),
        position=passage.position,
        data=gist.data,
    )
