"""Gists: each passage restated so that every sentence can be understood on its own (CogitoRAG, section 4.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tomewise.fallbacks import GIST_REPEATED, GIST_REPLACED, write_notes
from tomewise.language.roles import GIST, GistIn
from tomewise.memory.ask_each import play_each
from tomewise.memory.inventions import unsupported
from tomewise.memory.reply_lengths import Typical, reply_tokens
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
_TYPICAL = Typical(12, 1.04)  # the memory is about as long as the passage, the notes take a line


@dataclass(frozen=True, slots=True)
class _Gist:
    memory: str
    data: Mapping[str, Any]


class GistsLayer:
    """One gist per passage, checked against it; a pure function of its passages.

    Of the two fields of the paper's reply the memory is the gist, the notes are kept in `data`. A memory that names
    what its passage does not support (`support.unsupported`) is asked for once more, told what to leave out; when that
    names such things too, the text of the passage takes its place, with `fallback` in `data`. What was objected to is
    in `data` under `unsupported`. Deviation: the paper checks nothing, and its code falls back only when a call fails.
    Gists have no vectors, since no recall searches them.
    """

    name = NAME
    needs = ("passages",)

    def __init__(self, store: SqliteStore, model: LanguageModel) -> None:
        self._store = store
        self._model = model

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Restate the passages that are new. One whose call failed is recorded and restated by the next build."""
        passages = await asyncio.to_thread(self._store.passages, change.added)
        gists = await play_each(passages, self._gist, report, "gists written")
        nodes = {key: _node(passages[key], gist) for key, gist in gists.items()}
        fallbacks = {
            GIST_REPEATED: sum("unsupported" in gist.data for gist in gists.values()),
            GIST_REPLACED: sum("fallback" in gist.data for gist in gists.values()),
        }
        await asyncio.to_thread(self._commit, nodes, gists.failed, fallbacks)
        notes = tuple(write_notes(fallbacks))
        return LayerReport(layer=NAME, added=len(nodes), failed=dict(gists.failed), notes=notes)

    async def estimate(self, change: Change) -> Estimate:
        """One call for each distinct passage. A second one where the first is not supported cannot be foreseen."""
        passages = await asyncio.to_thread(self._store.passages, change.added)
        given = list({(p.title, p.text): GistIn(text=p.text, title=p.title) for p in passages.values()}.values())
        return Estimate(
            layer=NAME,
            calls=len(given),
            input_tokens=sum(self._model.reckon(GIST, one) for one in given),
            output_tokens=await reply_tokens(
                self._store, self._model, GIST, _TYPICAL, given, [one.text for one in given]
            ),
        )

    async def _gist(self, passage: Passage) -> _Gist:
        given = GistIn(text=passage.text, title=passage.title)
        reply = await self._model.ask(GIST, given)
        strange = await asyncio.to_thread(unsupported, reply.memory, passage.content)
        if not strange:
            return _Gist(reply.memory, {"notes": reply.notes})
        # Another input, so that the answer to the first does not come back from a cache.
        reply = await self._model.ask(GIST, given.model_copy(update={"avoid": strange}))
        still = await asyncio.to_thread(unsupported, reply.memory, passage.content)
        if not still:
            return _Gist(reply.memory, {"notes": reply.notes, "unsupported": strange})
        return _Gist(passage.text, {"notes": "", "unsupported": still, "fallback": True})

    def _commit(self, nodes: Mapping[int, Node], failed: Mapping[int, str], fallbacks: Mapping[str, int]) -> None:
        """The build record counts `fallbacks` over all builds, removals notwithstanding."""
        before = self._store.builds().get(NAME, {}).get("fallbacks", {})
        counts = {kind: count + before.get(kind, 0) for kind, count in fallbacks.items()}
        with self._store.write() as change:
            change.put_nodes(list(nodes.values()))
            change.record_intake(NAME, nodes, failed)
            change.record_build(NAME, {"model": self._model.name, "fallbacks": counts})


def _node(passage: Passage, gist: _Gist) -> Node:
    return Node(
        id=content_id("g", passage.id, gist.memory),
        layer=NAME,
        text=gist.memory,
        sources=(passage.id,),
        position=passage.position,
        data=gist.data,
    )
