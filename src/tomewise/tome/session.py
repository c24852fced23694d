"""A session: questions that follow one another, each of which starts from what the earlier ones found."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from secrets import token_hex
from typing import Any, Unpack

from tomewise.errors import Locked, StoreError, UsageError
from tomewise.events import ATTEMPTS, is_event, make_event
from tomewise.loops.origins import EXTRACTS
from tomewise.run import open_run, warn_unkept
from tomewise.store.contract import Store
from tomewise.store.lookups import find_keys
from tomewise.store.records import SESSIONS
from tomewise.store.rights import hold_session
from tomewise.systems.answer import OnEvent
from tomewise.systems.kit import Kit
from tomewise.systems.registry import Choice, Variant, choose_variant, parse_variant
from tomewise.tome.arguments import check_asking, make_question
from tomewise.tome.damaged import names_damage
from tomewise.tome.questions import Questions, answer_from_memory, pass_on, rephrase
from tomewise.tome.scopes import Narrowing, find_scope, narrow
from tomewise.tome.session_record import SessionRecord, check_name, find_session, make_turn, read_session
from tomewise.tome.sync import LoopThread, plain
from tomewise.types import Answer, FromSession, Loop, NodeId, Question, Scope
from tomewise.working.lasting_memory import MemoryLoop, WorkingMemory


class Session:
    """The questions under one name. Nothing is stored before the first answer.

    The first question fixes the system with its settings, and what is searched. One question is answered at a time: a
    second one at the same moment is refused with `Locked`. What a question leaves is stored in one write when it is
    answered, so a question that fails or is killed leaves the session as it was.
    """

    def __init__(self, name: str, questions: Questions, limit: int, thread: LoopThread) -> None:
        """`limit` bounds the entries of the working memory, and the turns. `thread` runs the plain methods."""
        self.name = check_name(name)
        self._questions = questions
        self._limit = limit
        self._thread = thread

    @property
    def store(self) -> Store:
        """The store of its tome."""
        return self._questions.kit.store

    def read(self) -> SessionRecord | None:
        """What the tome keeps of this session, None before its first answer."""
        return find_session(self.name, self.store)

    def read_within(self) -> Scope | None:
        """What its questions are narrowed to; None if its first question named nothing, and before the first answer."""
        record = self.read()
        return record.within if record else None

    @names_damage
    async def aask(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        strict: bool = False,
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
        check_asking(fresh, on_event)
        question = make_question(question, options=options, instructions=instructions, force=force, strict=strict)
        fresh_mark = token_hex(8) if fresh else ""
        with hold_session(self.store, self.name), open_run(queue=object(), fresh_mark=fresh_mark) as used:
            record, variant = await self._begin(question, system, settings, narrowing)
            question = replace(question, within=record.within)
            answer, after = await self._answer(question, record, variant, on_event)
            answer = await self._questions.complete(answer, question, record.system, used)
            await asyncio.to_thread(_save, after, self.store)
            return await self._questions.trace(question, answer)

    ask = plain(aask)

    @names_damage
    async def acheck(
        self, question: str | Question, *, system: Choice | None = None, settings: Mapping[str, Any] | None = None
    ) -> None:
        """Raise what `ask` would raise of this session before any call: Locked; UsageError for what must not differ.

        A question that begins later may still be refused with Locked.
        """
        with hold_session(self.store, self.name):
            pass
        await self._begin(make_question(question), system, settings, {})

    check = plain(acheck)

    async def _begin(
        self, question: Question, system: Choice | None, settings: Mapping[str, Any] | None, narrowing: Narrowing
    ) -> tuple[SessionRecord, Variant]:
        """The record before this question, new for the first one, and the system."""
        store = self.store
        record = await asyncio.to_thread(self.read)
        if record is None:
            variant = choose_variant(self._questions.default_system if system is None else system, settings)
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
        ready = await self._questions.systems.prepare(variant, strict=question.current)
        memory = open_memory(ready.system.loop, record)
        record, lost = await asyncio.to_thread(forget_missing, record, memory, self.store)
        notes, nodes = (memory.notes, memory.find_nodes()) if memory else ((), frozenset[NodeId]())
        text, opening = await rephrase(self._questions.kit.model, question.text, record.turns)
        number = record.count + 1
        resumed = make_event(
            "resumed", session=record.name, question=number, memory=record.memory_kind, known=notes, forgotten=lost
        )
        opening = [resumed, *opening]
        pass_on(opening, on_event)
        answer = await answer_from_memory(ready, replace(question, text=text), on_event, memory)
        record, later = await asyncio.to_thread(forget_missing, record, memory, self.store)
        left = memory.shrink(self._limit) if memory else ()
        turns = (*record.turns, make_turn(question.text, text, answer))
        origin = FromSession(
            name=self.name,
            number=number,
            question=text,
            notes=_find_notes(answer, notes),
            passages=_find_passages(answer, nodes),
            dropped=(*lost, *later, *left, *(turn.asked for turn in turns[: -self._limit])),
        )
        closing = make_event("session", notes=origin.notes, passages=origin.passages, dropped=origin.dropped)
        pass_on([closing], on_event)
        answer = replace(answer, session=origin, events=(*opening, *answer.events, closing))
        record = replace(record, count=origin.number, turns=turns[-self._limit :])
        return answer, replace(record, memory_kind=memory.kind, memory=memory.dump()) if memory else record


_ANOTHER = "leave that out, or begin another session"


def _find_notes(answer: Answer, notes: Sequence[str]) -> tuple[str, ...]:
    """Those of the earlier notes that an answering call saw."""
    attempts = (event for event in answer.events if is_event(event, *ATTEMPTS))
    shown = {note for attempt in attempts for note in attempt.detail["notes"]}
    return tuple(note for note in notes if note in shown)


def _find_passages(answer: Answer, nodes: Set[NodeId]) -> tuple[NodeId, ...]:
    """The passages that the answering call saw and that are among the `nodes` on which earlier entries rest."""
    shown = dict.fromkeys(
        source for piece in answer.evidence for source in piece.sources if source == piece.id or piece.layer == EXTRACTS
    )
    return tuple(node for node in shown if node in nodes)


def _save(record: SessionRecord, store: Store) -> None:
    """Store what the question left; with a warning, the session stays as it was."""
    try:
        with store.write() as change:
            # Behind a pooler nobody can hold a session from one transaction to the next.
            row = change.note(SESSIONS, record.name)
            if (read_session(record.name, row).count if row else 0) != record.count - 1:
                raise Locked(f"the session {record.name!r} answered another question meanwhile: ask again")
            change.put_note(SESSIONS, record.name, record.as_row())
    except StoreError as error:
        warn_unkept(error)


# ---------------------------------------------------------------- the working memory, and what is forgotten


def open_memory(loop: Loop, record: SessionRecord) -> WorkingMemory | None:
    """The working memory of a session, a new one before its first answer; None for a loop that has none."""
    if not isinstance(loop, MemoryLoop):
        return None
    if record.memory is None:
        return loop.open_memory()
    memory = loop.open_memory(record.memory)
    if memory.kind != record.memory_kind:
        kinds = f"holds a {record.memory_kind}, and {record.system} needs a {memory.kind}"
        raise StoreError(f"{record.name!r} {kinds}: delete it")
    return memory


def list_notes(record: SessionRecord, kit: Kit) -> tuple[str, ...]:
    """The notes of the working memory of a session."""
    memory = _load_memory(record, kit)
    return memory.notes if memory else ()


def _load_memory(record: SessionRecord, kit: Kit) -> WorkingMemory | None:
    return open_memory(parse_variant(record.system).wire(kit).loop, record) if record.memory else None


def forget_missing(
    record: SessionRecord, memory: WorkingMemory | None, store: Store
) -> tuple[SessionRecord, tuple[str, ...]]:
    """Forget what rests on nodes that the store no longer has. Returns the record, and the notes that left."""
    passages = {passage for turn in record.turns for passage in turn.passages}
    nodes = passages | (memory.find_nodes() if memory else frozenset())
    missing = nodes - find_keys(store, nodes).keys()
    if not missing:
        return record, ()
    lost = memory.forget(missing) if memory else ()
    return record.forget(missing), lost


def forget_in_all(kit: Kit) -> None:
    """Forget in every session what rests on removed nodes.

    A session that answers a question at this moment does so itself when it ends. If the system of a session is not
    installed here, its memory cannot be read: then it is removed if it may rest on what is gone, and the turns stay.
    """
    for name in kit.store.note_names(SESSIONS):
        try:
            with hold_session(kit.store, name):
                _forget_in_session(name, kit)
        except StoreError:  # in use, or damaged: the next question forgets, or refuses
            continue


def _forget_in_session(name: str, kit: Kit) -> None:
    row = kit.store.note(SESSIONS, name)
    if row is None:
        return
    record = read_session(name, row)
    try:
        memory = _load_memory(record, kit)
        after, _ = forget_missing(record, memory, kit.store)
        after = replace(after, memory=memory.dump()) if memory else after
    except (UsageError, StoreError):
        after, _ = forget_missing(replace(record, memory=None, memory_kind=""), None, kit.store)
    if after != record:
        with kit.store.write() as change:
            change.put_note(SESSIONS, name, after.as_row())
