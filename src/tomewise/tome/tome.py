"""`Tome`, the one class most users meet: open, add, remove, build, ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomewise.brief import describe_object
from tomewise.concurrency import run_in_thread
from tomewise.errors import UsageError
from tomewise.language.failures import MOST_FAILURES
from tomewise.language.prompts import Prompts
from tomewise.memory.building import build, estimate
from tomewise.memory.neighbours import note_sizes
from tomewise.memory.passages import PassagesLayer
from tomewise.memory.renewal import forget_memory
from tomewise.notebook_display import show_bars
from tomewise.reading.bounds import Bounds
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import NamedFile, SourceReader
from tomewise.run import open_run
from tomewise.settings import Settings, load
from tomewise.store.contract import Store
from tomewise.store.export import export
from tomewise.store.records import DocumentRecord
from tomewise.systems.layers import make_layers
from tomewise.systems.registry import DEFAULT, Choice, choose_variant
from tomewise.tome.arguments import check_arguments
from tomewise.tome.damaged import explain_damage, names_damage
from tomewise.tome.document_names import KeptNames
from tomewise.tome.drawings import Drawings
from tomewise.tome.embedder_address import find_embedder, remember_address
from tomewise.tome.entities import FoundEntity, read_entity
from tomewise.tome.exact_names import find_exactly
from tomewise.tome.extractions import provide_extractions
from tomewise.tome.fixed_settings import fix_settings, make_splitter
from tomewise.tome.inputs import Claims, check_prefix, find_document, read_documents, remember_folders
from tomewise.tome.moved_files import MovedFiles
from tomewise.tome.open_store import delete_empty_store, open_store
from tomewise.tome.overview import write_overview
from tomewise.tome.reports import AddReport, BuildReport, RemoveReport
from tomewise.tome.session_memory import forget_in_all
from tomewise.tome.session_record import SESSION_LIMIT
from tomewise.tome.traces import TRACE_BYTES
from tomewise.types import (
    Change,
    Closable,
    Document,
    DocumentId,
    Embedder,
    Estimate,
    LanguageModel,
    Layer,
    LayerReport,
    Progress,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

OnProgress = Callable[[Progress], None]
Builds = Mapping[str, Mapping[str, Any]]  # the build records by layer


class Tome(Drawings):
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
        session_limit: int = SESSION_LIMIT,
        system: str = DEFAULT,
        max_failures: int = MOST_FAILURES,
    ) -> None:
        super().__init__(store, embedder, model, prompts, trace_bytes, session_limit, system, max_failures)
        self._embedder = embedder
        self._passage_size = size  # tokens of a passage, and tokens of overlap
        self._bounds = bounds  # limits on reading one file
        self.document_names = KeptNames(store)  # under which a server shows the documents

    def __repr__(self) -> str:
        return describe_object(self, self._store.address, embedder=self._embedder.name, model=self._model.name)

    def _repr_html_(self) -> str:
        self._store.check()
        return write_overview(self._store, self._model.name)

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
        read_only: bool = False,
        embedder_base_url: str | None = None,
        prompts: str | Path | None = None,
        read_seconds: float | None = None,
        read_memory: int | None = None,
        read_characters: int | None = None,
        trace_bytes: int = TRACE_BYTES,
        session_limit: int = SESSION_LIMIT,
        system: str = DEFAULT,
        max_failures: int = MOST_FAILURES,
        **model_settings: Any,
    ) -> Tome:
        """Open the tome at `path`, or create one.

        `passage_tokens` (default: as many as the embedder sees, at most 512), `overlap` (default 0) and `embedder`
        (default "bundled") are fixed when the tome is created; later they may be left out, but must not differ.
        With `read_only` the file stays as it is: no trace and no reply is kept, and what would change it is refused.
        `prompts` is a folder whose prompts replace the packaged ones. `read_seconds`, `read_memory` (megabytes) and
        `read_characters` limit the reading of one file (see `reading.bounds`). A trace that is larger than
        `trace_bytes` is cut (see `tome.traces.make_record`). A session keeps `session_limit` entries of its working
        memory and as many turns. `system` names the system that is used where a method gets none. A build or a question
        of which `max_failures` calls fail with no reply between them ends with KeepsFailing. `models` names other
        models by role, such as `{"answer": "openai:gpt-4o"}`. `model_settings` go to the models (see `choose_model`):
        base_url, api_key, limit, timeout, window, and the limits max_calls, max_tokens and max_cost over all models
        together.
        Raises StoreError, UsageError, UnknownName.
        """
        from tomewise.language.choose_model import check_model_settings, choose_model

        named = signature(cls.open).parameters.values()
        check_model_settings(
            model_settings, [argument.name for argument in named if argument.kind is Parameter.KEYWORD_ONLY]
        )
        templates, bounds = check_arguments(
            model=model,
            models=models,
            base_url=model_settings.get("base_url"),
            embedder_base_url=embedder_base_url,
            prompts=prompts,
            read_seconds=read_seconds,
            read_memory=read_memory,
            read_characters=read_characters,
            trace_bytes=trace_bytes,
            session_limit=session_limit,
            system=system,
            max_failures=max_failures,
        )
        existed = Path(path).exists()
        store = open_store(Path(path), create=create and not read_only, read_only=read_only)
        try:
            embedder = find_embedder(store, embedder, embedder_base_url)
            size = fix_settings(store, embedder, passage_tokens, overlap)
            model = choose_model(model, models, embedder=embedder, prompts=templates, **model_settings)
        except BaseException:
            store.close()
            if not existed:
                delete_empty_store(Path(path))
            raise
        return cls(store, embedder, model, templates, size, bounds, trace_bytes, session_limit, system, max_failures)

    @classmethod
    def from_settings(cls, settings: Settings | None = None, *, create: bool = True, **changes: Any) -> Tome:
        """Open the tome that the command `tome` would open here, with the same model, embedder and limits.

        Without `settings`, those of the environment and the configuration files count (see `settings.load`). `changes`
        are arguments of `open` that come before the settings. Raises what `open` raises, and UsageError for settings
        that cannot be used.
        """
        settings = load() if settings is None else settings
        values = {field.name: getattr(settings, field.name) for field in fields(settings)} | changes
        return cls.open(values.pop("tome"), create=create, **values)

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

    # ------------------------------------------------------------ documents

    def add(
        self,
        *sources: str | Path | Document | NamedFile,
        prefix: str = "",
        follow: bool = False,
        sync: bool = False,
        keep_going: bool = False,
        on_progress: OnProgress | None = None,
    ) -> AddReport:
        """Read files, folders, `-` (standard input), or documents, and remember them.

        An unchanged document costs nothing; a document whose text changed is replaced; a row that a file no longer has
        is removed. Each document is stored whole or not at all, even if the process is killed. A file is refused if
        one of its ids belongs to a document from another source; `prefix` puts `prefix/` before the ids of rows and of
        documents passed here. With `follow`, links from a folder to files outside it are followed. With `sync`, all
        sources are folders: documents whose files are gone from them are removed, and a file that only has another path
        keeps its memory. With `keep_going`, a source that cannot be read does not stop the others (`AddReport.failed`).
        Raises ReadingError, UsageError, Locked.
        """
        options: dict[str, Any] = {"prefix": prefix, "follow": follow, "sync": sync, "keep_going": keep_going}
        return self._wait(self.aadd(*sources, **options, on_progress=on_progress))

    @names_damage
    async def aadd(
        self,
        *sources: str | Path | Document | NamedFile,
        prefix: str = "",
        follow: bool = False,
        sync: bool = False,
        keep_going: bool = False,
        on_progress: OnProgress | None = None,
    ) -> AddReport:
        """See `add`."""
        if not sources:
            raise UsageError("nothing to add: name a file, a folder, or - for standard input")
        check_prefix(prefix)
        skipped: dict[str, str] = {}
        failed: dict[str, str] = {}
        with self._store.alone("add"), ReaderProcess(self._bounds) as process:
            # Check again: another process may have fixed other settings since this tome was opened.
            size, overlap = fix_settings(self._store, self._embedder, *self._passage_size)
            remember_address(self._store, self._embedder)
            splitter = make_splitter(self._store, self._embedder, size, overlap)
            files = await run_in_thread(MovedFiles, self._store, sources if sync else ())
            claims = Claims({name: source for name, source in self._store.origins().items() if name not in files.gone})
            reader = SourceReader(process, check=claims.check, prefix=prefix, follow=follow)
            noted = failed if keep_going else None
            folders: dict[DocumentId, str] = {}
            documents = read_documents(sources, reader, claims, skipped, noted, folders, prefix=prefix)
            layer = PassagesLayer(self._store, self._embedder, splitter, files.follow(documents))
            try:
                with show_bars(on_progress) as report_progress:
                    await layer.update(Change(), report_progress)
            finally:  # also for what was kept before an error
                remember_folders(self._store, folders)
            await run_in_thread(forget_in_all, self._kit)
        return AddReport.of(layer.outcomes, skipped, files.moved, failed)

    def remove(self, document: str | DocumentRecord) -> RemoveReport:
        """Forget a document, or several, and everything derived from them alone.

        `document` is a whole id, path or title, a folder, or a pattern (see `tome.exact_names`), or one of
        `documents()`. A part of an id removes nothing. Nobody is asked. Raises UnknownName, which suggests names;
        UsageError, Locked.
        """
        return self._wait(self.aremove(document))

    @names_damage
    async def aremove(self, document: str | DocumentRecord) -> RemoveReport:
        """See `remove`."""
        with self._store.alone("remove"):
            return await run_in_thread(self._remove, document)

    def _remove(self, document: str | DocumentRecord) -> RemoveReport:
        if isinstance(document, str):
            records: Sequence[DocumentRecord] = find_exactly(document, self._store).records
        else:
            records = (self._store.record(document.id),)
        with self._store.write() as change:
            removed = sum(len(change.remove_document(record.id)) for record in records)
        forget_in_all(self._kit)
        passages = sum(record.passages for record in records)
        ids = tuple(record.id for record in records)
        return RemoveReport(ids[0] if len(ids) == 1 else str(document), passages, removed - passages, ids)

    def clean(self) -> int:
        """Delete the caches beside the tome. Returns the bytes that are free now. Raises Locked."""
        with self._store.alone("clean"):
            size = self._store.cache_size()
            self._store.clear_cache()
        return size

    def documents(self) -> list[DocumentRecord]:
        """The documents of this tome, sorted by id."""
        return self._store.documents()

    def document(self, document: str) -> Document:
        """One document with its text."""
        return self._store.document(find_document(document, self._store).id)

    def entity(self, name: str) -> FoundEntity:
        """What the graphs of this tome hold on a person, a place or a thing: its facts, passages and gists.

        Case and punctuation do not count. Raises NotBuilt without a graph, and UnknownName, which names similar ones.
        """
        with explain_damage(self._store):
            return read_entity(name, self._store)

    def export(self) -> Iterator[str]:
        """The whole memory as JSON lines in a canonical order: equal memories have equal exports."""
        with explain_damage(self._store):
            yield from export(self._store)

    # ------------------------------------------------------------ layers

    def build(
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

        `layers` names further layers, ours or a plugin's, to build together with all that they need.
        Replies of the model are stored as they come, so a build that was stopped repeats no call. A passage whose call
        fails for good is reported, and the next build tries it again; where only failures come, the build is stopped
        (KeepsFailing, see `max_failures` of `open`). `extractions` is a file of entities and facts
        that were extracted elsewhere (see `memory.imports`); they replace calls of the model. `again` names layers, or
        passages by their ids, that are to be made again: their memory is removed and the model is called again.
        Raises ModelError, BudgetExceeded, ReadingError, UnknownName, Locked.
        """
        options: dict[str, Any] = {"layers": layers, "extractions": extractions, "again": again}
        return self._wait(self.abuild(system, settings=settings, **options, on_progress=on_progress))

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
        """See `build`."""
        wired = self._layers(system, settings, layers)
        with self._store.alone("build"), open_run() as used, show_bars(on_progress) as report:
            provide = None
            if extractions:
                provide = await run_in_thread(provide_extractions, wired, Path(extractions), self._store, report)
            await run_in_thread(forget_memory, (again,) if isinstance(again, str) else again, wired, self._store)
            before = self._store.builds()
            reports = await build(wired, self._store, report, provide=provide)
            after = self._store.builds()
            noted = (self._with_model_note(report, before, after) for report in reports)
            return BuildReport(tuple(note_sizes(noted, wired, after)), used.usage())

    def _with_model_note(self, report: LayerReport, before: Builds, after: Builds) -> LayerReport:
        """The report, with a note if another model built this layer before."""
        former, latest = (builds.get(report.layer, {}).get("model") for builds in (before, after))
        current_names = self._model.name.replace("=", " ").split()
        if former is None or (former == latest and set(former.split(", ")) <= set(current_names)):
            return report
        name = self._model.name if former == latest else latest
        note = f"{former} built what was there, and it stays; to use {name} for all, add to a new tome"
        return replace(report, notes=(*report.notes, note))

    def estimate(
        self,
        system: Choice | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        layers: str | Sequence[str] = (),
        on_progress: OnProgress | None = None,
    ) -> list[Estimate]:
        """The calls and tokens that `build` would use, layer by layer, before anything is spent."""
        return self._wait(self.aestimate(system, settings=settings, layers=layers, on_progress=on_progress))

    @names_damage
    async def aestimate(
        self,
        system: Choice | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        layers: str | Sequence[str] = (),
        on_progress: OnProgress | None = None,
    ) -> list[Estimate]:
        """See `estimate`."""
        with show_bars(on_progress) as report:
            return await estimate(self._layers(system, settings, layers), self._store, report)

    def _layers(
        self, system: Choice | None, settings: Mapping[str, Any] | None, names: str | Sequence[str]
    ) -> list[Layer]:
        """The layers of a system and those of these names; of two with one name, the system's."""
        variant = choose_variant(self._default_system if system is None else system, settings)
        self._store.check()
        further = make_layers(self._kit, *((names,) if isinstance(names, str) else names))
        return list({layer.name: layer for layer in (*further, *variant.wire(self._kit).layers)}.values())
