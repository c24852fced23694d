"""The documents of a tome: read from sources and added, removed, and shown."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TypeAlias, get_args

from tomewise.addresses import is_address
from tomewise.concurrency import run_in_thread
from tomewise.errors import MissingDependency, ReadingError, TomewiseError, UsageError, count_noun
from tomewise.language.cached import prove_room
from tomewise.memory.build_records import forget_examples
from tomewise.memory.passages import LostDocuments, Outcome, store_documents
from tomewise.notebook_display import write_table
from tomewise.reading.folder import FolderRules, Skipped, resolve_path
from tomewise.reading.json_lines import add_prefix
from tomewise.reading.metadata import ID, PATH, UNSTORABLE, cut_document, find_unstorable, select_plain
from tomewise.reading.process import LIMITS, Bounds, ReaderProcess
from tomewise.reading.read import STDIN, NamedFile, ReadSource, SourceReader
from tomewise.settings import Settings
from tomewise.store.contract import Store
from tomewise.store.lookups import read_record, read_setting
from tomewise.store.records import BUILDS, DocumentRecord
from tomewise.store.rights import work_alone
from tomewise.systems.kit import Kit
from tomewise.systems.lag import LagFinder
from tomewise.systems.layers import make_layers
from tomewise.tome.arguments import check_type, read_names
from tomewise.tome.document_names import find_exactly
from tomewise.tome.fixed_settings import find_address, fix_settings, make_splitter, remember_address
from tomewise.tome.holdings import list_guesses, list_losses
from tomewise.tome.moved_files import MovedFiles
from tomewise.tome.reports import AddReport, RemoveReport
from tomewise.tome.session_memory import forget_in_all
from tomewise.tome.stated_fields import StatedFields, check_fields, forget_unused, keep_left_out
from tomewise.tome.traces import list_resting
from tomewise.types import Document, DocumentId, Lagging, Layer, Metadata, Report

Named: TypeAlias = str | Path | Document | NamedFile  # a source
_MOST_SHOWN = 20  # documents
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


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
    sources = _read_sources(named)
    _check_prefix(prefix)
    rules = FolderRules(
        include=read_names("include", include),
        exclude=read_names("exclude", exclude),
        ignored=ignored,
        follow=follow,
    )
    check_fields(metadata, sources)
    store, embedder = kit.store, kit.embedder
    skipped: list[Skipped] = []
    failed: dict[str, str] = {}
    limits = {name: getattr(settings, f"read_{name}") for name in LIMITS}
    bounds = Bounds.of(**limits, encoding=settings.encoding)
    with work_alone(store, "add"), ReaderProcess(bounds) as process:
        # Check again: another process may have fixed other settings since this tome was opened.
        tokens, overlap = fix_settings(store, embedder, *size)
        remember_address(store, embedder)
        if find_address(embedder):  # what it is paid for must find room
            await prove_room(store.calls, 0)
        splitter = make_splitter(store, embedder, tokens, overlap)
        files = await run_in_thread(MovedFiles, store, sources if sync else (), settings.sync_forgets)
        known = {record.id: record.source for record in store.documents(_list_ids(sources, prefix))}
        claims = _Claims({name: source for name, source in known.items() if name not in files.gone})
        stated = StatedFields(store, metadata, sources)

        def check(source: ReadSource) -> None:
            claims.check(source)
            stated.accept(source)

        reader = SourceReader(process, check=check, prefix=prefix, rules=rules, report=report)
        noted = failed if keep_going else None
        folders: dict[DocumentId, str] = {}
        documents = _read_documents(sources, reader, claims, skipped, noted, folders, prefix)
        try:
            outcomes = await store_documents(
                files.follow(documents, stated, skipped), store, embedder, splitter, report
            )
            paths = [source for source in sources if isinstance(source, str | Path) and str(source) not in failed]
            await run_in_thread(keep_left_out, store, map(resolve_path, paths), skipped)
        finally:  # also for what was kept before an error
            _remember_folders(store, folders)
            forget_unused(store)
            forget_examples(store)
        await run_in_thread(forget_in_all, kit)
        lagging = await _find_lag(kit)
    by_outcome = {
        outcome: tuple(each.document for each in outcomes if each.outcome == outcome) for outcome in get_args(Outcome)
    }
    by_outcome["unchanged"] = tuple(name for name in by_outcome["unchanged"] if name not in set(files.moved))
    passages = sum(each.passages for each in outcomes)
    moved = tuple(files.moved)
    reasons = {str(entry.path): entry.reason for entry in skipped}
    stored = (*by_outcome["added"], *by_outcome["replaced"])
    return AddReport(
        **by_outcome,
        passages=passages,
        skipped=reasons,
        moved=moved,
        kept=files.kept,
        resting=await run_in_thread(list_resting, store, {*by_outcome["removed"], *files.kept}),
        left_out=await run_in_thread(list_losses, store, stored),
        guessed=await run_in_thread(list_guesses, store, stored),
        failed=failed,
        lagging=lagging,
    )


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
    forget_examples(store)
    forget_in_all(kit)
    passages = sum(record.passages for record in records)
    ids = tuple(record.id for record in records)
    return RemoveReport(ids[0] if len(ids) == 1 else str(document), passages, removed - passages, ids)


def _list_ids(sources: Sequence[Named], prefix: str) -> list[DocumentId] | None:
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
    title = count_noun(len(records), "document") + (f", of which {more:,} are not shown" if more else "")
    origin = f"{store.address} · {read_setting(store, 'embedder')} · {model}"
    return write_table(("layer", "nodes", "failed"), layers, origin) + write_table(
        ("document", "passages", "characters"), rows, title
    )


# ---------------------------------------------------------------- sources


class _Claims:
    """The source of each document in a tome. A document must not replace one from another source."""

    def __init__(self, origins: Mapping[DocumentId, str]) -> None:
        self._origins = dict(origins)
        self._ids: dict[str, set[DocumentId]] = defaultdict(set)  # by source
        for document, source in origins.items():
            self._ids[source].add(document)

    def check(self, source: ReadSource) -> None:
        """Raise ReadingError if an id of this source belongs to a document of another source."""
        for document in source.ids:
            owner = self._origins.get(document, source.name)
            if owner != source.name:
                raise ReadingError(
                    f"{source.name}: the id {document!r} is that of a document from {owner}: put a name before the ids "
                    f"of rows with --prefix NAME (`prefix=` from Python), or remove the other document first"
                )

    def take(self, source: ReadSource) -> frozenset[DocumentId]:
        """Record the ids of a source. Returns the ids that it had before and no longer has."""
        ids = self._ids[source.name]
        lost = frozenset(ids.difference(source.ids)) if source.is_file else frozenset[DocumentId]()
        for document in lost:
            del self._origins[document]
        ids -= lost
        ids.update(source.ids)
        self._origins.update(dict.fromkeys(source.ids, source.name))
        return lost


def _read_sources(sources: Sequence[str | PathLike[str] | Document | NamedFile]) -> list[Named]:
    """The sources, with a Path for each object that is one. Raises UsageError for what cannot be added, or nothing."""
    if not sources:
        raise UsageError("nothing to add: name a file, a folder, or - for standard input")
    for source in sources:
        check_type("a source", source, str | PathLike | Document | NamedFile, "a path or a Document(id=..., text=...)")
    return [Path(source) if isinstance(source, PathLike) else source for source in sources]


def _check_prefix(prefix: str) -> None:
    """Raise UsageError for a prefix with outer blanks or with characters that cannot be stored."""
    check_type("prefix", prefix, str, "a text")
    if prefix and (prefix != prefix.strip() or UNSTORABLE.search(prefix)):
        raise UsageError(f"the prefix {prefix!a} begins or ends with a blank, or cannot be stored: give a plain name")


def _read_documents(
    sources: Iterable[Named],
    reader: SourceReader,
    claims: _Claims,
    skipped: list[Skipped],
    failed: dict[str, str] | None,
    folders: dict[DocumentId, str],
    prefix: str,
) -> Iterator[Document | LostDocuments]:
    """The documents of all sources. `LostDocuments`, the ids that a file no longer has, come before those of the
    file.

    Puts each entry that was skipped into `skipped`. A source that cannot be read raises
    ReadingError or MissingDependency; with a dict `failed` it is put there instead, and the others go on. `folders`
    gets the folder of each document of a file: the one that was named, or that of the file that was named.
    """
    seen: set[Path] = set()
    for item in sorted(sources, key=lambda item: not isinstance(item, Document)):
        try:
            if isinstance(item, Document):
                yield _take_document(item, claims, prefix)
            else:
                folder = _find_folder(item)
                for document in _read_source(item, reader, claims, skipped, seen):
                    if folder and isinstance(document, Document):
                        folders[document.id] = folder
                    yield document
        except (ReadingError, MissingDependency) as error:
            if failed is None:
                raise
            failed[_name_source(item)] = str(error)


def _take_document(item: Document, claims: _Claims, prefix: str) -> Document:
    document = replace(item, id=add_prefix(prefix, item.id))
    _check_document(document)
    document = cut_document(replace(document, metadata=select_plain(document.metadata)))
    source = ReadSource(document.source, (document.id,), (document,), is_file=False)
    claims.check(source)
    claims.take(source)
    return document


def _check_document(document: Document) -> None:
    """Raise ReadingError for a document without id or text, or with characters that a file could not hold."""
    for name in ("id", "text", "title", "source"):
        check_type(f"the {name} of a document", getattr(document, name), str, "a text")
    if not document.id.strip() or not document.text.strip():
        raise ReadingError(f"the document {document.id!r} has no id or no text: give it both, or leave it out")
    for name, longest in (("id", ID), ("source", PATH)):
        if (length := len(getattr(document, name))) > longest:
            what = f"the {name} of the document {document.id[:80]!a} has {length:,} characters"
            raise ReadingError(f"{what}: give it at most {longest:,}")
    for name in ("id", "title", "text", "source"):
        found = UNSTORABLE.search(getattr(document, name))
        if found:
            where = f"the {name} of the document {document.id!a} holds the character {found[0]!a} at {found.start()}"
            raise ReadingError(f"{where}: replace it")
    if len(select_plain(document.metadata)) < len(document.metadata):
        raise ReadingError(
            f"the metadata of the document {document.id!a} is not plain: give strings, numbers of 64 bits, booleans, "
            "or lists of these, under names that are strings"
        )
    if field := find_unstorable(document.metadata):
        where = f"the field {field!a} of the document {document.id!a}"
        raise ReadingError(f"{where} holds a character that a text cannot hold: replace it")


def _find_folder(source: str | Path | NamedFile) -> str:
    """The full path of a folder, or of the folder of a file; empty for what has none or is read under another name."""
    if isinstance(source, NamedFile) or str(source) == STDIN or is_address(str(source)):
        return ""
    try:
        path = Path(os.path.realpath(source))
        return (path if path.is_dir() else path.parent).as_posix()
    except (OSError, ValueError):  # the path is too long, or not allowed: reading says so
        return ""


def _remember_folders(store: Store, folders: Mapping[DocumentId, str]) -> None:
    """Record the folders of documents where they differ from those in the store: the last addition counts."""
    known = {record.id: record.folder for record in store.documents(folders)} if folders else {}
    changed = {document: folder for document, folder in folders.items() if known.get(document, folder) != folder}
    if changed:
        with store.write() as change:
            change.set_folders(changed)


def _name_source(source: Named) -> str:
    if isinstance(source, Document):
        return source.id
    return source.name if isinstance(source, NamedFile) else str(source)


def _read_source(
    source: str | Path | NamedFile, reader: SourceReader, claims: _Claims, skipped: list[Skipped], seen: set[Path]
) -> Iterator[Document | LostDocuments]:
    if isinstance(source, NamedFile):
        entries: Iterable[ReadSource | Skipped] = [reader.read(source.path, name=source.name)]
    elif isinstance(source, str) and is_address(source):
        entries = [reader.read_address(source)]
    else:
        entries = reader.read_all([_refuse_text(source)], seen)
    for entry in entries:
        if isinstance(entry, Skipped):
            skipped.append(entry)
            continue
        if lost := claims.take(entry):
            yield LostDocuments(tuple(sorted(lost)))
        try:
            yield from entry.documents
        except ReadingError as error:  # rows that were changed since they were checked: the other files are read
            if isinstance(source, NamedFile) or not os.path.isdir(source):
                raise
            skipped.append(Skipped(Path(entry.name), str(error), is_lost=True))


def _refuse_text(source: str | Path) -> str | Path:
    """The source. Raises ReadingError for an address, which as a path would lose one of its slashes, and for a text."""
    if isinstance(source, str) and _ADDRESS.match(source):
        raise ReadingError(
            f"{source} is an address of another kind than http:// and https://: save what is there, then add that file"
        )
    if isinstance(source, str) and any(map(str.isspace, source)) and not os.path.lexists(source):
        what = f"{source[:80]}{'...' if len(source) > 80 else ''} does not exist"
        raise ReadingError(f"{what}: check the path, or pass a text as Document(id=..., text=...)")
    return source
