"""What loops share while they work on one question.

Their state, replies that they skipped, steps, evidence that they collect, and what those with a working memory show.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tomewise.errors import BudgetExceeded, ModelError, ModelUnavailable
from tomewise.events import make_event
from tomewise.language.roles import ENCODE
from tomewise.loops.desk import Attempt, Desk
from tomewise.loops.evidence import measure_texts
from tomewise.loops.last_prompt import DEPTH, Context, Note, Searched, Share, weigh_queries
from tomewise.recall.ranking import drop_repeats, take_turns
from tomewise.run import PART_SKIPPED, REPLY_SKIPPED, record_fallback
from tomewise.types import Event, Evidence, NodeId, Question, Retriever
from tomewise.working.pool import Unit

T = TypeVar("T")
HISTORY = "history"
_KNOWN = 8  # earlier cues take at most one part in so many of what is read, beside the evidence


class Skipped:
    """Collects the errors of calls whose reply a loop can do without, and the parts of replies that it cannot use."""

    def __init__(self) -> None:
        self.last: ModelError | None = None
        self._unreported: list[str] = []

    async def try_call(self, call: Awaitable[T], default: T) -> T:
        """The result of a call of a model; if its reply cannot be used, the error is recorded, and `default` returned.

        Raises ModelUnavailable and BudgetExceeded, since the next call would fail in the same way.
        """
        try:
            return await call
        except (ModelUnavailable, BudgetExceeded):
            raise
        except ModelError as error:
            self.last = error
            record_fallback(REPLY_SKIPPED)
            self._unreported.append(str(error))
            return default

    def drop(self, reason: str) -> None:
        """Record that a part of a reply was not used."""
        record_fallback(PART_SKIPPED)
        self._unreported.append(reason)

    def events(self, step: int) -> Iterator[Event]:
        """An event for each that was not reported yet. They count as reported then."""
        while self._unreported:
            yield make_event("skipped", step, reason=self._unreported.pop(0))


@dataclass(slots=True, kw_only=True)
class LoopState:
    """The state of a loop for one question. `end` says why the loop ends, and is empty while it goes on."""

    question: Question
    """What is asked."""
    step: int = 0
    """The number of the step that runs, from 1; 0 before the first."""
    end: str = ""
    skipped: Skipped = field(default_factory=Skipped)
    """Replies that could not be used."""

    def report_skipped(self) -> Iterator[Event]:
        """An event for each reply, or part of one, that was skipped and not reported yet."""
        return self.skipped.events(self.step)


async def take_steps(
    state: LoopState, take_step: Callable[[], AsyncIterator[Event]], *, most: int, name: str
) -> AsyncIterator[Event]:
    """The events of up to `most` steps, then `stopped` with the reason. `name` is what the reason calls a step.

    What a step skipped is reported before its next event.
    """
    while not state.end:
        if state.step == most:
            state.end = f"no {name} is left (allowed: {most})"
            break
        state.step += 1
        async for event in take_step():
            for skipped in state.report_skipped():
                yield skipped
            yield event
        for skipped in state.report_skipped():
            yield skipped
    yield make_event("stopped", state.step, reason=state.end)


@dataclass(slots=True, eq=False)
class Collection:
    """What searches found: pieces of evidence, each once. Each search adds `limit`; `most` bounds them, None does not.

    `lists` is all that each search found, best first: to a depth at which rankings are fused.
    """

    recall: Retriever
    limit: int
    most: int | None = None
    lists: list[list[Evidence]] = field(default_factory=list)
    searches: list[list[Evidence]] = field(default_factory=list)  # what each search found first
    known: set[NodeId] = field(default_factory=set)

    @property
    def pieces(self) -> list[Evidence]:
        """The best of each search, the latest search first; then the second best of each, and so on.

        So what the last search found is shown even where few pieces fit.
        """
        return list(take_turns(self.searches[::-1]))

    @property
    def is_full(self) -> bool:
        return self.most is not None and len(self.known) >= self.most

    async def search(self, query: str, state: LoopState) -> Event:
        """Add what a search finds until the collection is full. Returns the event, which holds what is new."""
        found = await self.recall.retrieve(query, max(self.limit, DEPTH), within=state.question.within)
        self.lists.append(found)
        new: list[Evidence] = []
        for piece in found[: self.limit]:
            if piece.id not in self.known and not self.is_full:
                self.known.add(piece.id)
                new.append(piece)
        self.searches.append(new)
        return make_event("searched", state.step, query=query, evidence=new, collected=len(self.known))


async def rank_found(
    desk: Desk,
    question: Question,
    found: Sequence[Evidence],
    others: Sequence[Sequence[Evidence]],
    *,
    before: Sequence[Searched] = (),
) -> list[Evidence]:
    """One ranking of what was `found` for the question, by the desk too, and of what `others` found for its parts.

    The searches `before` these count as they are.
    """
    plain = await desk.search_beside(question)
    return await desk.rank([*before, Searched(found), *plain, *weigh_queries(others)], question.within)


class Contexts:
    """Fits what a loop found for a question into the prompts of its roles.

    The answering role has `budget` tokens, fewer if the model has less room; `shares` divide them between layers and
    `HISTORY`. Each of the other roles reads `reading` tokens at most. What is shown of a layer is its best, as far as
    it fits: no piece takes the place of a better one because it is shorter.
    """

    def __init__(
        self, question: Question, desk: Desk, budget: int, shares: Mapping[str, int], reading: int = 0
    ) -> None:
        self._layout = desk.layout
        self._budget = min(budget, desk.measure_answer_room(question))
        self._reading = min(reading, desk.measure_room(ENCODE, sum(desk.count([question.text]))))
        self._shares = shares

    def select_evidence(self, unit: Unit, beside: int = 1) -> tuple[Evidence, ...]:
        """What an encoding call reads of a unit, if it reads so many units: the best, one piece at least."""
        return tuple(self._layout.take_best(unit.evidence, self._reading // beside)) or unit.evidence[:1]

    def fit_cues(self, cues: Sequence[str]) -> list[str]:
        """Cues for a role that is shown nothing else."""
        return self._layout.fit_texts(cues, self._reading)

    def fit_known(self, cues: Sequence[str]) -> list[str]:
        """Earlier cues for the encoding role, which also sees new evidence: the first ones that have room."""
        return self._layout.fit_texts(cues, self._reading // _KNOWN)

    def make_context(
        self, ranked: Sequence[Evidence], notes: Sequence[Note], beside: Mapping[str, Sequence[Evidence]] | None = None
    ) -> Context:
        """What the answering role sees: the best passages of `ranked`, notes, and of layers `beside` their shares."""
        shares = [Share(pieces, self._measure_room(layer)) for layer, pieces in (beside or {}).items()]
        return self._layout.lay_out(ranked, self._budget, notes, shares)

    def show_units(self, units: Sequence[Unit], fused: str) -> Context:
        """What the answering role sees of units and of the fusion of earlier cues, each in its share (appendix B.4).

        The share of a layer is that of its units: of their cues, up to half of it, and of their evidence, the best of
        each unit in turn. What a layer leaves unused stays unused.
        """
        notes = self._layout.fit_texts(list(filter(None, [fused])), self._measure_room(HISTORY))
        evidence, cut = list[Evidence](), 0
        for layer in self._shares:
            of_layer, room = [unit for unit in units if unit.layer == layer], self._measure_room(layer)
            cues = self._layout.fit_texts(list(dict.fromkeys(unit.cue for unit in of_layer if unit.cue)), room // 2)
            found = drop_repeats(take_turns([unit.evidence for unit in of_layer]))
            shown = self._layout.take_best(found, room - sum(measure_texts(cues, self._layout.count)))
            notes += cues
            evidence += shown
            cut += len(found) - len(shown)
        return Context(tuple(evidence), {}, tuple(notes), cut)

    def _measure_room(self, layer: str) -> int:
        return self._budget * self._shares.get(layer, 0) // sum(self._shares.values())


def make_attempt_event(name: str, step: int, context: Context, attempt: Attempt, **more: Any) -> Event:
    """What an attempt to answer was shown, and what came of it; `more` are further fields of the event of this name."""
    return make_event(
        name,
        step,
        answer=attempt.reply.answer,
        choice=attempt.reply.choice,
        failed=not attempt.answer.resolved,
        missing=attempt.reply.missing,
        shown=[piece.id for piece in context.evidence],
        cut=context.cut,
        notes=context.notes,
        **{"kept": "", **more},
    )
