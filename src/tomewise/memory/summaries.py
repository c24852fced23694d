"""Summaries of single passages, the source of the graph in CogitoRAG's ablation (table 7, "Summary")."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tomewise.calls import CallCount
from tomewise.concurrency import run_in_thread
from tomewise.language.per_role import find_name
from tomewise.language.roles import SUMMARISE, SummaryIn, SummaryOut
from tomewise.memory.ask_each import Replies, ask_each
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

NAME = "summaries"
_TOKENS = 120  # a summary is at most this long
_TYPICAL = Typical(8, 0.4)


class SummariesLayer:
    """One summary per passage; a pure function of its passages.

    Summaries have no vectors, because recall does not search them.
    """

    name = NAME
    kind = "summary"
    needs = ("passages",)
    writes = (NAME,)
    calls = CallCount("1 a passage", 1)

    def __init__(self, store: Store, model: LanguageModel) -> None:
        self._store = store
        self._model = model

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Summarise the new passages. A passage whose call failed is recorded, and the next build tries it again."""
        passages = await run_in_thread(self._store.passages, change.added)
        inputs = {key: _make_input(passage) for key, passage in passages.items()}
        replies = await ask_each(self._model, SUMMARISE, inputs, report, "passages summarised")
        await run_in_thread(self._commit, passages, replies)
        return LayerReport(layer=NAME, added=len(replies), failed=dict(replies.failed))

    async def estimate(self, change: Change) -> Estimate:
        """One call for each distinct passage."""
        passages = await run_in_thread(self._store.passages, change.added)
        inputs = list({passage.content: _make_input(passage) for passage in passages.values()}.values())
        texts = [summary_input.texts[0] for summary_input in inputs]
        return Estimate(
            layer=NAME,
            model=find_name(self._model, SUMMARISE),
            calls=len(inputs),
            input_tokens=await sum_tokens(inputs, partial(self._model.reckon, SUMMARISE)),
            output_tokens=await estimate_reply_tokens(self._store, self._model, SUMMARISE, _TYPICAL, inputs, texts),
        )

    def _commit(self, passages: dict[int, Passage], replies: Replies[int, SummaryOut]) -> None:
        nodes = {key: _make_node(passages[key], reply.summary) for key, reply in replies.items()}
        with self._store.write() as change:
            change.put_nodes(list(nodes.values()))
            change.record_intake(NAME, nodes, replies.failed)
            change.record_build(NAME, {"model": find_name(self._model, SUMMARISE)})


def _make_input(passage: Passage) -> SummaryIn:
    return SummaryIn(texts=[passage.content], max_tokens=_TOKENS)


def _make_node(passage: Passage, text: str) -> Node:
    name = content_id("s", passage.id, text)
    return Node(id=name, layer=NAME, text=text, sources=(passage.id,), position=passage.position)
