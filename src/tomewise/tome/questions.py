"""What a tome is asked: questions and searches. `Questions.answer` is the way of a question, from end to end."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from secrets import token_hex
from shlex import quote
from typing import Any, TypeAlias, TypeVar

from tomewise.concurrency import run_side_by_side
from tomewise.errors import NotBuilt, UsageError
from tomewise.events import make_event, shorten
from tomewise.language.roles import REPHRASE, RephraseIn, RephraseOut, TurnShown
from tomewise.loops.answer_parts import answer_whole
from tomewise.loops.evidence import EXTRACTS
from tomewise.loops.statements import keep_proved
from tomewise.loops.steps import Skipped
from tomewise.run import REPLY_SKIPPED, open_run
from tomewise.settings import Settings
from tomewise.store.contract import Store
from tomewise.store.lookups import find_keys, read_places
from tomewise.store.records import PASSAGES
from tomewise.systems.answer import OnEvent, advise_on_room, run_loop
from tomewise.systems.efforts import Effort, choose_by_effort
from tomewise.systems.kit import Kit, System, find_recall
from tomewise.systems.lag import LagFinder
from tomewise.systems.pricing import fit_context, price_question
from tomewise.systems.registry import DEFAULT, Choice, Variant, choose_variant
from tomewise.tome.arguments import check_type
from tomewise.tome.computing import let_compute
from tomewise.tome.fixed_settings import check_embedder
from tomewise.tome.holdings import list_unread
from tomewise.tome.reports import Price
from tomewise.tome.scopes import check_documents, check_scope
from tomewise.tome.session_memory import Continuation
from tomewise.tome.session_record import Turn
from tomewise.tome.traces import Traces
from tomewise.tome.verifying import verify_text
from tomewise.types import Answer, Event, Evidence, LanguageModel, Passage, PassageId, Question, Source
from tomewise.types.proof import is_verified, list_lag

T = TypeVar("T")
Ask: TypeAlias = Callable[..., Coroutine[Any, Any, Answer]]  # of a question, and by keyword of `on_event`

# How many questions may wait for their first event at once. So the first model calls begin early, and do not wait until
# all questions have retrieved.
_MOST_STARTING = 4
_TURNS = 3  # the last ones, which the model sees
_SHOWN = 400  # characters of a question and of an answer that it sees
_LONGER = 1_000  # characters that a question may gain
_MOST_NEAREST = 3  # passages that are shown when a question is declined
_READ = (PASSAGES, EXTRACTS)  # the layers of evidence that are words of passages
_MOST_KEPT = 16  # assembled systems; a server is asked for any settings


@dataclass(frozen=True, slots=True)
class ReadySystem:
    """An assembled system with its name. `variant` is what it was wired from, `lag` says how far its memory lags.

    `opening` says what was changed in it for the model.
    """

    name: str
    system: System
    variant: Variant | None
    lag: LagFinder | None
    opening: Sequence[Event] = ()


class Questions:
    """Answers questions and searches. It keeps the latest assembled systems, with their warm indexes.

    The settings name the system that is used where a question names none.
    """

    def __init__(self, kit: Kit, traces: Traces, settings: Settings) -> None:
        self._kit = kit
        self._traces = traces
        self._settings = settings
        self._systems: OrderedDict[tuple[object, ...], ReadySystem] = OrderedDict()  # the latest used one last

    async def answer(
        self,
        question: Question,
        system: Choice | System | None,
        on_event: OnEvent | None,
        *,
        fresh: bool = False,
        turns: Sequence[Turn] = (),
        session: Continuation | None = None,
    ) -> Answer:
        """The way of a question, from `arguments.make_question` to its trace, which is kept. See `Tome.ask`.

        With `session`, its working memory is used and changed, and its turns count.
        """
        check_type("fresh", fresh, bool, "True or False")
        if on_event is not None and not callable(on_event):
            raise UsageError(f"on_event must be a function of an event, not {on_event!r:.200}")
        model, store = self._kit.model, self._kit.store
        with open_run(queue=object(), fresh_mark=token_hex(8) if fresh else "") as used:
            ready = await self.prepare(question, system)
            memory = await asyncio.to_thread(session.open_memory, ready.system.loop) if session else None

            # The question so that it stands alone. Its trace keeps it as it was asked.
            text, opening = question.text, [*ready.opening, *([session.resumed] if session else [])]
            if earlier := session.record.turns if session else turns:
                text, rephrased = await rephrase(model, text, earlier)
                opening += rephrased
            pass_on(opening, on_event)
            alone = replace(question, text=text)

            lagging = await ready.lag.describe(alone) if ready.lag else None
            with answer_whole() if question.only_supported else nullcontext():  # a draft shows what leaves
                answer = await run_loop(ready.system, alone, used, on_event, memory)
            answer = keep_proved(answer) if question.only_supported and answer.resolved else answer
            answer = replace(answer, events=(*opening, *answer.events), lagging=answer.lagging or lagging)
            if session:
                answer = await asyncio.to_thread(session.add_turn, question.text, text, answer)
                pass_on(answer.events[-1:], on_event)

            answer = await asyncio.to_thread(complete_answer, answer, question, store, used.fallbacks[REPLY_SKIPPED])
            if answer.coverage.dropped and ready.variant:
                mend = await asyncio.to_thread(advise_on_room, ready.variant, model, answer)
                answer = replace(answer, coverage=replace(answer.coverage, mend=mend))
            answer = replace(answer, system=ready.name, model=model.name, cost=used.measure_cost())
            if session:
                await asyncio.to_thread(session.save)
            number = await asyncio.to_thread(self._traces.save, question, answer)
            return replace(answer, trace=number, kept=not used.is_unkept)

    async def choose(self, system: T, effort: Effort | None, *, current: bool, begun: str = "") -> T | str:
        """See `choose_by_effort`."""
        return await asyncio.to_thread(choose_by_effort, system, effort, self._kit, current=current, begun=begun)

    async def price(self, question: Question, system: Choice | System | None) -> Price:
        """What a question would use. Raises what `prepare` raises, and UsageError for a `System`."""
        ready, kit = await self.prepare(question, system), self._kit
        if ready.variant is None:
            raise UsageError(f"{ready.name} cannot be priced: make it with a recipe, which takes the kit")
        cost, bound = await price_question(ready.variant.wire, kit, question)
        return Price(system=ready.name, model=kit.model.name, total=cost, bound=bound)

    async def search(self, question: Question, system: Choice | System | None, limit: int) -> list[Evidence]:
        """The evidence that the retriever of a system finds, best first. Raises NotBuilt, UsageError."""
        # Before anybody builds layers for a system that cannot.
        ready = self.wire(system)
        recall = find_recall(ready.name, ready.system)
        await self.prepare(question, system)
        with open_run():
            found = await recall.retriever.retrieve(question.text, limit, within=question.within)
        return list(await asyncio.to_thread(complete_evidence, found, self._kit.store))

    async def verify(self, text: Question, *, judge: bool) -> Answer:
        """See `Tome.verify`; the text of the question is the text."""
        ready = await self.prepare(text, DEFAULT)
        retriever = find_recall(ready.name, ready.system).retriever
        with open_run() as used:
            proved = await verify_text(text.text, retriever, self._kit.desk, text.within, judge=judge)
            answer = keep_proved(proved) if text.only_supported else proved
            if not answer.resolved:  # all of it is withheld
                answer = replace(answer, resolved=True, missing=proved.missing)
            answer = await asyncio.to_thread(complete_answer, answer, text, self._kit.store, 0)
            return replace(answer, cost=used.measure_cost())

    def wire(self, system: Choice | System | None) -> ReadySystem:
        """The system, or the default one, whether or not its layers are built. Raises UnknownName, UsageError."""
        if isinstance(system, System):
            lag = LagFinder(self._kit, "", system.layers) if system.layers else None
            return ReadySystem(f"{type(system.loop).__name__} (a System)", system, None, lag)
        variant = choose_variant(self._settings.system if system is None else system)
        name = variant.label
        variant, opening = fit_context(variant, self._kit.model)
        key = (name, variant.system, variant.recipe, repr(sorted(variant.settings.items())))
        if key not in self._systems:
            wired = let_compute(variant.wire(self._kit), self._kit)
            lag = LagFinder(self._kit, name, wired.layers) if wired.layers else None
            self._systems[key] = ReadySystem(name, wired, variant, lag, opening)
        self._systems.move_to_end(key)
        if len(self._systems) > _MOST_KEPT:
            self._systems.popitem(last=False)
        return self._systems[key]

    async def prepare(self, question: Question, system: Choice | System | None) -> ReadySystem:
        """The system, ready to answer the question. Raises what `ask` raises before any call.

        That is UnknownName, UsageError for a scope without a passage and from a recipe, and NotBuilt: memory that lags
        is refused for a question with `current` alone, memory that was never built always.
        """
        store = self._kit.store
        if question.within:
            await asyncio.to_thread(check_scope, question.within, store)
        await asyncio.to_thread(check_embedder, store, self._kit.embedder)
        ready = self.wire(system)
        check_documents(store)
        current = question.current
        if ready.lag and (lag := await asyncio.to_thread(ready.lag.find_lag, current=current)):
            raise NotBuilt(_explain_lag(ready, lag, store, current=current))
        return ready


def pass_on(events: Iterable[Event], on_event: OnEvent | None) -> None:
    """Let whoever listens hear these events."""
    if on_event:
        for event in events:
            on_event(event)


async def rephrase(model: LanguageModel, question: str, turns: Sequence[Turn]) -> tuple[str, list[Event]]:
    """The question after these turns so that it stands alone, and the events of that.

    An unusable reply is skipped: then the question stays as it is. Raises what every further call would meet as well.
    """
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


def complete_evidence(found: Sequence[Evidence], store: Store) -> tuple[Evidence, ...]:
    """The same evidence with its kind, the documents that each piece rests on, and the metadata of the only one."""
    places = read_places(store, {source for piece in found for source in piece.sources})
    origins = [
        tuple(
            Source(document=places[source][0], passage=source, position=places[source][1])
            for source in piece.sources
            if source in places  # a passage may have been removed since
        )
        for piece in found
    ]
    documents = [{source.document for source in group} for group in origins]
    records = store.documents({document for group in documents if len(group) == 1 for document in group})
    metadata = {record.id: record.metadata for record in records}
    return tuple(
        replace(
            piece,
            kind=piece.kind or ("passage" if piece.layer == PASSAGES else piece.layer),
            origins=group,
            metadata=metadata.get(group[0].document, {}) if len(names) == 1 else {},
        )
        for piece, group, names in zip(found, origins, documents, strict=True)
    )


def complete_answer(answer: Answer, question: Question, store: Store, failed: int) -> Answer:
    """The answer with its scope and coverage, what its evidence rests on, and, if declined, the nearest passages.

    `failed` counts the steps whose replies could not be used. What only the whole text proves is inferred from a part.
    """
    within = answer.within or question.within
    keys = store.keys_within(within)
    answer = replace(
        answer,
        evidence=complete_evidence(answer.evidence, store),
        coverage=replace(
            answer.coverage,
            passages=store.count_passages() if keys is None else len(keys),
            read=answer.coverage.read or len(list_shown(answer)),  # who reads more than the evidence has counted it
            unread=(
                *answer.coverage.unread,
                *list_unread(store, question.within, failed),
                *list_lag(answer.lagging),
            ),
            compares=is_verified(answer),
        ),
        within=within,
        nearest=() if answer.resolved else _find_nearest(answer, store),
    )
    if not answer.asks_for_all or answer.coverage.all_read:
        return answer
    weaker = (replace(each, support="inferred") if each.support == "quoted" else each for each in answer.statements)
    return replace(answer, statements=tuple(weaker))


def list_shown(answer: Answer) -> set[PassageId]:
    """The passages whose words the answering call was shown."""
    return {source for piece in answer.evidence if piece.layer in _READ for source in piece.sources}


def _find_nearest(answer: Answer, store: Store) -> tuple[Passage, ...]:
    """The best passages of the evidence."""
    ranked = sorted(answer.evidence, key=lambda piece: (piece.id not in piece.sources, -piece.score))
    sources = list(dict.fromkeys(source for piece in ranked for source in piece.sources))[:_MOST_NEAREST]
    keys = find_keys(store, sources)
    passages = store.passages(keys.values())
    return tuple(passages[keys[source]] for source in sources if keys.get(source) in passages)


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
                return await ask(question, on_event=release)
        except Exception as error:
            if return_exceptions:
                return error
            raise
        finally:
            release()

    async with run_side_by_side() as group:
        tasks = [group.create_task(ask_in_turn(question)) for question in questions]
    return [task.result() for task in tasks]


async def stream_answer(ask: Ask) -> AsyncGenerator[Event | Answer, None]:
    """The events of one question as they happen, then its answer. Closing the generator cancels the question.

    The question runs in its own task: meters and counters belong to the context of one task, and whoever reads a
    generator may go on in another one.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    asking = asyncio.create_task(ask(on_event=events.put_nowait))
    asking.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield asking.result()
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


def _explain_lag(ready: ReadySystem, lag: Mapping[str, int], store: Store, *, current: bool) -> str:
    missing = {layer: f"{count:,} to take in" if count else "something was removed" for layer, count in lag.items()}
    reasons = ", ".join(f"{layer} ({why})" for layer, why in missing.items())
    name = ready.name if ready.variant else "this System"
    remedy = "call `Tome.build` with its recipe"
    if ready.variant and ready.variant.recipe is None:
        remedy = f"run `tome build --tome {quote(store.address)} --system {quote(name)}`"
    return f"{name} needs layers that are not {'up to date' if current else 'built'}: {reasons}; {remedy}"
