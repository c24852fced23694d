"""A session: questions that follow one another, each of which starts from what the earlier ones found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Unpack

from tomewise.errors import UsageError
from tomewise.events import AnsweredFromNotes, Attempted, Resumed, SessionUsed
from tomewise.loops.notes import EXTRACTS
from tomewise.run import open_run
from tomewise.systems.answer import OnEvent, answer_question
from tomewise.systems.registry import Choice, Variant, choose_variant, parse_variant
from tomewise.tome.damaged import names_damage
from tomewise.tome.inputs import make_question
from tomewise.tome.ready_systems import ReadySystems
from tomewise.tome.scopes import Narrowing, find_scope, narrow
from tomewise.tome.session_memory import forget_missing, open_memory
from tomewise.tome.session_record import SessionRecord, check_name, make_turn, read_session
from tomewise.types import Answer, FromSession, LanguageModel, NodeId, Question, Scope
from tomewise.working.lasting_memory import WorkingMemory

if TYPE_CHECKING:
    from tomewise.store.contract import Store


from tomewise.events import Rephrased, shorten
from tomewise.language.roles import REPHRASE, RephraseIn, RephraseOut, TurnShown
from tomewise.loops.steps import Skipped
from tomewise.tome.session_record import Turn
from tomewise.types import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTools:
    """What a session uses of its tome.

    `limit` bounds the entries of the working memory, and the turns. `system` answers if the first question names none.
    """

    store: Store
    systems: ReadySystems
    model: LanguageModel
    limit: int
    system: str
    wait: Callable[[Coroutine[Any, Any, Answer]], Answer]
    save_trace: Callable[[Question, Answer], int | None]


class Session:
    """The questions under one name. Nothing is stored before the first answer.

    The first question fixes the system with its settings, and what is searched. One question is answered at a time: a
    second one at the same moment is refused with `Locked`. What a question leaves is stored in one write when it is
    answered, so a question that fails or is killed leaves the session as it was.
    """

    def __init__(self, name: str, tools: SessionTools) -> None:
        self.name = check_name(name)
        self._tools = tools

    @property
    def store(self) -> Store:
        """The store of its tome."""
        return self._tools.store

    def read(self) -> SessionRecord | None:
        """What the tome keeps of this session, None before its first answer."""
        row = self._tools.store.session(self.name)
        return None if row is None else read_session(self.name, row)

    def read_within(self) -> Scope | None:
        """What its questions are narrowed to; None if its first question named nothing, and before the first answer."""
        record = self.read()
        return record.within if record else None

    def ask(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        fresh: bool = False,
        system: Choice | None = None,
        settings: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> Answer:
        """Answer the next question. See `Tome.ask`; `Answer.session` says what the answer took from the session.

        `system` is named by a text, and it, `settings` and what narrows the search are those of the first question:
        later they may be left out, but must not differ. Raises Locked if another question of this session is under way.
        """
        more = {"options": options, "instructions": instructions, "force": force, "fresh": fresh}
        work = self.aask(question, system=system, settings=settings, on_event=on_event, **more, **narrowing)  # type: ignore[arg-type]
        return self._tools.wait(work)

    @names_damage
    async def aask(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        fresh: bool = False,
        system: Choice | None = None,
        settings: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> Answer:
        """See `ask`."""
        question = make_question(question, options=options, instructions=instructions, force=force)
        tools = self._tools
        fresh_mark = token_hex(8) if fresh else ""
        with tools.store.hold_session(self.name), open_run(queue=object(), fresh_mark=fresh_mark) as used:
            record, variant = await self._begin(question, system, settings, narrowing)
            question = replace(question, within=record.within)
            answer, after = await self._answer(question, record, variant, on_event)
            answer = replace(answer, system=record.system, model=tools.model.name, usage=used.usage())
            await asyncio.to_thread(_save, after, tools.store)
        return replace(answer, trace=await asyncio.to_thread(tools.save_trace, question, answer))

    async def _begin(
        self, question: Question, system: Choice | None, settings: Mapping[str, Any] | None, narrowing: Narrowing
    ) -> tuple[SessionRecord, Variant]:
        """The record before this question, new for the first one, and the system."""
        tools, store = self._tools, self._tools.store
        record = await asyncio.to_thread(self.read)
        if record is None:
            variant = choose_variant(tools.system if system is None else system, settings)
            if variant.recipe is not None:
                raise UsageError(f"a session needs a system with a name, not the recipe {variant.label!r}: register it")
            within = (await narrow(question, store, **narrowing)).within
            return SessionRecord(name=self.name, system=variant.label, within=within), variant
        variant = parse_variant(record.system)
        if system is not None or settings:
            self._check_same(variant, choose_variant(record.system if system is None else system, settings))
        if any(narrowing.values()) or question.within:
            stated = (await narrow(question, store, **narrowing)).within
            if stated != record.within:
                raise UsageError(f"the first question of {self.name!r} was narrowed in another way: {_ANOTHER}")
        else:
            await asyncio.to_thread(find_scope, store, within=record.within)
        return record, variant

    def _check_same(self, fixed: Variant, stated: Variant) -> None:
        if (fixed.system, fixed.settings, None) != (stated.system, stated.settings, stated.recipe):
            raise UsageError(f"the session {self.name!r} was begun with {fixed.label}, not {stated.label}: {_ANOTHER}")

    async def _answer(
        self, question: Question, record: SessionRecord, variant: Variant, on_event: OnEvent | None
    ) -> tuple[Answer, SessionRecord]:
        """The answer, and the record after it."""
        tools = self._tools
        ready = await tools.systems.prepare(variant)
        memory = open_memory(ready.loop, record)
        record, lost = await asyncio.to_thread(forget_missing, record, memory, tools.store)
        known = _Known.of(memory)
        text, opening = await rephrase(tools.model, question.text, record.turns)
        resumed = Resumed(
            session=record.name, question=record.count + 1, memory=record.kind, known=known.notes, forgotten=lost
        )
        opening = [resumed, *opening]
        for event in opening if on_event else ():
            on_event(event)  # type: ignore[misc]
        answer = await answer_question(ready, replace(question, text=text), on_event, memory)
        record, later = await asyncio.to_thread(forget_missing, record, memory, tools.store)
        left = memory.shrink(tools.limit) if memory else ()
        turns = (*record.turns, make_turn(question.text, text, answer))
        origin = FromSession(
            name=self.name,
            number=record.count + 1,
            question=text,
            notes=known.find_notes(answer),
            passages=known.find_passages(answer),
            dropped=(*lost, *later, *left, *(turn.asked for turn in turns[: -tools.limit])),
        )
        closing = SessionUsed(notes=origin.notes, passages=origin.passages, dropped=origin.dropped)
        if on_event:
            on_event(closing)
        answer = replace(answer, session=origin, events=(*opening, *answer.events, closing))
        record = replace(record, count=origin.number, turns=turns[-tools.limit :])
        return answer, replace(record, kind=memory.kind, memory=memory.dump()) if memory else record


_ANOTHER = "leave that out, or begin another session"


@dataclass(frozen=True, slots=True)
class _Known:
    """What the working memory held before the question."""

    notes: tuple[str, ...]
    nodes: frozenset[NodeId]

    @classmethod
    def of(cls, memory: WorkingMemory | None) -> _Known:
        return cls(memory.notes, memory.find_nodes()) if memory else cls((), frozenset())

    def find_notes(self, answer: Answer) -> tuple[str, ...]:
        """The notes that an answering call saw."""
        attempts = (event for event in answer.events if isinstance(event, Attempted | AnsweredFromNotes))
        shown = {note for attempt in attempts for note in attempt.notes}
        return tuple(note for note in self.notes if note in shown)

    def find_passages(self, answer: Answer) -> tuple[NodeId, ...]:
        """The passages that the answering call saw and that earlier entries rest on."""
        shown = dict.fromkeys(
            source
            for piece in answer.evidence
            for source in piece.sources
            if source == piece.node or piece.layer == EXTRACTS
        )
        return tuple(node for node in shown if node in self.nodes)


def _save(record: SessionRecord, store: Store) -> None:
    with store.write() as change:
        change.put_session(record.name, record.as_row())


_TURNS = 3  # the last ones, which the model sees
_SHOWN = 400  # characters of a question and of an answer that it sees
_LONGER = 1_000  # characters that a question may gain


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
    return text, [*skipped.events(0), Rephrased(asked=question, question=text)]
