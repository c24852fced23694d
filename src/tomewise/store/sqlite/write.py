"""One write transaction on a tome: the possible changes, and what each of them removes or updates with it."""

from __future__ import annotations

import json
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, delete, exists, func, select, update
from sqlalchemy.dialects.sqlite import insert

from tomewise.store.sqlite import lexical
from tomewise.store.sqlite.arrays import edges_after, version_of
from tomewise.store.sqlite.mirror import Changes, Delta, Keys, Rows
from tomewise.store.sqlite.passage_data import join_indexed_text, write_passage_data
from tomewise.store.sqlite.schema import builds, documents, edges, intake, meta, nodes, spaces, vectors
from tomewise.types import Document, DocumentId, Node, Passage

PASSAGES = "passages"
_NODE = ("key", "id", "layer", "level", "position", "document", "start", "end", "text", "data")
_BATCH = 10_000  # vectors written at a time
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)
_NODES = (
    'INSERT INTO nodes (key, id, layer, level, position, document, start, "end", text, data) '
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def among(values: Iterable[Any]) -> Select[tuple[Any]]:
    """Keys or ids for an IN clause. They are one parameter of the statement, however many they are."""
    return select(func.json_each(json.dumps(list(values), default=int)).table_valued("value").c.value)


class Write:
    """The methods that change a tome in a transaction. It collects the changes of each space of arrays."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._changes: dict[str, Changes] = defaultdict(Changes)

    # ------------------------------------------------------------ documents

    def put_document(self, document: Document, digest: str, passages: Sequence[Passage]) -> list[int]:
        """Add a document; it replaces a document of the same id. Returns the keys of its passages."""
        self.remove_document(document.id)
        row = {"id": document.id, "title": document.title, "source": document.source, "text": document.text}
        row |= {"metadata": _json(document.metadata)}
        statement = insert(documents).values(**row, digest=digest, characters=len(document.text))
        added = self._connection.execute(statement).inserted_primary_key
        assert added is not None
        columns = ("id", "position", "start", "end", "text")
        own = {"layer": PASSAGES, "level": 0, "document": added[0]}
        rows = [
            {**{name: getattr(passage, name) for name in columns}, **own, "data": write_passage_data(passage)}
            for passage in passages
        ]
        keys = self._insert_nodes(rows)
        texts = [join_indexed_text(document.title, row["data"], row["text"]) for row in rows]
        lexical.index(self._connection, list(zip(keys, texts, strict=True)))
        return keys

    def remove_document(self, document: DocumentId) -> list[int]:
        """Remove a document, its passages, and all that was made from them. Returns the keys of all nodes removed."""
        row = self._connection.execute(
            select(documents.c.key, documents.c.title).where(documents.c.id == document)
        ).one_or_none()
        if row is None:
            return []
        columns = (nodes.c.key, nodes.c.data, nodes.c.text)
        found = self._connection.execute(select(*columns).where(nodes.c.document == row.key)).all()
        lexical.forget(self._connection, [(key, join_indexed_text(row.title, data, text)) for key, data, text in found])
        gone = self.remove_nodes([key for key, _, _ in found])
        self._connection.execute(delete(documents).where(documents.c.key == row.key))
        return gone

    def renew_passage(self, key: int) -> int:
        """Remove a passage with all that was made from it, and add the same passage again. Returns its new key."""
        columns = [column for column in nodes.c if column.name != "key"]
        row = dict(self._connection.execute(select(*columns).where(nodes.c.key == key)).mappings().one())
        title = self._connection.scalar(select(documents.c.title).where(documents.c.key == row["document"]))
        query = select(vectors.c.space, vectors.c.vector).where(vectors.c.key == key)
        stored_vectors = self._connection.execute(query).all()
        text = join_indexed_text(title or "", row["data"], row["text"])
        lexical.forget(self._connection, [(key, text)])
        self.remove_nodes([key])
        (fresh,) = self._insert_nodes([row])
        lexical.index(self._connection, [(fresh, text)])
        for space, vector in stored_vectors:
            self.put_vectors(space, [fresh], np.frombuffer(vector, np.float32).reshape(1, -1))
        return fresh

    # ------------------------------------------------------------ nodes

    def put_nodes(self, made: Sequence[Node], *, shared: bool = False) -> dict[str, int]:
        """Add nodes and their sources; a node that exists keeps its key and text and gets the new sources too.

        A node is removed with any one of its sources, because its text is about all of them. A `shared` node (an
        entity, a fact) is removed only with the last of its sources. Ids are unique over all layers. Returns keys by
        id.
        """
        keys = self._find_keys_of(made)
        fresh = list({node.id: node for node in made if node.id not in keys}.values())
        rows = [
            {
                "id": n.id,
                "layer": n.layer,
                "level": n.level,
                "position": n.position,
                "text": n.text,
                "data": _json(n.data),
            }
            for n in fresh
        ]
        keys.update(zip((n.id for n in fresh), self._insert_nodes(rows), strict=True))
        source_keys = self._keys_of({source for node in made for source in node.sources})
        pairs: dict[str, dict[tuple[int, int], None]] = defaultdict(dict)
        for node in made:
            space = f"{'seen-in' if shared else 'made-of'}:{node.layer}"
            pairs[space].update(((keys[node.id], source_keys[source]), None) for source in node.sources)
        for space, space_pairs in pairs.items():
            table = np.array(list(space_pairs), np.int64).reshape(-1, 2)
            self.put_edges(space, table[:, 0], table[:, 1], np.ones(len(table)))
        return keys

    def set_data(self, data: Mapping[int, Mapping[str, Any]], texts: Mapping[int, str] | None = None) -> None:
        """Replace the data of nodes by key, and the texts of the nodes in `texts`."""
        if data:
            statement = update(nodes).where(nodes.c.key == bindparam("at")).values(data=bindparam("new"))
            self._connection.execute(statement, [{"at": key, "new": _json(value)} for key, value in data.items()])
        if texts:
            statement = update(nodes).where(nodes.c.key == bindparam("at")).values(text=bindparam("new"))
            self._connection.execute(statement, [{"at": key, "new": text} for key, text in texts.items()])

    def remove_nodes(self, keys: Iterable[int]) -> list[int]:
        """Remove nodes with their edges and vectors, and the nodes made from them. Returns the keys of all removed."""
        gone: list[int] = []
        front = sorted(set(keys))
        while front:
            orphans = self._find_orphans(front)
            self._drop_edges(edges.c.a.in_(among(front)))
            self._drop_edges(edges.c.b.in_(among(front)))
            self._drop_vectors(vectors.c.key.in_(among(front)))
            self._connection.execute(delete(intake).where(intake.c.node.in_(among(front))))
            self._connection.execute(delete(nodes).where(nodes.c.key.in_(among(front))))
            gone += front
            front = sorted(orphans.difference(gone))
        return gone

    def _find_orphans(self, keys: Sequence[int]) -> set[int]:
        """Nodes to remove with these: those made from one of them, and `shared` nodes without any other source."""
        orphans: set[int] = set()
        seen: dict[str, set[int]] = defaultdict(set)
        query = select(edges.c.a, edges.c.space).where(edges.c.b.in_(among(keys)))
        for a, space in self._connection.execute(query):
            if space.startswith("made-of:"):
                orphans.add(a)
            elif space.startswith("seen-in:"):
                seen[space].add(a)
        for space, candidates in seen.items():
            at = func.json_each(json.dumps(sorted(candidates))).table_valued("value").c.value
            # EXISTS, since one source that stays is enough, and a common name has thousands of sources.
            stays = exists().where(edges.c.a == at, edges.c.space == space, edges.c.b.not_in(among(keys)))
            orphans.update(self._connection.scalars(select(at).where(~stays)))
        return orphans

    def _insert_nodes(self, rows: Sequence[Mapping[str, Any]]) -> list[int]:
        last = self._last_key("nodes")
        keys = list(range(last + 1, last + 1 + len(rows)))
        if rows:
            blank = {"document": None, "start": None, "end": None}
            full = ({**blank, **row, "key": key} for key, row in zip(keys, rows, strict=True))
            self._connection.exec_driver_sql(_NODES, [tuple(row[name] for name in _NODE) for row in full])
        return keys

    def _find_keys_of(self, made: Sequence[Node]) -> dict[str, int]:
        layers = {node.id: node.layer for node in made}
        query = select(nodes.c.id, nodes.c.key, nodes.c.layer).where(nodes.c.id.in_(among(layers)))
        found: dict[str, int] = {}
        for node, key, layer in self._connection.execute(query):
            if layer != layers[node]:
                raise ValueError(
                    f"{node!r} is the id of a node in {layer!r} and in {layers[node]!r}: name the layer in ids"
                )
            found[node] = key
        return found

    def _keys_of(self, ids: Iterable[str]) -> dict[str, int]:
        query = select(nodes.c.id, nodes.c.key).where(nodes.c.id.in_(among(ids)))
        return {row[0]: row[1] for row in self._connection.execute(query)}

    def _last_key(self, table: str) -> int:
        # The sequence does not go back after deletions, so a key is never used twice.
        query = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        return self._connection.exec_driver_sql(query, (table,)).scalar() or 0

    # ------------------------------------------------------------ arrays

    def put_vectors(self, space: str, keys: Sequence[int], rows: Rows) -> None:
        """Add vectors (n, dimensions) for node keys that do not have a vector in this space yet."""
        at = np.asarray(keys, np.int64)
        if len(at) != len(rows):
            raise ValueError(f"{len(at)} keys for {len(rows)} vectors: give one key for each")
        if not len(at):
            return
        order = np.argsort(at)
        at, table = at[order], np.ascontiguousarray(rows[order], dtype=np.float32)
        for start in range(0, len(at), _BATCH):  # so that the rows are not all in memory twice
            batch = slice(start, start + _BATCH)
            values = [(space, key, row.tobytes()) for key, row in zip(at[batch].tolist(), table[batch], strict=True)]
            self._connection.exec_driver_sql("INSERT INTO vectors (space, key, vector) VALUES (?, ?, ?)", values)
        self._changes[f"vectors/{space}"].add(at, table)

    def remove_vectors(self, space: str, keys: Sequence[int]) -> None:
        """Remove the vectors of these nodes from one space."""
        self._drop_vectors(and_(vectors.c.space == space, vectors.c.key.in_(among(keys))))

    def put_edges(self, space: str, a: Keys, b: Keys, weights: Rows) -> None:
        """Add edges between node keys; an edge that exists keeps its weight."""
        rows = [(space, x, y, w) for x, y, w in zip(a.tolist(), b.tolist(), weights.tolist(), strict=True)]
        if not rows:
            return
        last = self._last_key("edges")
        self._connection.exec_driver_sql("INSERT OR IGNORE INTO edges (space, a, b, weight) VALUES (?, ?, ?, ?)", rows)
        self._changes[f"edges/{space}"].add(*edges_after(self._connection, space, last))

    def remove_edges(self, space: str) -> None:
        """Remove all edges of a space."""
        self._drop_edges(edges.c.space == space)

    def _drop_edges(self, condition: ColumnElement[bool]) -> None:
        self._record_removed(
            "edges", self._connection.execute(delete(edges).where(condition).returning(edges.c.space, edges.c.key))
        )

    def _drop_vectors(self, condition: ColumnElement[bool]) -> None:
        self._record_removed(
            "vectors",
            self._connection.execute(delete(vectors).where(condition).returning(vectors.c.space, vectors.c.key)),
        )

    def _record_removed(self, kind: str, removed: Iterable[Any]) -> None:
        keys: dict[str, list[int]] = defaultdict(list)
        for space, key in removed:
            keys[space].append(key)
        for space, space_keys in keys.items():
            self._changes[f"{kind}/{space}"].remove(space_keys)

    # ------------------------------------------------------------ records

    def set_meta(self, key: str, value: str) -> None:
        """Record a setting of the tome."""
        row = {"key": key, "value": value}
        self._connection.execute(insert(meta).values(row).on_conflict_do_update(index_elements=["key"], set_=row))

    def record_build(self, layer: str, record: Mapping[str, Any]) -> None:
        """Record the last build of a layer. Call it after the intake: the record contains the size of the intake.

        A later build compares this size, to see whether nodes were removed. The counts of replies are kept; a mark to
        ask for them again is removed, since that is done.
        """
        seen = self._connection.scalar(select(func.count()).where(intake.c.layer == layer))
        replies = self._build(layer).get("replies")
        self._put_build(layer, {**record, "seen": seen, **({"replies": replies} if replies else {})})

    def count_replies(self, layer: str, counts: Mapping[str, int]) -> None:
        """Add to the counts of replies, by kind, in the layer's record; they cover all builds."""
        record = self._build(layer)
        total = Counter(record.get("replies", {})) + Counter(counts)
        self._put_build(layer, {**record, "replies": dict(sorted(total.items()))})

    def mark_again(self, layer: str, mark: str) -> None:
        """Mark a layer: until its next build succeeds, its calls are repeated (see `language.cached.ask_anew`)."""
        self._put_build(layer, {**self._build(layer), "again": mark})

    def _build(self, layer: str) -> dict[str, Any]:
        record = self._connection.scalar(select(builds.c.record).where(builds.c.layer == layer))
        fields: dict[str, Any] = json.loads(record or "{}")
        return fields

    def _put_build(self, layer: str, record: Mapping[str, Any]) -> None:
        row = {"layer": layer, "record": _json(record)}
        self._connection.execute(insert(builds).values(row).on_conflict_do_update(index_elements=["layer"], set_=row))

    def record_intake(self, layer: str, taken: Iterable[int], failed: Mapping[int, str] | None = None) -> None:
        """Record which nodes a layer has taken in, and which failed, each with its reason."""
        rows = [{"layer": layer, "node": key, "failure": ""} for key in taken]
        rows += [{"layer": layer, "node": key, "failure": reason} for key, reason in (failed or {}).items()]
        if rows:
            statement = insert(intake)
            keep = {"failure": statement.excluded.failure}
            self._connection.execute(statement.on_conflict_do_update(index_elements=["layer", "node"], set_=keep), rows)

    def forget_layer(self, layer: str) -> None:
        """Delete the intake and the record of a layer, so that the next build takes in all nodes again."""
        self._connection.execute(delete(intake).where(intake.c.layer == layer))
        self._connection.execute(delete(builds).where(builds.c.layer == layer))

    # ------------------------------------------------------------ changes of the arrays

    def finish(self) -> dict[str, tuple[int, int, Delta]]:
        """Give each changed space a new version. Returns, by space, the old version, the new one, and the changes."""
        deltas: dict[str, tuple[int, int, Delta]] = {}
        for space, changes in sorted(self._changes.items()):
            if not changes:
                continue
            before = version_of(self._connection, space)
            # A random number: a counter would repeat numbers after a tome is restored from a copy.
            after = secrets.randbits(62) + 1
            row = {"space": space, "version": after}
            self._connection.execute(
                insert(spaces).values(row).on_conflict_do_update(index_elements=["space"], set_=row)
            )
            deltas[space] = (before, after, changes.delta())
        return deltas


def _json(data: Mapping[str, Any]) -> str:
    return _ENCODER.encode(data) if data else "{}"
