"""`Tome`, the one class most users meet: open, add, remove, build, ask."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from tomewise.errors import StoreError, UsageError
from tomewise.language.budget import BudgetPerWork
from tomewise.language.cached import Cached, ask_anew
from tomewise.language.places import use_own_queue
from tomewise.language.prompts import Prompts
from tomewise.language.usage import meter
from tomewise.memory.building import build, estimate
from tomewise.memory.neighbours import note_sizes
from tomewise.memory.passages import PassagesLayer
from tomewise.memory.renewal import take_back
from tomewise.reading.bounds import Bounds
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import NamedFile, SourceReader
from tomewise.store.contract import Store
from tomewise.store.export import export
from tomewise.store.records import DocumentRecord
from tomewise.systems.answer import OnEvent, answer_question
from tomewise.systems.kit import Kit, System, find_recall
from tomewise.systems.registry import DEFAULT
from tomewise.systems.spec import Choice, choose_variant
from tomewise.tome.asking import Ask, answer_many, stream_answer
from tomewise.tome.extractions import provide_extractions
from tomewise.tome.fixed_settings import fix_settings
from tomewise.tome.inputs import Claims, check_prefix, check_question, find_document, read_documents
from tomewise.tome.open_store import open_store
from tomewise.tome.ready_systems import ReadySystems, choose_system
from tomewise.tome.reports import AddReport, BuildReport, RemoveReport
from tomewise.tome.scopes import Narrowing, find_scope, narrow
from tomewise.tome.sync import LoopThread
from tomewise.tome.traces import (
    TRACE_BYTES,
    Trace,
    check_trace_bytes,
    delete_trace,
    find_trace,
    find_traces,
    make_record,
)
from tomewise.trust import refuse_folder
from tomewise.types import (
    Answer,
    Change,
    Closable,
    Document,
    Embedder,
    Estimate,
    Event,
    Evidence,
    LanguageModel,
    Layer,
    LayerReport,
    Progress,
    Question,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
OnProgress = Callable[[Progress], None]
Builds = Mapping[str, Mapping[str, Any]]  # the build records by layer


class Tome:
    """One memory: a set of documents and everything remembered about them.

    Every method has an async twin with an `a` in front. The plain methods also work inside a running event loop.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        model: LanguageModel,
        prompts: Prompts,
        size: tuple[int, int],
        bounds: Bounds,
        trace_bytes: int = TRACE_BYTES,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._model = model
        self._prompts = prompts
        self._passage_size = size  # tokens of a passage, and tokens of overlap
        self._bounds = bounds  # limits on reading one file
        self._trace_bytes = trace_bytes  # size limit of one trace
        self._thread = LoopThread()
        self._trace_lock = Lock()  # without it SQLite makes competing writers sleep longer than writing a trace takes
        self._kit = Kit(store, Cached(BudgetPerWork(model), prompts, store.calls), embedder)
        self._systems = ReadySystems(self._kit)

    @classmethod
    def open(
        cls,
        path: str | Path = "memory.tome",
        *,
        model: str | LanguageModel = "extractive",
        models: Mapping[str, str | LanguageModel] | None = None,
        embedder: str | Embedder | None = None,
        passage_tokens: int | None = None,
        overlap: int | None = None,
        create: bool = True,
        embedder_base_url: str | None = None,
        prompts: str | Path | None = None,
        read_seconds: float | None = None,
        read_memory: int | None = None,
        read_characters: int | None = None,
        trace_bytes: int = TRACE_BYTES,
        **model_settings: Any,
    ) -> Tome:
        """Open the tome at `path`, or create one.

        `passage_tokens` (default: as many as the embedder sees, at most 512), `overlap` (default 0) and `embedder`
        (default "bundled") are fixed when the tome is created; later they may be left out, but must not differ.
        `prompts` is a folder whose prompts replace the packaged ones. `read_seconds`, `read_memory` (megabytes) and
        `read_characters` limit the reading of one file (see `reading.bounds`). A trace that is larger than
        `trace_bytes` is cut (see `tome.traces.make_record`). `models` names other models by role, such as
        `{"answer": "openai:gpt-4o"}`. `model_settings` go to the models (see `choose_model`): base_url, api_key, limit,
        timeout, window, and the limits max_calls, max_tokens and max_cost over all models together.
        Raises StoreError, UsageError, UnknownName.
        """
        from tomewise.embedding.choose_embedder import choose_embedder
        from tomewise.language.choose_model import check_models, choose_model
        from tomewise.language.spec import check_address

        check_trace_bytes(trace_bytes)
        templates = Prompts(Path(prompts) if prompts else None)
        bounds = Bounds.of(seconds=read_seconds, memory=read_memory, characters=read_characters)
        check_models(model, models or {}, model_settings.get("base_url"))
        if embedder_base_url:
            check_address(embedder_base_url)
        store = open_store(Path(path), create=create)
        try:
            recorded_embedder = store.meta("embedder")
            if embedder is None and recorded_embedder:
                refuse_folder(recorded_embedder, str(path))  # the tome may come from anyone
            if embedder is None or isinstance(embedder, str):
                embedder = choose_embedder(embedder or recorded_embedder or "bundled", base_url=embedder_base_url)
            size = fix_settings(store, embedder, passage_tokens, overlap)
            model = choose_model(model, models, embedder=embedder, prompts=templates, **model_settings)
        except BaseException:
            store.close()
            raise
        return cls(store, embedder, model, templates, size, bounds, trace_bytes)

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
            self._store.close()

    async def aclose(self) -> None:
        """See `close`; for callers of the async methods."""
        if isinstance(self._model, Closable):
            await self._model.close()
        await asyncio.to_thread(self.close)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            self._store.check()
        except StoreError:
            work.close()
            raise
        return self._thread.run(work)

    @property
    def store(self) -> Store:
        """The store, for people who write their own parts."""
        return self._store

    @property
    def kit(self) -> Kit:
        """The store, model and embedder from which systems are wired. The model's replies are kept in the store."""
        return self._kit

    # ------------------------------------------------------------ documents

    def add(
        self,
        *sources: str | Path | Document | NamedFile,
        prefix: str = "",
        follow: bool = False,
        on_progress: OnProgress | None = None,
    ) -> AddReport:
        """Read files, folders, `-` (standard input), or documents, and remember them.

        An unchanged document costs nothing; a document whose text changed is replaced; a row that a file no longer has
        is removed. Each document is stored whole or not at all, even if the process is killed. A file is refused if
        one of its ids belongs to a document from another source; `prefix` puts `prefix/` before the ids of rows and of
        documents passed here. With `follow`, links from a folder to files outside it are followed.
        Raises ReadingError, UsageError, Locked.
        """
        return self._wait(self.aadd(*sources, prefix=prefix, follow=follow, on_progress=on_progress))

    async def aadd(
        self,
        *sources: str | Path | Document | NamedFile,
        prefix: str = "",
        follow: bool = False,
        on_progress: OnProgress | None = None,
    ) -> AddReport:
        """See `add`."""
        from tomewise.reading.splitter import PassageSplitter

        if not sources:
            raise UsageError("nothing to add: name a file, a folder, or - for standard input")
        check_prefix(prefix)
        skipped: dict[str, str] = {}
        with self._store.alone("add"), ReaderProcess(self._bounds) as process:
            # Check again: another process may have fixed other settings since this tome was opened.
            size, overlap = fix_settings(self._store, self._embedder, *self._passage_size)
            splitter = PassageSplitter(self._embedder.tokenizer, max_tokens=size, overlap=overlap)
            claims = Claims(self._store.origins())
            reader = SourceReader(process, check=claims.check, prefix=prefix, follow=follow)
            documents = read_documents(sources, reader, claims, skipped, prefix=prefix)
            layer = PassagesLayer(self._store, self._embedder, splitter, documents)
            await layer.update(Change(), on_progress or (lambda _: None))
        return AddReport.of(layer.taken, skipped)

    def remove(self, document: str) -> RemoveReport:
        """Forget a document and everything derived from it alone.

        `document` is its id, path, title, or a part of its id that no other id has.
        """
        return self._wait(self.aremove(document))

    async def aremove(self, document: str) -> RemoveReport:
        """See `remove`."""
        with self._store.alone("remove"):
            return await asyncio.to_thread(self._remove, document)

    def _remove(self, document: str) -> RemoveReport:
        record = find_document(document, self._store)
        with self._store.write() as change:
            removed = change.remove_document(record.id)
        return RemoveReport(record.id, record.passages, len(removed) - record.passages)

    def documents(self) -> list[DocumentRecord]:
        """The documents of this tome, sorted by id."""
        return self._store.documents()

    def document(self, document: str) -> Document:
        """One document with its text."""
        return self._store.document(find_document(document, self._store).id)

    def export(self) -> Iterator[str]:
        """The whole memory as JSON lines in a canonical order: equal memories have equal exports."""
        return export(self._store)

    # ------------------------------------------------------------ layers

    def build(
        self,
        system: Choice = DEFAULT,
        *,
        settings: Mapping[str, Any] | None = None,
        extractions: str | Path | None = None,
        again: str | Sequence[str] = (),
        on_progress: OnProgress | None = None,
    ) -> BuildReport:
        """Bring the memory layers that a system needs up to date; for `system` and `settings` see `ask`.

        Replies of the model are stored as they come, so a build that was stopped repeats no call. A passage whose call
        fails for good is reported, and the next build tries it again. `extractions` is a file of entities and facts
        that were extracted elsewhere (see `memory.imports`); they replace calls of the model. `again` names layers, or
        passages by their ids, that are to be made again: their memory is removed and the model is called again.
        Raises ModelError, BudgetExceeded, ReadingError, UnknownName, Locked.
        """
        work = self.abuild(system, settings=settings, extractions=extractions, again=again, on_progress=on_progress)
        return self._wait(work)

    async def abuild(
        self,
        system: Choice = DEFAULT,
        *,
        settings: Mapping[str, Any] | None = None,
        extractions: str | Path | None = None,
        again: str | Sequence[str] = (),
        on_progress: OnProgress | None = None,
    ) -> BuildReport:
        """See `build`."""
        layers = self._layers(system, settings)
        report = on_progress or (lambda _: None)
        with self._store.alone("build"), meter() as used:
            provide = None
            if extractions:
                provide = await asyncio.to_thread(provide_extractions, layers, Path(extractions), self._store, report)
            await asyncio.to_thread(take_back, (again,) if isinstance(again, str) else again, layers, self._store)
            before = self._store.builds()
            reports = await build(layers, self._store, report, provide=provide)
            after = self._store.builds()
            noted = (self._with_model_note(report, before, after) for report in reports)
            return BuildReport(tuple(note_sizes(noted, layers, after)), used.usage())

    def _with_model_note(self, report: LayerReport, before: Builds, after: Builds) -> LayerReport:
        """The report, with a note if another model built this layer before."""
        former, latest = (builds.get(report.layer, {}).get("model") for builds in (before, after))
        current_names = self._model.name.replace("=", " ").split()
        if former is None or (former == latest and set(former.split(", ")) <= set(current_names)):
            return report
        name = self._model.name if former == latest else latest
        note = f"{former} built what was there, and it stays; to use {name} for all, add to a new tome"
        return replace(report, notes=(*report.notes, note))

    def estimate(self, system: Choice = DEFAULT, *, settings: Mapping[str, Any] | None = None) -> list[Estimate]:
        """The calls and tokens that `build` would use, layer by layer, before anything is spent."""
        return self._wait(self.aestimate(system, settings=settings))

    async def aestimate(self, system: Choice = DEFAULT, *, settings: Mapping[str, Any] | None = None) -> list[Estimate]:
        """See `estimate`."""
        return await estimate(self._layers(system, settings), self._store)

    def _layers(self, system: Choice, settings: Mapping[str, Any] | None) -> tuple[Layer, ...]:
        variant = choose_variant(system, settings)
        self._store.check()
        return variant.wire(self._kit).layers

    # ------------------------------------------------------------ questions

    def ask(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        fresh: bool = False,
        system: Choice | System = DEFAULT,
        settings: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> Answer:
        """Answer a question, free or multiple-choice, or decline it.

        `system` is the text that names a system ("comorag", "comorag cycles=2", "comorag:without episodic"), a recipe
        (a function of a `Kit` that returns a `System`), or a `System` made from `Tome.kit`. `settings` holds further
        settings for the recipe.
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

    async def aask(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        fresh: bool = False,
        system: Choice | System = DEFAULT,
        settings: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> Answer:
        """See `ask`."""
        if isinstance(question, str):
            question = Question(text=question, options=tuple(options), instructions=instructions, force=force)
        elif options or instructions:
            raise UsageError("a Question has its own options and instructions: put them there")
        elif force:
            question = replace(question, force=True)
        check_question(question)
        question = await narrow(question, self._store, **narrowing)
        name, choice = choose_system(system, settings)
        with use_own_queue(), meter() as used, ask_anew(token_hex(8) if fresh else ""):
            answer = await answer_question(await self._systems.prepare(choice), question, on_event)
            answer = replace(answer, system=name, model=self._model.name, usage=used.usage())
        return replace(answer, trace=await asyncio.to_thread(self._save_trace, question, answer))

    def astream(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        fresh: bool = False,
        system: Choice | System = DEFAULT,
        settings: Mapping[str, Any] | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> AsyncGenerator[Event | Answer, None]:
        """Answer a question like `aask`, and yield each event as it happens; the last item is the answer.

        To leave early cancels the calls under way: at once with `contextlib.aclosing`, or when the generator is freed.
        """
        more = {"options": options, "instructions": instructions, "force": force, "fresh": fresh}
        return stream_answer(self._prepare_asking(system, settings, narrowing, **more), question)

    @overload
    def ask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System = DEFAULT,
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
        system: Choice | System = DEFAULT,
        settings: Mapping[str, Any] | None = None,
        fresh: bool = False,
        return_exceptions: Literal[True],
        **narrowing: Unpack[Narrowing],
    ) -> list[Answer | Exception]: ...

    def ask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System = DEFAULT,
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
        system: Choice | System = DEFAULT,
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
        system: Choice | System = DEFAULT,
        settings: Mapping[str, Any] | None = None,
        fresh: bool = False,
        return_exceptions: Literal[True],
        **narrowing: Unpack[Narrowing],
    ) -> list[Answer | Exception]: ...

    async def aask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System = DEFAULT,
        settings: Mapping[str, Any] | None = None,
        fresh: bool = False,
        return_exceptions: bool = False,
        **narrowing: Unpack[Narrowing],
    ) -> list[Answer] | list[Answer | Exception]:
        """See `ask_many`."""
        self._store.check()
        ask = self._prepare_asking(system, settings, narrowing, fresh=fresh)
        return await answer_many(ask, questions, return_exceptions=return_exceptions)

    def _prepare_asking(
        self, system: Choice | System, settings: Mapping[str, Any] | None, narrowing: Narrowing, **arguments: Any
    ) -> Ask:
        """A function that asks one question of this system, with further arguments of `aask`."""
        _, choice = choose_system(system, settings)  # once for all questions, and so is the scope
        if scope := find_scope(self._store, **narrowing):
            arguments["within"] = scope

        def ask(question: str | Question, on_event: OnEvent) -> Coroutine[Any, Any, Answer]:
            return self.aask(question, system=choice, on_event=on_event, **arguments)

        return ask

    # ------------------------------------------------------------ traces

    def traces(self, limit: int = 20) -> list[Trace]:
        """How the latest questions were answered, newest first."""
        return find_traces(self._store, limit)

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
        system: Choice | System = DEFAULT,
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

    async def asearch(
        self,
        query: str,
        *,
        system: Choice | System = DEFAULT,
        settings: Mapping[str, Any] | None = None,
        limit: int = 10,
        **narrowing: Unpack[Narrowing],
    ) -> list[Evidence]:
        """See `search`."""
        check_question(question := Question(text=query))
        if limit < 1:
            raise UsageError(f"a search for {limit} pieces of evidence finds nothing: ask for 1 or more")
        question = await narrow(question, self._store, **narrowing)
        name, choice = choose_system(system, settings)
        ready = await self._systems.prepare(choice)
        return await find_recall(name, ready).retriever.retrieve(query, limit, within=question.within)

    def _save_trace(self, question: Question, answer: Answer) -> int | None:
        """The number of the trace, None where it was not kept."""
        if self._store.read_only:
            return None
        record = make_record(question, answer, self._trace_bytes)
        try:
            with self._trace_lock:
                return self._store.save_trace(
                    asked=datetime.now(UTC).isoformat(), question=question.text, record=record
                )
        except StoreError as error:  # another process is writing, or the file is read-only
            # Return the answer anyway: it is worth more than its trace.
            warnings.warn(f"the trace of this answer was not kept: {error}", stacklevel=2)
            return None
