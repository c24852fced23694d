"""The content of a plain store, and the transaction that changes it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tomewise.store.records import PASSAGES, Lifetime, list_source_spaces, name_source_space
from tomewise.types import Document, Node, Passage, content_id

Ends = tuple[int, int]


@dataclass
class Content:
    """All that a tome holds, in dictionaries. `passages` are also among the `nodes`."""

    documents: dict[str, tuple[Document, str, str]] = field(default_factory=dict)  # with digest and folder
    passages: dict[int, Passage] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    vectors: dict[str, dict[int, np.ndarray]] = field(default_factory=lambda: defaultdict(dict))
    edges: dict[str, dict[Ends, tuple[int, float]]] = field(default_factory=lambda: defaultdict(dict))  # key, weight
    versions: Counter[str] = field(default_factory=Counter)
    intake: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    removals: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # ids by the layer that had them
    notes: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    traces: dict[int, dict[str, Any]] = field(default_factory=dict)
    last: Counter[str] = field(default_factory=Counter)  # the last key given to each kind of row

    def copy(self) -> Content:
        """A copy that can be changed; the values in the innermost dictionaries never change."""
        parts = {name: copy(value) for name, value in vars(self).items()}
        for name in ("vectors", "edges", "intake", "removals", "notes"):
            parts[name].update({key: copy(value) for key, value in parts[name].items()})
        return Content(**parts)

    def list_spaces(self) -> dict[str, dict[Any, Any]]:
        """What the version of each space depends on."""
        spaces: dict[str, dict[Any, Any]] = {f"edges/{space}": dict(edges) for space, edges in self.edges.items()}
        for space, rows in self.vectors.items():
            spaces[f"vectors/{space}"] = {key: (id(row), self.nodes[key].id) for key, row in rows.items()}
        return {**spaces, "documents": dict(self.documents)}

    def find_key(self, name: str) -> int | None:
        return next((key for key, node in self.nodes.items() if node.id == name), None)

    def find_dependants(self, keys: Iterable[int]) -> list[int]:
        """These nodes, then the nodes that go with them."""
        gone: list[int] = []
        front = sorted(set(keys))
        while front:
            gone += front
            front = sorted(self.find_orphans(set(gone), self.edges) - set(gone))
        return gone

    def find_orphans(self, gone: set[int], spaces: Iterable[str]) -> set[int]:
        """The nodes that cannot stay without these, by the edges of these spaces."""
        orphans: set[int] = set()
        for space in spaces:
            sources: dict[int, set[int]] = defaultdict(set)
            for a, b in self.edges[space]:
                sources[a].add(b)
            if space.startswith("made-of:"):
                orphans.update(a for a, found in sources.items() if found & gone)
            elif space.startswith("seen-in:"):
                orphans.update(a for a, found in sources.items() if found <= gone)
        return orphans


class PlainNotes:
    """See `store.contract.Notes`."""

    def __init__(self, content: Content) -> None:
        self.content = content

    def notes(self, kind: str) -> dict[str, Any]:
        return dict(sorted(deepcopy(self.content.notes.get(kind, {})).items()))

    def note_names(self, kind: str) -> list[str]:
        return list(self.notes(kind))

    def note(self, kind: str, name: str) -> Any:
        return self.notes(kind).get(name)


class PlainWrite(PlainNotes):
    """See `store.contract.Write`; it changes a copy of the content."""

    def __init__(self, content: Content) -> None:
        super().__init__(content.copy())
        self._before = content.list_spaces()

    def finish(self) -> Content:
        for space, rows in self.content.list_spaces().items():
            if rows != self._before.get(space, {}):
                self.content.versions[space] = self._next("version")
        return self.content

    def put_document(self, document: Document, digest: str, passages: Sequence[Passage]) -> list[int]:
        self.remove_document(document.id)
        self.content.documents[document.id] = (document, digest, "")
        return [self._add_passage(replace(passage, title=document.title)) for passage in passages]

    def remove_document(self, document: str) -> list[int]:
        if self.content.documents.pop(document, None) is None:
            return []
        return self.remove_nodes(key for key, found in self.content.passages.items() if found.document == document)

    def move_document(self, former: str, document: Document, digest: str) -> None:
        *_, folder = self.content.documents.pop(former)
        self.content.documents[document.id] = (document, digest, folder)
        if former == document.id:
            return
        ids: dict[int, str] = {}
        for key, passage in self.content.passages.items():
            if passage.document == former:
                ids[key] = content_id("p", document.id, passage.start, passage.end, passage.text)
                self.content.passages[key] = replace(passage, id=ids[key], document=document.id)
        front = set(ids)
        while front:
            spaces = [pairs for space, pairs in self.content.edges.items() if space.startswith("made-of:")]
            front = {a for pairs in spaces for a, b in pairs if b in front} - ids.keys()
            names = {key: self.content.nodes[key].id for key in front}
            ids |= {key: content_id(name[:1], "moved", document.id, name) for key, name in names.items()}
        for key, name in ids.items():
            node = self.content.nodes[key]
            data = {**node.data, "document": document.id} if node.data.get("document") == former else node.data
            self.content.nodes[key] = replace(node, id=name, data=data)

    def set_folders(self, folders: Mapping[str, str]) -> None:
        for name in folders.keys() & self.content.documents.keys():
            self.content.documents[name] = (*self.content.documents[name][:2], folders[name])

    def renew_passage(self, key: int) -> int:
        passage = self.content.passages[key]
        vectors = {space: rows[key] for space, rows in self.content.vectors.items() if key in rows}
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
        reworded = {keys[node.id] for node in changed if self.content.nodes[keys[node.id]].text != node.text}
        for node in changed:
            key = keys[node.id]
            self.content.nodes[key] = replace(node, sources=())
            wanted = {self.content.find_key(source) for source in node.sources}
            for space in list_source_spaces(node.layer):
                kept = wanted if space == name_source_space(node.layer, lifetime) else set()
                self._drop_edges(space, lambda a, b, at=key, kept=kept: a == at and b not in kept)
            self._add_sources(node, lifetime)
        own = {self.content.nodes[key].layer for key in reworded}
        others = [space for space in self.content.edges if space.split(":", 1)[-1] not in own]
        self.remove_nodes(self.content.find_orphans(reworded, others) if reworded else ())
        for space in others:
            if space.startswith("seen-in:"):
                self._drop_edges(space, lambda _, b: b in reworded)
        self._log_removals(reworded)
        return keys

    def remove_nodes(self, keys: Iterable[int]) -> list[int]:
        gone = self.content.find_dependants(keys)
        self._log_removals(gone)
        for rows in self.content.vectors.values():
            for key in rows.keys() & set(gone):
                del rows[key]
        for edges in self.content.edges.values():
            for ends in [ends for ends in edges if set(ends) & set(gone)]:
                del edges[ends]
        for key in gone:
            self.content.nodes.pop(key, None)
            self.content.passages.pop(key, None)
        return gone

    def put_vectors(self, space: str, keys: Sequence[int], rows: np.ndarray, *, replace: bool = False) -> None:
        if len(keys) != len(rows):
            raise ValueError(f"{len(keys)} keys for {len(rows)} vectors: give one key for each")
        self.content.vectors[space].update(zip(map(int, keys), np.array(rows, np.float32), strict=True))

    def put_edges(
        self, space: str, a: np.ndarray, b: np.ndarray, weights: np.ndarray, *, replace: bool = False
    ) -> None:
        table = self.content.edges[space]
        for ends, weight in zip(zip(a.tolist(), b.tolist(), strict=True), weights.tolist(), strict=True):
            key, earlier = table.get(ends, (0, weight))
            table[ends] = (key or self._next("edge"), weight if replace else earlier)

    def remove_edges(self, space: str, pairs: np.ndarray | None = None) -> None:
        lost = None if pairs is None else set(map(tuple, pairs.tolist()))
        self._drop_edges(space, lambda a, b: lost is None or (a, b) in lost)

    def put_note(self, kind: str, name: str, data: Any) -> None:
        self.content.notes[kind][name] = json.loads(json.dumps(data))

    def remove_note(self, kind: str, name: str) -> bool:
        return self.content.notes[kind].pop(name, None) is not None

    def record_intake(self, layer: str, taken: Iterable[int], failed: Mapping[int, str] | None = None) -> None:
        self.content.intake[layer].update({**dict.fromkeys(taken, ""), **(failed or {})})
        self.content.removals.pop(layer, None)

    def forget_intake(self, layer: str) -> None:
        self.content.intake.pop(layer, None)
        self.content.removals.pop(layer, None)

    def _add_passage(self, passage: Passage) -> int:
        node = Node(id=passage.id, layer=PASSAGES, text=passage.text, sources=(), position=passage.position)
        key = self._add_node(node)
        self.content.passages[key] = passage
        return key

    def _add_node(self, node: Node) -> int:
        key = self._next("node")
        self.content.nodes[key] = node
        return key

    def _add_sources(self, node: Node, lifetime: Lifetime) -> None:
        key = self.content.find_key(node.id)
        ends = np.array([(key, self.content.find_key(source)) for source in node.sources], np.int64).reshape(-1, 2)
        self.put_edges(name_source_space(node.layer, lifetime), ends[:, 0], ends[:, 1], np.ones(len(ends)))

    def _drop_edges(self, space: str, is_lost: Callable[[int, int], bool]) -> None:
        for ends in [ends for ends in self.content.edges[space] if is_lost(*ends)]:
            del self.content.edges[space][ends]

    def _log_removals(self, keys: Iterable[int]) -> None:
        for layer, taken in self.content.intake.items():
            for key in keys:
                if taken.pop(key, None) is not None:
                    self.content.removals[layer].add(self.content.nodes[key].id)

    def _find_key(self, node: Node) -> int | None:
        key = self.content.find_key(node.id)
        if key is not None and self.content.nodes[key].layer != node.layer:
            raise ValueError(f"{node.id!r} is the id of a node in another layer")
        return key

    def _next(self, kind: str) -> int:
        self.content.last[kind] += 1
        return self.content.last[kind]
