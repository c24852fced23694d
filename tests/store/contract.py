"""Functions that fill a small store, and a check that its arrays follow its tables."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from tomewise.store.lookups import read_edges, read_vectors
from tomewise.store.records import SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.store.sql.write import Write
from tomewise.types import Document, Node, Passage, content_id

DIMENSIONS = 4


def cut_passages(document: Document, size: int = 12) -> list[Passage]:
    """Passages of `size` characters."""
    starts = range(0, len(document.text), size)
    texts = [document.text[start : start + size] for start in starts]
    return [
        Passage(
            id=content_id("p", document.id, place, text),
            document=document.id,
            position=place,
            start=start,
            end=start + len(text),
            text=text,
            title=document.title,
        )
        for place, (start, text) in enumerate(zip(starts, texts, strict=True))
    ]


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    """A row for each text, equal for equal texts."""
    rows = [np.frombuffer(sha256(text.encode()).digest()[:DIMENSIONS], np.uint8) for text in texts]
    return np.array(rows, np.float32).reshape(-1, DIMENSIONS) / 255


def put_memory(change: Write, document: Document) -> list[int]:
    """Add a document: passages, a gist for every two passages, and the words of each passage as shared nodes."""
    passages = cut_passages(document)
    keys = change.put_document(document, document.text, passages)
    change.put_vectors("passages", keys, vectors_of([passage.text for passage in passages]))
    pairs = [passages[place : place + 2] for place in range(0, len(passages), 2)]
    gists = [_node("gists", pair[0].id, [passage.id for passage in pair]) for pair in pairs]
    change.put_nodes(gists)
    change.put_nodes([_node("tree", gists[0].id, [gist.id for gist in gists])] if gists else [])
    words = [_node("words", word, [passage.id]) for passage in passages for word in passage.text.split()]
    at = change.put_nodes(words, lifetime="any")
    change.put_edges("self:words", *_ends(sorted(at.values())))
    change.record_intake("gists", keys)
    return keys


def _node(layer: str, name: str, sources: Sequence[str]) -> Node:
    return Node(id=f"{layer}:{name}", layer=layer, text=name, sources=tuple(sources))


def _ends(keys: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pairs = np.array([(key, key) for key in keys], np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1], np.ones(len(pairs))


def add(store: SqlStore, *documents: Document) -> None:
    """Each document in a transaction of its own."""
    for document in documents:
        with store.write() as change:
            change.put_note(SETTINGS, "dimensions", str(DIMENSIONS))
            put_memory(change, document)


def remove(store: SqlStore, document: str) -> list[int]:
    with store.write() as change:
        return change.remove_document(document)


def assert_arrays_follow(store: SqlStore) -> None:
    """The arrays are equal to the tables."""
    with store.read() as transaction:
        vectors = transaction.run("SELECT space, key, vector FROM vectors ORDER BY key").all()
        edges = transaction.run("SELECT space, key, a, b, weight FROM edges ORDER BY key").all()
        touched = transaction.run("SELECT space FROM spaces WHERE space <> 'documents'").scalars().all()
    assert touched, "nothing was ever stored here"
    for space in touched:
        kind, name = space.split("/", 1)
        columns = read_vectors(store, name) if kind == "vectors" else read_edges(store, name)
        rows = vectors if kind == "vectors" else edges
        expected = {
            row.key: np.frombuffer(row.vector, np.float32).tolist() if kind == "vectors" else [row.a, row.b, row.weight]
            for row in rows
            if row.space == name
        }
        assert columns.keys.tolist() == sorted(expected)
        assert [row.tolist() for row in columns.rows] == [expected[key] for key in sorted(expected)]
        assert columns.version == store.versions([space])[space]
