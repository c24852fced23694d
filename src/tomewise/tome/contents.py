"""The documents of a tome: added, removed, and shown."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tomewise.concurrency import run_in_thread
from tomewise.errors import TomewiseError
from tomewise.language.cached import prove_room
from tomewise.memory.passages import PassagesLayer
from tomewise.notebook_display import write_table
from tomewise.reading.bounds import Bounds
from tomewise.reading.folder import FolderRules
from tomewise.reading.json_lines import add_prefix
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import NamedFile, Source, SourceReader
from tomewise.store.lookups import read_record, read_setting
from tomewise.store.records import BUILDS, DocumentRecord
from tomewise.store.rights import work_alone
from tomewise.systems.kit import Kit
from tomewise.systems.lag import LagFinder
from tomewise.systems.layers import make_layers
from tomewise.tome.builds import read_names
from tomewise.tome.embedder_address import find_address, remember_address
from tomewise.tome.exact_names import find_exactly
from tomewise.tome.fixed_settings import fix_settings, make_splitter
from tomewise.tome.inputs import check_type
from tomewise.tome.moved_files import MovedFiles
from tomewise.tome.reports import AddReport, RemoveReport
from tomewise.tome.session_memory import forget_in_all
from tomewise.tome.sources import Claims, check_prefix, read_documents, read_sources, remember_folders
from tomewise.tome.stated_fields import StatedFields, check_fields, forget_unused
from tomewise.types import Change, Document, DocumentId, Lagging, Layer, Metadata, Report

if TYPE_CHECKING:
    from tomewise.store.contract import Store

_MOST_SHOWN = 20  # documents


class Contents:
    """Adds documents to a tome and removes them.

    `size` is that of its passages, and of their overlap, in tokens. `bounds` limit the reading of one file.
    """

    def __init__(self, kit: Kit, size: tuple[int, int], bounds: Bounds) -> None:
        self._kit = kit
        self._size = size
        self._bounds = bounds

    async def add(
        self,
        named: Sequence[str | PathLike[str] | Document | NamedFile],
        report: Report,
        *,
        prefix: str,
        follow: bool,
        include: str | Sequence[str],
        exclude: str | Sequence[str],
        ignored: bool,
        sync: bool,
        keep_going: bool,
        metadata: Metadata,
    ) -> AddReport:
        """Read the sources that are named, and remember them. See `Tome.add`."""
        sources = read_sources(named)
        check_prefix(prefix)
        rules = FolderRules(
            include=read_names("include", include),
            exclude=read_names("exclude", exclude),
            ignored=ignored,
            follow=follow,
        )
        check_fields(metadata, sources)
        store, embedder = self._kit.store, self._kit.embedder
        skipped: dict[str, str] = {}
        failed: dict[str, str] = {}
        with work_alone(store, "add"), ReaderProcess(self._bounds) as process:
            # Check again: another process may have fixed other settings since this tome was opened.
            size, overlap = fix_settings(store, embedder, *self._size)
            remember_address(store, embedder)
            if find_address(embedder):  # what it is paid for must find room
                await prove_room(store.calls, 0)
            splitter = make_splitter(store, embedder, size, overlap)
            files = await run_in_thread(MovedFiles, store, sources if sync else ())
            known = {record.id: record.source for record in store.documents(_list_ids(sources, prefix))}
            claims = Claims({name: source for name, source in known.items() if name not in files.gone})
            fields = StatedFields(store, metadata, sources)

            def check(source: Source) -> None:
                claims.check(source)
                fields.accept(source)

            reader = SourceReader(process, check=check, prefix=prefix, rules=rules)
            noted = failed if keep_going else None
            folders: dict[DocumentId, str] = {}
            documents = read_documents(sources, reader, claims, skipped, noted, folders, prefix=prefix)
            layer = PassagesLayer(store, embedder, splitter, files.follow(documents, fields))
            try:
                await layer.update(Change(), report)
            finally:  # also for what was kept before an error
                remember_folders(store, folders)
                forget_unused(store)
            await run_in_thread(forget_in_all, self._kit)
            lagging = await self._find_lag()
        return AddReport.of(layer.outcomes, skipped, files.moved, failed, lagging)

    async def _find_lag(self) -> Lagging | None:
        """How far the layers lag that are built, as they are usually made; None if they do not."""
        layers: dict[str, Layer] = {}
        for name in await run_in_thread(self._kit.store.note_names, BUILDS):
            with suppress(TomewiseError):  # a layer with other settings, or of a plugin that is gone
                layers |= {layer.name: layer for layer in make_layers(self._kit, name)}
        return await LagFinder(self._kit, "", list(layers.values())).describe()

    async def remove(self, document: str | Document | DocumentRecord) -> RemoveReport:
        """Forget documents, and everything derived from them alone. See `Tome.remove`."""
        check_type("document", document, str | Document | DocumentRecord, "a name, or one of `documents()`")
        with work_alone(self._kit.store, "remove"):
            return await run_in_thread(self._remove, document)

    def _remove(self, document: str | Document | DocumentRecord) -> RemoveReport:
        store = self._kit.store
        if isinstance(document, str):
            records: Sequence[DocumentRecord] = find_exactly(document, store).records
        else:
            records = (read_record(store, document.id),)
        with store.write() as change:
            removed = sum(len(change.remove_document(record.id)) for record in records)
        forget_unused(store)
        forget_in_all(self._kit)
        passages = sum(record.passages for record in records)
        ids = tuple(record.id for record in records)
        return RemoveReport(ids[0] if len(ids) == 1 else str(document), passages, removed - passages, ids)


def _list_ids(sources: Sequence[str | Path | Document | NamedFile], prefix: str) -> list[DocumentId] | None:
    """The ids that the sources will have; None where only reading tells them."""
    documents = [source for source in sources if isinstance(source, Document)]
    return [add_prefix(prefix, document.id) for document in documents] if len(documents) == len(sources) else None


def write_overview(store: Store, model: str) -> str:
    """A tome as a notebook shows it: two tables as HTML, of its layers and of its first documents."""
    layers = [(name, f"{layer['nodes']:,}", layer["failed"] or "") for name, layer in store.layers().items()]
    records = store.documents()
    shown = records[:_MOST_SHOWN]
    rows = [(record.title or record.id, f"{record.passages:,}", f"{record.characters:,}") for record in shown]
    more = len(records) - len(rows)
    title = f"{len(records):,} document{'' if len(records) == 1 else 's'}"
    title += f", of which {more:,} are not shown" if more else ""
    origin = f"{store.address} · {read_setting(store, 'embedder')} · {model}"
    return write_table(("layer", "nodes", "failed"), layers, origin) + write_table(
        ("document", "passages", "characters"), rows, title
    )
