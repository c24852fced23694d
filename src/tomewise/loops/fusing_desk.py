"""The desk of our own systems: whatever a loop finds is fused with what one search of the question finds.

The rule is in `loops.last_prompt`. Systems with a paper do not use it: they show what they find themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tomewise.language.roles import AnswerIn
from tomewise.loops.desk import Desk, Prepared
from tomewise.loops.evidence import Count
from tomewise.loops.last_prompt import DEPTH, Layout, Note, Searched, fuse
from tomewise.types import Evidence, LanguageModel, Question, Retriever, Scope

if TYPE_CHECKING:
    from tomewise.store.contract import Texts


class FusingDesk(Desk):
    """Shows the best of all that searches find as one ranking, whatever a loop searches.

    It searches `plain` for every question; without it, the loop's own search is the plain one.
    """

    def __init__(self, store: Texts, model: LanguageModel, count: Count, plain: Retriever | None) -> None:
        super().__init__(store, model, count)
        self.layout = Layout(store, count, joins=True)
        self._plain = plain

    @property
    def alone(self) -> FusingDesk:
        """The same desk, for a loop whose own search is the plain one."""
        return FusingDesk(self.store, self.model, self.count, None)

    async def search_beside(self, question: Question) -> list[Searched]:
        """What its own search finds for the question."""
        if self._plain is None:
            return []
        return [Searched(await self._plain.retrieve(question.text, DEPTH, within=question.within))]

    async def rank(self, searches: Sequence[Searched], within: Scope | None) -> list[Evidence]:
        """All that searches found as one ranking, see `fuse`."""
        return await asyncio.to_thread(fuse, self.store, searches, within)

    async def lay_out(
        self, question: Question, ranked: Sequence[Evidence], *, budget: int, notes: Sequence[Note] = ()
    ) -> Prepared[AnswerIn]:
        """What fits of a ranking and of the notes, see `Layout`."""
        budget = min(budget, await asyncio.to_thread(self.measure_answer_room, question))
        context = await asyncio.to_thread(self.layout.lay_out, ranked, budget, notes)
        prepared = await self.prepare_context(question, context, may_decline=not question.force)
        return replace(prepared, found=ranked, dropped=len(ranked) - len(prepared.evidence))
