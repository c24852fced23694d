"""The metacognitive loop (ComoRAG, section 2.3 and algorithm 1): probe, recall, encode, fuse, try to answer, update.

Where paper and released code differ, the paper is followed; where the paper leaves something open:

- The prober sees the cues of the previous step (equation 1), not those of the whole pool (algorithm 1, line 22).
- Fused are the cues of the pool as it was before the cycle, so that encoding and fusing run side by side.
- Each probe and layer has the best that it finds, whatever other probes found; a probe that was tried before is not
  tried again. A search that leaves out what is read goes deeper instead; two probes of one step may find the same.
- A unit without evidence needs no call. A cycle without any probe still fuses and tries.
- A layer whose best piece is longer than its share borrows up to as much again, of what the shares before it leave.
- A reply that stays unusable after its repair is skipped and reported: it gives no probe, no cue, or a failed attempt.
  Only a forced answer whose reply is unusable is an error.
- After the last cycle the question is declined, with what is missing. Where a question asks for a guess, the model is
  made to answer once more, from the whole pool, and that answer is flagged as forced.

What our own loop does in another way says the field `adds_up` of `Probe`. `OverBuilt` runs it over the
memory that is built.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from tomewise.calls import CallCount, read_calls, sum_calls, write_number
from tomewise.concurrency import gather_calls, gather_pair
from tomewise.errors import ModelError
from tomewise.events import make_event
from tomewise.language.labels import find_labelled
from tomewise.language.roles import ENCODE, FUSE, PROBE, EncodeIn, FuseIn, ProbeIn
from tomewise.loops.answer_parts import hold_back
from tomewise.loops.desk import Attempt, Desk, decline
from tomewise.loops.escalate import Lag, report_choice
from tomewise.loops.evidence import fold, measure_pieces, measure_texts
from tomewise.loops.last_prompt import DEPTH, Context, Note, Searched, Share, weigh_queries
from tomewise.loops.steps import LoopState, make_attempt_event, rank_found, take_steps
from tomewise.recall.ranking import drop_repeats, take_turns
from tomewise.recall.several_searches import LayeredRecall
from tomewise.store.records import PASSAGES
from tomewise.types import Answer, Embedder, Event, Evidence, NodeId, Question, Retriever
from tomewise.working.pool import Pool, Unit

_KNOWN = 8  # earlier cues take at most one part in so many of what is read, beside the evidence
_ALIKE = 2 / 3  # of the passages of a probe, among those of another one
_GOES_ON = "supported only partly, so the loop goes on"


@dataclass(frozen=True, slots=True)
class Part:
    """A search with its share of the context, and how far its memory lags; None if passages suffice."""

    retriever: Retriever
    share: int
    lag: Lag | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Probe:
    """Answers from what one search finds, or goes on probing until it can. `embedder` compares cues with questions.

    A search asks each of the `parts` for `limit` pieces. The answering role sees `budget` tokens, the other roles read
    `reading` tokens. `fuse` is the fraction of the pool that is fused; the fusion has one share of the context beside
    those of the parts. Without `cycles` the first attempt is the answer, without `probes` each cycle searches with the
    question again, and unless it `takes_notes` there are no cues (table 2).

    With `unread_only` a search brings what no earlier step has read, as table 2 has it without regulation; without it,
    the best that it finds (Tri-Retrieve).

    With `adds_up` the loop is ours. An attempt shows the best evidence and the cues of all cycles as one ranking;
    without it the units of its cycle and the fusion of earlier cues (equation 3). One call makes one cue of what all
    layers say to a probe, beside the earlier cues; it needs a new passage, and probes that find the same passages share
    it; without it each probe and layer has its own (Mem-Encode). The prober sees what is missing, a first answer that
    is supported only partly stands only if all later attempts are declined, and the loop ends where a cycle finds
    nothing new, once the cues of the first are shown.
    """

    parts: Mapping[str, Part]
    desk: Desk
    embedder: Embedder
    cycles: int = 5
    probes: int = 3
    limit: int = 20
    budget: int = 6000
    reading: int = 6000
    fuse: float = 0.5
    takes_notes: bool = True
    unread_only: bool = False
    adds_up: bool = False

    @property
    def calls(self) -> CallCount:
        """The first attempt and its cues; in each cycle probing, cues, their fusion and an attempt; a forced answer."""
        call, search = CallCount("1", 1), sum_calls(read_calls(part.retriever) for part in self.parts.values())
        if not self.cycles:
            return sum_calls([call, search])
        cue, probing = call.repeat(self.takes_notes), call.repeat(self.probes > 0)
        read = sum_calls([search, cue.repeat(1 if self.adds_up else len(self.parts))])
        first, cycle = _join([call, read]), _join([probing, read.repeat(self.probes or 1), cue, call])
        most = sum_calls([first, cycle.repeat(self.cycles), call]).most
        limit = "" if most is None else f", at most {write_number(most)} in {self.cycles} cycles"
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
        state = await asyncio.to_thread(self._begin, question, pool)
        async for event in take_steps(state, partial(self._take_step, state), most=self.cycles, name="cycle"):
            yield event
        best = state.best
        if (best and best.resolved) or not self.cycles or not question.force:
            if best is None and state.error:  # nobody is asked once more
                raise state.error
            yield best or decline()
            return
        context = await self._show(replace(state, fused=""), pool.units)
        attempt = await self._ask(question, context, may_decline=False)
        yield make_attempt_event("forced", state.step, context, attempt)
        yield replace(attempt.answer, forced=True)

    def _begin(self, question: Question, pool: Pool) -> _ProbeState:
        pool.begin_question()
        return _ProbeState(
            question=question,
            step=-1,
            pool=pool,
            past=pool.find_relevant(question.text, self.fuse, 1),
            budget=min(self.budget, self.desk.measure_answer_room(question)),
            reading=min(self.reading, self.desk.measure_room(ENCODE, sum(self.desk.count([question.text])))),
        )

    async def _take_step(self, state: _ProbeState) -> AsyncIterator[Event]:
        """Recall, encode what is new and fuse what is known; try to answer; update the pool if that fails.

        The first step has no probe but the question, and encodes only if it fails.
        """
        is_first, probes = not state.step, [state.question.text]
        if not is_first:
            probes = await self._find_probes(state)
            yield make_event("probed", state.step, probes=probes)
        state.units = await self._search(state, probes)
        if self.adds_up and not is_first and not any(map(_list_passages, state.units)):
            state.end = "no new evidence was found" if probes else "no new probe was thought of"
            # The first attempt came before its cues, which may rest on evidence that had no room in it.
            if state.step == 1 and state.budget < state.reading and any(unit.cue for unit in state.written):
                async for event in self._attempt(state):
                    yield event
            return
        state.tried += [probe for probe in probes if probe not in state.tried]
        for unit in state.units:
            yield make_event("recalled", state.step, probe=unit.probe, layer=unit.layer, evidence=unit.evidence)
        if not is_first:
            events, state.fused = await gather_pair(self._encode(state), self._fuse(state))
            for event in (*events, make_event("fused", state.step, cue=state.fused)):
                yield event
        async for event in self._attempt(state):
            yield event
        if state.end or not self.cycles:
            return
        if is_first:
            for event in await self._encode(state):
                yield event
        await asyncio.to_thread(state.pool.add, state.units)
        yield make_event("updated", state.step, units=len(state.pool.units), nodes=len(state.read))

    async def _find_probes(self, state: _ProbeState) -> list[str]:
        """What to search for next (equation 1): what the prober asks for, who reads the cues of the last step.

        Without cues it reads the best evidence of each search. An empty cue means that nothing was found, and no
        evidence takes its place. What was tried before, in whatever spelling, does not come again.
        """
        if not self.probes:
            return [state.question.text]
        findings = [unit.cue if self.takes_notes else unit.evidence[0].text for unit in state.units if unit.evidence]
        cues = list(dict.fromkeys(filter(None, findings)))
        probe_input = ProbeIn(
            question=state.question.text,
            past_probes=state.tried,
            cues=await asyncio.to_thread(self.desk.layout.fit_texts, cues, state.reading),
            missing=state.answer.missing if self.adds_up and state.answer else "",
            limit=self.probes,
        )
        reply = await state.ask(self.desk, PROBE, probe_input)
        known, probes = {"", *map(fold, state.tried)}, dict[str, str]()
        for probe in reply.probes if reply else ():
            if fold(probe) not in known:
                probes.setdefault(fold(probe), probe)
        return list(probes.values())[: self.probes]

    async def _search(self, state: _ProbeState, probes: Sequence[str]) -> list[Unit]:
        """For each probe and layer a unit with the best evidence (Tri-Retrieve), or the best that is not read yet."""
        read = state.read if self.unread_only else frozenset()
        depth = max(DEPTH, self.limit + len(read)) if self.unread_only else self.limit
        recall = LayeredRecall({layer: part.retriever for layer, part in self.parts.items()})
        units: list[Unit] = []
        found = await recall.retrieve(probes, depth, within=state.question.within)
        for probe, layers in zip(probes, found, strict=True):
            for layer, ranked in layers.items():
                state.searches.setdefault(layer, {})[probe] = ranked
                new = [piece for piece in ranked if piece.id not in read]
                units.append(Unit(probe, layer, tuple(new[: self.limit]), ""))
        return units

    async def _encode(self, state: _ProbeState) -> list[Event]:
        """Give the units the evidence that is read, and cues; leave those out that bring nothing new. Reports cues."""
        known = await asyncio.to_thread(self._find_cues, state, float(self.adds_up), 1, state.reading // _KNOWN)
        groups = await asyncio.to_thread(self._group, state)
        groups = await gather_calls(self._make_cue(state, units, known) for units in groups)
        state.units = list(chain.from_iterable(groups))
        state.written[:0] = state.units
        return [
            make_event(
                "encoded",
                state.step,
                probe=units[0].probe,
                layer=", ".join(unit.layer for unit in units),
                cue=units[0].cue,
                support=units[0].support,
            )
            for units in groups
        ]

    def _group(self, state: _ProbeState) -> list[list[Unit]]:
        """The units that get one cue each: one unit, or all of a probe. Each has the evidence that is read of it."""
        by_name: dict[tuple[str, str], list[Unit]] = {}
        for unit in state.units:
            if unit.evidence:
                by_name.setdefault((unit.probe, "" if self.adds_up else unit.layer), []).append(unit)
        groups = _share_calls(by_name.values()) if self.adds_up else list(by_name.values())
        return [read for units in groups if (read := self._cut(state, units))]

    def _cut(self, state: _ProbeState, units: Sequence[Unit]) -> list[Unit]:
        """Each unit with what fits into its share; a best piece that is longer borrows of what is left."""
        layout, left, cut = self.desk.layout, state.reading, list[Unit]()
        for unit in units:
            share = min(left, state.reading // len(units))
            best = layout.pack(unit.evidence, share, stops=True) or layout.pack(unit.evidence[:1], left)
            left -= sum(measure_pieces(best, layout.count))
            if best:
                cut.append(replace(unit, evidence=tuple(best)))
            else:
                state.skipped.drop(f"the best piece for {unit.probe!r} has no room to be read")
        return cut

    async def _make_cue(self, state: _ProbeState, units: list[Unit], known: list[str]) -> list[Unit]:
        """The units with what their evidence adds to the cues that are known (Mem-Encode); empty if it adds nothing."""
        if not self.takes_notes:
            return units
        found = drop_repeats(piece for unit in units for piece in unit.evidence)
        evidence = await asyncio.to_thread(self.desk.put_in_order, found)
        encode_input = EncodeIn(
            question=state.question.text,
            probe=units[0].probe,
            layer=", ".join(unit.layer for unit in units),
            evidence=await asyncio.to_thread(self.desk.show, evidence),
            known=known,
        )
        reply = await state.ask(self.desk, ENCODE, encode_input)
        if reply is None:
            return units
        support = tuple(piece.id for piece in find_labelled(reply.labels, evidence))
        return [replace(unit, cue=reply.cue, support=support) for unit in units]

    async def _fuse(self, state: _ProbeState) -> str:
        """What the relevant cues of the pool say together (Mem-Fuse, equation 2); ours fuses no single cue."""
        least = 1 + self.adds_up
        cues = await asyncio.to_thread(self._find_cues, state, self.fuse, least, state.reading)
        if len(cues) < least:
            return "".join(cues)
        reply = await state.ask(self.desk, FUSE, FuseIn(question=state.question.text, cues=cues))
        return reply.cue if reply else ""

    def _find_cues(self, state: _ProbeState, fraction: float, least: int, room: int) -> list[str]:
        """The cues of the pool that are nearest to the question, as many as have room."""
        units = state.pool.find_relevant(state.question.text, fraction, least)
        return self.desk.layout.fit_texts([unit.cue for unit in units], room)

    async def _attempt(self, state: _ProbeState) -> AsyncIterator[Event]:
        """Try to answer; the loop ends if it succeeds, unless it goes on until it is sure."""
        context = await self._show(state, state.units if state.step else (*state.units, *state.past))
        # Then a first answer that is supported only partly is kept while the loop goes on.
        goes_on = self.adds_up and self.cycles > 0 and not state.step
        may_decline = self.cycles > 0 or not state.question.force
        with hold_back("none", "partly") if goes_on else nullcontext():
            call = self._ask(state.question, context, may_decline=may_decline)
            attempt = await state.skipped.try_call(call, None)
        if attempt is None:
            state.error = state.skipped.last
            return
        state.answer = attempt.answer
        if goes_on and state.answer.resolved and not state.answer.is_settled:
            state.partial_answer = state.answer
        elif state.answer.resolved:
            state.end = "it was answered"
        reason = _GOES_ON if state.answer is state.partial_answer else ""
        yield make_attempt_event("tried", state.step, context, attempt, kept=reason)

    async def _ask(self, question: Question, context: Context, *, may_decline: bool) -> Attempt:
        prepared = await self.desk.prepare_context(question, context, may_decline=may_decline)
        return await self.desk.attempt(question, prepared)

    async def _show(self, state: _ProbeState, units: Sequence[Unit]) -> Context:
        """What an attempt sees: these units and the fusion of earlier cues (equation 3), or the best of all cycles.

        The best is one ranking of all searches, layers beside the passages within their shares, and all cues: those of
        the newest step first, since these discover, where earlier ones say the question again.
        """
        if not self.adds_up:
            return await asyncio.to_thread(self._show_units, state, units)
        units, question = (*state.written, *state.past), state.question
        passages = {piece.id: piece for unit in units for piece in _list_passages(unit)}
        grounds = [passages[node] for unit in units for node in unit.support if node in passages]
        ranked, beside = list[Evidence](), list[Share]()
        for layer, searches in state.searches.items():
            found, *queries = searches.values()
            if any(piece.layer == PASSAGES for piece in chain(found, *queries)):
                ranked += await rank_found(self.desk, question, found, queries, Searched(grounds))
            else:
                derived = await self.desk.rank([Searched(found), *weigh_queries(queries)], question.within)
                beside.append(Share(derived, self._measure_share(state, self.parts[layer].share)))
        notes = [Note(state.fused), *(Note(unit.cue, unit.support) for unit in units)]
        return await asyncio.to_thread(self.desk.layout.lay_out, ranked, state.budget, notes, beside)

    def _show_units(self, state: _ProbeState, units: Sequence[Unit]) -> Context:
        """Units and the fusion of earlier cues, each in its share (appendix B.4).

        The share of a layer is that of its units: of their cues, up to half of it, and of their evidence, the best of
        each unit in turn, up to the first piece that does not fit. The paper does not say what becomes of a share that
        the best piece does not fit: here it may borrow as much again of what other shares leave, the largest share at
        last.
        """
        layout, share = self.desk.layout, self._measure_share(state, 1)
        notes = layout.fit_texts(list(filter(None, [state.fused])), share)
        left, cut = share - sum(measure_texts(notes, layout.count)), 0
        shown: dict[str, list[Evidence]] = {}
        for layer, part in sorted(self.parts.items(), key=lambda item: item[1].share):
            own, share = [unit for unit in units if unit.layer == layer], self._measure_share(state, part.share)
            cues = list(dict.fromkeys(unit.cue for unit in own if unit.cue))
            texts = layout.fit_texts(cues, share // 2)
            room = share - sum(measure_texts(texts, layout.count))
            found = drop_repeats(take_turns([unit.evidence for unit in own]))
            shown[layer] = layout.pack(found, room, stops=True) or layout.pack(found[:1], room + min(share, left))
            left += room - sum(measure_pieces(shown[layer], layout.count))
            notes += texts
            cut += len(found) - len(shown[layer]) + len(cues) - len(texts)
        return Context(tuple(chain.from_iterable(shown[layer] for layer in self.parts)), {}, tuple(notes), cut)

    def _measure_share(self, state: _ProbeState, share: int) -> int:
        return state.budget * share // (1 + sum(part.share for part in self.parts.values()))


@dataclass(slots=True, kw_only=True)
class _ProbeState(LoopState):
    """The state of the loop for one question. `answer` is that of the last attempt with a usable reply.

    `partial_answer` is the first answer if it was supported only partly, `error` that of the last attempt without a
    usable reply. `past` are the units of earlier questions that are nearest to this one. What roles are shown has at
    most `budget` and `reading` tokens.
    """

    pool: Pool
    past: list[Unit]
    budget: int
    reading: int
    units: list[Unit] = field(default_factory=list)  # of this step
    written: list[Unit] = field(default_factory=list)  # of all steps, those of the newest first
    fused: str = ""  # what the cues of earlier steps say together
    tried: list[str] = field(default_factory=list)
    searches: dict[str, dict[str, list[Evidence]]] = field(default_factory=dict)  # by layer, by probe
    answer: Answer | None = None
    partial_answer: Answer | None = None
    error: ModelError | None = None

    @property
    def read(self) -> frozenset[NodeId]:
        """What was read for this question."""
        return frozenset(piece.id for unit in self.written for piece in unit.evidence)

    @property
    def best(self) -> Answer | None:
        """The last answer, or the partial one if the last attempt was declined."""
        return self.answer if self.answer and self.answer.resolved else self.partial_answer or self.answer


def _list_passages(unit: Unit) -> list[Evidence]:
    return [piece for piece in unit.evidence if piece.layer == PASSAGES]


def _share_calls(groups: Iterable[list[Unit]]) -> list[list[Unit]]:
    """The units of probes that bring a passage; those that find nearly the same passages as one probe."""
    made: list[tuple[set[NodeId], list[Unit]]] = []
    for units in groups:
        nodes = {piece.id for unit in units for piece in _list_passages(unit)}
        if not nodes:
            continue
        for others, twin in made:
            if len(nodes & others) >= _ALIKE * min(len(nodes), len(others)):
                others |= nodes
                twin += units
                break
        else:
            made.append((nodes, units))
    return [_join_probes(units) for _, units in made]


def _join_probes(units: Sequence[Unit]) -> list[Unit]:
    """One unit a layer, with the best of each in turn."""
    probe = "; ".join(dict.fromkeys(unit.probe for unit in units))
    by_layer: dict[str, list[Sequence[Evidence]]] = {}
    for unit in units:
        by_layer.setdefault(unit.layer, []).append(unit.evidence)
    return [Unit(probe, layer, tuple(drop_repeats(take_turns(found))), "") for layer, found in by_layer.items()]


def _join(counts: Sequence[CallCount]) -> CallCount:
    """The sum, with one number as its formula where there is an upper limit."""
    total = sum_calls(counts)
    return total if total.most is None else CallCount(write_number(total.most), total.most)


@dataclass(frozen=True, eq=False)
class OverBuilt:
    """Runs the first of `loops` whose first part is built, over those of its parts that are. Ours.

    The first loop has all parts that may be built, the last one begins with a part that needs no build. The event
    `chosen` says which parts they are. `build` is the system whose build makes all of them.
    """

    loops: Sequence[Probe]
    build: str

    @property
    def calls(self) -> CallCount:
        """Those of the loop over all that may be built."""
        return self.loops[0].calls

    def open_memory(self, data: object = None) -> Pool:
        """A new pool, or the one of which `dump` made `data`."""
        return self.loops[0].open_memory(data)

    async def run(self, question: Question, memory: Pool | None = None) -> AsyncIterator[Event | Answer]:
        """`chosen`, then the events of the loop and its answer, see `Probe.run`."""
        lags = await asyncio.to_thread(self._find_lags, question)
        loop = next(each for each in self.loops if next(iter(each.parts)) not in lags)
        parts = {name: part for name, part in loop.parts.items() if name not in lags}
        built = [part.lag for part in parts.values() if part.lag]
        reason = "this memory is built" if built else "no other memory is built"
        yield report_choice(", ".join(parts), reason, lags, [self.build] if lags else [])
        lagging = next(filter(None, [await lag.describe(question) for lag in built]), None)
        async for item in replace(loop, parts=parts).run(question, memory):
            yield replace(item, lagging=lagging) if isinstance(item, Answer) else item

    def _find_lags(self, question: Question) -> dict[str, str]:
        """The parts that are not built, or not up to date where the question asks for that, with what they need."""
        parts = self.loops[0].parts.items()
        lags = {name: part.lag.find_lag(current=question.current) for name, part in parts if part.lag}
        return {name: f"needs {', '.join(lag)}" for name, lag in lags.items() if lag}
