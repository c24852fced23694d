"""`Tome`, the one class most users meet: open, add, remove, build, ask."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from tomewise.concurrency import side_by_side
from tomewise.errors import NotBuilt, StoreError, UsageError
from tomewise.fallbacks import EVENT as FALLBACKS
from tomewise.fallbacks import count_fallbacks
from tomewise.language.cached import Cached
from tomewise.language.prompts import Prompts
from tomewise.language.usage import meter
from tomewise.memory.building import Provide, build, estimate, find_lag
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.imports.given_triples import read_extractions
from tomewise.memory.passages import Outcome, PassagesLayer, TakenDocument
from tomewise.memory.renewal import take_back
from tomewise.reading.bounds import Bounds
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import SourceReader
from tomewise.store.sqlite.export import export
from tomewise.store.sqlite.store import DocumentRecord, SqliteStore
from tomewise.systems.kit import Kit, System
from tomewise.systems.registry import DEFAULT, assemble
from tomewise.systems.spec import name_of
from tomewise.tome.inputs import Claims, check_prefix, documents, the_one
from tomewise.tome.making import settle
from tomewise.tome.reports import AddReport, BuildReport, RemoveReport, as_json
from tomewise.tome.sync import LoopThread
from tomewise.trust import refuse_folder
from tomewise.types import (
    Answer,
    Closable,
    Document,
    Embedder,
    Estimate,
    Event,
    LanguageModel,
    Layer,
    LayerReport,
    Progress,
    Question,
    Report,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
OnProgress = Callable[[Progress], None]
OnEvent = Callable[[Event], None]
_STARTING = 4  # questions on their way to their first event: a model is asked early, not once all have retrieved


class Tome:
    """One memory: a set of documents and everything remembered about them.

    Every method has an async twin with an `a` in front. The plain ones also work inside a running event loop.
    """

    def __init__(
        self,
        store: SqliteStore,
        embedder: Embedder,
        model: LanguageModel,
        prompts: Prompts,
        size: tuple[int, int],
        bounds: Bounds,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._model = model
        self._prompts = prompts
        self._size = size  # of passages: tokens, and tokens of overlap
        self._bounds = bounds  # on the reading of one file
        self._thread = LoopThread()
        self._tracing = Lock()  # SQLite lets writers that compete sleep for longer than a trace takes
        self._systems: dict[str, System] = {}  # assembled once, for their indexes stay warm
        self._ready: dict[str, object] = {}  # the state of the memory at which a system's layers were found complete

    @classmethod
    def open(
        cls,
        path: str | Path = "memory.tome",
        *,
        model: str | LanguageModel = "extractive",
        embedder: str | Embedder | None = None,
        passage_tokens: int | None = None,
        overlap: int | None = None,
        create: bool = True,
        embedder_base_url: str | None = None,
        prompts: str | Path | None = None,
        read_seconds: float | None = None,
        read_memory: int | None = None,
        read_characters: int | None = None,
        **model_settings: Any,
    ) -> Tome:
        """Open the tome at `path`, or make one.

        `passage_tokens` (default: what the embedder sees whole, 512 at most), `overlap` (0) and `embedder` ("bundled")
        are fixed when the tome is made; later they may be left out, and must not differ. `prompts` is a folder with
        prompts that take the place of the packaged ones. `read_seconds`, `read_memory` (megabytes) and
        `read_characters` bound the reading of one file (see `reading.bounds`). `model_settings` go to the model that
        `model` names: base_url, api_key, limit, timeout, window, and bounds on what it may be asked: max_calls,
        max_tokens, max_cost.
        Raises StoreError, UsageError, UnknownName.
        """
        from tomewise.embedding.choose_embedder import choose_embedder
        from tomewise.language.choose_model import check_model
        from tomewise.language.spec import check_address

        wording = Prompts(Path(prompts) if prompts else None)
        bounds = Bounds.of(seconds=read_seconds, memory=read_memory, characters=read_characters)
        if isinstance(model, str):
            check_model(model, model_settings.get("base_url"))
        if embedder_base_url:
            check_address(embedder_base_url)
        store = SqliteStore.open(Path(path), create=create)
        try:
            made_with = store.meta("embedder")
            if embedder is None and made_with:
                refuse_folder(made_with, str(path))  # the file may come from anyone
            if embedder is None or isinstance(embedder, str):
                embedder = choose_embedder(embedder or made_with or "bundled", base_url=embedder_base_url)
            size = settle(store, embedder, passage_tokens, overlap)
            if isinstance(model, str):
                from tomewise.language.choose_model import choose_model

                model = choose_model(model, embedder=embedder, prompts=wording, **model_settings)
        except BaseException:
            store.close()
            raise
        return cls(store, embedder, model, wording, size, bounds)

    def __enter__(self) -> Tome:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Tome:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Let go of the file and of the model's connections."""
        try:
            # Connections belong to the event loop that opened them.
            if isinstance(self._model, Closable) and self._thread.used:
                self._thread.run(self._model.close())
        finally:
            self._thread.stop()
            self._store.close()

    async def aclose(self) -> None:
        """See `close`; for those who used the methods with an `a` in front."""
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
    def store(self) -> SqliteStore:
        """The store, for those who build parts of their own."""
        return self._store

    @property
    def kit(self) -> Kit:
        """What systems are wired from."""
        return Kit(self._store, self._model, self._embedder)

    # ------------------------------------------------------------ documents

    def add(
        self,
        *sources: str | Path | Document,
        prefix: str = "",
        follow: bool = False,
        on_progress: OnProgress | None = None,
    ) -> AddReport:
        """Read files, folders, `-` (standard input), or documents, and remember them.

        A document that is there unchanged is recognised and costs nothing; one whose text changed is replaced; a row
        that its file has no more is removed. Each document is kept whole or not at all, also when the process is
        killed. Nothing of a file is taken when one of its ids is that of a document from another source; `prefix` puts
        `prefix/` before the ids of rows and of documents given here. `follow` reads files outside of a folder to which
        links in it lead. Raises ReadingError, UsageError, Locked.
        """
        return self._wait(self.aadd(*sources, prefix=prefix, follow=follow, on_progress=on_progress))

    async def aadd(
        self,
        *sources: str | Path | Document,
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
        taken: list[TakenDocument] = []
        with self._store.exclusive(), ReaderProcess(self._bounds) as process:
            # Nobody may have settled on something else since this was opened.
            size, overlap = settle(self._store, self._embedder, *self._size)
            splitter = PassageSplitter(self._embedder.tokenizer, max_tokens=size, overlap=overlap)
            layer = PassagesLayer(self._store, self._embedder, splitter)
            claims = Claims(self._store.origins())
            reader = SourceReader(process, check=claims.check, prefix=prefix, follow=follow)
            async for what in layer.add(documents(sources, reader, claims, skipped, prefix=prefix)):
                if isinstance(what, TakenDocument):
                    taken.append(what)
                elif on_progress:
                    on_progress(what)
        return _report(taken, skipped)

    def remove(self, document: str) -> RemoveReport:
        """Forget a document, named by id, path, title or unique part of its id, and all that rested on it alone."""
        return self._wait(self.aremove(document))

    async def aremove(self, document: str) -> RemoveReport:
        """See `remove`."""
        with self._store.exclusive():
            return await asyncio.to_thread(self._remove, document)

    def _remove(self, document: str) -> RemoveReport:
        record = the_one(document, self._store)
        with self._store.write() as change:
            gone = change.remove_document(record.id)
        return RemoveReport(record.id, record.passages, len(gone) - record.passages)

    def documents(self) -> list[DocumentRecord]:
        """What this tome holds, by id."""
        return self._store.documents()

    def document(self, document: str) -> Document:
        """One document with its text."""
        return self._store.document(the_one(document, self._store).id)

    def export(self) -> Iterator[str]:
        """The whole memory as JSON lines in one canonical order: equal memories export equally."""
        return export(self._store)

    # ------------------------------------------------------------ layers

    def build(
        self,
        system: str = DEFAULT,
        *,
        extractions: str | Path | None = None,
        again: str | Sequence[str] = (),
        on_progress: OnProgress | None = None,
        **settings: Any,
    ) -> BuildReport:
        """Bring the memory layers that a system needs up to date.

        Replies of the model are kept as they come: a build that was stopped repeats none of them. A passage whose call
        fails for good is reported, and tried again by the next build. `extractions` names a file of entities and facts
        extracted elsewhere (see `memory.imported`), taken in instead of asking. `again` names layers, or passages by
        their ids, to be made anew: what was remembered of them goes, and the model is asked again. Raises ModelError,
        BudgetExceeded, ReadingError, UnknownName, Locked.
        """
        work = self.abuild(system, extractions=extractions, again=again, on_progress=on_progress, **settings)
        return self._wait(work)

    async def abuild(
        self,
        system: str = DEFAULT,
        *,
        extractions: str | Path | None = None,
        again: str | Sequence[str] = (),
        on_progress: OnProgress | None = None,
        **settings: Any,
    ) -> BuildReport:
        """See `build`."""
        layers = self._layers(system, settings)
        report = on_progress or (lambda _: None)
        with self._store.exclusive(), meter() as used:
            given = (layers, Path(extractions), self._store, report) if extractions else None
            provide = await asyncio.to_thread(_provider, *given) if given else None
            await asyncio.to_thread(take_back, (again,) if isinstance(again, str) else again, layers, self._store)
            made_by = {layer: record.get("model") for layer, record in self._store.builds().items()}
            reports = await build(layers, self._store, report, provide=provide)
            return BuildReport(tuple(self._told_apart(one, made_by.get(one.layer)) for one in reports), used.usage())

    def _told_apart(self, report: LayerReport, model: str | None) -> LayerReport:
        """With a note where the layer was there already and is of another model."""
        if model in (None, self._model.name):
            return report
        note = f"what was there is of {model}, and stays; for {self._model.name} throughout, add to a new tome"
        return replace(report, notes=(*report.notes, note))

    def estimate(self, system: str = DEFAULT, **settings: Any) -> list[Estimate]:
        """What `build` would ask of the model, layer by layer, before anything is spent."""
        return self._wait(self.aestimate(system, **settings))

    async def aestimate(self, system: str = DEFAULT, **settings: Any) -> list[Estimate]:
        """See `estimate`."""
        return await estimate(self._layers(system, settings), self._store)

    def _layers(self, system: str, settings: Mapping[str, Any]) -> tuple[Layer, ...]:
        self._store.check()
        remembering = Cached(self._model, self._prompts, self._store.calls)
        return assemble(system, Kit(self._store, remembering, self._embedder), **settings).layers

    # ------------------------------------------------------------ questions

    def ask(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        system: str = DEFAULT,
        on_event: OnEvent | None = None,
        **settings: Any,
    ) -> Answer:
        """Answer a question, free or multiple-choice, or decline it. `settings` go to the system's recipe.

        `force` asks for a guess where the memory does not hold the answer; without it the answer is then not
        `resolved` and says what is `missing`. Raises UsageError for an empty question, UnknownName, NotBuilt,
        ModelError.
        """
        asked: dict[str, Any] = {"options": options, "instructions": instructions, "force": force, "system": system}
        return self._wait(self.aask(question, on_event=on_event, **asked, **settings))

    async def aask(
        self,
        question: str | Question,
        *,
        options: Sequence[str] = (),
        instructions: str = "",
        force: bool = False,
        system: str = DEFAULT,
        on_event: OnEvent | None = None,
        **settings: Any,
    ) -> Answer:
        """See `ask`."""
        if isinstance(question, str):
            question = Question(text=question, options=tuple(options), instructions=instructions, force=force)
        elif options or instructions:
            raise UsageError("a Question brings its own options and instructions: put them there")
        elif force:
            question = replace(question, force=True)
        _check(question)
        with meter() as used:
            answer = await self._run(question, system, on_event, settings)
            answer = replace(answer, usage=used.usage())
        await asyncio.to_thread(self._keep, question, answer)
        return answer

    def ask_many(self, questions: Iterable[str | Question], *, system: str = DEFAULT, **settings: Any) -> list[Answer]:
        """Answer several questions side by side, within the model's limit; answers in the order of questions."""
        return self._wait(self.aask_many(questions, system=system, **settings))

    async def aask_many(
        self, questions: Iterable[str | Question], *, system: str = DEFAULT, **settings: Any
    ) -> list[Answer]:
        """See `ask_many`."""
        self._store.check()
        starting = asyncio.Semaphore(_STARTING)

        async def one(question: str | Question) -> Answer:
            await starting.acquire()
            held = [starting]

            def begun(_: Event | None = None) -> None:
                if held:
                    held.pop().release()

            try:
                return await self.aask(question, system=system, on_event=begun, **settings)
            finally:
                begun()

        async with side_by_side() as group:
            asked = [group.create_task(one(question)) for question in questions]
        return [task.result() for task in asked]

    async def _run(
        self, question: Question, name: str, on_event: OnEvent | None, settings: Mapping[str, Any]
    ) -> Answer:
        key = f"{name} {sorted(settings.items())}"
        if key not in self._systems:
            self._systems[key] = assemble(name, self.kit, **settings)
        system = self._systems[key]
        said = name_of(name, settings)
        if not self._store.holds_documents():
            raise NotBuilt(
                f"{self._store.path} holds no document yet: "
                f"add one with `tome add --tome {quote(str(self._store.path))} PATH`"
            )
        state = await asyncio.to_thread(self._state) if system.layers else None
        if system.layers and self._ready.get(key) != state:
            await asyncio.to_thread(self._check_layers, said, system)
            self._ready[key] = state
        answer = await answered(system, question, on_event)
        return replace(answer, system=said, model=self._model.name)

    def _state(self) -> object:
        return self._store.version("vectors/passages"), self._store.builds()

    def _check_layers(self, said: str, system: System) -> None:
        if lag := find_lag(system.layers, self._store):
            lacks = ", ".join(f"{layer} ({_lacking(count)})" for layer, count in lag.items())
            make = f"tome build --tome {quote(str(self._store.path))} --system {quote(said)}"
            raise NotBuilt(f"{said} needs layers that are not up to date: {lacks}; run `{make}`")

    def _keep(self, question: Question, answer: Answer) -> None:
        if self._store.read_only:
            return
        record = {**as_json(answer), "events": [asdict(event) for event in answer.events]}
        try:
            with self._tracing:
                self._store.save_trace(asked=datetime.now(UTC).isoformat(), question=question.text, record=record)
        except StoreError as error:  # somebody else is writing, or the file may only be read
            # The answer is worth more than its trace.
            warnings.warn(f"the trace of this answer was not kept: {error}", stacklevel=2)


async def answered(system: System, question: Question, on_event: OnEvent | None = None) -> Answer:
    """Run an assembled system on a question: its answer with the events on the way and what was used.

    Where something fell back (see `fallbacks`), the last event says what and how often. Keeps no trace and checks no
    layer: for callers who ask many questions of one system. Raises ModelError.
    """
    events: list[Event] = []

    def keep(event: Event) -> None:
        events.append(event)
        if on_event:
            on_event(event)

    with meter() as used, count_fallbacks() as fallbacks:
        async for what in system.loop.run(question):
            if isinstance(what, Event):
                keep(what)
                continue
            if fallbacks:
                keep(Event(name=FALLBACKS, detail=dict(sorted(fallbacks.items()))))
            return replace(what, events=tuple(events), usage=used.usage())
    raise RuntimeError(f"{type(system.loop).__name__} ended without an answer")


def _report(taken: Sequence[TakenDocument], skipped: Mapping[str, str]) -> AddReport:
    by_outcome = {
        outcome: tuple(item.document for item in taken if item.outcome == outcome) for outcome in get_args(Outcome)
    }
    return AddReport(**by_outcome, passages=sum(item.passages for item in taken), skipped=skipped)


def _provider(layers: Sequence[Layer], path: Path, store: SqliteStore, report: Report) -> Provide:
    """Gives the graphs among the layers extractions from a file, before anything is asked for them.

    Raises UsageError where a graph cannot take them, see `GraphLayer.take`.
    """
    found = read_extractions(path, store)
    graphs = {one.name: one for one in layers if isinstance(one, GraphLayer) and one.names.style == found.style}
    if not graphs:
        raise UsageError(f"{path} holds {found.style} of passages, which this system has no layer for: leave it out")
    for graph in graphs.values():
        graph.check_takes(found)

    async def provide(layer: Layer) -> LayerReport | None:
        if (graph := graphs.get(layer.name)) is None:
            return None
        taken = await graph.take(found, report)
        return replace(taken, notes=(f"{path.name}: {found.coverage}", *taken.notes))

    return provide


def _lacking(count: int) -> str:
    return f"{count:,} to take in" if count else "something was removed"


def _check(question: Question) -> None:
    for text in (question.text, question.instructions, *question.options):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"the question holds bytes that are no UTF-8: {text[:80]!a}: type it again") from None
    if not question.text.strip():
        raise UsageError("the question is empty: say what you want to know")
    if len(question.options) == 1 or not all(option.strip() for option in question.options):
        raise UsageError("a multiple-choice question needs two options or more, none of them empty")
    if len(question.options) > 26:
        raise UsageError(f"{len(question.options)} options are more than there are letters: give at most 26")
