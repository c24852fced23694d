"""A second store, of plain dictionaries, to hold the parts to the contract alone. It is slow and keeps nothing."""

from __future__ import annotations

import json
import math
import operator
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.store.plain_write import Content, PlainNotes, PlainWrite

from tomewise.errors import Locked, StoreError, UnknownName
from tomewise.store.nearest import Nearest, Pairs
from tomewise.store.records import PASSAGES, DocumentRecord, Found, Intake, list_source_spaces, name_source_space
from tomewise.store.sql.node_rows import find_exact
from tomewise.types import Condition, Document, Node, Passage, Scope

_WORD = re.compile(r"[^\W_]+")
_ENOUGH = 8  # replies needed for a mean
_TESTS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


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


class PlainSnapshot(PlainNotes):
    """See `store.contract.Snapshot`. A transaction replaces the content and does not change it."""

    def holds_documents(self) -> bool:
        return bool(self.content.documents)

    def documents(self, wanted: Scope | Iterable[str] | None = None) -> list[DocumentRecord]:
        counts = Counter(passage.document for passage in self.content.passages.values())
        scope = wanted if isinstance(wanted, Scope) else Scope(documents=None if wanted is None else frozenset(wanted))
        return [
            DocumentRecord(
                **{name: getattr(document, name) for name in ("id", "title", "source", "metadata")},
                folder=folder,
                digest=digest,
                characters=len(document.text),
                passages=counts[name],
            )
            for name, (document, digest, folder) in sorted(self.content.documents.items())
            if _passes_conditions(document, scope)
        ]

    def document(self, document: str) -> Document:
        if (found := self.content.documents.get(document)) is None:
            raise UnknownName(f"no document {document!r}")
        return found[0]

    def text_between(self, document: str, start: int, end: int) -> str:
        return self.document(document).text[start:end]

    def passages(
        self,
        keys: Iterable[int] | None = None,
        *,
        documents: Iterable[str] | None = None,
        between: tuple[int, int] | None = None,
    ) -> dict[int, Passage]:
        found, wanted = self.content.passages, None if documents is None else set(documents)
        if keys is not None:
            return {int(key): found[key] for key in keys if key in found}
        start, end = between or (-1, math.inf)
        return {
            key: found[key]
            for key in self.node_keys(PASSAGES)
            if (wanted is None or found[key].document in wanted) and found[key].start < end and found[key].end > start
        }

    def nodes(self, layer: str) -> dict[int, Node]:
        found = {key: node for key, node in self.content.nodes.items() if node.layer == layer}
        return dict(sorted(found.items(), key=lambda item: (item[1].level, item[1].position, item[1].id)))

    def nodes_at(self, keys: Iterable[int]) -> dict[int, Node]:
        return {int(key): self.content.nodes[key] for key in keys if key in self.content.nodes}

    def count_passages(self) -> int:
        return len(self.nodes("passages"))

    def node_keys(self, layer: str) -> list[int]:
        return sorted(self.nodes(layer), key=self._place)

    def find(self, ids: Iterable[str]) -> dict[str, Found]:
        wanted = set(ids)
        found = {key: node for key, node in self.content.nodes.items() if node.id in wanted}
        return {node.id: Found(key, node.layer, self._home(key), node.position) for key, node in found.items()}

    def find_dependants(self, keys: Iterable[int]) -> dict[str, int]:
        wanted = set(keys)
        gone = self.content.find_dependants(wanted)
        return dict(Counter(self.content.nodes[key].layer for key in gone if key not in wanted))

    def passage_order(self) -> tuple[np.ndarray, ...]:
        numbers = {name: number for number, name in enumerate(self.content.documents)}
        rows = [(key, numbers[passage.document], passage.position) for key, passage in self.passages().items()]
        return tuple(np.array(rows, np.int64).reshape(-1, 3).T)

    def find_neighbours(self, keys: Iterable[int], distance: int) -> dict[int, list[int]]:
        around: dict[int, list[int]] = {}
        for key, passage in sorted(self.passages(set(keys)).items()):
            own = self.passages(documents=[passage.document])
            gaps = {near: each.position - passage.position for near, each in own.items()}
            if near := [near for near, gap in gaps.items() if 0 < abs(gap) <= distance]:
                around[key] = sorted(near, key=lambda near: (abs(gaps[near]), -gaps[near]))
        return around

    def keys_within(self, scope: Scope | None, layer: str = PASSAGES) -> np.ndarray | None:
        if scope is None or scope == Scope():
            return None
        return np.array([key for key in sorted(self.nodes(layer)) if _is_within(self.content, scope, key)], np.int64)

    def _place(self, key: int) -> tuple[str, int, int, str]:
        node = self.content.nodes[key]
        return self._home(key) or "", node.level, node.position, node.id

    def _home(self, key: int) -> str | None:
        passage = self.content.passages.get(key)
        return passage.document if passage else None

    def nearest(self, space: str, queries: np.ndarray, limit: int, *, among: np.ndarray | None = None) -> Nearest:
        rows = [self.scores(space, query, among=among) for query in np.atleast_2d(queries)]
        keys, cosines = rows[0][0], np.max([found for _, found in rows], axis=0)
        least = np.sort(cosines)[::-1][min(limit, len(cosines)) - 1] if len(cosines) and limit > 0 else np.inf
        best = np.flatnonzero(cosines >= least - 1e-6)
        return Nearest(keys[best], cosines[best], float(cosines.min()) if len(cosines) else 0.0)

    def scores(
        self, space: str, query: np.ndarray, *, among: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        found = self._read_space(f"vectors/{space}")
        is_wanted = np.ones(len(found.keys), bool) if among is None else np.isin(found.keys, among)
        return found.keys[is_wanted], np.array([row @ query for row in found.rows[is_wanted]], np.float32)

    def rows(self, space: str, keys: Iterable[int]) -> np.ndarray:
        table = self.content.vectors.get(space, {})
        return np.array([table[key] for key in keys], np.float32)

    def alike(self, space: str, rows: np.ndarray, least: float) -> Pairs:
        found = self._read_space(f"vectors/{space}")
        cosines = np.round(rows.astype(np.float64) @ found.rows.astype(np.float64).reshape(-1, rows.shape[1]).T, 4)
        new, places = np.nonzero(cosines >= least)
        return Pairs(new, found.keys[places], cosines[new, places])

    def edges_at(self, spaces: Iterable[str], keys: Iterable[int], end: str) -> np.ndarray:
        near, wanted = "ab".index(end), set(keys)
        edges = [(ends, weight) for space in spaces for ends, (_, weight) in self.content.edges.get(space, {}).items()]
        found = [(*ends, weight) for ends, weight in edges if ends[near] in wanted]
        return np.array(sorted(found, key=lambda row: self._place(row[1 - near])), np.float64).reshape(-1, 3)

    def arrays(self, spaces: Iterable[str]) -> dict[str, PlainRows]:
        return {space: self._read_space(space) for space in spaces}

    def versions(self, spaces: Iterable[str] | None = None) -> dict[str, int]:
        return {space: self.content.versions[space] for space in spaces or self.content.versions}

    def find_kept(self, name: str, versions: Mapping[str, int]) -> None:
        return None

    def keep(self, name: str, versions: Mapping[str, int], content: np.ndarray) -> None:
        pass

    def _read_space(self, space: str) -> PlainRows:
        kind, name = space.split("/", 1)
        if kind == "vectors":
            rows = sorted(self.content.vectors.get(name, {}).items())
            width = int(self.note("settings", "dimensions") or 0)
            table = np.array([row for _, row in rows], np.float32).reshape(len(rows), -1 if rows else width)
            return PlainRows(self.content.versions[space], np.array([key for key, _ in rows], np.int64), table)
        edges = sorted((key, a, b, weight) for (a, b), (key, weight) in self.content.edges.get(name, {}).items())
        found = np.array(edges, np.float64).reshape(-1, 4)
        return PlainRows(self.content.versions[space], found[:, 0].astype(np.int64), found[:, 1:])

    def lexical(self, query: str, limit: int, *, within: Scope | None = None) -> list[tuple[int, float]]:
        words = {key: Counter(_split(passage.content)) for key, passage in self.content.passages.items()}
        mean = sum(counts.total() for counts in words.values()) / max(1, len(words))
        scores: Counter[int] = Counter()
        for term in dict.fromkeys(_split(query)):
            holders = [key for key, counts in words.items() if counts[term]]
            weight = max(1e-6, math.log((len(words) - len(holders) + 0.5) / (len(holders) + 0.5)))
            for key in holders:
                count, length = words[key][term], words[key].total()
                scores[key] += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))
        among = self.keys_within(within)
        found = [(key, score) for key, score in scores.items() if among is None or key in among]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def exact(self, query: str, most: int, *, within: Scope | None = None) -> dict[int, int]:
        among = self.keys_within(within)
        lines = {
            key: f" {' '.join(_split(passage.content))} "
            for key, passage in self.content.passages.items()
            if among is None or key in among
        }
        counts: Counter[int] = Counter()
        for forms in find_exact(query):
            holders = [key for key, line in lines.items() if any(f" {form} " in line for form in forms)]
            counts.update(holders if len(holders) <= most else [])
        return counts

    def find_holders(self, words: Iterable[str], among: Any) -> list[tuple[int, Any]]:
        texts = {key: set(_split(passage.content)) for key, passage in self.content.passages.items()}
        holders = [[key for key in sorted(texts) if texts[key].intersection(_split(word))] for word in words]
        return [(len(keys), np.array([key for key in keys if key in among], np.int64)) for keys in holders]

    def intake(self, layer: str, among: Iterable[int] | None = None) -> Intake:
        taken = self.content.intake.get(layer, {})
        taken = taken if among is None else {key: taken[key] for key in among if key in taken}
        failed = {key: reason for key, reason in taken.items() if reason}
        return Intake(done=frozenset(taken.keys() - failed.keys()), failed=failed)

    def count_taken(self, layer: str) -> int:
        return len(self.intake(layer).done)

    def find_removed_ids(self, layer: str) -> tuple[str, ...]:
        return tuple(sorted(self.content.removals.get(layer, ())))

    def find_pending_keys(self, layer: str, below: Iterable[str]) -> list[int]:
        nodes, done, layers = self.content.nodes, self.intake(layer).done, set(below)
        pending = [key for key, node in nodes.items() if node.layer in layers and key not in done]
        return sorted(pending, key=lambda key: (self._home(key) or "", nodes[key].layer, self._place(key)))

    def layers(self) -> dict[str, dict[str, int]]:
        sizes = Counter(node.layer for node in self.content.nodes.values())
        failures = {layer: sum(map(bool, taken.values())) for layer, taken in self.content.intake.items()}
        names = sorted(sizes) + sorted(layer for layer, count in failures.items() if count and layer not in sizes)
        return {layer: {"nodes": sizes[layer], "failed": failures.get(layer, 0)} for layer in names}


