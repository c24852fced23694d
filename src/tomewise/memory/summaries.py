"""Summaries of single passages: what a graph is read from in CogitoRAG's ablation (table 7, "Summary")."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tomewise.language.roles import SUMMARISE, SummaryIn, SummaryOut
from tomewise.memory.ask_each import Replies, ask_each
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

NAME = "summaries"
_TOKENS = 120  # a summary is at most this long
_TYPICAL = Typical(8, 0.4)


class SummariesLayer:
    """One summary per passage; a pure function of its passages. Without vectors: no recall searches summaries."""

    name = NAME
    needs = ("passages",)

    def __init__(self, store: SqliteStore, model: LanguageModel) -> None:
        self._store = store
        self._model = model

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Summarise the passages that are new. One whose call failed is recorded and tried again by the next build."""
        passages = await asyncio.to_thread(self._store.passages, change.added)
        inputs = {key: _given(passage) for key, passage in passages.items()}
        replies = await ask_each(self._model, SUMMARISE, inputs, report, "passages summarised")
        await asyncio.to_thread(self._commit, passages, replies)
        return LayerReport(layer=NAME, added=len(replies), failed=dict(replies.failed))

    async def estimate(self, change: Change) -> Estimate:
        """One call for each distinct passage."""
        passages = await asyncio.to_thread(self._store.passages, change.added)
        given = list({passage.content: _given(passage) for passage in passages.values()}.values())
        texts = [one.texts[0] for one in given]
        return Estimate(
            layer=NAME,
            calls=len(given),
            input_tokens=sum(self._model.reckon(SUMMARISE, one) for one in given),
            output_tokens=await reply_tokens(self._store, self._model, SUMMARISE, _TYPICAL, given, texts),
        )

    def _commit(self, passages: dict[int, Passage], replies: Replies[int, SummaryOut]) -> None:
        nodes = {key: _node(passages[key], reply.summary) for key, reply in replies.items()}
        with self._store.write() as change:
            change.put_nodes(list(nodes.values()))
            change.record_intake(NAME, nodes, replies.failed)
            change.record_build(NAME, {"model": self._model.name})


def _given(passage: Passage) -> SummaryIn:
    return SummaryIn(texts=[passage.content], max_tokens=_TOKENS)


def _node(passage: Passage, text: str) -> Node:
    name = content_id("s", passage.id, text)
    return Node(id=name, layer=NAME, text=text, sources=(passage.id,), position=passage.position)
