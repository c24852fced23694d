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
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.events import make_event, report_retrieved
from tomewise.language.labels import find_labelled
from tomewise.language.roles import LOOK_UP, LookUpIn
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
        most = self._rounds
        rounds = CallCount(f"1 a look-up, at most {most}" if most > 1 else str(most), most)
        return sum_calls([rounds, read_calls(self.recall), CallCount("1", 1)])

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """For each round `looked up`; `stopped`, `retrieved`, then the answer."""
        ranked = await self.recall.retrieve(question.text, _ALL, within=question.within)
        ordered = await asyncio.to_thread(self.desk.put_in_order, ranked)
        state = _LookUpState(question=question, ranked=ranked, ordered=ordered)
        if not ranked:
            state.end = "there are no pages to look up"
        async for event in take_steps(state, partial(self._look_up, state), most=self._rounds, name="look-up"):
            yield event
        passages = [passage for read in state.read.values() for passage in read]
        found = [*passages, *state.gists]
        prepared = await self.desk.prepare(question, found, budget=None, arrange=state.arrange)
        yield report_retrieved(prepared.evidence, prepared.found, state.step)
        yield await self.desk.answer(question, prepared)

    async def _look_up(self, state: _LookUpState) -> AsyncIterator[Event]:
        """Ask for pages, and read them."""
        limit = self.pages - len(state.read) if self.order == "parallel" else 1
        pages = [*state.pages, *state.gists]
        given = LookUpIn(question=state.question.text, evidence=[], limit=limit)
        prepared = await asyncio.to_thread(self.desk.fit, LOOK_UP, pages, given, arrange=state.arrange)
        shown = list(zip(prepared.evidence, prepared.input.evidence, strict=True))
        read = [label.label for piece, label in shown if piece.id in state.read]
        reply = await state.ask(self.desk, LOOK_UP, prepared.input.model_copy(update={"read": read}))
        if reply is None:
            state.end = "the reply was not usable"
            return
        named = find_labelled(reply.labels, prepared.evidence)
        new = [piece for piece in named if piece.id not in state.read][:limit]
        known = await asyncio.to_thread(load_passages, self.desk.store, [each for page in new for each in page.sources])
        texts = {
            page.id: [as_evidence(known[each], page.score) for each in page.sources if each in known] for page in new
        }
        state.read |= texts
        state.end = "" if new else "no further page is needed"
        passages = [passage for read in texts.values() for passage in read]
        yield make_event(
            "looked up",
            state.step,
            evidence=passages,
            found=len(passages),
            cut=0,
            pages=[*texts],
            gists=len(prepared.evidence),
            reasoning=reply.reasoning,
            all_pages=len(state.ranked),
        )


@dataclass(slots=True, kw_only=True)
class _LookUpState(LoopState):
    """The state of the loop for one question. `ranked` are all gists, nearest first, `ordered` as in the text."""

    ranked: Sequence[Evidence]
    ordered: Sequence[Evidence]
    read: dict[NodeId, list[Evidence]] = field(default_factory=dict)  # passages of pages, in the order of their choice

    @property
    def gists(self) -> list[Evidence]:
        """The pages that were not read, nearest first."""
        return [piece for piece in self.ranked if piece.id not in self.read]

    @property
    def pages(self) -> list[Evidence]:
        """The pages that were read, in full."""
        texts = {node: "\n".join(piece.text for piece in passages) for node, passages in self.read.items()}
        known = {piece.id: piece for piece in self.ranked}
        return [replace(known[node], kind=_PAGE, text=text) for node, text in texts.items()]

    def arrange(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        """Pages, gists and passages in the order of the text."""
        nodes = (node for page in self.ordered for node in (page.id, *page.sources))
        positions = {node: place for place, node in enumerate(nodes)}
        return sorted(evidence, key=lambda piece: positions[piece.id])
