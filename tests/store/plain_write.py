"""The content of a plain store, and the transaction that changes it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tomewise.store.lifetimes import Lifetime, list_source_spaces, name_source_space
from tomewise.store.records import PASSAGES
from tomewise.types import Document, Node, Passage, content_id

Edge = tuple[int, int]


@dataclass
class Content:
    """All that a tome holds, in dictionaries. `passages` are also among the `nodes`."""

    settings: dict[str, str] = field(default_factory=dict)
    documents: dict[str, tuple[Document, str]] = field(default_factory=dict)  # with digests
    folders: dict[str, str] = field(default_factory=dict)  # that documents were added with
    passages: dict[int, Passage] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)  # of nodes by id
    vectors: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)
    edges: dict[str, dict[Edge, tuple[int, float]]] = field(default_factory=dict)  # key and weight
    versions: dict[str, int] = field(default_factory=dict)
    intake: dict[str, dict[int, str]] = field(default_factory=dict)
    removals: dict[str, set[str]] = field(default_factory=dict)  # ids of nodes by the layer that had taken them in
    builds: dict[str, dict[str, Any]] = field(default_factory=dict)
    traces: dict[int, dict[str, Any]] = field(default_factory=dict)
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    last: Counter[str] = field(default_factory=Counter)  # the last key given to each kind of row

    def copy(self) -> Content:
        """A copy that can be changed; the values in the innermost dictionaries never change."""
        parts = {name: copy(value) for name, value in vars(self).items()}
        for name in ("vectors", "edges", "intake", "removals"):
            parts[name] = {key: copy(value) for key, value in parts[name].items()}
        return Content(**parts)


class PlainWrite:
    """See `store.write.Write`; it changes a copy of the content."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._touched: set[str] = set()

    def finish(self) -> Content:
        for space in self._touched:
            self._content.versions[space] = self._next("version")
        return self._content

    def put_document(self, document: Document, digest: str, passages: Sequence[Passage]) -> list[int]:
        self.remove_document(document.id)
        self._content.documents[document.id] = (document, digest)
        self._touched.add("documents")
        return [self._add_passage(replace(passage, title=document.title)) for passage in passages]

    def remove_document(self, document: str) -> list[int]:
        if self._content.documents.pop(document, None) is None:
            return []
        self._content.folders.pop(document, None)
        self._touched.add("documents")
        return self.remove_nodes(key for key, found in self._content.passages.items() if found.document == document)

    def move_document(self, former: str, document: Document, digest: str) -> None:
        del self._content.documents[former]
        self._content.documents[document.id] = (document, digest)
        self._content.folders[document.id] = self._content.folders.pop(former, "")
        self._touched.add("documents")
        if former == document.id:
            return
        ids: dict[int, str] = {}
        for key, passage in list(self._content.passages.items()):
            if passage.document == former:
                ids[key] = content_id("p", document.id, passage.start, passage.end, passage.text)
                self._content.passages[key] = replace(passage, id=ids[key], document=document.id)
        front = set(ids)
        while front:
            spaces = [pairs for space, pairs in self._content.edges.items() if space.startswith("made-of:")]
            front = {a for pairs in spaces for a, b in pairs if b in front} - ids.keys()
            names = {key: self._content.nodes[key].id for key in front}
            ids |= {key: content_id(name[:1], "moved", document.id, name) for key, name in names.items()}
        for key, name in ids.items():
            del self._content.keys[self._content.nodes[key].id]
            self._content.keys[name] = key
            node = replace(self._content.nodes[key], id=name)
            if node.data.get("document") == former:
                node = replace(node, data={**node.data, "document": document.id})
            self._content.nodes[key] = node
        self._touched |= {
            f"vectors/{space}" for space, rows in self._content.vectors.items() if rows.keys() & ids.keys()
        }

    def set_folders(self, folders: Mapping[str, str]) -> None:
        known = {name: folder for name, folder in folders.items() if name in self._content.documents}
        self._content.folders |= known
        self._touched |= {"documents"} if known else set()

    def renew_passage(self, key: int) -> int:
        passage = self._content.passages[key]
        vectors = {space: rows[key] for space, rows in self._content.vectors.items() if key in rows}
        self.remove_nodes([key])
        fresh = self._add_passage(passage)
        for space, row in vectors.items():
            self.put_vectors(space, [fresh], row[None, :])
        return fresh

    def put_nodes(self, made: Sequence[Node], *, lifetime: Lifetime = "all") -> dict[str, int]:
        keys: dict[str, int] = {}
        for node in made:
            key = self._find_key(node)
            keys[node.id] = self._add_node(replace(node, sources=())) if key is None else key
        for node in made:
            self._add_sources(node, lifetime)
        return keys

    def update_nodes(self, changed: Sequence[Node], *, lifetime: Lifetime = "all") -> dict[str, int]:
        keys = {node.id: self._find_key(node) for node in changed}
        if None in keys.values():
            raise ValueError("this is the id of no node: add it with put_nodes")
        reworded = {keys[node.id] for node in changed if self._content.nodes[keys[node.id]].text != node.text}
        for node in changed:
            key = keys[node.id]
            self._content.nodes[key] = replace(node, sources=())
            wanted = {self._content.keys[source] for source in node.sources}
            for space in list_source_spaces(node.layer):
                kept = wanted if space == name_source_space(node.layer, lifetime) else set()
                lost = [(a, b) for a, b in self._content.edges.get(space, {}) if a == key and b not in kept]
                self.remove_edges(space, np.array(lost, np.int64).reshape(-1, 2))
            self._add_sources(node, lifetime)
        self._renew_above(reworded, {self._content.nodes[key].layer for key in reworded})
        return keys

    def _renew_above(self, keys: set[int], own: set[str]) -> None:
        others = {space for space in self._content.edges if space.split(":", 1)[-1] not in own}
        self.remove_nodes(self._find_orphans(keys, others))
        for space in others:
            if space.startswith("seen-in:"):
                lost = [ends for ends in self._content.edges[space] if ends[1] in keys]
                self.remove_edges(space, np.array(lost, np.int64).reshape(-1, 2))
        self._forget_intake(keys)

    def _forget_intake(self, keys: Iterable[int]) -> None:
        for layer, taken in self._content.intake.items():
            for key in keys:
                if taken.pop(key, None) is not None:
                    self._content.removals.setdefault(layer, set()).add(self._content.nodes[key].id)

    def remove_nodes(self, keys: Iterable[int]) -> list[int]:
        gone: list[int] = []
        front = sorted(set(keys))
        while front:
            orphans = self._find_orphans(set(front), self._content.edges)
            self._forget_intake(front)
            for key in front:
                self._drop_node(key)
            gone += front
            front = sorted(orphans.difference(gone))
        return gone

    def put_vectors(self, space: str, keys: Sequence[int], rows: np.ndarray) -> None:
        if len(keys) != len(rows):
            raise ValueError(f"{len(keys)} keys for {len(rows)} vectors: give one key for each")
        table = self._content.vectors.setdefault(space, {})
        table.update(zip(map(int, keys), np.array(rows, np.float32), strict=True))
        self._touched.update([f"vectors/{space}"] if len(keys) else [])

    def remove_vectors(self, space: str, keys: Sequence[int]) -> None:
        table = self._content.vectors.get(space, {})
        removed = [table.pop(key) for key in keys if key in table]
        if removed:
            self._touched.add(f"vectors/{space}")

    def replace_vectors(self, space: str, keys: Sequence[int], rows: np.ndarray) -> None:
        self.remove_vectors(space, keys)
        self.put_vectors(space, keys, rows)

    def put_edges(self, space: str, a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> None:
        self._add_edges(space, zip(a.tolist(), b.tolist(), weights.tolist(), strict=True))

    def reweight_edges(self, space: str, pairs: np.ndarray, weights: np.ndarray) -> None:
        table = self._content.edges.get(space, {})
        for ends, weight in zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True):
            if ends not in table:
                raise ValueError(f"{space!r} has no edge from {ends[0]} to {ends[1]}: add it with put_edges")
            table[ends] = (table[ends][0], weight)
            self._touched.add(f"edges/{space}")

    def remove_edges(self, space: str, pairs: np.ndarray | None = None) -> None:
        table = self._content.edges.get(space, {})
        lost = set(table) if pairs is None else set(map(tuple, pairs.tolist())) & table.keys()
        for ends in lost:
            del table[ends]
        if lost:
            self._touched.add(f"edges/{space}")

    def put_session(self, name: str, record: Mapping[str, Any]) -> None:
        self._content.sessions[name] = json.loads(json.dumps(record))

    def remove_session(self, name: str) -> bool:
        return self._content.sessions.pop(name, None) is not None

    def set_meta(self, key: str, value: str) -> None:
        self._content.settings[key] = value

    def record_build(self, layer: str, record: Mapping[str, Any]) -> None:
        before = self._content.builds.get(layer, {})
        kept = {name: before[name] for name in ("replies", "writes") if name in before}
        if former := {*before.get("former_models", ()), before.get("model", "")} - {"", record.get("model", "")}:
            kept["former_models"] = sorted(former)
        self._content.builds[layer] = {**record, **kept}
        self._content.removals.pop(layer, None)

    def record_writes(self, layer: str, writes: Sequence[str]) -> None:
        self._content.builds[layer] = {**self._content.builds.get(layer, {}), "writes": list(writes)}

    def count_replies(self, layer: str, counts: Mapping[str, int]) -> None:
        record = self._content.builds.get(layer, {})
        total = Counter(record.get("replies", {})) + Counter(counts)
        self._content.builds[layer] = {**record, "replies": dict(sorted(total.items()))}

    def mark_again(self, layer: str, mark: str) -> None:
        self._content.builds[layer] = {**self._content.builds.get(layer, {}), "again": mark}

    def record_intake(self, layer: str, taken: Iterable[int], failed: Mapping[int, str] | None = None) -> None:
        self._content.intake.setdefault(layer, {}).update({**dict.fromkeys(taken, ""), **(failed or {})})

    def forget_layer(self, layer: str) -> None:
        self._content.intake.pop(layer, None)
        self._content.removals.pop(layer, None)
        self._content.builds.pop(layer, None)

    def _add_passage(self, passage: Passage) -> int:
        node = Node(id=passage.id, layer=PASSAGES, text=passage.text, sources=(), position=passage.position)
        key = self._add_node(node)
        self._content.passages[key] = passage
        return key

    def _add_node(self, node: Node) -> int:
        key = self._next("node")
        self._content.nodes[key] = node
        self._content.keys[node.id] = key
        return key

    def _drop_node(self, key: int) -> None:
        content = self._content
        content.keys.pop(content.nodes.pop(key).id)
        content.passages.pop(key, None)
        for space, rows in content.vectors.items():
            if rows.pop(key, None) is not None:
                self._touched.add(f"vectors/{space}")
        for space, edges in content.edges.items():
            for ends in [ends for ends in edges if key in ends]:
                del edges[ends]
                self._touched.add(f"edges/{space}")

    def _add_edges(self, space: str, edges: Iterable[tuple[int, int, float]]) -> None:
        table = self._content.edges.setdefault(space, {})
        for a, b, weight in edges:
            if (a, b) not in table:
                table[a, b] = (self._next("edge"), weight)
                self._touched.add(f"edges/{space}")

    def _add_sources(self, node: Node, lifetime: Lifetime) -> None:
        keys = self._content.keys
        edges = [(keys[node.id], keys[source], 1.0) for source in node.sources]
        self._add_edges(name_source_space(node.layer, lifetime), edges)

    def _find_key(self, node: Node) -> int | None:
        key = self._content.keys.get(node.id)
        if key is not None and self._content.nodes[key].layer != node.layer:
            raise ValueError(f"{node.id!r} is the id of a node in another layer")
        return key

    def _find_orphans(self, keys: set[int], spaces: Iterable[str]) -> set[int]:
        """The nodes that cannot stay without these, by the edges of these spaces."""
        orphans: set[int] = set()
        for space in spaces:
            sources: dict[int, set[int]] = defaultdict(set)
            for a, b in self._content.edges[space]:
                sources[a].add(b)
            if space.startswith("made-of:"):
                orphans.update(a for a, found in sources.items() if found & keys)
            elif space.startswith("seen-in:"):
                orphans.update(a for a, found in sources.items() if found & keys and found <= keys)
        return orphans

    def _next(self, kind: str) -> int:
        self._content.last[kind] += 1
        return self._content.last[kind]
