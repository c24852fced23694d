"""Sessions: questions that follow one another, each of which starts from what the earlier ones found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.store.records import SESSIONS
from tomewise.store.rights import hold_session
from tomewise.tome.arguments import check_type
from tomewise.tome.damaged import skip_damaged
from tomewise.tome.open_tome import OpenTome, PartOfTome, names_damage, plain
from tomewise.tome.session_record import SessionRecord, check_name, find_session
from tomewise.types import Form, PassageId, Question, Scope

if TYPE_CHECKING:
    from tomewise.systems.answer import OnEvent
    from tomewise.systems.efforts import Effort
    from tomewise.systems.registry import Choice
    from tomewise.types import Answer

NoteRead: TypeAlias = Callable[[Iterable[PassageId]], None]  # takes what an answer was shown
_ANOTHER = "leave that out, or begin another session"


class Sessions(PartOfTome):
    """The sessions of a tome. `tome.sessions["letters"]` is the one of this name; it begins with its first answer."""

    def __init__(self, opened: OpenTome, within: Scope | None, note_read: NoteRead) -> None:
        super().__init__(opened, within)
        self._note_read = note_read

    def __getitem__(self, name: str) -> Session:
        return Session(name, self._opened, self.scope, self._note_read)

    def __iter__(self) -> Iterator[SessionRecord]:
        """What the tome keeps of each, in the order of their names. A damaged one is left out, with a warning."""
        store = self.store
        return iter(skip_damaged(store.note_names(SESSIONS), lambda name: find_session(name, store)))

    def __contains__(self, name: object) -> bool:
        return name in self.store.note_names(SESSIONS)

    def __delitem__(self, name: str) -> None:
        """Delete a session. Raises UnknownName, and Locked if it is answering a question."""
        check_type("name", name, str, "a text")
        with hold_session(self.store, name), self.store.write() as change:
            if not change.remove_note(SESSIONS, name):
                known = suggest(name, change.note_names(SESSIONS))
                raise UnknownName(f"{self.store.address} holds no session {name!a}: {known}`tome sessions` lists them")


class Session(PartOfTome):
    """The questions under one name. Nothing is stored before the first answer.

    The first question fixes the system with its settings, and what is searched. One question is answered at a time: a
    second one at the same moment is refused with `Locked`. What a question leaves is stored in one write when it is
    answered, so a question that fails or is killed leaves the session as it was.
    """

    def __init__(self, name: str, opened: OpenTome, within: Scope | None, note_read: NoteRead) -> None:
        super().__init__(opened, within)
        self.name = check_name(name)
        self._note_read = note_read

    def read(self) -> SessionRecord | None:
        """What the tome keeps of this session, None before its first answer."""
        return find_session(self.name, self.store)

    @names_damage
    async def aask(
        self,
        question: str | Question,
        *,
        system: Choice | None = None,
        options: Sequence[str] = (),
        instructions: str = "",
        form: Form | None = None,
        force: bool = False,
        fresh: bool = False,
        on_event: OnEvent | None = None,
        effort: Effort | None = None,
    ) -> Answer:
        """Answer the next question. See `Tome.ask`; `Answer.session` says what the answer took from the session.

        `system` is named by a text, or chosen by `effort`. It and what narrows the search
        (`tome.within(...).sessions[name]`) are those of the first question: later they may be left out, but must not
        differ. Raises Locked if another question of this session is under way.
        """
        from tomewise.tome.questions import list_shown
        from tomewise.tome.session_memory import Continuation

        asked = self._make_question(question, options=options, instructions=instructions, form=form, force=force)
        settings, questions = self._opened.settings, self._opened.questions
        with hold_session(self.store, self.name):
            before = await asyncio.to_thread(self.read)
            begun = before.system if before else ""
            chosen = await questions.choose(system, effort, current=asked.current, begun=begun)
            record = await self._begin(asked, chosen)
            answer = await questions.answer(
                replace(asked, within=record.within),
                record.system,
                on_event,
                fresh=fresh,
                session=Continuation(record, settings.session_limit, self.store),
            )
        self._note_read(list_shown(answer))
        return answer

    ask = plain(aask)

    @names_damage
    async def acheck(self, question: str | Question, *, system: Choice | None = None) -> None:
        """Raise what `ask` would raise before any call: Locked; UsageError for what must not differ.

        A question that begins later may still be refused with Locked.
        """
        asked = self._make_question(question)
        with hold_session(self.store, self.name):
            record = await self._begin(asked, system)
        await self._opened.questions.prepare(replace(asked, within=record.within), record.system)

    check = plain(acheck)

    async def _begin(self, question: Question, system: Choice | None) -> SessionRecord:
        """The record before this question, new for the first one."""
        from tomewise.systems.registry import choose_variant, parse_variant

        record = await asyncio.to_thread(self.read)
        if record is None:
            variant = choose_variant(self._opened.settings.system if system is None else system)
            if variant.recipe is not None:
                raise UsageError(f"a session needs a system with a name, not the recipe {variant.label!r}: register it")
            return SessionRecord(name=self.name, system=variant.label, within=question.within)
        if system is not None:
            fixed, stated = parse_variant(record.system), choose_variant(system)
            if (fixed.system, fixed.settings, None) != (stated.system, stated.settings, stated.recipe):
                begun = f"the session {self.name!r} was begun with {fixed.label}"
                raise UsageError(f"{begun}, not {stated.label}: {_ANOTHER}")
        if question.within not in (None, record.within):
            raise UsageError(f"the first question of {self.name!r} was narrowed in another way: {_ANOTHER}")
        return record
