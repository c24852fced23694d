"""What a tome is asked: questions, searches, and the traces of earlier questions."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from secrets import token_hex
from threading import Lock
from typing import Any, Literal, TypeVar, Unpack, overload

from tomewise.errors import StoreError, UnknownName, UsageError, suggest
from tomewise.language.budget import BudgetPerWork
from tomewise.language.cached import Cached
from tomewise.language.failures import MOST_FAILURES, StopAtFailures
from tomewise.language.prompts import Prompts
from tomewise.run import open_run
from tomewise.store.contract import Store
from tomewise.systems.answer import OnEvent, answer_question
from tomewise.systems.kit import Kit, System, find_recall
from tomewise.systems.registry import DEFAULT, Choice, Variant
from tomewise.tome.damaged import names_damage, skip_damaged
from tomewise.tome.inputs import check_question, make_question
from tomewise.tome.ready_systems import ReadySystems, choose_system
from tomewise.tome.scopes import Narrowing, find_scope, narrow
from tomewise.tome.session import Session, SessionTools, rephrase
from tomewise.tome.session_record import SessionRecord, Turn, read_session
from tomewise.tome.sync import LoopThread
from tomewise.tome.traces import Trace, delete_trace, find_trace, find_traces, make_record
from tomewise.tome.waiting import Ask, answer_many, stream_answer
from tomewise.types import Answer, Embedder, Event, Evidence, LanguageModel, Question

T = TypeVar("T")


class Questions:
    """The part of a `Tome` that answers."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        model: LanguageModel,
        prompts: Prompts,
        trace_bytes: int,
        session_limit: int,
        system: str = DEFAULT,
        max_failures: int = MOST_FAILURES,
    ) -> None:
        self._default_system = system
        self._store = store
        self._model = model
        self._trace_bytes = trace_bytes  # size limit of one trace
        self._session_limit = session_limit  # size limit of one session
        self._thread = LoopThread()
        self._trace_lock = Lock()  # without it SQLite makes competing writers sleep longer than writing a trace takes
        self._kit = Kit(
            store, Cached(BudgetPerWork(StopAtFailures(model, max_failures)), prompts, store.calls), embedder
        )
        self._systems = ReadySystems(self._kit)

    @property
    def store(self) -> Store:
        """The store, for people who write their own parts."""
        return self._store

    @property
    def kit(self) -> Kit:
        """The store, model and embedder from which systems are wired. The model's replies are kept in the store."""
        return self._kit

    @property
    def default_system(self) -> str:
        """The system that answers, builds and searches where none is named."""
        return self._default_system

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            self._store.check()
        except StoreError:
            work.close()
            raise
        return self._thread.run(work)

    def ask(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        fresh: bool = False,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> Answer:
        """Answer a question, free or multiple-choice, or decline it.

        `system` is the text that names a system ("comorag", "comorag cycles=2", "comorag:without episodic"), a recipe
        (a function of a `Kit` that returns a `System`), or a `System` made from `Tome.kit`; without it, the default of
        this tome answers (see `Tome.open`). `settings` holds further settings for the recipe.
        `documents=["d1"]` and `where=["year>=1911"]`, or `within=Scope(...)`, narrow what is searched (see
        `tome.scopes.Narrowing`); a scope without a passage is an error, raised before any call.
        If the memory does not hold the answer, `force` asks for a guess; without it the answer is not `resolved` and
        says what is `missing`. Replies of the model are kept, so a question that was interrupted, or is asked again,
        repeats no call; with `fresh` the model is asked again, and its replies replace those that were kept.
        Raises UsageError for an empty question, UnknownName, NotBuilt, ModelError.
        """
        work = self.aask(
            question,
            options=options,
            instructions=instructions,
            force=force,
            fresh=fresh,
            system=system,
            settings=settings,
            on_event=on_event,
            **narrowing,
        )
        return self._wait(work)

    @names_damage
    async def aask(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        fresh: bool = False,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        turns: Sequence[Turn] = (),
        **narrowing: Unpack[Narrowing],
    ) -> Answer:
        """See `ask`. Earlier `turns` of a chat make the question stand alone; its trace keeps it as it was asked."""
        question = make_question(question, options=options, instructions=instructions, force=force)
        question = await narrow(question, self._store, **narrowing)
        name, choice = self._choose_system(system, settings)
        with open_run(queue=object(), fresh_mark=token_hex(8) if fresh else "") as used:
            answer = await self._answer_after(turns, question, await self._systems.prepare(choice), on_event)
            answer = replace(answer, system=name, model=self._model.name, usage=used.usage())
        return replace(answer, trace=await asyncio.to_thread(self._save_trace, question, answer))

    @names_damage
    async def acheck(self, question: Question, *, system: Choice | System | None = None) -> None:
        """Raise what `aask` would raise of a question before any call: UsageError, UnknownName, NotBuilt."""
        await narrow(make_question(question), self._store)
        await self._systems.prepare(self._choose_system(system, None)[1])

    async def _answer_after(
        self, turns: Sequence[Turn], question: Question, system: System, on_event: OnEvent | None
    ) -> Answer:
        """The answer, whose events begin with those of the rephrasing."""
        text, opening = await rephrase(self._kit.model, question.text, turns)
        for event in opening if on_event else ():
            on_event(event)  # type: ignore[misc]
        answer = await answer_question(system, replace(question, text=text), on_event)
        return replace(answer, events=(*opening, *answer.events))

    def astream(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        fresh: bool = False,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> AsyncGenerator[Event | Answer, None]:
        """Answer a question like `aask`, and yield each event as it happens; the last item is the answer.

        Where the provider streams, events `AnswerPart` give the answer as it is written: each has the new `text`,
        and whether it is to `replace` the parts before.
        To leave early cancels the calls under way: at once with `contextlib.aclosing`, or when the generator is freed.
        """
        more = {"options": options, "instructions": instructions, "force": force, "fresh": fresh}
        return stream_answer(self._prepare_asking(system, settings, narrowing, **more), question)

    @overload
    def ask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        fresh: bool = False,
        return_exceptions: Literal[False] = False,
        **narrowing: Unpack[Narrowing],
    ) -> list[Answer]: ...

    @overload
    def ask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        fresh: bool = False,
        return_exceptions: Literal[True],
        **narrowing: Unpack[Narrowing],
    ) -> list[Answer | Exception]: ...

    def ask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        fresh: bool = False,
        return_exceptions: bool = False,
        **narrowing: Unpack[Narrowing],
    ) -> list[Answer] | list[Answer | Exception]:
        """Answer several questions at the same time, within the model's limit. Answers have the order of questions.

        The first error cancels the other questions and is raised. With `return_exceptions` it takes the place of its
        answer instead.
        """
        self._store.check()
        ask = self._prepare_asking(system, settings, narrowing, fresh=fresh)
        return self._wait(answer_many(ask, questions, return_exceptions=return_exceptions))

    @overload
    async def aask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        fresh: bool = False,
        return_exceptions: Literal[False] = False,
        **narrowing: Unpack[Narrowing],
    ) -> list[Answer]: ...

    @overload
    async def aask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        fresh: bool = False,
        return_exceptions: Literal[True],
        **narrowing: Unpack[Narrowing],
    ) -> list[Answer | Exception]: ...

    async def aask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        fresh: bool = False,
        return_exceptions: bool = False,
        **narrowing: Unpack[Narrowing],
    ) -> list[Answer] | list[Answer | Exception]:
        """See `ask_many`."""
        self._store.check()
        ask = self._prepare_asking(system, settings, narrowing, fresh=fresh)
        return await answer_many(ask, questions, return_exceptions=return_exceptions)

    def _choose_system(
        self, system: Choice | System | None, settings: Mapping[str, Any] | None
    ) -> tuple[str, Variant | System]:
        """The name of the system, or of the default of this tome, and what to wire."""
        return choose_system(self._default_system if system is None else system, settings)

    def _prepare_asking(
        self,
        system: Choice | System | None,
        settings: Mapping[str, Any] | None,
        narrowing: Narrowing,
        **arguments: Any,
    ) -> Ask:
        """A function that asks one question of this system, with further arguments of `aask`."""
        _, choice = self._choose_system(system, settings)  # once for all questions, and so is the scope
        if scope := find_scope(self._store, **narrowing):
            arguments["within"] = scope

        def ask(question: str | Question, on_event: OnEvent) -> Coroutine[Any, Any, Answer]:
            return self.aask(question, system=choice, on_event=on_event, **arguments)

        return ask

    # ------------------------------------------------------------ sessions

    def session(self, name: str) -> Session:
        """The session of this name, to ask questions that follow one another. It begins with its first answer."""
        tools = SessionTools(
            store=self._store,
            systems=self._systems,
            model=self._kit.model,
            limit=self._session_limit,
            system=self._default_system,
            wait=self._wait,
            save_trace=self._save_trace,
        )
        return Session(name, tools)

    def sessions(self) -> list[SessionRecord]:
        """What the tome keeps of each session, in the order of their names. A damaged one is left out, with a note."""
        return skip_damaged(self._store.session_names(), self._read_session)

    def _read_session(self, name: str) -> SessionRecord | None:
        row = self._store.session(name)
        return None if row is None else read_session(name, row)

    def delete_session(self, name: str) -> None:
        """Delete a session. Raises UnknownName, and Locked if it is answering a question."""
        with self._store.hold_session(name), self._store.write() as change:
            if not change.remove_session(name):
                known = suggest(name, self._store.session_names())
                raise UnknownName(f"{self._store.address} holds no session {name!a}: {known}`tome sessions` lists them")

    # ------------------------------------------------------------ traces

    def traces(self, limit: int = 20, *, before: int | None = None) -> list[Trace]:
        """How the latest questions were answered, newest first; with `before`, those with a lower number."""
        return find_traces(self._store, limit, before)

    def trace(self, number: int) -> Trace:
        """One trace by its number. Raises UnknownName."""
        return find_trace(number, self._store)

    def delete_trace(self, number: int) -> None:
        """Delete a trace. Its number is not used again. Raises UnknownName, StoreError."""
        with self._trace_lock:
            delete_trace(number, self._store)

    def search(
        self,
        query: str,
        *,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        limit: int = 10,
        **narrowing: Unpack[Narrowing],
    ) -> list[Evidence]:
        """The evidence that a system's retriever finds for a query, best first, at most `limit` pieces.

        Makes no answering call; a system whose retrieval itself calls the model, such as `hipporag2`, still does so.
        `system`, `settings` and what narrows the search are those of `ask`. Raises UsageError, UnknownName, NotBuilt,
        ModelError.
        """
        return self._wait(self.asearch(query, system=system, settings=settings, limit=limit, **narrowing))

    @names_damage
    async def asearch(
        self,
        query: str,
        *,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        limit: int = 10,
        **narrowing: Unpack[Narrowing],
    ) -> list[Evidence]:
        """See `search`."""
        check_question(question := Question(text=query))
        if limit < 1:
            raise UsageError(f"a search for {limit} pieces of evidence finds nothing: ask for 1 or more")
        question = await narrow(question, self._store, **narrowing)
        name, choice = self._choose_system(system, settings)
        recall = find_recall(name, self._systems.wire(choice))  # before anybody builds layers for a system that cannot
        await self._systems.prepare(choice)
        return await recall.retriever.retrieve(query, limit, within=question.within)

    def _save_trace(self, question: Question, answer: Answer) -> int | None:
        """The number of the trace, None where it was not kept."""
        if self._store.read_only:
            return None
        record = make_record(question, answer, self._trace_bytes)
        asked = datetime.now(UTC).isoformat()
        try:
            with self._trace_lock:
                return self._store.save_trace(asked=asked, question=question.text, record=record)
        except StoreError as error:  # another process is writing, or the file is read-only
            # Return the answer anyway: it is worth more than its trace.
            warnings.warn(f"the trace of this answer was not kept: {error}", stacklevel=2)
            return None
