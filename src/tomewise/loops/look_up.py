"""Remember the gist of every page, look up the pages that a question needs, then answer (ReadAgent, section 3.2).

Lee et al. 2024, see `memory.pages`. Pages are looked up in parallel (one reply names up to `pages` of them) or
sequentially (one page after another, each chosen with the texts of those before it). The paper allows 1 to 6 pages, by
data set; the default of 5 is ours.

What the answering role sees are all pages in order, the text of those looked up in place of their gists. Gists that
do not fit into the window of a role are left out, those furthest from the question first. A reply that stays unusable
after its repair is skipped and reported: then no further page is looked up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.events import make_event, report_retrieved
from tomewise.language.labels import find_labelled
from tomewise.language.roles import LOOK_UP, LookUpIn, Shown
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import load_passages
from tomewise.loops.steps import LoopState, take_steps
from tomewise.recall.ranking import as_evidence
from tomewise.types import Answer, Event, Evidence, NodeId, Question, Retriever

PAGES = 5
LookUpOrder = Literal["parallel", "sequential"]
_ALL = 10**9  # pages
_PAGE = "page"  # the kind of a page that is shown in full


@dataclass(frozen=True, eq=False)
class LookUp:
    """`recall` ranks the gists of all pages. At most `pages` pages are looked up."""

    recall: Retriever
    desk: Desk
    pages: int = PAGES
    order: LookUpOrder = "parallel"

    @property
    def _rounds(self) -> int:
        return min(self.pages, 1) if self.order == "parallel" else self.pages

    @property
    def calls(self) -> CallCount:
        """One for each look-up, and the answer."""
        rounds = CallCount(str(self._rounds), self._rounds)
        if self._rounds > 1:
            rounds = CallCount(f"1 a look-up, at most {self._rounds}", self._rounds)
        used = [rounds] if self._rounds else []
        return sum_calls([*used, read_calls(self.recall), CallCount("1", 1)])

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """For each round `looked up`; `stopped`, `retrieved`, then the answer."""
        ranked = await self.recall.retrieve(question.text, _ALL, within=question.within)
        ordered = await asyncio.to_thread(self.desk.put_in_order, ranked)
        state = _LookUpState(question=question, ranked=ranked, ordered=ordered)
        if not ranked:
            state.end = "there are no pages to look up"
        async for event in take_steps(state, partial(self._look_up, state), most=self._rounds, name="look-up"):
            yield event
        read = [piece for node in state.read for piece in state.texts[node]]
        gists = [piece for piece in state.ranked if piece.id not in state.texts]
        prepared = await self.desk.prepare(question, [*read, *gists], budget=None, arrange=state.arrange)
        yield report_retrieved(prepared.evidence, prepared.found, state.step)
        yield await self.desk.answer(question, prepared)

    async def _look_up(self, state: _LookUpState) -> AsyncIterator[Event]:
        """Ask for pages, and read them."""
        limit = self.pages - len(state.read) if self.order == "parallel" else 1

        def make_input(shown: Sequence[Shown]) -> LookUpIn:
            return LookUpIn(question=state.question.text, evidence=list(shown), limit=limit)

        prepared = await asyncio.to_thread(
            self.desk.fit, LOOK_UP, state.shown, make_input, budget=None, arrange=state.arrange
        )
        state.evidence = prepared.evidence
        look_up_input = prepared.input.model_copy(update={"read": state.read_labels})
        reply = await state.skipped.try_call(self.desk.model.ask(LOOK_UP, look_up_input), None)
        if reply is None:
            state.end = "the reply was not usable"
            return
        chosen = {piece.id: piece for piece in find_labelled(reply.labels, state.evidence)}
        new = [piece for node, piece in chosen.items() if node not in state.texts][:limit]
        state.texts |= await asyncio.to_thread(self._read_texts, new)
        state.read += [piece.id for piece in new]
        state.end = "" if new else "no further page is needed"
        passages = [passage for piece in new for passage in state.texts[piece.id]]
        yield make_event(
            "looked up",
            state.step,
            evidence=passages,
            found=len(passages),
            cut=0,
            pages=[piece.id for piece in new],
            gists=len(prepared.evidence),
            reasoning=reply.reasoning,
            all_pages=len(state.ranked),
        )

    def _read_texts(self, pages: Sequence[Evidence]) -> dict[NodeId, list[Evidence]]:
        """The passages of each page."""
        passages = load_passages(self.desk.store, {source for page in pages for source in page.sources})
        return {
            page.id: [as_evidence(passages[source], page.score) for source in page.sources if source in passages]
            for page in pages
        }


@dataclass(slots=True, kw_only=True)
class _LookUpState(LoopState):
    """The state of the loop for one question. `ranked` are all gists, nearest first, `ordered` as in the text."""

    ranked: Sequence[Evidence]
    ordered: Sequence[Evidence]
    read: list[NodeId] = field(default_factory=list)  # pages that were looked up, in the order of their choice
    texts: dict[NodeId, list[Evidence]] = field(default_factory=dict)  # their passages
    evidence: Sequence[Evidence] = ()  # what the role that looks up saw last

    @property
    def shown(self) -> list[Evidence]:
        """All pages for the role that looks up: those that were read in full, then the gists, nearest first."""
        pages = {piece.id: piece for piece in self.ranked}
        read = [
            replace(pages[node], kind=_PAGE, text="\n".join(piece.text for piece in self.texts[node]))
            for node in self.read
        ]
        return [*read, *(piece for piece in self.ranked if piece.id not in self.texts)]

    @property
    def read_labels(self) -> list[str]:
        """The labels under which pages that were read are shown."""
        return [f"E{number}" for number, piece in enumerate(self.evidence, start=1) if piece.id in self.texts]

    def arrange(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        """Pages, gists and passages in the order of the text."""
        positions: Mapping[NodeId, tuple[int, int]] = {
            node: (index, number)
            for index, page in enumerate(self.ordered)
            for number, node in enumerate((page.id, *page.sources))
        }
        return sorted(evidence, key=lambda piece: positions[piece.id])