class PlainStore(PlainSnapshot):
    """See `store.contract.Store`. A transaction changes a copy of the content, which then replaces the content."""

    read_only = False

    def __init__(self, address: str = "plain") -> None:
        self.address = address
        self.calls = PlainCalls()
        self._content = Content()
        self._turn = threading.RLock()
        self._rights: set[str] = set()
        self._is_closed = False

    @property
    def content(self) -> Content:
        self.check()
        return self._content

    def size(self) -> int:
        return sum(len(document.text) for document, *_ in self.content.documents.values())

    def cache_size(self) -> int:
        return 0

    def clear_cache(self) -> None:
        pass

    @contextmanager
    def write(self) -> Iterator[PlainWrite]:
        with self._turn:
            change = PlainWrite(self.content)
            yield change
            self._content = change.finish()

    @contextmanager
    def hold(self, name: str, refusal: str, *, is_long: bool = False) -> Iterator[None]:
        self.check()
        if name in self._rights:
            raise Locked(refusal)
        self._rights.add(name)
        try:
            yield
        finally:
            self._rights.discard(name)

    @contextmanager
    def snapshot(self) -> Iterator[PlainSnapshot]:
        yield PlainSnapshot(self.content)

    def check(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self.address} is closed")

    def find_damage(self) -> str:
        return ""

    def close(self) -> None:
        self._is_closed = True

    def save_trace(self, *, asked: str, question: str, record: dict[str, Any]) -> int:
        with self.write() as change:
            number = change.content.last["trace"] = change.content.last["trace"] + 1
            kept = {"number": number, "asked": asked, "question": question, **json.loads(json.dumps(record))}
            change.content.traces[number] = kept
        return number

    def trace_numbers(self, limit: int | None = 20, *, before: int | None = None, matching: str = "") -> list[int]:
        def matches(number: int) -> bool:
            trace = self.content.traces[number]
            text = f"{trace['question']} {trace.get('text', '')} {trace.get('quoted', '')}".casefold()
            return (before is None or number < before) and all(word in text for word in matching.casefold().split())

        return [number for number in sorted(self.content.traces, reverse=True) if matches(number)][:limit]

    def trace(self, number: int) -> dict[str, Any] | None:
        return self.content.traces.get(number)

    def delete_trace(self, number: int) -> bool:
        with self.write() as change:
            return change.content.traces.pop(number, None) is not None


