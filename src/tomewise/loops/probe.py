"""The metacognitive loop (ComoRAG, section 2.3 and algorithm 1): probe, recall, encode, fuse, try to answer, update.

Where paper and released code differ, the paper is followed; where the paper leaves something open:

- The prober sees the cues of the previous step (equation 1), not those of the whole pool (algorithm 1, line 22).
- Fused are the cues of the pool as it was before the cycle, so that encoding and fusing run side by side. Evidence of
  the pool takes what room the new evidence (equation 3) leaves.
- A cue takes room in the share of its layer, at most half of it; the fused cue has the share called history.
- Seen is what was read: evidence that had no room in its layer's share stays for later searches to find.
- A reply that stays unusable after its repair is skipped and told: no probe, no cue, or an attempt that failed. Only
  the forced answer must be one.
- After the last cycle the model is made to answer once more, from the whole pool: first what most searches found and
  ranked high. The answer is flagged as forced.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

from tomewise.errors import BudgetExceeded, ModelError, ModelUnavailable, UsageError
from tomewise.language.roles import ANSWER, ENCODE, FUSE, PROBE, AnswerOut, EncodeIn, FuseIn, ProbeIn
from tomewise.loops.citing import Citer
from tomewise.loops.context import HISTORY, Context, Contexts
from tomewise.loops.once import answer_from, answering, told
from tomewise.loops.showing import Count, Shelf, shown
from tomewise.recall.trilayer import Found, LayeredRecall
from tomewise.together import each, together
from tomewise.types import Answer, Event, Evidence, LanguageModel, NodeId, Question
from tomewise.working.pool import Pool, Unit

T = TypeVar("T")


class Probing(Protocol):
    """Says what to search for next."""

    async def probes(self, question: str, tried: Sequence[str], cues: Sequence[str]) -> list[str]: ...


class SelfProbe:
    """Asks the model for new probes; what was tried before, in whatever spelling, is not new."""

    def __init__(self, model: LanguageModel, *, limit: int = 3) -> None:
        if limit < 1:
            raise UsageError(f"{limit} probes a cycle find nothing: give 1 or more, or 0 cycles")
        self._model = model
        self._limit = limit

    async def probes(self, question: str, tried: Sequence[str], cues: Sequence[str]) -> list[str]:
        """At most `limit` probes, none when the model has no new one."""
        given = ProbeIn(
            question=question, past_probes=list(tried), cues=[cue for cue in cues if cue], limit=self._limit
        )
        reply = await self._model.ask(PROBE, given)
        known = {"", *(_folded(probe) for probe in tried)}
        fresh: dict[str, str] = {}
        for probe in reply.probes:
            if _folded(probe) not in known:
                fresh.setdefault(_folded(probe), probe)
        return list(fresh.values())[: self._limit]


class SameQuestion:
    """Searches with the question itself again, deeper each time (table 2, without regulation)."""

    async def probes(self, question: str, tried: Sequence[str], cues: Sequence[str]) -> list[str]:
        """The question."""
        return [question]


class Consolidating(Protocol):
    """Turns evidence into cues, and cues into one."""

    async def cue(self, question: str, probe: str, layer: str, evidence: Sequence[Evidence]) -> str: ...

    async def fused(self, question: str, cues: Sequence[str]) -> str: ...


class Consolidation:
    """Asks the model for both (Mem-Encode and Mem-Fuse)."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    async def cue(self, question: str, probe: str, layer: str, evidence: Sequence[Evidence]) -> str:
        """What the evidence of one search contributes to the question; empty when nothing."""
        given = EncodeIn(question=question, probe=probe, layer=layer, evidence=shown(evidence))
        return (await self._model.ask(ENCODE, given)).cue

    async def fused(self, question: str, cues: Sequence[str]) -> str:
        """What cues of earlier searches say together; empty when there are none."""
        return (await self._model.ask(FUSE, FuseIn(question=question, cues=list(cues)))).cue if cues else ""


class NoConsolidation:
    """Leaves evidence as it is (table 2, without metacognition)."""

    async def cue(self, question: str, probe: str, layer: str, evidence: Sequence[Evidence]) -> str:
        """Nothing: the next probe reads the evidence itself."""
        return ""

    async def fused(self, question: str, cues: Sequence[str]) -> str:
        """Nothing."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long the loop may go on, and how much it may show.

    `limit` is what each search asks of each layer, `budget` in tokens, `shares` by layer and for `history`, `fuse` the
    fraction of the pool that is fused. Without `cycles` the first attempt is the answer, which may be declined where
    exhaustion means failure. Raises UsageError for a fraction that is none.
    """

    cycles: int = 5
    limit: int = 20
    budget: int = 6000
    shares: Mapping[str, int]
    fuse: float = 0.5
    on_exhaustion: Literal["force", "fail"] = "force"

    def __post_init__(self) -> None:
        if not 0 <= self.fuse <= 1:
            raise UsageError(f"fuse is the fraction of the pool that is fused, from 0 to 1, not {self.fuse}")

    @property
    def fused(self) -> float:
        """The fraction that is fused: none where what is fused has no share of the context."""
        return self.fuse if self.shares.get(HISTORY) else 0.0


