"""The metacognitive loop (ComoRAG, section 2.3 and algorithm 1): probe, recall, encode, fuse, try to answer, update.

Where paper and released code differ, the paper is followed; where the paper leaves something open:

- The prober sees the cues of the previous step (equation 1), not those of the whole pool (algorithm 1, line 22).
- Fused are the cues of the pool as it was before the cycle, so that encoding and fusing run side by side.
- Each probe and layer has the best that it finds, whatever other probes found; a probe that was tried before is not
  tried again. A search that leaves out what is read goes deeper instead; two probes of one step may find the same.
- A unit without evidence needs no call. A cycle without any probe still fuses and tries.
- A reply that stays unusable after its repair is skipped and reported: it gives no probe, no cue, or a failed attempt.
  Only a forced answer whose reply is unusable is an error.
- After the last cycle the question is declined, with what is missing. Where a question asks for a guess, the model is
  made to answer once more, from the whole pool, and that answer is flagged as forced.

What our own loop does in another way is in `workspace.Rules`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from tomewise.calls import NO_CALLS, CallCount, read_calls, sum_calls, write_number
from tomewise.concurrency import gather_calls, gather_pair
from tomewise.errors import UsageError
from tomewise.events import make_event
from tomewise.loops.answer_parts import show_only_full
from tomewise.loops.citing import only_quotes
from tomewise.loops.desk import Attempt, Desk, decline
from tomewise.loops.last_prompt import DEPTH, Context, Note, Searched, weigh_queries
from tomewise.loops.steps import HISTORY, Contexts, LoopState, Skipped, make_attempt_event
from tomewise.loops.workspace import Consolidation, Cue, Rules, SelfProbe
from tomewise.recall.ranking import drop_repeats
from tomewise.recall.several_searches import LayeredRecall
from tomewise.store.records import PASSAGES
from tomewise.types import Answer, Embedder, Event, Evidence, NodeId, Question, Scope
from tomewise.working.pool import Pool, Unit

_GOES_ON = "supported only partly, so the loop goes on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long the loop may go on, and how much it may show.

    `limit` is what each search asks of each layer, `budget` the tokens that the answering role sees, by layer and for
    `history` in `shares`; the other roles read `reading` tokens. `fuse` is the fraction of the pool that is fused.
    Without `cycles` the first attempt is the answer. Raises UsageError where `fuse` is not from 0 to 1.
    """

    cycles: int = 5
    limit: int = 20
    budget: int = 6000
    reading: int = 6000
    shares: Mapping[str, int]
    fuse: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.fuse <= 1:
            raise UsageError(f"fuse is the fraction of the pool that is fused, from 0 to 1, not {self.fuse}")

    @property
    def fused_share(self) -> float:
        """The fraction that is fused: none where what is fused has no share of the context."""
        return self.fuse if self.shares.get(HISTORY) else 0.0


