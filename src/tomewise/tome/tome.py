"""`Tome`, the one class most users meet: open, add, remove, build, ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from tomewise.brief import describe_object
from tomewise.errors import UsageError
from tomewise.notebook_display import show_bars
from tomewise.pictures import LIMIT
from tomewise.settings import LIMITS, Settings
from tomewise.store.address import find_place
from tomewise.store.lookups import read_setting
from tomewise.store.rights import work_alone
from tomewise.tome.arguments import (
    check_asking,
    check_part,
    check_pool,
    check_settings,
    check_type,
    make_question,
    read_integer,
    read_prompts,
    read_settings,
)
from tomewise.tome.damaged import explain_damage, names_damage
from tomewise.tome.fixed_settings import find_embedder, fix_settings
from tomewise.tome.open_store import delete_empty_store, exists, open_store
from tomewise.tome.session_record import delete_session, list_sessions
from tomewise.tome.sync import LoopThread, plain
from tomewise.tome.traces import Traces
from tomewise.types import Closable, Document, Progress, Question

# What a tome works with is imported where it is first used: who only looks at a tome does not wait for it.
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tomewise.cluster.worker_pool import WorkerPool
    from tomewise.language.prompts import Prompts
    from tomewise.pictures import Picture
    from tomewise.reading.read import NamedFile
    from tomewise.store.contract import Store
    from tomewise.store.records import DocumentRecord
    from tomewise.systems.advice import Recommendation
    from tomewise.systems.answer import OnEvent
    from tomewise.systems.kit import Kit, System
    from tomewise.systems.registry import Choice
    from tomewise.tome.document_names import KeptNames
    from tomewise.tome.entities import Entity
    from tomewise.tome.questions import Ask, Questions
    from tomewise.tome.reports import AddReport, BuildReport, RemoveReport
    from tomewise.tome.scopes import Narrowing
    from tomewise.tome.session import Session
    from tomewise.tome.session_record import SessionRecord, Turn
    from tomewise.tome.suggestions import SuggestedQuestion
    from tomewise.tome.traces import Trace
    from tomewise.types import (
        Answer,
        Embedder,
        Estimate,
        Event,
        Evidence,
        Lagging,
        LanguageModel,
        Layer,
        Metadata,
    )

OnProgress = Callable[[Progress], None]


class Tome:
    """One memory: a set of documents and everything remembered about them.

    What reads files or asks models is asynchronous, with an `a` in front (`aask`), and has a plain twin (`ask`), which
    also works inside a running event loop.
    """

    def __init__(
        self,
        store: Store,
        model: LanguageModel,
        embedder: Embedder,
        prompts: Prompts,
        size: tuple[int, int],
        settings: Settings,
    ) -> None:
        """`size` is that of passages, and of their overlap, in tokens. Open a tome with `Tome.open`."""
        self._store = store
        self._model = model
        self._embedder = embedder
        self._prompts = prompts
        self._size = size
        self._settings = settings
        self._traces = Traces(store, settings.trace_bytes)
        self._thread = LoopThread()
        self._pool: WorkerPool | None = None

    @cached_property
    def _questions(self) -> Questions:
        from tomewise.tome.questions import Questions

        return Questions(self.kit, self._traces, self.default_system)

    @cached_property
    def document_names(self) -> KeptNames:
        """The names under which a server shows the documents, and finds them."""
        from tomewise.tome.document_names import KeptNames

        return KeptNames(self.store)

    def __repr__(self) -> str:
        return describe_object(self, self.store.address, embedder=self._embedder.name, model=self.model_name)

    def _repr_html_(self) -> str:
        from tomewise.tome.contents import write_overview

        self.store.check()
        return write_overview(self.store, self.model_name)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str] | Store | None = None,
        *,
        model: str | LanguageModel | None = None,
        embedder: str | Embedder | None = None,
        base_url: str | None = None,
        read_only: bool = False,
        create: bool = True,
        settings: Settings | Mapping[str, Any] | None = None,
    ) -> Tome:
        """Open the tome at `path`, or create one.

        `path` is a file, a tome in PostgreSQL (`postgresql://host/database#name`), or a store of your own, which is
        closed with the tome; without one, the `tome` of the settings. `settings` are `Settings` or a mapping of some of
        their fields; without them the defaults hold, whatever the environment says. `settings=load()`, see
        `tomewise.settings`, opens what the command `tome` would open here. `model`, `embedder` and `base_url` come
        before those of the settings. With `read_only` the file stays as it is: no trace and no reply is kept, and what
        would change it is refused. Without `create`, a file that does not exist is refused.
        Raises StoreError, UsageError, UnknownName.
        """
        from tomewise.language.choose_model import choose_model, limit_spending

        check_part("model", model, "ask", "a name or a LanguageModel")
        check_part("embedder", embedder, "embed", "a name or an Embedder")
        given = {"model": model, "embedder": embedder, "base_url": base_url}
        named: dict[str, Any] = {name: value for name, value in given.items() if isinstance(value, str)}
        settings = replace(read_settings(settings), **named)
        check_settings(settings)
        check_pool(settings.on, settings.workers)
        prompts = read_prompts(settings)
        unfilled, pool = None, None  # what this makes, and workers
        if isinstance(path, str | PathLike | None):
            place = find_place(settings.tome if path is None else path)
            is_made = create and not read_only
            unfilled = place if is_made and not exists(place) else None
            store = open_store(place, create=is_made, read_only=read_only, exact_rows=settings.exact_rows)
        else:
            check_part("path", path, "snapshot", "a path or a Store")
            store = path
        try:
            own = settings.embedder if embedder is None else embedder
            embedder = find_embedder(store, own, settings.embedder_base_url)
            size = fix_settings(store, embedder, settings.passage_tokens, settings.overlap)
            own_model = settings.model if model is None else model
            if settings.on:
                from tomewise.cluster.pooled_model import make_model_parts
                from tomewise.cluster.worker_pool import open_pool

                parts = make_model_parts(own_model, settings.models, prompts, settings.api_key, settings)
                pool = open_pool(
                    embedder,
                    parts,
                    settings.workers,
                    by_name=own is None or isinstance(own, str),
                    start_seconds=settings.start_seconds,
                )
            model = choose_model(
                own_model,
                settings.models,
                embedder=embedder,
                prompts=prompts,
                api_key=settings.api_key,
                base_url=settings.base_url,
                limit=settings.limit,
                timeout=settings.timeout,
                window=settings.window,
            )
            if pool is not None:
                from tomewise.cluster.pooled_model import PooledModel

                model = PooledModel(model, pool, settings.limit)
            model = limit_spending(model, **{name: getattr(settings, name) for name in LIMITS})
        except BaseException:
            if pool is not None:
                pool.close()
            store.close()
            if unfilled is not None:
                delete_empty_store(unfilled)
            raise
        if pool is not None:
            from tomewise.cluster.pooled_embedder import PooledEmbedder

            embedder = PooledEmbedder(embedder, pool)
        opened = cls(store, model, embedder, prompts, size, settings)
        opened._pool = pool
        return opened

    @property
    def store(self) -> Store:
        """The store, for people who write their own parts."""
        return self._store

    @cached_property
    def kit(self) -> Kit:
        """The store, model and embedder from which systems are wired. The model's replies are kept in the store."""
        from tomewise.language.budget import BudgetPerWork
        from tomewise.language.cached import Cached
        from tomewise.language.failures import StopAtFailures
        from tomewise.systems.kit import Kit

        model = BudgetPerWork(StopAtFailures(self._model, self._settings.max_failures))
        return Kit(self.store, Cached(model, self._prompts, self.store.calls), self._embedder)

    @property
    def model_name(self) -> str:
        """The name of the model that answers."""
        return self._model.name

    @property
    def default_system(self) -> str:
        """The system that answers, builds and searches where none is named."""
        return self._settings.system

    def __enter__(self) -> Tome:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Tome:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Close the file and the model's connections."""
        try:
            # Connections belong to the event loop that opened them.
            if isinstance(self._model, Closable) and self._thread.runs:
                self._thread.run(self._model.close())
        finally:
            self._thread.stop()
            try:
                if self._pool is not None:
                    self._pool.close()
            finally:
                self.store.close()

    async def aclose(self) -> None:
        """See `close`; for callers of the async methods."""
        if isinstance(self._model, Closable):
            await self._model.close()
        await asyncio.to_thread(self.close)

    # ------------------------------------------------------------ documents

    @names_damage
    async def aadd(
        self,
        *sources: str | PathLike[str] | Document | NamedFile,
        prefix: str = "",
        follow: bool = False,
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        ignored: bool = False,
        sync: bool = False,
        keep_going: bool = False,
        metadata: Metadata | None = None,
        on_progress: OnProgress | None = None,
    ) -> AddReport:
        """Read files, folders, `-` (standard input), or documents, and remember them.

        An unchanged document costs nothing; a document whose text changed is replaced; a row that a file no longer has
        is removed. Each document is stored whole or not at all, even if the process is killed. A file is refused if one
        of its ids belongs to a document from another source; `prefix` puts `prefix/` before the ids of rows and of
        documents passed here. With `follow`, links from a folder to files outside it are followed. `include` and
        `exclude` are patterns for the files of folders, written as in a .gitignore; what such a file leaves out is left
        out unless `ignored` is set. With `sync`, all sources are folders: documents whose files are gone from them are
        removed, and a file that only has another path keeps its memory. With `keep_going`, a source that cannot be read
        does not stop the others (`AddReport.failed`). `metadata` are further fields of all these documents; `title`
        among them is the title of one. They are kept for the paths that are named here, so that later additions have
        them too; an empty text takes a field back.
        Raises ReadingError, UsageError, Locked.
        """
        from tomewise.tome.contents import add_documents

        with show_bars(on_progress) as report:
            return await add_documents(
                self.kit,
                self._size,
                self._settings,
                sources,
                report,
                prefix=prefix,
                follow=follow,
                include=include,
                exclude=exclude,
                ignored=ignored,
                sync=sync,
                keep_going=keep_going,
                metadata={} if metadata is None else metadata,
            )

    add = plain(aadd)

    @names_damage
    async def aremove(self, document: str | Document | DocumentRecord) -> RemoveReport:
        """Forget a document, or several, and everything derived from them alone.

        `document` is a whole id, path or title, a folder, or a pattern such as `notes/*.md`, or one of `documents()`. A
        part of an id removes nothing. Nobody is asked. Raises UnknownName, which suggests names; UsageError, Locked.
        """
        from tomewise.tome.contents import remove_documents

        return await remove_documents(self.kit, document)

    remove = plain(aremove)

    def clean(self) -> int:
        """Delete the caches beside the tome. Returns the bytes that are free now. Raises Locked."""
        with work_alone(self.store, "clean"):
            size = self.store.cache_size()
            self.store.clear_cache()
        return size

    def recommend(self) -> Recommendation | None:
        """The system that suits this tome as it is, with its model, and why; None if it is empty."""
        from tomewise.systems.advice import recommend_system

        tokens = int(read_setting(self.store, "passage_tokens") or 0)
        return recommend_system([record.passages for record in self.store.documents()], tokens, self.model_name)

    def documents(self) -> list[DocumentRecord]:
        """The documents of this tome, sorted by id."""
        return self.store.documents()

    def document(self, document: str) -> Document:
        """One document with its text. Raises UnknownName."""
        from tomewise.tome.document_names import find_document

        check_type("document", document, str, "an id, a title or a path")
        return self.store.document(find_document(document, self.store).id)

    def entity(self, name: str) -> Entity:
        """What the graphs of this tome hold on a person, a place or a thing: its facts, passages and gists.

        Case and punctuation do not count. Raises NotBuilt without a graph, and UnknownName, which names similar ones.
        """
        from tomewise.tome.entities import read_entity

        check_type("name", name, str, "a text")
        with explain_damage(self.store):
            return read_entity(name, self.store)

    def suggest_questions(self, limit: int = 6) -> list[SuggestedQuestion]:
        """Questions to begin with, from names, headings and titles. No model is asked; equal tomes give equal ones."""
        from tomewise.tome.suggestions import suggest_questions

        limit = read_integer("limit", limit, "a whole number")
        with explain_damage(self.store):
            return suggest_questions(self.store, limit)

    def export(self) -> Iterator[str]:
        """The whole memory as JSON lines in a canonical order: equal memories have equal exports."""
        from tomewise.store.export import export

        with explain_damage(self.store):
            yield from export(self.store)

    # ------------------------------------------------------------ layers

    @names_damage
    async def abuild(
        self,
        system: Choice | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        layers: str | Sequence[str] = (),
        extractions: str | Path | None = None,
        again: str | Sequence[str] = (),
        on_progress: OnProgress | None = None,
    ) -> BuildReport:
        """Bring the memory layers that a system needs up to date; for `system` and `settings` see `ask`.

        `layers` names further layers, ours or a plugin's, to build together with all that they need. Replies of the
        model are stored as they come, so a build that was stopped repeats no call. A passage whose call fails for good
        is reported, and the next build tries it again; where only failures come, the build is stopped (KeepsFailing,
        see `max_failures` of `open`). `extractions` is a file of entities and facts that were extracted elsewhere; they
        replace calls of the model. `again` names layers, or passages by their ids, that are to be made again: their
        memory is removed and the model is called again.
        Raises ModelError, BudgetExceeded, ReadingError, UnknownName, Locked.
        """
        from tomewise.tome.builds import build_layers

        wired = self._wire_layers(system, settings, layers)
        with show_bars(on_progress) as report:
            return await build_layers(self.kit, wired, report, extractions, again)

    build = plain(abuild)

    @names_damage
    async def aestimate(
        self,
        system: Choice | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        layers: str | Sequence[str] = (),
        on_progress: OnProgress | None = None,
    ) -> list[Estimate]:
        """The calls and tokens that `build` would use, layer by layer, before anything is spent."""
        from tomewise.memory.building import estimate

        with show_bars(on_progress) as report:
            return await estimate(self._wire_layers(system, settings, layers), self.store, report)

    estimate = plain(aestimate)

    def _wire_layers(
        self, system: Choice | None, settings: Mapping[str, Any] | None, names: str | Sequence[str]
    ) -> list[Layer]:
        from tomewise.tome.builds import wire_layers

        self.store.check()
        return wire_layers(self.kit, self.default_system if system is None else system, settings, names)

    # ------------------------------------------------------------ questions

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
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        turns: Sequence[Turn] = (),
        **narrowing: Unpack[Narrowing],
    ) -> Answer:
        """Answer a question, free or multiple-choice, or decline it.

        `system` is the text that names a system ("comorag", "comorag cycles=2", "comorag:without episodic"), a recipe
        (a function of a `Kit` that returns a `System`), or a `System` made from `Tome.kit`; without it, the default of
        this tome answers (see `Tome.open`). `settings` holds further settings for the recipe. `documents=["d1"]` and
        `where=["year>=1911"]`, or `within=Scope(...)`, narrow what is searched; a scope without a passage is an error,
        raised before any call. If the memory does not hold the answer, `force` asks for a guess; without it the answer
        is not `resolved` and says what is `missing`. Memory that lags behind the documents answers too, and
        `Answer.lagging` says what it has yet to take in; with `strict` it is refused (NotBuilt), as is memory that was
        never built. Replies of the model are kept, so a question that was interrupted, or is asked again, repeats no
        call; with `fresh` the model is asked again, and its replies replace those that were kept. Earlier `turns` of a
        chat make the question stand alone; its trace keeps it as it was asked.
        Raises UsageError for an empty question, UnknownName, NotBuilt, ModelError.
        """
        check_asking(fresh, on_event)
        question = make_question(question, options=options, instructions=instructions, force=force, strict=strict)
        question = await self._narrow(question, **narrowing)
        named = self._questions.choose(system, settings)
        return await self._questions.answer(question, named, on_event, turns=turns, fresh=fresh)

    ask = plain(aask)

    @names_damage
    async def acheck(self, question: str | Question, *, system: Choice | System | None = None) -> None:
        """Raise what `ask` would raise of a question before any call: UsageError, UnknownName, NotBuilt."""
        asked = await self._narrow(make_question(question))
        await self._questions.systems.prepare(self._questions.choose(system, None)[1], strict=asked.current)

    check = plain(acheck)

    async def _narrow(self, question: Question, **narrowing: Unpack[Narrowing]) -> Question:
        from tomewise.tome.scopes import narrow

        return await narrow(question, self.store, **narrowing)

    def astream(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        strict: bool = False,
        fresh: bool = False,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> AsyncGenerator[Event | Answer, None]:
        """Answer a question like `aask`, and yield each event as it happens; the last item is the answer.

        Where the provider streams, events `answer_part` give the answer as it is written: each has the new `text`,
        and whether it is to `replace` the parts before.
        To leave early cancels the calls under way: at once with `contextlib.aclosing`, or when the generator is freed.
        """
        more = {"options": options, "instructions": instructions, "force": force, "strict": strict, "fresh": fresh}
        from tomewise.tome.questions import stream_answer

        return stream_answer(self._prepare_asking(system, settings, narrowing, **more), question)

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
        """Answer several questions at the same time, within the model's limit. Answers have the order of questions.

        The first error cancels the other questions and is raised. With `return_exceptions` it takes the place of its
        answer instead.
        """
        from tomewise.tome.questions import answer_many

        self.store.check()
        ask = self._prepare_asking(system, settings, narrowing, fresh=fresh)
        return await answer_many(ask, questions, return_exceptions=return_exceptions)

    ask_many = plain(aask_many)

    def _prepare_asking(
        self,
        system: Choice | System | None,
        settings: Mapping[str, Any] | None,
        narrowing: Narrowing,
        **arguments: Any,
    ) -> Ask:
        """A function that asks one question of this system, with further arguments of `aask`."""
        from tomewise.tome.scopes import find_scope

        _, choice = self._questions.choose(system, settings)  # once for all questions, and so is the scope
        if scope := find_scope(self.store, **narrowing):
            arguments["within"] = scope

        def ask(question: str | Question, on_event: OnEvent) -> Coroutine[Any, Any, Answer]:
            return self.aask(question, system=choice, on_event=on_event, **arguments)

        return ask

    @names_damage
    async def asearch(
        self,
        query: str,
        *,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        limit: int = 10,
        strict: bool = False,
        **narrowing: Unpack[Narrowing],
    ) -> list[Evidence]:
        """The evidence that a system's retriever finds for a query, best first, at most `limit` pieces.

        Makes no answering call; a system whose retrieval itself calls the model, such as `hipporag2`, still does so.
        `system`, `settings`, `strict` and what narrows the search are those of `ask`. Raises UsageError, UnknownName,
        NotBuilt, ModelError.
        """
        check_type("query", query, str, "a text")
        question = make_question(query, strict=strict)
        limit = read_integer("limit", limit, "a whole number from 1 up")
        if limit < 1:
            raise UsageError(f"a search for {limit} pieces of evidence finds nothing: ask for 1 or more")
        question = await self._narrow(question, **narrowing)
        return await self._questions.search(question, self._questions.choose(system, settings), limit)

    search = plain(asearch)

    @names_damage
    async def afind_lag(
        self,
        question: str | Question,
        *,
        system: Choice | System | None = None,
        settings: Mapping[str, Any] | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> Lagging | None:
        """How far the memory of a system lags for this question, and what a build would use; None if it does not.

        This is what `Answer.lagging` says. Calls no model. Raises like `check`.
        """
        narrowed = await self._narrow(make_question(question), **narrowing)
        ready = await self._questions.systems.prepare(self._questions.choose(system, settings)[1], strict=False)
        return await ready.lag.describe(narrowed)

    find_lag = plain(afind_lag)

    # ------------------------------------------------------------ sessions

    def session(self, name: str) -> Session:
        """The session of this name, to ask questions that follow one another. It begins with its first answer."""
        from tomewise.tome.session import Session

        return Session(name, self._questions, self._settings.session_limit, self._thread)

    def sessions(self) -> list[SessionRecord]:
        """What the tome keeps of each session, in the order of their names. A damaged one is left out, with a note."""
        return list_sessions(self.store)

    def delete_session(self, name: str) -> None:
        """Delete a session. Raises UnknownName, and Locked if it is answering a question."""
        delete_session(name, self.store)

    # ------------------------------------------------------------ traces

    def traces(self, limit: int | None = 20, *, before: int | None = None, matching: str = "") -> list[Trace]:
        """How the latest questions were answered, newest first; with `before`, those with a lower number.

        With `matching`, those whose question and answer together hold all its words. Without a limit, all of them.
        """
        limit = None if limit is None else read_integer("limit", limit, "a whole number")
        check_type("matching", matching, str, "a text")
        return self._traces.list_latest(limit, before, matching)

    def trace(self, number: int) -> Trace:
        """One trace by its number. Raises UnknownName."""
        number = read_integer("number", number, "the number of a trace")
        return self._traces.find(number)

    def delete_trace(self, number: int) -> None:
        """Delete a trace. Its number is not used again. Raises UnknownName, StoreError."""
        number = read_integer("number", number, "the number of a trace")
        self._traces.delete(number)

    # ------------------------------------------------------------ pictures

    def check_drawing(self, system: Choice | System | None = None) -> None:
        """Raise UsageError unless the system has a working memory that can be drawn. Calls nothing."""
        from tomewise.tome.drawings import find_drawable

        find_drawable(self.default_system if system is None else system, self.kit)

    def draw_answer(
        self, question: str | Question, answer: Answer, *, system: Choice | System | None = None
    ) -> Picture:
        """The working memory behind an answer: the pool, or the hypergraph; `write_page` draws it.

        `system` is the one that answered; it may be left out where `answer.system` names it. Raises UsageError for a
        system without a working memory.
        """
        from tomewise.tome.drawings import draw_answer

        asked = Question(text=question) if isinstance(question, str) else question
        return draw_answer(asked, answer, system or answer.system, self.kit)

    def draw_trace(self, number: int) -> Picture:
        """The working memory behind a stored answer, which says what the trace left out. Raises UnknownName."""
        from tomewise.tome.drawings import draw_trace

        with explain_damage(self.store):
            return draw_trace(self.trace(number), self.kit)

    def draw_layer(
        self, layer: str, *, around: str = "", hops: int = 1, limit: int = LIMIT, trace: int | None = None
    ) -> Picture:
        """A layer as a picture, by the name that `tome show` prints, with at most `limit` (up to 500) nodes.

        A graph shows the entities within `hops` facts `around` one, or the most connected. What the answer of `trace`
        used is highlighted. Raises UnknownName, UsageError.
        """
        from tomewise.tome.drawings import draw_layer

        used = None if trace is None else self.trace(trace)
        with explain_damage(self.store):
            return draw_layer(layer, self.store, around=around, hops=hops, limit=limit, trace=used)
