"""What a tome is asked: questions, alone or several at the same time, and searches."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from secrets import token_hex
from shlex import quote
from typing import Any, TypeAlias

from tomewise.concurrency import run_side_by_side
from tomewise.errors import NotBuilt, UsageError
from tomewise.events import make_event, shorten
from tomewise.language.roles import REPHRASE, RephraseIn, RephraseOut, TurnShown
from tomewise.loops.answer_parts import answer_whole
from tomewise.loops.steps import Skipped
from tomewise.meter import Meter
from tomewise.run import continue_run, current_run, open_run
from tomewise.store.contract import Store
from tomewise.systems.answer import OnEvent, answer_question
from tomewise.systems.kit import Kit, System, find_recall
from tomewise.systems.lag import LagFinder
from tomewise.systems.registry import Choice, Variant, choose_variant
from tomewise.tome.fixed_settings import check_embedder
from tomewise.tome.reports import complete_answer, complete_evidence
from tomewise.tome.session_record import Turn
from tomewise.tome.traces import Traces
from tomewise.types import Answer, Event, Evidence, LanguageModel, Question
from tomewise.working.lasting_memory import WorkingMemory

Named: TypeAlias = "tuple[str, Variant | System]"  # a system with its name
Ask: TypeAlias = Callable[[str | Question, OnEvent], Coroutine[Any, Any, Answer]]

# How many questions may wait for their first event at once. So the first model calls begin early, and do not wait until
# all questions have retrieved.
_MOST_STARTING = 4
_TURNS = 3  # the last ones, which the model sees
_SHOWN = 400  # characters of a question and of an answer that it sees
_LONGER = 1_000  # characters that a question may gain
_MOST_KEPT = 16  # assembled systems; a server is asked for any settings


class Questions:
    """Answers questions and searches, with systems that it keeps ready. `default_system` is used where none is named.

    `kit`, `systems` and `traces` are for sessions too.
    """

    def __init__(self, kit: Kit, traces: Traces, default_system: str) -> None:
        self.kit = kit
        self.traces = traces
        self.default_system = default_system
        self.systems = ReadySystems(kit)

    def choose(self, system: Choice | System | None, settings: Mapping[str, Any] | None) -> Named:
        """The name of the system, or of the default, and what to wire. Raises UnknownName, UsageError."""
        choice = self.default_system if system is None else system
        if not isinstance(choice, System):
            variant = choose_variant(choice, settings)
            return variant.label, variant
        if settings:
            names = ", ".join(settings)
            raise UsageError(f"a System is wired already and takes no settings ({names}): pass its recipe")
        return f"{type(choice.loop).__name__} (a System)", choice

    async def answer(
        self,
        question: Question,
        system: Named,
        on_event: OnEvent | None,
        *,
        turns: Sequence[Turn],
        fresh: bool,
    ) -> Answer:
        """The answer; its trace is kept. Its events begin with those of the rephrasing after earlier `turns`."""
        name, choice = system
        with open_run(queue=object(), fresh_mark=token_hex(8) if fresh else "") as used:
            ready = await self.systems.prepare(choice, strict=question.current)
            text, opening = await rephrase(self.kit.model, question.text, turns)
            pass_on(opening, on_event)
            answer = await answer_from_memory(ready, replace(question, text=text), on_event)
            answer = replace(answer, events=(*opening, *answer.events))
            return await self.trace(question, await self.complete(answer, question, name, used))

    async def complete(self, answer: Answer, question: Question, system: str, used: Meter) -> Answer:
        """The answer with what made it, and with what the store knows of it (see `complete_answer`)."""
        answer = await asyncio.to_thread(complete_answer, answer, question, self.kit.store)
        return replace(answer, system=system, model=self.kit.model.name, cost=used.measure_cost())

    async def trace(self, question: Question, answer: Answer) -> Answer:
        """The answer with the number of its trace, which is kept, and with whether all of it could be kept."""
        number = await asyncio.to_thread(self.traces.save, question, answer)
        outcomes = current_run().outcomes
        return replace(answer, trace=number, kept=outcomes is None or not outcomes.is_unkept)

    async def search(self, question: Question, system: Named, limit: int) -> list[Evidence]:
        """The evidence that the retriever of a system finds, best first. Raises NotBuilt, UsageError."""
        name, choice = system
        # Before anybody builds layers for a system that cannot.
        recall = find_recall(name, self.systems.wire(choice).system)
        await self.systems.prepare(choice, strict=question.current)
        with continue_run():
            found = await recall.retriever.retrieve(question.text, limit, within=question.within)
        return list(await asyncio.to_thread(complete_evidence, found, self.kit.store))


def pass_on(events: Iterable[Event], on_event: OnEvent | None) -> None:
    """Let whoever listens hear these events."""
    if on_event:
        for event in events:
            on_event(event)


async def answer_from_memory(
    ready: ReadySystem, question: Question, on_event: OnEvent | None, memory: WorkingMemory | None = None
) -> Answer:
    """The answer of a system, which says how far its memory lagged when the question was asked."""
    lagging = await ready.lag.describe(question)
    answer = await answer_question(ready.system, question, on_event, memory)
    return replace(answer, lagging=answer.lagging or lagging)


async def rephrase(model: LanguageModel, question: str, turns: Sequence[Turn]) -> tuple[str, list[Event]]:
    """The question so that it stands alone, and the events of that. The first question of a session stays as it is.

    An unusable reply is skipped: then the question stays as it is. Raises what every further call would meet as well.
    """
    if not turns:
        return question, []
    shown = [
        TurnShown(question=shorten(turn.question, _SHOWN), answer=shorten(turn.answer, _SHOWN))
        for turn in turns[-_TURNS:]
    ]
    skipped = Skipped()
    asked = model.ask(REPHRASE, RephraseIn(question=question, turns=shown))
    text = (await skipped.try_call(asked, RephraseOut())).question or question
    if len(text) > len(question) + _LONGER:
        skipped.drop(f"a question of {len(text):,} characters in place of one of {len(question):,}")
        text = question
    return text, [*skipped.events(0), make_event("rephrased", asked=question, question=text)]


async def answer_many(
    ask: Ask, questions: Iterable[str | Question], *, return_exceptions: bool
) -> list[Answer | Exception]:
    """Answers in the order of the questions. With `return_exceptions`, an error takes the place of its answer.

    Without it, the first error cancels the other questions and is raised. Raises UsageError for a single question.
    """
    if isinstance(questions, str | Question) or not isinstance(questions, Iterable):
        raise UsageError("several questions are asked as a list: put this one into a list, or call `ask`")
    starting = asyncio.Semaphore(_MOST_STARTING)

    async def ask_in_turn(question: str | Question) -> Answer | Exception:
        await starting.acquire()
        acquired = [starting]

        def release(_: Event | None = None) -> None:
            if acquired:
                acquired.pop().release()

        try:
            with answer_whole():
                return await ask(question, release)
        except Exception as error:
            if return_exceptions:
                return error
            raise
        finally:
            release()

    async with run_side_by_side() as group:
        tasks = [group.create_task(ask_in_turn(question)) for question in questions]
    return [task.result() for task in tasks]


async def stream_answer(ask: Ask, question: str | Question) -> AsyncGenerator[Event | Answer, None]:
    """The events of one question as they happen, then its answer. Closing the generator cancels the question.

    The question runs in its own task: meters and counters belong to the context of one task, and whoever reads a
    generator may go on in another one.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    asking = asyncio.create_task(ask(question, events.put_nowait))
    asking.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield asking.result()
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


