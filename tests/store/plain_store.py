"""A second store, of plain dictionaries, to hold the parts to the contract alone. It is slow and keeps nothing."""

from __future__ import annotations

import json
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.store.plain_scope import find_keys_within, passes_conditions
from tests.store.plain_write import Content, PlainWrite

from tomewise.errors import Locked, StoreError, UnknownName
from tomewise.store.close_rows import Pairs
from tomewise.store.lifetimes import list_source_spaces
from tomewise.store.nearest import Nearest
from tomewise.store.records import PASSAGES, DocumentRecord, Intake
from tomewise.types import Document, Metadata, Node, Passage, Scope

_WORD = re.compile(r"[^\W_]+")
_ENOUGH = 8  # replies needed for a mean


@dataclass(frozen=True)
class PlainRows:
    version: int
    keys: np.ndarray
    rows: np.ndarray


class PlainCalls:
    """See `store.contract.Calls`."""

    def __init__(self) -> None:
        self._replies: dict[str, tuple[str, str, str, str]] = {}

    async def get(self, key: str, *, since: str = "") -> str | None:
        *_, reply, mark = self._replies.get(key, ("", "", None, ""))
        return reply if not since or since == mark else None

    async def keep(self, key: str, *, role: str, model: str, reply: str, since: str = "") -> None:
        self._replies[key] = (role, model, reply, since)

    async def drop(self, key: str) -> None:
        self._replies.pop(key, None)

    def mean_reply_bytes(self, role: str, model: str) -> float | None:
        sizes = [len(reply.encode()) for *who, reply, _ in self._replies.values() if who == [role, model]]
        return sum(sizes) / len(sizes) if len(sizes) >= _ENOUGH else None


class PlainSnapshot:
    """See `store.contract.Snapshot`."""

    def __init__(self, content: Content) -> None:
        self._content = content

    def settings(self) -> Iterable[tuple[str, str]]:
        return self._content.settings.items()

    def documents(self) -> Iterable[tuple[Document, str]]:
        return self._content.documents.values()

    def passages(self) -> Iterable[Passage]:
        return self._content.passages.values()

    def nodes(self) -> Iterable[Node]:
        return (node for node in self._content.nodes.values() if node.layer != PASSAGES)

    def edges(self) -> Iterable[tuple[str, str, str, float]]:
        for space, edges in self._content.edges.items():
            for (a, b), (_, weight) in edges.items():
                yield space, self._content.nodes[a].id, self._content.nodes[b].id, weight

    def vectors(self) -> Iterable[tuple[str, str]]:
        return ((space, self._content.nodes[key].id) for space, rows in self._content.vectors.items() for key in rows)

    def intake(self) -> Iterable[tuple[str, str, str]]:
        for layer, taken in self._content.intake.items():
            for key, failure in taken.items():
                yield layer, self._content.nodes[key].id, failure

    def sessions(self) -> Iterable[tuple[str, dict[str, Any]]]:
        return self._content.sessions.items()