def make_opener() -> Callable[[Path], PlainStore]:
    """A function that opens stores; the same path gives the same store, closed or not."""
    opened: dict[Path, PlainStore] = {}
    return lambda path: opened.setdefault(Path(path), PlainStore(str(path)))


def _split(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


# ---------------------------------------------------------------- which nodes lie within a scope, node by node


def _is_within(content: Content, scope: Scope, key: int) -> bool:
    """Whether this node is within the scope."""
    if key in content.passages:
        return _includes_passage(content, scope, key, content.passages[key])
    made_of, seen_in, drawn_from = (
        [_is_within(content, scope, b) for a, b in content.edges.get(space, {}) if a == key]
        for space in list_source_spaces(content.nodes[key].layer)
    )
    return any(seen_in) or (bool(made_of + drawn_from) and all(made_of + drawn_from))


def _passes_conditions(document: Document, scope: Scope) -> bool:
    """Whether the documents and conditions of a scope leave this document."""
    if scope.documents is not None and document.id not in scope.documents:
        return False
    metadata = {**({"title": document.title} if document.title else {}), **document.metadata}
    return all(_passes(metadata.get(condition.field, ()), condition) for condition in scope.where)


def _includes_passage(content: Content, scope: Scope, key: int, passage: Passage) -> bool:
    if not _passes_conditions(content.documents[passage.document][0], scope):
        return False
    if scope.entities is not None and not _list_seen(content, key, scope.entities) & scope.entities:
        return False
    seen = _list_seen(content, key, scope.without_entities)
    return not seen & scope.without_entities or bool(seen - scope.without_entities)


def _list_seen(content: Content, key: int, entities: frozenset[str]) -> set[str]:
    """The ids of the nodes seen in a passage, of the layers of these entities."""
    layers = {node.layer for node in content.nodes.values() if node.id in entities}
    spaces = [name_source_space(layer, "any") for layer in layers]
    return {content.nodes[a].id for space in spaces for a, b in content.edges.get(space, {}) if b == key}


def _passes(value: Any, condition: Condition) -> bool:
    def fits(item: Any) -> bool:
        if _kind(item) is not _kind(condition.value):
            return condition.operator == "!="
        return bool(_TESTS[condition.operator](item, condition.value))

    return any(map(fits, value if isinstance(value, (list, tuple)) else [value]))


def _kind(value: Any) -> type:
    return bool if isinstance(value, bool) else str if isinstance(value, str) else float
