"""Documents become passages: they are cut, embedded, and their words are indexed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Literal

import numpy as np

from tomewise.concurrency import run_in_thread
from tomewise.embedding.cached_embedder import AT_ONCE
from tomewise.reading.splitter import PassageSplitter
from tomewise.store.contract import Store, Vectors
from tomewise.store.records import PASSAGES
from tomewise.types import Document, DocumentId, Embedder, Passage, Progress, Report

_CHARACTERS = 1000  # of a passage, roughly: what is embedded at once is committed together; a longer document alone
_SPLIT_AT_ONCE = 256  # passages to cut before each report of progress, where the work can also be stopped

Outcome = Literal["added", "replaced", "unchanged", "removed"]


@dataclass(frozen=True)
class LostDocuments:
    """Documents that their source no longer has."""

    documents: tuple[DocumentId, ...]


@dataclass(frozen=True, slots=True)
class DocumentOutcome:
    """What happened to one document."""

    document: DocumentId
    outcome: Outcome
    passages: int = 0


@dataclass
class _Batch:
    """Documents to add together (`fresh`), and before them the unchanged (`known`) and the lost ones.

    Of those in `described` only the metadata changed: their passages stay, with all that was made from them.
    """

    known: list[DocumentOutcome] = field(default_factory=list)
    lost: list[DocumentId] = field(default_factory=list)
    described: list[Document] = field(default_factory=list)
    fresh: dict[DocumentId, Document] = field(default_factory=dict)
    size: int = 0  # characters


async def store_documents(
    documents: Iterable[Document | LostDocuments],
    store: Store,
    embedder: Embedder,
    splitter: PassageSplitter,
    report: Report,
) -> list[DocumentOutcome]:
    """Add new documents, replace changed ones, skip unchanged ones; each is committed whole or not at all.

    Lost documents are removed, together with all memory that was made from them. Returns what happened to each.
    """
    at_once: int = getattr(embedder, "texts_at_once", AT_ONCE)
    batches = _make_batches(documents, store, _CHARACTERS * at_once)
    outcomes: list[DocumentOutcome] = []
    done = 0
    # Each step runs in a thread and is short, so that the work can be stopped between two steps.
    while (batch := await run_in_thread(next, batches, None)) is not None:
        outcomes += batch.known
        split: list[tuple[Document, list[Passage]]] = []
        for document in batch.fresh.values():
            passages: list[Passage] = []
            next_passages: list[Passage]
            stream = splitter.split(document)
            while next_passages := await run_in_thread(list, islice(stream, _SPLIT_AT_ONCE)):
                passages += next_passages
                report(Progress(label="characters cut", done=next_passages[-1].end, total=len(document.text)))
            report(Progress(label="characters cut", done=len(document.text), total=len(document.text)))
            split.append((document, passages))
        texts = [passage.content for _, passages in split for passage in passages]
        rows = [np.empty((0, embedder.dimensions), np.float32)]
        total = done + len(texts)
        if texts:
            report(Progress(label="passages embedded", done=done, total=total))
        for start in range(0, len(texts), at_once):
            rows.append(await run_in_thread(embedder.embed, texts[start : start + at_once]))
            done += len(rows[-1])
            report(Progress(label="passages embedded", done=done, total=total))
        outcomes += await run_in_thread(_commit, batch, split, np.concatenate(rows), store)
    return outcomes


def _make_batches(documents: Iterable[Document | LostDocuments], store: Store, room: int) -> Iterator[_Batch]:
    batch = _Batch()
    try:
        for document in documents:
            if isinstance(document, LostDocuments):
                batch.lost += document.documents
                continue
            # A batch holds one version of a document, so that a later version replaces an earlier one, as in two calls.
            if batch.fresh and (document.id in batch.fresh or batch.size + len(document.text) > room):
                yield batch
                batch = _Batch()
            digests = [record.digest for record in store.documents([document.id])]
            if digests == [digest_document(document)]:
                batch.known.append(DocumentOutcome(document.id, "unchanged"))
            elif digests and _has_same_text(store.document(document.id), document):
                batch.described.append(document)
            else:
                batch.fresh[document.id] = document
                batch.size += len(document.text)
    except Exception:
        yield batch  # keeps what was read before the source that failed
        raise
    yield batch


def _has_same_text(known: Document, document: Document) -> bool:
    """Whether two documents have the same title and the same text."""
    return (known.title, known.text) == (document.title, document.text)


def _commit(
    batch: _Batch, split: Sequence[tuple[Document, list[Passage]]], vectors: Vectors, store: Store
) -> list[DocumentOutcome]:
    if not split and not batch.lost and not batch.described:
        return []
    outcomes = [DocumentOutcome(document, "removed") for document in batch.lost]
    keys: list[int] = []
    stays = {document.id for document in batch.described}  # lost here, but found elsewhere
    known = {record.id for record in store.documents([document.id for document, _ in split])}
    with store.write() as change:
        for document_id in batch.lost:
            if document_id not in stays:
                change.remove_document(document_id)
        for document in batch.described:
            change.move_document(document.id, document, digest_document(document))
            outcomes.append(DocumentOutcome(document.id, "replaced"))
        for document, passages in split:
            outcome: Outcome = "replaced" if document.id in known else "added"
            keys += change.put_document(document, digest_document(document), passages)
            outcomes.append(DocumentOutcome(document.id, outcome, len(passages)))
        change.put_vectors(PASSAGES, keys, vectors)
    return outcomes


def digest_document(document: Document) -> str:
    """Compute the digest that shows whether a document changed."""
    parts = [document.title, document.source, document.text]
    if document.metadata:  # so digests of documents without metadata are those of tomes before format 3
        parts.append(json.dumps(document.metadata, sort_keys=True))
    return sha256("\x1f".join(parts).encode()).hexdigest()