# ---------------------------------------------------------------- systems that are ready


@dataclass(frozen=True, slots=True)
class ReadySystem:
    """An assembled system, and what says how far its memory lags."""

    system: System
    lag: LagFinder


class ReadySystems:
    """Keeps the latest assembled systems with their warm indexes, and refuses those whose layers are not built."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._systems: OrderedDict[tuple[object, ...], ReadySystem] = OrderedDict()  # the latest used one last

    def wire(self, choice: Variant | System) -> ReadySystem:
        """The system, whether or not its layers are built. Raises UsageError from the recipe."""
        if isinstance(choice, System):
            return ReadySystem(choice, LagFinder(self._kit, "", choice.layers))
        key = (choice.system, choice.recipe, repr(sorted(choice.settings.items())))
        if key not in self._systems:
            system = choice.wire(self._kit)
            self._systems[key] = ReadySystem(system, LagFinder(self._kit, choice.label, system.layers))
        self._systems.move_to_end(key)
        if len(self._systems) > _MOST_KEPT:
            self._systems.popitem(last=False)
        return self._systems[key]

    async def prepare(self, choice: Variant | System, *, strict: bool) -> ReadySystem:
        """The system, ready to answer. Raises NotBuilt, and UsageError from the recipe.

        Memory that lags is refused with `strict` alone; memory that was never built always.
        """
        store = self._kit.store
        await asyncio.to_thread(check_embedder, store, self._kit.embedder)
        ready = self.wire(choice)
        if not store.holds_documents():
            where = quote(store.address)
            raise NotBuilt(f"{store.address} holds no document yet: add one with `tome add --tome {where} PATH`")
        if ready.system.layers and (lag := await asyncio.to_thread(ready.lag.find_lag, strict=strict)):
            raise NotBuilt(_explain_lag(choice, lag, store, strict=strict))
        return ready


def _explain_lag(choice: Variant | System, lag: Mapping[str, int], store: Store, *, strict: bool) -> str:
    reasons = ", ".join(f"{layer} ({_describe_lag(count)})" for layer, count in lag.items())
    if isinstance(choice, Variant) and choice.recipe is None:
        name = choice.label
        remedy = f"run `tome build --tome {quote(store.address)} --system {quote(name)}`"
    else:
        name = choice.label if isinstance(choice, Variant) else "this System"
        remedy = "call `Tome.build` with its recipe"
    return f"{name} needs layers that are not {'up to date' if strict else 'built'}: {reasons}; {remedy}"


def _describe_lag(count: int) -> str:
    return f"{count:,} to take in" if count else "something was removed"