@dataclass(frozen=True, eq=False)
class Probe:
    """Answers from what one search finds, or goes on probing until it can. `embedder` compares cues with questions.

    Without `probing` each cycle searches with the question again, and without `consolidation` nothing is noted (table
    2, "w/o Regulation" and "w/o Metacognition").
    """

    recall: LayeredRecall
    desk: Desk
    embedder: Embedder
    probing: SelfProbe | None
    consolidation: Consolidation | None
    rules: Rules
    bounds: Bounds

    @property
    def calls(self) -> CallCount:
        """The first attempt and its cues; in each cycle probing, cues, their fusion and an attempt; a forced answer."""
        cycles, probes = self.bounds.cycles, self.probing.limit if self.probing else 1
        attempt, search = CallCount("1", 1), read_calls(self.recall)
        if not cycles:
            return sum_calls([attempt, search])
        cue = read_calls(self.consolidation) if self.consolidation else NO_CALLS
        cues = cue.repeat(1 if self.rules.one_cue else len(self.recall.layers))
        probing = read_calls(self.probing) if self.probing else NO_CALLS
        first = _join([attempt, cues, search])
        cycle = _join([probing, cues.repeat(probes), search.repeat(probes), cue, attempt])
        most = sum_calls([first, cycle.repeat(cycles), attempt]).most
        limit = "" if most is None else f", at most {write_number(most)} in {cycles} cycles"
        return CallCount(f"{first.formula} + {cycle.formula} a cycle + 1 for a forced answer{limit}", most)

    def open_memory(self, data: object = None) -> Pool:
        """A new pool, or the one of which `dump` made `data`."""
        return Pool(self.embedder) if data is None else Pool.load(data, self.embedder)

    async def run(self, question: Question, memory: Pool | None = None) -> AsyncIterator[Event | Answer]:
        """Events by cycle, 0 being the first attempt; then the answer.

        `memory` is used and changed. Then the first attempt is shown its cues that are nearest to the question, and
        the evidence from which they were made.
        """
        pool = self.open_memory() if memory is None else memory
        state = await self._begin(question, pool)
        for step in range(self.bounds.cycles + 1):
            state.step = step
            async for event in self._explore(state) if step else _report_recall(state):
                yield event
            if state.end:
                break
            async for event in self._attempt(state):
                yield event
            if state.end or not self.bounds.cycles:
                break
            async for event in self._remember(state):
                yield event
        for event in state.report_skipped():
            yield event
        reason = state.end or f"no cycle is left (allowed: {self.bounds.cycles})"
        if state.partial_answer and state.best is state.partial_answer:
            reason += "; the answer that was kept stands"
        yield make_event("stopped", state.step, reason=reason, pool=_list_rows(state.pool))
        async for output in self._conclude(state):
            yield output

    async def _begin(self, question: Question, pool: Pool) -> _ProbeState:
        """The first search, and what the pool knows of earlier questions."""
        pool.begin_question()
        units = await self._search([question.text], pool, question.within)
        bounds = self.bounds
        return _ProbeState(
            question=question,
            pool=pool,
            contexts=await asyncio.to_thread(
                Contexts, question, self.desk, bounds.budget, bounds.shares, bounds.reading
            ),
            units=units,
            tried=[question.text],
            plain=await self.desk.search_beside(question),
            past=await asyncio.to_thread(pool.find_relevant, question.text, bounds.fused_share, 1),
        )

    async def _explore(self, state: _ProbeState) -> AsyncIterator[Event]:
        """Probe and recall, encode what is new and fuse what is known."""
        probes = await self._find_probes(state)
        yield make_event("probed", state.step, probes=probes)
        state.units = await self._search(probes, state.pool, state.question.within)
        if self.rules.ends_early and not any(unit.evidence for unit in state.units):
            state.end = "no new evidence was found" if probes else "no new probe was thought of"
            return
        state.tried += [probe for probe in probes if probe not in state.tried]
        async for event in _report_recall(state):
            yield event
        state.units, state.notes = await gather_pair(self._encode(state), self._fuse(state))
        for event in _make_consolidation_events(state):
            yield event

    async def _find_probes(self, state: _ProbeState) -> list[str]:
        """What to search for next: what the prober asks for, who reads the cues of the last step, if there are any.

        Without consolidation it reads the best evidence of each search. An empty cue means that nothing was found, and
        no evidence takes its place.
        """
        if self.probing is None:
            return [state.question.text]
        if self.consolidation:
            findings = [unit.cue for unit in state.units if unit.cue]
        else:
            findings = [unit.evidence[0].text for unit in state.units if unit.evidence]
        fitting = await asyncio.to_thread(state.contexts.fit_cues, list(dict.fromkeys(findings)))
        missing = state.missing if self.rules.missing else ""
        call = self.probing.find_probes(state.question.text, state.tried, fitting, missing)
        return await state.skipped.try_call(call, list[str]())

    async def _attempt(self, state: _ProbeState) -> AsyncIterator[Event]:
        """Try to answer; the loop ends if it succeeds."""
        may_decline = self.bounds.cycles > 0 or not state.question.force
        units = state.units if state.step else [*state.units, *state.past]
        context = await self._make_context(state, units, state.notes)
        # Then a first answer that is supported only partly is kept while the loop goes on.
        goes_on = self.bounds.cycles > 0 and self.rules.keeps_partly and state.step == 0
        with show_only_full() if goes_on else nullcontext():
            call = self._try(state.question, context, may_decline=may_decline)
            attempt = await state.attempts.try_call(call, None)
        for event in (*state.report_skipped(), *state.attempts.events(state.step)):
            yield event
        if attempt is None:
            return
        state.answer = attempt.answer
        if goes_on and state.answer.resolved and not state.answer.is_settled:
            state.partial_answer = state.answer
        elif state.answer.resolved:
            state.end = "it was answered"
        reason = _GOES_ON if state.answer is state.partial_answer else ""
        yield make_attempt_event("tried", state.step, context, attempt, kept=reason)

    async def _remember(self, state: _ProbeState) -> AsyncIterator[Event]:
        """Add the units of this step to the pool. Those of the first search are encoded only now, since it failed."""
        if not state.step:
            state.units = await self._encode(state)
            for event in _make_consolidation_events(state):
                yield event
        await asyncio.to_thread(state.pool.add, state.units)
        yield make_event("updated", state.step, units=len(state.pool.units), nodes=state.pool.size)

    async def _conclude(self, state: _ProbeState) -> AsyncIterator[Event | Answer]:
        """The best answer; if no attempt gave one and the question asks for a guess, a call that may not decline."""
        best = state.best
        done = best is not None and best.resolved
        if done or not self.bounds.cycles or not state.question.force:
            if best is None and state.attempts.last:  # nobody is asked once more
                raise state.attempts.last
            yield best or decline()
            return
        context = await self._make_context(state, state.pool.units, "")
        attempt = await self._try(state.question, context, may_decline=False)
        yield make_attempt_event("forced", state.step, context, attempt)
        yield replace(attempt.answer, forced=True)

    async def _search(self, probes: Sequence[str], pool: Pool, within: Scope | None) -> list[Unit]:
        """For each probe and layer a unit with the best evidence (Tri-Retrieve), or the best that is not read yet."""
        limit, unread_only = self.bounds.limit, self.rules.unread_only
        depth = max(DEPTH, limit + pool.size) if unread_only else limit
        found = await self.recall.retrieve(probes, depth, within=within)
        units: list[Unit] = []
        for probe, layers in zip(probes, found, strict=True):
            for layer, ranked in layers.items():
                pool.record(probe, layer, ranked)
                best = pool.find_unseen(ranked, limit) if unread_only else ranked[:limit]
                units.append(Unit(probe, layer, tuple(best), ""))
        return units

    async def _encode(self, state: _ProbeState) -> list[Unit]:
        """The units with the evidence that is read, and their cues. Units that bring nothing new are left out."""
        known = await self._find_cues(state, 1.0, 1, state.contexts.fit_known) if self.rules.known else []
        groups = await asyncio.to_thread(self._read_groups, state)
        if self.consolidation is None:
            return [unit for units in groups for unit in units]
        make_cue = self.consolidation.make_cue
        calls = [make_cue(state.question.text, units, known) for units in groups]
        cues = await gather_calls(state.skipped.try_call(call, Cue()) for call in calls)
        return [
            replace(unit, cue=cue.text, support=cue.support)
            for units, cue in zip(groups, cues, strict=True)
            for unit in units
        ]

    def _read_groups(self, state: _ProbeState) -> list[list[Unit]]:
        """The units that get one cue each: one unit, or all of a probe. Each has the evidence that is read of it."""
        groups: dict[tuple[str, str], list[Unit]] = {}
        for unit in state.units:
            if unit.evidence:
                groups.setdefault((unit.probe, "" if self.rules.one_cue else unit.layer), []).append(unit)
        return [
            [replace(unit, evidence=state.contexts.select_evidence(unit, len(units))) for unit in units]
            for units in groups.values()
        ]

    async def _fuse(self, state: _ProbeState) -> str:
        """What the relevant cues of the pool say together (equation 2)."""
        least = 2 if self.rules.one_cue else 1
        cues = await self._find_cues(state, self.bounds.fused_share, least, state.contexts.fit_cues)
        if len(cues) < least or self.consolidation is None:
            return "".join(cues)
        return await state.skipped.try_call(self.consolidation.fuse_cues(state.question.text, cues), "")

    async def _find_cues(
        self, state: _ProbeState, fraction: float, least: int, fit: Callable[[Sequence[str]], list[str]]
    ) -> list[str]:
        """The cues of the pool that are nearest to the question, as many as `fit` has room for."""
        units = await asyncio.to_thread(state.pool.find_relevant, state.question.text, fraction, least)
        return await asyncio.to_thread(fit, [unit.cue for unit in units]) if units else []

    async def _make_context(self, state: _ProbeState, units: Sequence[Unit], fused: str) -> Context:
        """What an attempt sees of units: these alone (equation 3), or with all that was found so far."""
        if not self.rules.best_so_far:
            return await asyncio.to_thread(state.contexts.show_units, units, fused)
        rankings = {layer: await self._rank(state, layer, units) for layer in self.recall.layers}
        of_passages = {layer for layer, ranked in rankings.items() if any(piece.layer == PASSAGES for piece in ranked)}
        passages = [piece for layer in rankings if layer in of_passages for piece in rankings[layer]]
        beside = {layer: ranked for layer, ranked in rankings.items() if layer not in of_passages}
        cued = await asyncio.to_thread(state.pool.find_nearest, state.question.text, units)
        # A cue that only quotes would say again what is shown; any other says something of its own.
        is_quoted = only_quotes(self.desk.model)
        grounds = [unit.support or [piece.id for piece in unit.evidence] if is_quoted else () for unit in cued]
        notes = [Note(unit.cue, nodes) for unit, nodes in zip(cued, grounds, strict=True)]
        return await asyncio.to_thread(state.contexts.make_context, passages, [Note(fused), *notes], beside)

    async def _rank(self, state: _ProbeState, layer: str, units: Sequence[Unit]) -> list[Evidence]:
        """What all searches of a layer found; for passages, also the plain search and what cues rest on."""
        found = state.pool.list_searches(layer)
        searches = [Searched(found[0]), *weigh_queries(found[1:])] if found else []
        if found and any(piece.layer == PASSAGES for piece in found[0]):
            cued = [unit for unit in (*state.past, *units) if unit.layer == layer]
            grounds = [piece for unit in cued for piece in unit.evidence if piece.id in unit.support]
            searches += [*state.plain, Searched(drop_repeats(grounds))]
        return await self.desk.rank(searches, state.question.within)

    async def _try(self, question: Question, context: Context, *, may_decline: bool) -> Attempt:
        prepared = await self.desk.prepare_context(question, context, may_decline=may_decline)
        return await self.desk.attempt(question, prepared)


