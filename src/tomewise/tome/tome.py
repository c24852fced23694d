"""`Tome`, the one class most users meet: open, add, remove, build, ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tomewise.brief import describe_object
from tomewise.notebook_display import show_bars
from tomewise.settings import DEFAULTS, Settings, load
from tomewise.store.address import find_place
from tomewise.tome.arguments import LIMITS, MODEL_SETTINGS, check_pool, check_type, read_arguments, read_prompts
from tomewise.tome.fixed_settings import find_embedder, fix_settings
from tomewise.tome.open_store import delete_empty_store, exists, open_store
from tomewise.tome.open_tome import OpenTome, names_damage, plain
from tomewise.tome.traces import Traces
from tomewise.tome.view import TomeView
from tomewise.types import Closable, Condition, Document, Progress, Scope

# What a tome works with is imported where it is first used: who only looks at a tome does not wait for it.
if TYPE_CHECKING:
    from tomewise.cluster.worker_pool import WorkerPool
    from tomewise.language.prompts import Prompts
    from tomewise.reading.read import NamedFile
    from tomewise.settings import Stated
    from tomewise.store.contract import Store
    from tomewise.store.records import DocumentRecord
    from tomewise.systems.kit import Kit
    from tomewise.systems.registry import Choice
    from tomewise.tome.reports import AddReport, BuildReport, RemoveReport
    from tomewise.types import Embedder, LanguageModel, Metadata

OnProgress = Callable[[Progress], None]


class Tome(TomeView):
    """One memory: a set of documents and everything remembered about them.

    What reads files or asks models is asynchronous, with an `a` in front (`aask`), and has a plain twin (`ask`), which
    also works inside a running event loop. `documents`, `memory`, `sessions` and `traces` are what it holds; what
    can be asked of it, and of a part of it, is described at `TomeView`.
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
        super().__init__(OpenTome(store, model, embedder, prompts, size, settings))
        self._pool: WorkerPool | None = None

    def __repr__(self) -> str:
        return describe_object(self, self.store.address, embedder=self._opened.embedder.name, model=self.model_name)

    def _repr_html_(self) -> str:
        from tomewise.tome.contents import write_overview

        self.store.check()
        return write_overview(self.store, self.model_name)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str] = "memory.tome",
        *,
        store: Store | None = None,
        model: str | LanguageModel = DEFAULTS.model,
        models: Mapping[str, str | LanguageModel] | None = None,
        embedder: str | Embedder | None = None,
        prompts: str | PathLike[str] | None = None,
        api_key: str | None = None,
        create: bool = True,
        read_only: bool = False,
        on: str | None = None,
        workers: int | None = None,
        **settings: Unpack[Stated],
    ) -> Tome:
        """Open the tome at `path`, or create one; or the one that a `store` of your own holds, whatever the path.

        `path` is a file, or a tome in PostgreSQL: `postgresql://host/database#name`. Closing the tome closes the store.
        The further arguments are settings; `tome config` lists them with their defaults. `passage_tokens` (default: as
        many as the embedder sees, at most 512), `overlap` (default 0) and `embedder` (default "bundled") are fixed when
        the tome is created; later they may be left out, but must not differ. With `read_only` the file stays as it is:
        no trace and no reply is kept, and what would change it is refused. `prompts` is a folder whose prompts replace
        the packaged ones. `read_seconds`, `read_memory` (megabytes), `read_characters` and `read_documents` limit the
        reading of one file. A trace that is larger than `trace_bytes` is cut. A session keeps `session_limit` entries
        of its working memory and as many turns. In PostgreSQL with pgvector, more vectors of a layer than `exact_rows`
        are searched approximately. `system` names the system that is used where a method gets none. A build or a
        question of which `max_failures` calls fail with no reply between them ends with KeepsFailing. `models` names
        other models by role, such as `{"answer": "openai:gpt-4o"}`. `base_url`, `api_key`, `limit`, `timeout`,
        `window`, and `max_calls`, `max_tokens` and `max_cost`, which hold over all models together, go to the models.
        With `on="ray"`, `workers` embed texts and ask models, on the cluster that RAY_ADDRESS names (default: one for
        every two of its CPUs) or on one that is started on this machine, with keys of their own. That cluster, and
        then each worker, may take `start_seconds` to start. This process alone reads and writes the tome.
        Raises StoreError, UsageError, UnknownName.
        """
        from tomewise.language.choose_model import choose_model, limit_spending

        given: dict[str, Any] = {"model": model, "models": models, "embedder": embedder, "prompts": prompts, **settings}
        stated = read_arguments(given, {"api_key", "create", "on", "read_only", "store", "workers"})
        check_pool(on, workers)
        templates = read_prompts(stated)
        check_type("path", path, str | PathLike, "a path")
        check_type("api_key", api_key, str | None, "a text")
        is_object = not isinstance(embedder, str | None)
        unfilled, pool = None, None  # what this makes, and workers
        if store is None:
            place = find_place(path)
            unfilled = None if not create or read_only or exists(place) else place
            is_made = create and not read_only
            store = open_store(place, create=is_made, read_only=read_only, exact_rows=stated.exact_rows)
        try:
            embedder = find_embedder(store, embedder, stated.embedder_base_url)
            size = fix_settings(store, embedder, stated.passage_tokens, stated.overlap)
            if on:
                from tomewise.cluster.pooled_model import make_model_parts
                from tomewise.cluster.worker_pool import open_pool

                parts = make_model_parts(model, models, templates, api_key, stated)
                pool = open_pool(embedder, parts, workers, by_name=not is_object, start_seconds=stated.start_seconds)
            made = {name: getattr(stated, name) for name in MODEL_SETTINGS}
            model = choose_model(model, models, embedder=embedder, prompts=templates, api_key=api_key, **made)
            if pool is not None:
                from tomewise.cluster.pooled_model import PooledModel

                model = PooledModel(model, pool, stated.limit)
            model = limit_spending(model, **{name: getattr(stated, name) for name in LIMITS})
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
        opened = cls(store, model, embedder, templates, size, stated)
        opened._pool = pool
        return opened

    @classmethod
    def from_settings(cls, settings: Settings | None = None, *, create: bool = True, **changes: Any) -> Tome:
        """Open the tome that the command `tome` would open here, with the same model, embedder and limits.

        Without `settings`, those of the environment and the configuration files count. `changes` are arguments of
        `open` that come before the settings. Raises what `open` raises, and UsageError for settings that cannot be
        used.
        """
        check_type("settings", settings, Settings | None, "Settings, see `tomewise.settings.load`")
        settings = load() if settings is None else settings
        values = asdict(settings) | changes
        return cls.open(values.pop("tome"), create=create, **values)

    @property
    def kit(self) -> Kit:
        """The store, model and embedder from which systems are wired. The model's replies are kept in the store."""
        return self._opened.kit

    @property
    def traces(self) -> Traces:
        """How questions were answered: by a number, or the latest."""
        return self._opened.traces

    @property
    def model_name(self) -> str:
        """The name of the model that answers."""
        return self._opened.model.name

    @property
    def default_system(self) -> str:
        """The system that answers, builds and searches where none is named."""
        return self._opened.settings.system

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
            if isinstance(self._opened.model, Closable) and self._opened.thread.runs:
                self._opened.thread.run(self._opened.model.close())
        finally:
            self._opened.thread.stop()
            try:
                if self._pool is not None:
                    self._pool.close()
            finally:
                self.store.close()

    async def aclose(self) -> None:
        """See `close`; for callers of the async methods."""
        if isinstance(self._opened.model, Closable):
            await self._opened.model.close()
        await asyncio.to_thread(self.close)

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
                self._opened.size,
                self._opened.settings,
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

    @names_damage
    async def abuild(
        self,
        system: Choice | None = None,
        *,
        layers: str | Sequence[str] = (),
        extractions: str | Path | None = None,
        again: str | Sequence[str] = (),
        on_progress: OnProgress | None = None,
    ) -> BuildReport:
        """Bring the memory layers that a system needs up to date; for `system` see `ask`.

        `layers` names further layers, ours or a plugin's, to build together with all that they need. Replies of the
        model are stored as they come, so a build that was stopped repeats no call. A passage whose call fails for good
        is reported, and the next build tries it again; where only failures come, the build is stopped (KeepsFailing,
        see `max_failures` of `open`). `extractions` is a file of entities and facts that were extracted elsewhere; they
        replace calls of the model. `again` names layers, or passages by their ids, that are to be made again: their
        memory is removed and the model is called again.
        Raises ModelError, BudgetExceeded, ReadingError, UnknownName, Locked.
        """
        from tomewise.tome.builds import build_layers, wire_layers

        wired = wire_layers(self.kit, self.default_system if system is None else system, layers)
        with show_bars(on_progress) as report:
            return await build_layers(self.kit, wired, report, extractions, again)

    build = plain(abuild)

    def within(
        self, *documents: str | DocumentRecord | Scope, where: str | Condition | Sequence[str | Condition] = ()
    ) -> TomeView:
        """A part of this tome, which is asked, searched and read like the whole.

        `documents` are ids, paths, titles, folders, patterns such as `notes/*.md`, or parts of an id that no other id
        has, or are some of `documents()`; or one `Scope` alone. `where` are conditions, as texts ("year>=1911") or as
        `Condition`; `title` is a field. Raises UnknownName for a document that does not exist, and UsageError for a
        part without a passage.
        """
        from tomewise.tome.scopes import find_scope

        return TomeView(self._opened, find_scope(self.store, *documents, where=where))