class Probe:
    """Answers from what one search finds, or goes on probing until it can."""

    def __init__(
        self,
        recall: LayeredRecall,
        model: LanguageModel,
        probing: Probing,
        consolidating: Consolidating,
        pool: Callable[[], Pool],
        citer: Citer,
        shelf: Shelf,
        count: Count,
        bounds: Bounds,
    ) -> None:
        self._recall = recall
        self._model = model
        self._probing = probing
        self._consolidating = consolidating
        self._new_pool = pool
        self._citer = citer
        self._shelf = shelf
        self._count = count
        self._bounds = bounds

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Events by cycle, 0 being the first attempt; then the answer."""
        pool, contexts = self._new_pool(), self._contexts(question)
        skipped, attempts = _Skipped(), _Skipped()
        tried, notes = [question.text], ""
        units = await self._search(tried, pool)
        reason = f"no cycle is left (allowed: {self._bounds.cycles})"
        answered = False  # whether any attempt had a reply that could be used
        for step in range(self._bounds.cycles + 1):
            if step:
                cues = await asyncio.to_thread(contexts.cues, _last_words(units))
                probes = await skipped.usable(self._probing.probes(question.text, tried, cues), list[str]())
                yield Event(name="probed", step=step, detail={"probes": probes})
                units = await self._search(probes, pool)
                if not any(unit.evidence for unit in units):
                    reason = "no new evidence was found" if probes else "no new probe was thought of"
                    break
                tried += [probe for probe in probes if probe not in tried]
            for unit in units:
                yield Event(name="recalled", step=step, detail=_recalled(unit))
            if step:
                units, notes = await together(  # encode what is new, fuse what is known
                    self._cued(question.text, units, contexts, skipped),
                    self._fused(question.text, pool, contexts, skipped),
                )
                for event in _consolidation_events(step, units, notes):
                    yield event
            context = await asyncio.to_thread(contexts.context, units, notes, pool)
            trying = attempts.usable(self._try(question, context, may_decline=self._may_decline), None)
            reply, _ = await together(trying, asyncio.to_thread(pool.prepare, units))
            for event in (*skipped.events(step), *attempts.events(step)):
                yield event
            if reply is not None:
                answered = True
                yield Event(name="tried", step=step, detail=_tried(context, reply))
                answer = await asyncio.to_thread(answer_from, reply, question, context.evidence, self._citer)
                if answer.resolved or not self._bounds.cycles:
                    reason = "it was answered" if answer.resolved else reason
                    yield Event(name="stopped", step=step, detail={"reason": reason, "pool": _pool_lines(pool)})
                    yield answer
                    return
            if not self._bounds.cycles:
                break
            if not step:  # the first search is encoded only now that it did not suffice
                units = await self._cued(question.text, units, contexts, skipped)
                for event in _consolidation_events(step, units, ""):
                    yield event
            await asyncio.to_thread(pool.take, units)
            yield Event(name="updated", step=step, detail={"units": len(pool.units), "nodes": pool.size})
        for event in skipped.events(step):
            yield event
        yield Event(name="stopped", step=step, detail={"reason": reason, "pool": _pool_lines(pool)})
        must = self._bounds.on_exhaustion == "fail" or not self._bounds.cycles  # nobody is asked once more
        if must and attempts.last and not answered:
            raise attempts.last
        async for last in self._exhausted(question, step, pool, contexts):
            yield last

    async def _search(self, probes: Sequence[str], pool: Pool) -> list[Unit]:
        """One unit a probe and layer, holding the evidence that nobody has seen."""
        found: list[Found] = await self._recall.retrieve(probes, self._bounds.limit + pool.size)
        for some in found:
            for ranked in some.values():
                pool.credit(ranked)
        also: set[NodeId] = set()
        return [
            Unit(probe, layer, tuple(pool.unseen(some[layer], self._bounds.limit, also)), "")
            for probe, some in zip(probes, found, strict=True)
            for layer in self._recall.layers
        ]

    async def _cued(self, question: str, units: Sequence[Unit], contexts: Contexts, skipped: _Skipped) -> list[Unit]:
        """The units as they were read, with their cues; units without evidence need none."""
        read = await asyncio.to_thread(_read, units, contexts)
        asked = [self._consolidating.cue(question, unit.probe, unit.layer, shown) for unit, shown in read]
        cues = await each(skipped.usable(one, "") for one in asked)
        return [replace(unit, cue=cue) for (unit, _), cue in zip(read, cues, strict=True)]

    async def _fused(self, question: str, pool: Pool, contexts: Contexts, skipped: _Skipped) -> str:
        """What the relevant cues of the pool say together."""
        relevant = await asyncio.to_thread(pool.relevant, question, self._bounds.fused)
        cues = await asyncio.to_thread(contexts.cues, [unit.cue for unit in relevant])
        return await skipped.usable(self._consolidating.fused(question, cues), "")

    @property
    def _may_decline(self) -> bool:
        return self._bounds.cycles > 0 or self._bounds.on_exhaustion == "fail"

    async def _try(self, question: Question, context: Context, *, may_decline: bool) -> AnswerOut:
        given = answering(question, context.evidence, notes=context.notes, may_decline=may_decline)
        return await self._model.ask(ANSWER, given)

    async def _exhausted(
        self, question: Question, step: int, pool: Pool, contexts: Contexts
    ) -> AsyncIterator[Event | Answer]:
        if self._bounds.on_exhaustion == "fail":
            yield Answer(text="", resolved=False)
            return
        nearest_first = await asyncio.to_thread(pool.relevant, question.text, 1.0)
        context = await asyncio.to_thread(contexts.whole, nearest_first, pool)
        reply = await self._try(question, context, may_decline=False)
        yield Event(name="forced", step=step, detail=_tried(context, reply))
        answer = await asyncio.to_thread(answer_from, reply, question, context.evidence, self._citer)
        yield replace(answer, forced=True)

    def _contexts(self, question: Question) -> Contexts:
        """As much as is wanted and the model has room for beside the question, which some roles are given twice.

        A third is left for the prompts and the model's own way to count.
        """
        asked = self._model.reckon(ANSWER, answering(question, [])) + sum(self._count([question.text]))
        room = max(0, self._model.window - ANSWER.output_tokens - asked) * 2 // 3
        return Contexts(self._shelf, self._count, min(self._bounds.budget, room), self._bounds.shares)


class _Skipped:
    """Replies of one question that could not be used, although every other may be."""

    def __init__(self) -> None:
        self.last: ModelError | None = None
        self._untold: list[ModelError] = []

    async def usable(self, asked: Awaitable[T], otherwise: T) -> T:
        """What a model says, else `otherwise`. Raises what every further call would meet as well."""
        try:
            return await asked
        except (ModelUnavailable, BudgetExceeded):
            raise
        except ModelError as error:
            self.last = error
            self._untold.append(error)
            return otherwise

    def events(self, step: int) -> Iterator[Event]:
        """One for each that was not told yet."""
        while self._untold:
            yield Event(name="skipped", step=step, detail={"reason": str(self._untold.pop(0))})


def _read(units: Sequence[Unit], contexts: Contexts) -> list[tuple[Unit, list[Evidence]]]:
    """Each unit that has evidence, cut to what fits, and that evidence in the order in which it is shown."""
    cut = [replace(unit, evidence=contexts.read(unit)) for unit in units if unit.evidence]
    return [(unit, contexts.in_order(unit.evidence)) for unit in cut]


def _last_words(units: Sequence[Unit]) -> list[str]:
    """What the prober reads of the previous step: its cues, and the best evidence of each unit that has none.

    The extractive model's probes then find 90 instead of 84 % of what supports the odd-numbered MuSiQue questions.
    """
    return [unit.cue or unit.evidence[0].text for unit in units if unit.cue or unit.evidence]


def _folded(probe: str) -> str:
    return " ".join(probe.casefold().split()).strip(" ?.!\"'")


def _recalled(unit: Unit) -> dict[str, object]:
    return {"probe": unit.probe, "layer": unit.layer, "evidence": told(unit.evidence)}


def _consolidation_events(step: int, units: Sequence[Unit], notes: str) -> Iterator[Event]:
    for unit in units:
        yield Event(name="encoded", step=step, detail={"probe": unit.probe, "layer": unit.layer, "cue": unit.cue})
    if step:
        yield Event(name="fused", step=step, detail={"cue": notes})


def _tried(context: Context, reply: AnswerOut) -> dict[str, object]:
    return {
        "answer": reply.answer,
        "choice": reply.choice,
        "failed": reply.failed,
        "shown": [piece.node for piece in context.evidence],
        "cut": context.cut,
        "notes": list(context.notes),
    }


def _pool_lines(pool: Pool) -> list[dict[str, object]]:
    return [
        {"probe": unit.probe, "layer": unit.layer, "evidence": len(unit.evidence), "cue": unit.cue}
        for unit in pool.units
    ]
