"""The first memory layer: it cuts documents into passages, embeds them and indexes their words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tomewise.concurrency import run_in_thread
from tomewise.embedding.cached_embedder import AT_ONCE
from tomewise.errors import UnknownName
from tomewise.reading.splitter import PassageSplitter
from tomewise.store.contract import Store
from tomewise.types import (
    Change,
    Document,
    DocumentId,
    Embedder,
    Estimate,
    LayerReport,
    Passage,
    Progress,
    Report,
)

SPACE = "passages"
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
    size: int = 0
    room: int = 0  # characters

    def has_room(self, document: Document) -> bool:
        # A batch holds one version of a document, so that a later version replaces an earlier one, as in two calls.
        return not self.fresh or (document.id not in self.fresh and self.size + len(document.text) <= self.room)


class PassagesLayer:
    """Adds documents to the store; each is committed whole or not at all.

    It is the lowest layer: `needs` is empty, because it reads no nodes, but the `documents` that come from outside.
    `outcomes` says what happened to each of them.
    """

    name = SPACE
    needs: tuple[str, ...] = ()
    writes = (SPACE,)

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        splitter: PassageSplitter,
        documents: Iterable[Document | LostDocuments] = (),
    ) -> None:
        self.outcomes: list[DocumentOutcome] = []
        self._documents = documents
        self._store = store
        self._embedder = embedder
        self._splitter = splitter
        self._at_once: int = getattr(embedder, "texts_at_once", AT_ONCE)

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Add the documents; see `add`. `change` is always empty. The report counts passages and documents."""
        async for outcome in self.add(self._documents):
            if isinstance(outcome, DocumentOutcome):
                self.outcomes.append(outcome)
            else:
                report(outcome)
        return LayerReport(
            layer=self.name,
            added=sum(document.passages for document in self.outcomes),
            removed=sum(document.outcome == "removed" for document in self.outcomes),
        )

    async def estimate(self, change: Change) -> Estimate:
        """No model is asked for passages."""
        return Estimate(layer=self.name)

    async def add(self, documents: Iterable[Document | LostDocuments]) -> AsyncIterator[DocumentOutcome | Progress]:
        """Add new documents, replace changed ones, skip unchanged ones.

        Lost documents are removed, together with all memory that was made from them.
        """
        batches = self._make_batches(documents)
        done = 0
        # Each step runs in a thread and is short, so that the work can be stopped between two steps.
        while (batch := await run_in_thread(next, batches, None)) is not None:
            for outcome in batch.known:
                yield outcome
            split: list[tuple[Document, list[Passage]]] = []
            for document in batch.fresh.values():
                passages: list[Passage] = []
                next_passages: list[Passage]
                stream = self._splitter.split(document)
                while next_passages := await run_in_thread(list, islice(stream, _SPLIT_AT_ONCE)):
                    passages += next_passages
                    yield Progress(label="characters cut", done=next_passages[-1].end, total=len(document.text))
                yield Progress(label="characters cut", done=len(document.text), total=len(document.text))
                split.append((document, passages))
            texts = [passage.content for _, passages in split for passage in passages]
            rows: list[NDArray[np.float32]] = []
            total = done + len(texts)
            if texts:
                yield Progress(label="passages embedded", done=done, total=total)
            for start in range(0, len(texts), self._at_once):
                rows.append(await run_in_thread(self._embedder.embed, texts[start : start + self._at_once]))
                done += len(rows[-1])
                yield Progress(label="passages embedded", done=done, total=total)
            for outcome in await run_in_thread(self._commit, batch, split, rows):
                yield outcome

    def _make_batches(self, documents: Iterable[Document | LostDocuments]) -> Iterator[_Batch]:
        room = _CHARACTERS * self._at_once
        batch = _Batch(room=room)
        try:
            for document in documents:
                if isinstance(document, LostDocuments):
                    batch.lost += document.documents
                    continue
                if not batch.has_room(document):
                    yield batch
                    batch = _Batch(room=room)
                digests = [record.digest for record in self._store.documents([document.id])]
                if digests == [digest_document(document)]:
                    batch.known.append(DocumentOutcome(document.id, "unchanged"))
                    continue
                if self._has_same_text(document):
                    batch.described.append(document)
                    continue
                batch.fresh[document.id] = document
                batch.size += len(document.text)
        except Exception:
            yield batch  # keeps what was read before the source that failed
            raise
        yield batch

    def _has_same_text(self, document: Document) -> bool:
        """Whether the store has the document with this title and this text."""
        try:
            known = self._store.document(document.id)
        except UnknownName:
            return False
        return (known.title, known.text) == (document.title, document.text)

    def _commit(
        self, batch: _Batch, split: Sequence[tuple[Document, list[Passage]]], rows: list[NDArray[np.float32]]
    ) -> list[DocumentOutcome]:
        if not split and not batch.lost and not batch.described:
            return []
        outcomes = [DocumentOutcome(document, "removed") for document in batch.lost]
        keys: list[int] = []
        vectors = np.concatenate(rows) if rows else np.empty((0, self._embedder.dimensions), np.float32)
        stays = {document.id for document in batch.described}  # lost here, but found elsewhere
        known = {record.id for record in self._store.documents([document.id for document, _ in split])}
        with self._store.write() as change:
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
            change.put_vectors(SPACE, keys, vectors)
        return outcomes


def digest_document(document: Document) -> str:
    """Compute the digest that shows whether a document changed."""
    parts = [document.title, document.source, document.text]
    if document.metadata:  # so digests of documents without metadata are those of tomes before format 3
        parts.append(json.dumps(document.metadata, sort_keys=True))
    return sha256("\x1f".join(parts).encode()).hexdigest()
