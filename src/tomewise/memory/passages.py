"""The first memory layer: documents cut into passages, embedded, and indexed by their words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Literal

import numpy as np

from tomewise.errors import ReadingError
from tomewise.types import Document, DocumentId, Embedder, Passage, Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.reading.splitter import PassageSplitter
    from tomewise.store.sqlite.store import SqliteStore

SPACE = "passages"
_TOGETHER = 64_000  # characters embedded and committed together; a longer document is committed alone
_CUT = 256  # passages cut between two reports of progress, and between two chances to stop
_EMBEDDED = 64  # likewise, embedded: a second of work or two

Outcome = Literal["added", "replaced", "unchanged", "removed"]


@dataclass(frozen=True, slots=True)
class Lost:
    """Documents that their source has no more."""

    documents: tuple[DocumentId, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one document."""

    document: DocumentId
    outcome: Outcome
    passages: int = 0


@dataclass(slots=True)
class _Batch:
    """Documents taken in together, behind those that were met before them and are known already or lost."""

    known: list[Taken] = field(default_factory=list)
    lost: list[DocumentId] = field(default_factory=list)
    fresh: dict[DocumentId, Document] = field(default_factory=dict)
    size: int = 0

    def has_room(self, document: Document) -> bool:
        # Of two versions of one document the later counts, as it would in two calls.
        return not self.fresh or (document.id not in self.fresh and self.size + len(document.text) <= _TOGETHER)


class PassagesLayer:
    """Takes documents in; each is committed whole or not at all."""

    name = SPACE

    def __init__(self, store: SqliteStore, embedder: Embedder, splitter: PassageSplitter) -> None:
        self._store = store
        self._embedder = embedder
        self._splitter = splitter

    async def add(self, documents: Iterable[Document | Lost]) -> AsyncIterator[Taken | Progress]:
        """Take in documents; those that are there unchanged cost nothing, those that changed are replaced.

        Those that their source lost are forgotten, with all that rests on them.
        """
        batches = self._batches(documents)
        done = 0
        # All is done beside the event loop, a little at a time, so that it can be stopped in between.
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            for outcome in batch.known:
                yield outcome
            split: list[tuple[Document, list[Passage]]] = []
            for document in batch.fresh.values():
                passages: list[Passage] = []
                stream = self._splitter.stream(document)
                while some := await asyncio.to_thread(_several, stream):
                    passages += some
                    yield Progress(label="characters cut", done=some[-1].end, total=len(document.text))
                split.append((document, passages))
            texts = [passage.content for _, passages in split for passage in passages]
            rows: list[NDArray[np.float32]] = []
            for some_texts in _portions(texts):
                rows.append(await asyncio.to_thread(self._embedder.embed, some_texts))
                done += len(some_texts)
                left = len(texts) - sum(map(len, rows))
                yield Progress(label="passages embedded", done=done, total=done + left)
            for outcome in await asyncio.to_thread(self._commit, batch.lost, split, rows):
                yield outcome

    def _batches(self, documents: Iterable[Document | Lost]) -> Iterator[_Batch]:
        batch = _Batch()
        try:
            for document in documents:
                if isinstance(document, Lost):
                    batch.lost += document.documents
                    continue
                if not batch.has_room(document):
                    yield batch
                    batch = _Batch()
                if self._store.digest(document.id) == digest(document):
                    batch.known.append(Taken(document.id, "unchanged"))
                    continue
                batch.fresh[document.id] = document
                batch.size += len(document.text)
        except ReadingError:
            yield batch  # what was read before the source that cannot be read is kept
            raise
        yield batch

    def _commit(
        self,
        lost: Sequence[DocumentId],
        split: Sequence[tuple[Document, list[Passage]]],
        rows: list[NDArray[np.float32]],
    ) -> list[Taken]:
        if not split and not lost:
            return []
        outcomes = [Taken(document, "removed") for document in lost]
        keys: list[int] = []
        vectors = np.concatenate(rows) if rows else np.empty((0, self._embedder.dimensions), np.float32)
        with self._store.write() as change:
            for gone in lost:
                change.remove_document(gone)
            for document, passages in split:
                outcome: Outcome = "added" if self._store.digest(document.id) is None else "replaced"
                keys += change.put_document(document, digest(document), passages)
                outcomes.append(Taken(document.id, outcome, len(passages)))
            change.put_vectors(SPACE, keys, vectors)
        return outcomes


def digest(document: Document) -> str:
    """What tells whether a document changed."""
    return sha256(f"{document.title}\x1f{document.source}\x1f{document.text}".encode()).hexdigest()


def _several(stream: Iterator[Passage]) -> list[Passage]:
    return list(islice(stream, _CUT))


def _portions(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _EMBEDDED):
        yield texts[start : start + _EMBEDDED]
