"""The documents of a tome: added, removed, and shown."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tomewise.concurrency import run_in_thread
from tomewise.errors import TomewiseError
from tomewise.language.cached import prove_room
from tomewise.memory.passages import Outcome, PassagesLayer
from tomewise.notebook_display import write_table
from tomewise.reading.bounds import Bounds
from tomewise.reading.folder import FolderRules
from tomewise.reading.json_lines import add_prefix
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import NamedFile, Source, SourceReader
from tomewise.settings import Settings
from tomewise.store.lookups import read_record, read_setting
from tomewise.store.records import BUILDS, DocumentRecord
from tomewise.store.rights import work_alone
from tomewise.systems.kit import Kit
from tomewise.systems.lag import LagFinder
from tomewise.systems.layers import make_layers
from tomewise.tome.builds import read_names
from tomewise.tome.document_names import find_exactly
from tomewise.tome.embedder_address import find_address, remember_address
from tomewise.tome.fixed_settings import fix_settings, make_splitter
from tomewise.tome.inputs import check_type
from tomewise.tome.moved_files import MovedFiles
from tomewise.tome.reports import AddReport, RemoveReport
from tomewise.tome.session import forget_in_all
from tomewise.tome.sources import Claims, check_prefix, read_documents, read_sources, remember_folders
from tomewise.tome.stated_fields import StatedFields, check_fields, forget_unused
from tomewise.types import Change, Document, DocumentId, Lagging, Layer, Metadata, Report

if TYPE_CHECKING:
    from tomewise.store.contract import Store

_MOST_SHOWN = 20  # documents


async def add_documents(
    kit: Kit,
    size: tuple[int, int],
    settings: Settings,
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
    """Read the sources that are named, and remember them. See `Tome.add`.

    `size` is that of passages, and of their overlap, in tokens.
    """
    sources = read_sources(named)
    check_prefix(prefix)
    rules = FolderRules(
        include=read_names("include", include),
        exclude=read_names("exclude", exclude),
        ignored=ignored,
        follow=follow,
    )
    check_fields(metadata, sources)
    store, embedder = kit.store, kit.embedder
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    bounds = Bounds.of(**{each.name: getattr(settings, f"read_{each.name}") for each in fields(Bounds)})
    with work_alone(store, "add"), ReaderProcess(bounds) as process:
        # Check again: another process may have fixed other settings since this tome was opened.
        tokens, overlap = fix_settings(store, embedder, *size)
        remember_address(store, embedder)
        if find_address(embedder):  # what it is paid for must find room
            await prove_room(store.calls, 0)
        splitter = make_splitter(store, embedder, tokens, overlap)
        files = await run_in_thread(MovedFiles, store, sources if sync else ())
        known = {record.id: record.source for record in store.documents(_list_ids(sources, prefix))}
        claims = Claims({name: source for name, source in known.items() if name not in files.gone})
        stated = StatedFields(store, metadata, sources)

        def check(source: Source) -> None:
            claims.check(source)
            stated.accept(source)

        reader = SourceReader(process, check=check, prefix=prefix, rules=rules)
        noted = failed if keep_going else None
        folders: dict[DocumentId, str] = {}
        documents = read_documents(sources, reader, claims, skipped, noted, folders, prefix)
        layer = PassagesLayer(store, embedder, splitter, files.follow(documents, stated))
        try:
            await layer.update(Change(), report)
        finally:  # also for what was kept before an error
            remember_folders(store, folders)
            forget_unused(store)
        await run_in_thread(forget_in_all, kit)
        lagging = await _find_lag(kit)
    by_outcome = {
        outcome: tuple(each.document for each in layer.outcomes if each.outcome == outcome)
        for outcome in get_args(Outcome)
    }
    by_outcome["unchanged"] = tuple(name for name in by_outcome["unchanged"] if name not in set(files.moved))
    passages = sum(each.passages for each in layer.outcomes)
    moved = tuple(files.moved)
    return AddReport(**by_outcome, passages=passages, skipped=skipped, moved=moved, failed=failed, lagging=lagging)


async def _find_lag(kit: Kit) -> Lagging | None:
    """How far the layers lag that are built, as they are usually made; None if they do not."""
    layers: dict[str, Layer] = {}
    for name in await run_in_thread(kit.store.note_names, BUILDS):
        with suppress(TomewiseError):  # a layer with other settings, or of a plugin that is gone
            layers |= {layer.name: layer for layer in make_layers(kit, name)}
    return await LagFinder(kit, "", list(layers.values())).describe()


async def remove_documents(kit: Kit, document: str | Document | DocumentRecord) -> RemoveReport:
    """Forget documents, and everything derived from them alone. See `Tome.remove`."""
    check_type("document", document, str | Document | DocumentRecord, "a name, or one of `documents()`")
    with work_alone(kit.store, "remove"):
        return await run_in_thread(_remove, kit, document)


def _remove(kit: Kit, document: str | Document | DocumentRecord) -> RemoveReport:
    store = kit.store
    if isinstance(document, str):
        records: Sequence[DocumentRecord] = find_exactly(document, store).records
    else:
        records = (read_record(store, document.id),)
    with store.write() as change:
        removed = sum(len(change.remove_document(record.id)) for record in records)
    forget_unused(store)
    forget_in_all(kit)
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
