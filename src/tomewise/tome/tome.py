"""`Tome`, the one class most users meet: open, add, remove, build, ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomewise.language.wrapped import find_abilities
from tomewise.notebook_display import show_bars
from tomewise.settings import Settings
from tomewise.tome.arguments import check_part, check_pool, check_settings, read_settings
from tomewise.tome.open_tome import names_damage, open_parts, plain
from tomewise.tome.traces import Traces
from tomewise.tome.view import TomeView
from tomewise.types import Condition, Document, Progress, Scope
from tomewise.types.plain import describe_object

# What a tome works with is imported where it is first used: who only looks at a tome does not wait for it.
if TYPE_CHECKING:
    from tomewise.reading.read import NamedFile
    from tomewise.store.contract import Store
    from tomewise.store.records import DocumentRecord
    from tomewise.systems.kit import Kit
    from tomewise.systems.registry import Choice
    from tomewise.tome.reports import AddReport, BuildReport, RemoveReport
    from tomewise.tome.tome_memory import Memory
    from tomewise.types import Embedder, LanguageModel, Metadata

OnProgress = Callable[[Progress], None]


class Tome(TomeView):
    """One memory: a set of documents and everything remembered about them.

    What reads files or asks models is asynchronous, with an `a` in front (`aask`), and has a plain twin (`ask`), which
    also works inside a running event loop. `documents`, `memory`, `sessions` and `traces` are what it holds; what
    can be asked of it, and of a part of it, is described at `TomeView`.
    """

    def __repr__(self) -> str:
        return describe_object(self, self.store.address, embedder=self._opened.embedder.name, model=self.model_name)

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
        before those of the settings; a `model` also before the `models` by role of `Settings`. With `read_only` the
        file stays as it is: no trace and no reply is kept, and what would change it is refused. Without `create`, a
        file that does not exist is refused.
        Raises StoreError, UsageError, UnknownName.
        """
        check_part("model", model, "ask", "a name or a LanguageModel")
        check_part("embedder", embedder, "embed", "a name or an Embedder")
        given = {"model": model, "embedder": embedder, "base_url": base_url}
        named: dict[str, Any] = {name: value for name, value in given.items() if isinstance(value, str)}
        if model is not None and isinstance(settings, Settings):
            named["models"] = {}  # as in `load`, a model replaces the models by role that are further away
        settings = replace(read_settings(settings), **named)
        check_settings(settings)
        check_pool(settings.on, settings.workers)
        own_model = settings.model if model is None else model
        own_embedder = settings.embedder if embedder is None else embedder
        return cls(open_parts(path, own_model, own_embedder, settings, read_only=read_only, create=create))

    @property
    def kit(self) -> Kit:
        """The store, model and embedder from which systems are wired. The model's replies are kept in the store."""
        return self._opened.kit

    @cached_property
    def memory(self) -> Memory:
        """What is remembered about the documents: what a build would use, entities, pictures, the export."""
        from tomewise.tome.tome_memory import Memory

        return Memory(self._opened)

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
        opened = self._opened
        try:
            # Connections belong to the event loop that opened them.
            if opened.thread.runs:
                opened.thread.run(find_abilities(opened.model).close())
        finally:
            opened.thread.stop()
            try:
                if opened.pool is not None:
                    opened.pool.close()
            finally:
                self.store.close()

    async def aclose(self) -> None:
        """See `close`; for callers of the async methods."""
        await find_abilities(self._opened.model).close()
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
        see the setting `max_failures`). `extractions` is a file of entities and facts that were extracted elsewhere:
        they replace calls of the model. `again` names layers, or passages by their ids, that are to be made again:
        their memory is removed and the model is called again.
        Raises ModelError, BudgetExceeded, ReadingError, UnknownName, Locked.
        """
        from tomewise.tome.builds import build_layers, wire_layers

        wired = wire_layers(self.kit, self.default_system if system is None else system, layers)
        with show_bars(on_progress) as report:
            return await build_layers(self.kit, wired, report, extractions, again)

    build = plain(abuild)

    def within(
        self,
        *documents: str | PathLike[str] | DocumentRecord | Scope,
        where: str | Condition | Sequence[str | Condition] = (),
    ) -> TomeView:
        """A part of this tome, which is asked, searched and read like the whole.

        `documents` are ids, paths, titles, folders (`contracts/2024`, by the last parts of the path), patterns such as
        `notes/*.md`, or parts of an id that no other id has, or are some of `documents()`; or one `Scope` alone.
        `where` are conditions, as texts ("year>=1911") or as `Condition`; `title` is a field. Raises UnknownName for a
        document that does not exist, and UsageError for a part without a passage.
        """
        from tomewise.tome.scopes import find_scope

        return TomeView(self._opened, find_scope(self.store, *documents, where=where))