@dataclass(slots=True, kw_only=True)
class _ProbeState(LoopState):
    """The state of the loop for one question. `answer` is that of the last attempt with a usable reply.

    `partial_answer` is the first answer if it was supported only partly. `plain` is the desk's own search, `past` the
    units of earlier questions that are nearest to this one.
    """

    pool: Pool
    contexts: Contexts
    units: list[Unit]  # of this step
    tried: list[str]
    plain: list[Searched]
    past: list[Unit]
    notes: str = ""  # what the cues of earlier steps say together
    answer: Answer | None = None
    partial_answer: Answer | None = None
    attempts: Skipped = field(default_factory=Skipped)

    @property
    def missing(self) -> str:
        """What the last attempt lacked."""
        return self.answer.missing if self.answer else ""

    @property
    def best(self) -> Answer | None:
        """The last answer, or the partial one if the last attempt was declined."""
        return self.answer if self.answer and self.answer.resolved else self.partial_answer or self.answer


def _join(counts: Sequence[CallCount]) -> CallCount:
    """The sum, with one number as its formula where there is an upper limit."""
    total = sum_calls(counts)
    return total if total.most is None else CallCount(write_number(total.most), total.most)


async def _report_recall(state: _ProbeState) -> AsyncIterator[Event]:
    for unit in state.units:
        yield make_event("recalled", state.step, probe=unit.probe, layer=unit.layer, evidence=unit.evidence)


def _make_consolidation_events(state: _ProbeState) -> Iterator[Event]:
    layers: dict[tuple[str, str, tuple[NodeId, ...]], list[str]] = {}
    for unit in state.units:
        layers.setdefault((unit.probe, unit.cue, unit.support), []).append(unit.layer)
    for (probe, cue, support), names in layers.items():
        yield make_event("encoded", state.step, probe=probe, layer=", ".join(names), cue=cue, support=support)
    if state.step:
        yield make_event("fused", state.step, cue=state.notes)


def _list_rows(pool: Pool) -> list[dict[str, object]]:
    return [
        {"probe": unit.probe, "layer": unit.layer, "evidence": len(unit.evidence), "cue": unit.cue}
        for unit in pool.units
    ]