class PlainStore:
    """See `store.contract.Store`. A transaction changes a copy of the content, which then replaces the content."""

    read_only = False

    def __init__(self, address: str = "plain") -> None:
        self.address = address
        self.calls = PlainCalls()
        self._content = Content()
        self._turn = threading.RLock()
        self._alone = threading.Lock()
        self._sessions_in_use: set[str] = set()
        self._is_closed = False

    def size(self) -> int:
        return sum(len(document.text) for document, _ in self._read().documents.values())

    def cache_size(self) -> int:
        return 0

    def clear_cache(self) -> None:
        pass

    @contextmanager
    def write(self) -> Iterator[PlainWrite]:
        with self._turn:
            change = PlainWrite(self._read().copy())
            yield change
            self._content = change.finish()

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        self.check()
        if not self._alone.acquire(blocking=False):
            raise Locked(f"{self.address} is being written by another program: try to {what} again later")
        try:
            yield
        finally:
            self._alone.release()

    @contextmanager
    def hold_session(self, name: str) -> Iterator[None]:
        self.check()
        if name in self._sessions_in_use:
            raise Locked(f"the session {name!r} is answering another question: try again later")
        self._sessions_in_use.add(name)
        try:
            yield
        finally:
            self._sessions_in_use.discard(name)

    @contextmanager
    def snapshot(self) -> Iterator[PlainSnapshot]:
        yield PlainSnapshot(self._read())

    def check(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self.address} is closed")

    def find_damage(self) -> str:
        return ""

    def close(self) -> None:
        self._is_closed = True

    def _read(self) -> Content:
        """The content of this moment; a transaction replaces it and does not change it."""
        self.check()
        return self._content

    # ------------------------------------------------------------ texts

    def holds_documents(self) -> bool:
        return bool(self._read().documents)

    def documents(self, within: Scope | None = None) -> list[DocumentRecord]:
        content = self._read()
        counts = Counter(passage.document for passage in content.passages.values())
        return [
            DocumentRecord(
                id=name,
                title=document.title,
                source=document.source,
                digest=digest,
                characters=len(document.text),
                passages=counts[name],
                metadata=document.metadata,
            )
            for name, (document, digest) in sorted(content.documents.items())
            if passes_conditions(document, within or Scope())
        ]

    def origins(self) -> dict[str, str]:
        return {name: document.source for name, (document, _) in self._read().documents.items()}

    def folders(self) -> dict[str, str]:
        content = self._read()
        return {name: content.folders.get(name, "") for name in content.documents}

    def digest(self, document: str) -> str | None:
        return self._read().documents.get(document, (None, None))[1]

    def document(self, document: str) -> Document:
        found = self._read().documents.get(document)
        if found is None:
            raise UnknownName(f"no document {document!r} in {self.address}")
        return found[0]

    def record(self, document: str) -> DocumentRecord:
        self.document(document)
        return next(record for record in self.documents() if record.id == document)

    def read_metadata(self, wanted: Iterable[str]) -> dict[str, Metadata]:
        documents = self._read().documents
        return {document: documents[document][0].metadata for document in wanted if document in documents}

    def text_between(self, document: str, start: int, end: int) -> str:
        return self.document(document).text[start:end]

    def passages(self, keys: Iterable[int] | None = None) -> dict[int, Passage]:
        passages = self._read().passages
        if keys is None:
            keys = sorted(passages, key=lambda key: (passages[key].document, passages[key].position))
        return {int(key): passages[key] for key in keys if key in passages}

    def passages_of(self, wanted: Iterable[str]) -> dict[int, Passage]:
        documents = set(wanted)
        return {key: passage for key, passage in self.passages().items() if passage.document in documents}

    def passages_between(self, document: str, start: int, end: int) -> dict[int, Passage]:
        own = self.passages_of([document])
        return {key: passage for key, passage in own.items() if passage.start < end and passage.end > start}

    def nodes(self, layer: str) -> dict[int, Node]:
        found = {key: node for key, node in self._read().nodes.items() if node.layer == layer}
        return dict(sorted(found.items(), key=lambda item: (item[1].level, item[1].position, item[1].id)))

    def node_field(self, layer: str, field: str) -> dict[int, str]:
        return {key: node.data.get(field, "") for key, node in self.nodes(layer).items()}

    def nodes_at(self, keys: Iterable[int]) -> dict[int, Node]:
        nodes = self._read().nodes
        return {int(key): nodes[key] for key in keys if key in nodes}

    def node_keys(self, layer: str) -> list[int]:
        content = self._read()
        found = [key for key, node in content.nodes.items() if node.layer == layer]
        return sorted(found, key=lambda key: _place(content, key))

    def keys_of(self, ids: Iterable[str]) -> dict[str, int]:
        keys = self._read().keys
        return {name: keys[name] for name in dict.fromkeys(ids) if name in keys}

    def places(self, passages: Iterable[str]) -> dict[str, tuple[str, int]]:
        wanted = set(passages)
        found = (passage for passage in self._read().passages.values() if passage.id in wanted)
        return {passage.id: (passage.document, passage.position) for passage in found}

    def count_passages(self, wanted: Iterable[str]) -> dict[str, int]:
        counts = Counter(passage.document for passage in self._read().passages.values())
        return {document: counts[document] for document in wanted if document in counts}

    def find_neighbours(self, keys: Iterable[int], distance: int) -> dict[int, list[int]]:
        passages = self._read().passages
        around: dict[int, list[int]] = {}
        for key in sorted(set(keys) & passages.keys()):
            gaps = {
                near: passage.position - passages[key].position
                for near, passage in passages.items()
                if passage.document == passages[key].document and near != key
            }
            near = [near for near in gaps if abs(gaps[near]) <= distance]
            if near:
                around[key] = sorted(near, key=lambda near: (abs(gaps[near]), -gaps[near]))
        return around

    def passage_order(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        passages = self.passages()
        numbers = {name: number for number, name in enumerate(self._read().documents)}
        rows = [(key, numbers[passage.document], passage.position) for key, passage in passages.items()]
        table = np.array(rows, np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    def sources(self, keys: Iterable[int], layer: str) -> dict[int, list[int]]:
        content = self._read()
        found: dict[int, list[int]] = {key: [] for key in keys}
        for space in list_source_spaces(layer):
            for a, b in content.edges.get(space, {}):
                if a in found:
                    found[a].append(b)
        return {key: sorted(below, key=lambda source: _place(content, source)) for key, below in found.items()}

    def find_derived(self, keys: Iterable[int], space: str) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {key: [] for key in keys}
        for a, b in self._read().edges.get(space, {}):
            if b in found:
                found[b].append(a)
        return found

    def keys_within(self, scope: Scope | None, layer: str = PASSAGES) -> np.ndarray | None:
        if scope is None or scope == Scope():
            return None
        return np.array(sorted(find_keys_within(self._read(), scope, layer)), np.int64)

    # ------------------------------------------------------------ spaces

    def nearest(self, space: str, queries: np.ndarray, limit: int, *, among: np.ndarray | None = None) -> Nearest:
        rows = [self.scores(space, query, among=among) for query in np.atleast_2d(queries)]
        keys, cosines = rows[0][0], np.max([found for _, found in rows], axis=0)
        order = np.argsort(-cosines, kind="stable")
        least = cosines[order[min(limit, len(order)) - 1]] if len(order) and limit > 0 else np.inf
        best = np.flatnonzero(cosines >= least - 1e-6)
        return Nearest(keys[best], cosines[best], float(cosines.min()) if len(cosines) else 0.0)

    def scores(
        self, space: str, query: np.ndarray, *, among: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        found = self.vectors(space)
        is_wanted = np.ones(len(found.keys), bool) if among is None else np.isin(found.keys, among)
        return found.keys[is_wanted], np.array([row @ query for row in found.rows[is_wanted]], np.float32)

    def rows(self, space: str, keys: Iterable[int]) -> np.ndarray:
        table = self._read().vectors.get(space, {})
        return np.array([table[key] for key in keys], np.float32)

    def alike(self, space: str, rows: np.ndarray, least: float) -> Pairs:
        found = self.vectors(space)
        cosines = np.round(rows.astype(np.float64) @ found.rows.astype(np.float64).reshape(-1, rows.shape[1]).T, 4)
        new, places = np.nonzero(cosines >= least)
        return Pairs(new, found.keys[places], cosines[new, places])

    def neighbours(self, space: str, keys: Iterable[int]) -> np.ndarray:
        wanted = set(keys)
        edges = self._read().edges.get(space, {}).items()
        found = [(a, b, weight) for (a, b), (_, weight) in edges if a in wanted or b in wanted]
        return np.array(found, np.float64).reshape(-1, 3)

    def vectors(self, space: str) -> PlainRows:
        return _read_space(self._read(), f"vectors/{space}")

    def edges(self, space: str) -> PlainRows:
        return _read_space(self._read(), f"edges/{space}")

    def arrays(self, spaces: Iterable[str]) -> dict[str, PlainRows]:
        content = self._read()
        return {space: _read_space(content, space) for space in spaces}

    def versions(self, spaces: Iterable[str]) -> dict[str, int]:
        versions = self._read().versions
        return {space: versions.get(space, 0) for space in spaces}

    # ------------------------------------------------------------ words

    def lexical(self, query: str, limit: int, *, within: Scope | None = None) -> list[tuple[int, float]]:
        words = {key: Counter(_split(passage.content)) for key, passage in self._read().passages.items()}
        mean = sum(counts.total() for counts in words.values()) / max(1, len(words))
        scores: Counter[int] = Counter()
        for term in dict.fromkeys(_split(query)):
            holders = [key for key, counts in words.items() if counts[term]]
            weight = max(1e-6, math.log((len(words) - len(holders) + 0.5) / (len(holders) + 0.5)))
            for key in holders:
                count, length = words[key][term], words[key].total()
                scores[key] += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))
        among = self.keys_within(within)
        allowed = None if among is None else set(among.tolist())
        found = [(key, score) for key, score in scores.items() if allowed is None or key in allowed]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def find_holders(self, words: Iterable[str], among: Any) -> list[tuple[int, Any]]:
        texts = {key: set(_split(passage.content)) for key, passage in self._read().passages.items()}
        holders = [[key for key in sorted(texts) if texts[key].intersection(_split(word))] for word in words]
        return [(len(keys), np.array([key for key in keys if key in among], np.int64)) for keys in holders]

    # ------------------------------------------------------------ records

    def meta(self, key: str) -> str | None:
        return self._read().settings.get(key)

    def intake(self, layer: str) -> Intake:
        taken = self._read().intake.get(layer, {})
        failed = {key: reason for key, reason in taken.items() if reason}
        return Intake(done=frozenset(taken.keys() - failed.keys()), failed=failed)

    def count_intake(self, layer: str) -> int:
        return len(self.intake(layer).done)

    def find_removed_ids(self, layer: str) -> tuple[str, ...]:
        return tuple(sorted(self._read().removals.get(layer, ())))

    def find_pending_keys(self, layer: str, below: Iterable[str]) -> list[int]:
        content, done, layers = self._read(), self.intake(layer).done, set(below)
        pending = [key for key, node in content.nodes.items() if node.layer in layers and key not in done]
        return sorted(
            pending, key=lambda key: (_document(content, key), content.nodes[key].layer, _place(content, key))
        )

    def layers(self) -> dict[str, dict[str, int]]:
        content = self._read()
        sizes = Counter(node.layer for node in content.nodes.values())
        failures = {layer: sum(map(bool, taken.values())) for layer, taken in content.intake.items()}
        names = sorted(sizes) + sorted(layer for layer, count in failures.items() if count and layer not in sizes)
        return {layer: {"nodes": sizes[layer], "failed": failures.get(layer, 0)} for layer in names}

    def builds(self) -> dict[str, dict[str, Any]]:
        return {layer: json.loads(json.dumps(record)) for layer, record in sorted(self._read().builds.items())}

    def session_names(self) -> list[str]:
        return sorted(self._read().sessions)

    def session(self, name: str) -> dict[str, Any] | None:
        return self._read().sessions.get(name)

    def save_trace(self, *, asked: str, question: str, record: dict[str, Any]) -> int:
        def add(content: Content) -> None:
            content.last["trace"] += 1
            number = content.last["trace"]
            kept = {"number": number, "asked": asked, "question": question, **json.loads(json.dumps(record))}
            content.traces[number] = kept

        self._change(add)
        return self._read().last["trace"]

    def trace_numbers(self, limit: int | None = 20, *, before: int | None = None, matching: str = "") -> list[int]:
        def matches(number: int) -> bool:
            trace = self._read().traces[number]
            text = f"{trace['question']} {trace.get('answer', '')}".casefold()
            return (before is None or number < before) and all(word in text for word in matching.casefold().split())

        return [number for number in sorted(self._read().traces, reverse=True) if matches(number)][:limit]

    def trace(self, number: int) -> dict[str, Any] | None:
        return self._read().traces.get(number)

    def delete_trace(self, number: int) -> bool:
        return self._change(lambda content: content.traces.pop(number, None) is not None)

    def _change(self, change: Callable[[Content], Any]) -> Any:
        with self._turn:
            content = self._read().copy()
            result = change(content)
            self._content = content
        return result


def make_opener() -> Callable[[Path], PlainStore]:
    """A function that opens stores; the same path gives the same store, closed or not."""
    opened: dict[Path, PlainStore] = {}
    return lambda path: opened.setdefault(Path(path), PlainStore(str(path)))


def _place(content: Content, key: int) -> tuple[str, int, int, str]:
    node = content.nodes[key]
    return _document(content, key), node.level, node.position, node.id


def _document(content: Content, key: int) -> str:
    passage = content.passages.get(key)
    return passage.document if passage else ""


def _read_space(content: Content, space: str) -> PlainRows:
    kind, name = space.split("/", 1)
    if kind == "vectors":
        rows = content.vectors.get(name, {})
        width = int(content.settings.get("dimensions", 0))
        table = np.array([rows[key] for key in sorted(rows)], np.float32).reshape(len(rows), -1 if rows else width)
        return PlainRows(content.versions.get(space, 0), np.array(sorted(rows), np.int64), table)
    edges = sorted((key, a, b, weight) for (a, b), (key, weight) in content.edges.get(name, {}).items())
    found = np.array(edges, np.float64).reshape(-1, 4)
    return PlainRows(content.versions.get(space, 0), found[:, 0].astype(np.int64), found[:, 1:])


def _split(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
