"""A tome in one SQLite file."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, delete, func, select
from sqlalchemy.dialects.sqlite import insert

from tomewise.errors import Locked, StoreError, UnknownName
from tomewise.store.sqlite import lexical
from tomewise.store.sqlite.arrays import Arrays, version_of
from tomewise.store.sqlite.calls import StoredCalls
from tomewise.store.sqlite.database import begin_write, connect, is_read_only, translate_errors
from tomewise.store.sqlite.mirror import Columns
from tomewise.store.sqlite.passage_data import read_passage_place
from tomewise.store.sqlite.removals import read_removals
from tomewise.store.sqlite.schema import builds, documents, edges, intake, meta, nodes, traces
from tomewise.store.sqlite.write import PASSAGES, Write, among, list_source_spaces
from tomewise.types import Document, DocumentId, Metadata, Node, NodeId, Passage, PassageId

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TURN_SECONDS = 60.0  # longer than any transaction takes


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord:
    """What the store has of a document, without its text."""

    id: DocumentId
    title: str
    source: str
    digest: str
    characters: int
    passages: int
    metadata: Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The node keys that a layer has taken in, and those that failed, each with its reason."""

    done: frozenset[int]
    failed: dict[int, str]


class SqliteStore:
    """Documents, nodes, vectors, edges, and the records of builds and questions."""

    def __init__(self, path: Path, engine: Engine, identity: str) -> None:
        self.path = path
        self.read_only = is_read_only(path)
        self._process: int | None = os.getpid()  # None once closed
        self._engine = engine
        self._identity = identity
        self._busy = threading.Lock()  # one `exclusive` in this process
        self._turn = threading.RLock()  # one transaction in this process
        self._lock = FileLock(str(self.cache_folder / "writer.lock"), timeout=0, thread_local=False)
        self._arrays = Arrays(self.cache_folder, identity, self.read, lambda: self._begin_write(wait=False))
        self.calls = StoredCalls(self.read, None if self.read_only else self._begin_write)

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> SqliteStore:
        """Open a tome; if `create` is true, create it if it does not exist. Raises StoreError and Locked."""
        path = Path(path).absolute()
        engine = connect(path, create=create)
        try:
            return cls(path, engine, _identity(engine, path))
        except BaseException:
            engine.dispose()
            raise

    @property
    def cache_folder(self) -> Path:
        """The folder beside the file in which arrays are cached. It may be deleted at any time."""
        return self.path.with_name(self.path.name + "-cache")

    def close(self) -> None:
        """Close the file after all pending replies are written. The store cannot be used afterwards."""
        forked = self._process not in (None, os.getpid())
        self._process = None
        if not forked:
            self.calls.close()
        self._engine.dispose(close=not forked)  # in a fork, the connections belong to the parent process

    def check(self) -> None:
        """Raise StoreError if the store is closed, or if another process opened it and forked this one."""
        if self._process == os.getpid():
            return
        if self._process is None:
            raise StoreError(f"{self.path} is closed: open it again")
        raise StoreError(f"{self.path} was opened before this process was forked: open it again in this process")

    # ------------------------------------------------------------ transactions

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view of the tome. Raises StoreError."""
        self.check()
        with translate_errors(self.path), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Take the exclusive right to add, remove and build. Raises Locked at once if somebody else has it."""
        self._check_writable()
        refusal = Locked(f"{self.path} is being written by another program: try again when it has finished")
        if not self._busy.acquire(blocking=False):
            raise refusal
        try:
            with self._hold_lock(refusal):
                yield
        finally:
            self._busy.release()

    @contextmanager
    def write(self) -> Iterator[Write]:
        """One transaction; the cached arrays are updated with its changes."""
        with self._begin_write() as connection:
            change = Write(connection)
            yield change
            self._arrays.follow(connection, change.finish())

    @contextmanager
    def _hold_lock(self, refusal: Locked) -> Iterator[None]:
        try:
            self.cache_folder.mkdir(exist_ok=True)
            self._lock.acquire()
        except Timeout as error:
            raise refusal from error
        except OSError as error:
            raise StoreError(f"{self.cache_folder} cannot be written: {error.strerror}") from error
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def _begin_write(self, *, wait: bool = True) -> Iterator[Connection]:
        self._check_writable()
        # Threads of one process wait for each other longer than SQLite would wait.
        if not self._turn.acquire(timeout=_TURN_SECONDS if wait else 0):
            raise Locked(f"{self.path} is being written by another thread of this program: try again later")
        try:
            with begin_write(self._engine, self.path, wait=wait) as connection:
                yield connection
        finally:
            self._turn.release()

    def _check_writable(self) -> None:
        self.check()
        if self.read_only:
            raise StoreError(f"{self.path} may only be read: check the permissions of it and its folder, or copy it")

    # ------------------------------------------------------------ meta

    def meta(self, key: str) -> str | None:
        """A setting of this tome, such as its embedder."""
        with self.read() as connection:
            return connection.scalar(select(meta.c.value).where(meta.c.key == key))

    # ------------------------------------------------------------ documents and passages

    def holds_documents(self) -> bool:
        """Whether the tome holds at least one document."""
        with self.read() as connection:
            return connection.execute(select(documents.c.key).limit(1)).first() is not None

    def documents(self) -> list[DocumentRecord]:
        """All documents, ordered by id."""
        count = select(func.count()).where(nodes.c.document == documents.c.key).scalar_subquery()
        columns = (documents.c.id, documents.c.title, documents.c.source, documents.c.digest, documents.c.characters)
        query = select(*columns, documents.c.metadata, count.label("passages")).order_by(documents.c.id)
        with self.read() as connection:
            rows = connection.execute(query).mappings()
            return [DocumentRecord(**{**row, "metadata": json.loads(row["metadata"])}) for row in rows]

    def origins(self) -> dict[DocumentId, str]:
        """The source that each document came from, by the document's id."""
        with self.read() as connection:
            found = connection.execute(select(documents.c.id, documents.c.source))
            return {row.id: row.source for row in found}

    def digest(self, document: DocumentId) -> str | None:
        """The digest of the document's content when it was added, or None if it does not exist."""
        with self.read() as connection:
            return connection.scalar(select(documents.c.digest).where(documents.c.id == document))

    def document(self, document: DocumentId) -> Document:
        """A document with its text. Raises UnknownName."""
        columns = (documents.c.id, documents.c.title, documents.c.source, documents.c.text, documents.c.metadata)
        query = select(*columns)
        with self.read() as connection:
            row = connection.execute(query.where(documents.c.id == document)).mappings().one_or_none()
        if row is None:
            raise UnknownName(f"no document {document!r} in {self.path}: `tome show` lists them")
        return Document(**{**row, "metadata": json.loads(row["metadata"])})

    def passages(self, keys: Iterable[int] | None = None) -> dict[int, Passage]:
        """Passages by node key, in the order of the keys given, or all in document order."""
        columns = (nodes.c.key, nodes.c.id, documents.c.id.label("document"), nodes.c.position, nodes.c.start)
        query = select(*columns, nodes.c.end, nodes.c.text, nodes.c.data, documents.c.title).join(
            documents, documents.c.key == nodes.c.document
        )
        found = self._by_key(query, keys, (documents.c.id, nodes.c.position))
        return {row.pop("key"): Passage(place=read_passage_place(row.pop("data")), **row) for row in found}

    def passages_of(self, wanted: Iterable[DocumentId]) -> dict[int, Passage]:
        """All passages of the documents `wanted`, in document order."""
        query = select(nodes.c.key).join(documents, documents.c.key == nodes.c.document)
        query = query.where(documents.c.id.in_(among(wanted))).order_by(documents.c.id, nodes.c.position)
        with self.read() as connection:
            keys = list(connection.scalars(query))
        return self.passages(keys)

    def nodes(self, layer: str) -> dict[int, Node]:
        """All nodes of a layer by key, ordered by level, position and id, without their sources."""
        query = select(
            nodes.c.key, nodes.c.id, nodes.c.layer, nodes.c.level, nodes.c.position, nodes.c.text, nodes.c.data
        )
        order = (nodes.c.level, nodes.c.position, nodes.c.id)
        return _nodes(self._by_key(query.where(nodes.c.layer == layer), None, order))

    def node_data(self, layer: str) -> dict[int, dict[str, Any]]:
        """The data of all nodes of a layer by key, without their texts."""
        query = "SELECT key, data FROM nodes WHERE layer = ?"
        with self.read() as connection:
            cursor: Any = connection.exec_driver_sql(query, (layer,)).cursor  # bare rows: a layer may have many nodes
            return {key: json.loads(data) for key, data in cursor}

    def nodes_at(self, keys: Iterable[int]) -> dict[int, Node]:
        """Nodes by key, in the order of the keys, without their sources."""
        query = select(
            nodes.c.key, nodes.c.id, nodes.c.layer, nodes.c.level, nodes.c.position, nodes.c.text, nodes.c.data
        )
        return _nodes(self._by_key(query, keys, ()))

    def node_keys(self, layer: str) -> list[int]:
        """Keys of the nodes of a layer; passages in document order, others by level, position and id."""
        query = select(nodes.c.key).where(nodes.c.layer == layer)
        if layer == PASSAGES:
            query = query.join(documents, documents.c.key == nodes.c.document).order_by(documents.c.id)
        with self.read() as connection:
            return list(connection.scalars(query.order_by(nodes.c.level, nodes.c.position, nodes.c.id)))

    def passage_order(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Keys (n,) of all passages in document order, a number for the document of each, and its position there."""
        query = """SELECT nodes.key, nodes.document, nodes.position FROM nodes
        JOIN documents ON documents.key = nodes.document ORDER BY documents.id, nodes.position"""
        with self.read() as connection:
            cursor: Any = connection.exec_driver_sql(query).cursor  # bare rows: a tome may have many passages
            table = np.array(cursor.fetchall(), np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    def keys_of(self, ids: Iterable[NodeId]) -> dict[NodeId, int]:
        """Keys of the nodes that exist among these ids."""
        query = select(nodes.c.id, nodes.c.key).where(nodes.c.id.in_(among(ids)))
        with self.read() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def places(self, passages: Iterable[PassageId]) -> dict[PassageId, tuple[DocumentId, int]]:
        """The document and the position of each of the passages that exists."""
        query = select(nodes.c.id, documents.c.id, nodes.c.position).join(
            documents, documents.c.key == nodes.c.document
        )
        with self.read() as connection:
            found = connection.execute(query.where(nodes.c.id.in_(among(passages))))
            return {passage: (document, position) for passage, document, position in found}

    def count_passages(self, wanted: Iterable[DocumentId]) -> dict[DocumentId, int]:
        """How many passages each of the documents has."""
        query = select(documents.c.id, func.count()).join(nodes, documents.c.key == nodes.c.document)
        with self.read() as connection:
            found = connection.execute(query.where(documents.c.id.in_(among(wanted))).group_by(documents.c.id))
            return {row[0]: row[1] for row in found}

    def find_neighbours(self, keys: Iterable[int], distance: int) -> dict[int, list[int]]:
        """Keys of the passages at most `distance` before or after each passage: the nearest first, then the later."""
        near = nodes.alias()
        gap = near.c.position - nodes.c.position
        query = select(nodes.c.key, near.c.key).join(near, near.c.document == nodes.c.document)
        query = query.where(nodes.c.key.in_(among(keys)), gap.between(-distance, distance), gap != 0)
        around: dict[int, list[int]] = {}
        with self.read() as connection:
            for key, neighbour in connection.execute(query.order_by(nodes.c.key, func.abs(gap), gap.desc())):
                around.setdefault(key, []).append(neighbour)
        return around

    def sources(self, keys: Iterable[int], layer: str) -> dict[int, list[int]]:
        """For each node of a layer, the keys of the nodes that it was made from, in document order."""
        wanted = list(keys)
        found: dict[int, list[int]] = {key: [] for key in wanted}
        query = (
            select(edges.c.a, edges.c.b)
            .join(nodes, nodes.c.key == edges.c.b)
            .outerjoin(documents, documents.c.key == nodes.c.document)
            .where(edges.c.a.in_(among(wanted)), edges.c.space.in_(list_source_spaces(layer)))
            .order_by(documents.c.id, nodes.c.level, nodes.c.position, nodes.c.id)
        )
        with self.read() as connection:
            for a, b in connection.execute(query):
                found[a].append(b)
        return found

    def find_derived(self, keys: Iterable[int], space: str) -> dict[int, list[int]]:
        """For each node, the keys of the nodes that were made from it; `space` is such as `made-of:gists`."""
        wanted = list(keys)
        found: dict[int, list[int]] = {key: [] for key in wanted}
        query = select(edges.c.a, edges.c.b).where(edges.c.b.in_(among(wanted)), edges.c.space == space)
        with self.read() as connection:
            for a, b in connection.execute(query):
                found[b].append(a)
        return found

    def _by_key(self, query: Any, keys: Iterable[int] | None, order: Sequence[Any]) -> list[dict[str, Any]]:
        wanted = None if keys is None else list(dict.fromkeys(map(int, keys)))
        chosen = query.order_by(*order) if wanted is None else query.where(nodes.c.key.in_(among(wanted)))
        with self.read() as connection:
            found = connection.execute(chosen)
            columns = list(found.keys())
            rows = [dict(zip(columns, row, strict=True)) for row in found]  # four times as fast as `mappings`
        if wanted is None:
            return rows
        by_key = {row["key"]: row for row in rows}
        return [by_key[key] for key in wanted if key in by_key]

    # ------------------------------------------------------------ arrays

    def vectors(self, space: str) -> Columns:
        """The vectors of a space: rows (n, dimensions) float32 under node keys."""
        return self._arrays.columns(f"vectors/{space}")

    def edges(self, space: str) -> Columns:
        """The edges of a space: rows (n, 3) float64 of node key, node key, weight."""
        return self._arrays.columns(f"edges/{space}")

    def version(self, space: str) -> int:
        """A number that changes whenever a space (`vectors/NAME` or `edges/NAME`) changes; 0 if it was never used."""
        with self.read() as connection:
            return version_of(connection, space)

    def lexical(self, query: str, limit: int) -> list[tuple[int, float]]:
        """Passage keys with their BM25 scores, best first."""
        with self.read() as connection:
            return lexical.search(connection, query, limit)

    # ------------------------------------------------------------ records

    def intake(self, layer: str) -> Intake:
        """What a layer has taken in so far."""
        with self.read() as connection:
            rows = connection.execute(select(intake.c.node, intake.c.failure).where(intake.c.layer == layer)).all()
        return Intake(
            done=frozenset(row[0] for row in rows if not row[1]), failed={row[0]: row[1] for row in rows if row[1]}
        )

    def find_removed_ids(self, layer: str) -> tuple[NodeId, ...]:
        """Ids of the nodes removed since the last build of a layer that it had taken in, failures included, sorted."""
        with self.read() as connection:
            return read_removals(connection, layer)

    def find_pending_keys(self, layer: str, below: Iterable[str]) -> list[int]:
        """Keys of the nodes of the layers `below` that this layer has yet to take in, failures included.

        They are in document order.
        """
        taken = select(intake.c.node).where(intake.c.layer == layer, intake.c.failure == "")
        query = (
            select(nodes.c.key)
            .outerjoin(documents, documents.c.key == nodes.c.document)
            .where(nodes.c.layer.in_(list(below)), nodes.c.key.not_in(taken))
            .order_by(documents.c.id, nodes.c.layer, nodes.c.level, nodes.c.position, nodes.c.id)
        )
        with self.read() as connection:
            return list(connection.scalars(query))

    def layers(self) -> dict[str, dict[str, int]]:
        """For each layer, the number of its nodes, and the number of nodes that it failed to take in."""
        with self.read() as connection:
            sizes = select(nodes.c.layer, func.count()).group_by(nodes.c.layer).order_by(nodes.c.layer)
            counts = {layer: {"nodes": count, "failed": 0} for layer, count in connection.execute(sizes)}
            failures = select(intake.c.layer, func.count()).where(intake.c.failure != "").group_by(intake.c.layer)
            for layer, count in connection.execute(failures):
                counts.setdefault(layer, {"nodes": 0, "failed": 0})["failed"] = count
        return counts

    def builds(self) -> dict[str, dict[str, Any]]:
        """The record of the last build of each layer."""
        with self.read() as connection:
            return {
                layer: json.loads(record)
                for layer, record in connection.execute(select(builds).order_by(builds.c.layer))
            }

    def save_trace(self, *, asked: str, question: str, record: dict[str, Any]) -> None:
        """Store the record of how a question was answered."""
        with self._begin_write() as connection:
            connection.execute(insert(traces).values(asked=asked, question=question, record=json.dumps(record)))

    def traces(self, limit: int = 20) -> list[dict[str, Any]]:
        """The latest traces, newest first, each with its number."""
        with self.read() as connection:
            rows = connection.execute(select(traces).order_by(traces.c.key.desc()).limit(limit)).mappings()
            return [_trace(row) for row in rows]

    def trace(self, number: int) -> dict[str, Any] | None:
        """The trace with this number, None where it does not exist."""
        with self.read() as connection:
            row = connection.execute(select(traces).where(traces.c.key == number)).mappings().first()
            return None if row is None else _trace(row)

    def delete_trace(self, number: int) -> bool:
        """Delete a trace, and return whether it existed. Its number is not used again."""
        with self._begin_write() as connection:
            return bool(connection.execute(delete(traces).where(traces.c.key == number)).rowcount)


def _identity(engine: Engine, path: Path) -> str:
    """A random id: distinguishes this tome from another one that is later stored under the same path."""
    query = select(meta.c.value).where(meta.c.key == "identity")
    with translate_errors(path), engine.connect() as connection:
        identity = connection.scalar(query)
    if identity is None:
        with begin_write(engine, path) as connection:
            row = {"key": "identity", "value": uuid4().hex}
            connection.execute(insert(meta).values(row).on_conflict_do_nothing())
            identity = connection.scalar(query)
    return str(identity)


def _trace(row: Mapping[Any, Any]) -> dict[str, Any]:
    own = {"number": row["key"], "asked": row["asked"], "question": row["question"]}
    return {**own, **json.loads(row["record"])}


def _nodes(rows: list[dict[str, Any]]) -> dict[int, Node]:
    return {row.pop("key"): Node(**{**row, "data": json.loads(row["data"])}, sources=()) for row in rows}
