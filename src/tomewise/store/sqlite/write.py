"""One write transaction on a tome: the possible changes, and what each of them removes or updates with it."""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, delete, exists, func, select, update
from sqlalchemy.dialects.sqlite import insert

from tomewise.place import write_places
from tomewise.store.lifetimes import Lifetime, list_source_spaces, name_source_space
from tomewise.store.records import PASSAGES
from tomewise.store.sqlite import lexical
from tomewise.store.sqlite.arrays import load_edges, read_space_version
from tomewise.store.sqlite.build_records import BuildRecords, encode_json
from tomewise.store.sqlite.mirror import Changes, Delta, Keys, Rows
from tomewise.store.sqlite.node_rows import join_indexed_text
from tomewise.store.sqlite.removals import log_removals
from tomewise.store.sqlite.row_values import Misfit, stack_vectors
from tomewise.store.sqlite.schema import documents, edges, intake, nodes, spaces, vectors
from tomewise.types import Document, DocumentId, Node, Passage, content_id

_NODE = ("key", "id", "layer", "level", "position", "document", "start", "end", "text", "data")
_BATCH = 10_000  # vectors written at a time
_NODES = (
    'INSERT INTO nodes (key, id, layer, level, position, document, start, "end", text, data) '
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# CROSS JOIN: the pairs come first, each with one look-up in the index. SQLite cannot know how few they are.
_EDGES = """
SELECT edges.key, pair.key FROM json_each(?) AS pair
CROSS JOIN edges INDEXED BY edges_forward ON edges.space = ? AND edges.a = json_extract(pair.value, '$[0]')
  AND edges.b = json_extract(pair.value, '$[1]')
"""


def select_values(values: Iterable[Any]) -> Select[tuple[Any]]:
    """Keys or ids for an IN clause. They are one parameter of the statement, however many they are."""
    return select(func.json_each(json.dumps(list(values), default=int)).table_valued("value").c.value)


class Write(BuildRecords):
    """The methods that change a tome in a transaction. It collects the changes of each space of arrays."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._changes: dict[str, Changes] = defaultdict(Changes)
        self._changes_documents = False  # their ids, sources, folders or metadata

    # ------------------------------------------------------------ documents

    def put_document(self, document: Document, digest: str, passages: Sequence[Passage]) -> list[int]:
        """Add a document; it replaces a document of the same id. Returns the keys of its passages."""
        self.remove_document(document.id)
        self._changes_documents = True
        row = {"id": document.id, "title": document.title, "source": document.source, "text": document.text}
        row |= {"metadata": encode_json(document.metadata), "folder": ""}
        statement = insert(documents).values(**row, digest=digest, characters=len(document.text))
        added = self._connection.execute(statement).inserted_primary_key
        assert added is not None
        columns = ("id", "position", "start", "end", "text")
        shared = {"layer": PASSAGES, "level": 0, "document": added[0]}
        places = [write_places(passage.place, passage.marks) for passage in passages]
        rows = [
            {**{name: getattr(passage, name) for name in columns}, **shared, "data": encode_json(place)}
            for passage, place in zip(passages, places, strict=True)
        ]
        keys = self._insert_nodes(rows)
        texts = [join_indexed_text(document.title, place, row["text"]) for place, row in zip(places, rows, strict=True)]
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
        removed = self.remove_nodes([key for key, _, _ in found])
        self._connection.execute(delete(documents).where(documents.c.key == row.key))
        self._changes_documents = True
        return removed

    def move_document(self, former: DocumentId, document: Document, digest: str) -> None:
        """Give a document another id, source and metadata; title and text must be the same.

        The document keeps its vectors and all that was made from it; its nodes keep their keys. Its passages get the
        ids that they would have under the new id, and what was made from them gets new ids too, since a document that
        later has the old id may bring nodes of the old ids again. `data["document"]`, where there is one, gets the new
        id as well.
        """
        row = self._connection.execute(select(documents.c.key).where(documents.c.id == former)).one()
        values = {"id": document.id, "source": document.source, "digest": digest}
        values["metadata"] = encode_json(document.metadata)
        self._connection.execute(update(documents).where(documents.c.key == row.key).values(**values))
        self._changes_documents = True
        if former == document.id:
            return
        ids = _find_moved_ids(self._connection, row.key, document.id)
        self._rename_nodes(ids)
        names_document = func.json_extract(nodes.c.data, "$.document") == former
        renamed_data = func.json_set(nodes.c.data, "$.document", document.id)
        change = update(nodes).where(nodes.c.key.in_(select_values(ids)), names_document)
        self._connection.execute(change.values(data=renamed_data))

    def set_folders(self, folders: Mapping[DocumentId, str]) -> None:
        """Record the folders that documents were added with. Ids without a document are passed over."""
        if folders:
            statement = update(documents).where(documents.c.id == bindparam("document")).values(folder=bindparam("to"))
            self._connection.execute(statement, [{"document": id, "to": folder} for id, folder in folders.items()])
            self._changes_documents = True

    def _rename_nodes(self, ids: Mapping[int, str]) -> None:
        """Give nodes other ids. Their spaces get new versions, so that nobody uses ids that were read before."""
        if not ids:
            return
        renaming = update(nodes).where(nodes.c.key == bindparam("at")).values(id=bindparam("new"))
        self._connection.execute(renaming, [{"at": key, "new": name} for key, name in ids.items()])
        stored = select(vectors.c.space, vectors.c.key, vectors.c.vector).where(vectors.c.key.in_(select_values(ids)))
        by_space: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
        for space, key, vector in self._connection.execute(stored.order_by(vectors.c.key)):
            by_space[space].append((key, vector))
        for space, found in by_space.items():
            rows = stack_vectors(vector for _, vector in found)
            self.replace_vectors(space, [key for key, _ in found], rows)

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
        (fresh,) = self._insert_nodes([{**row, "data": encode_json(row["data"])}])
        lexical.index(self._connection, [(fresh, text)])
        for space, vector in stored_vectors:
            self.put_vectors(space, [fresh], stack_vectors([vector]))
        return fresh

    # ------------------------------------------------------------ nodes

    def put_nodes(self, made: Sequence[Node], *, lifetime: Lifetime = "all") -> dict[str, int]:
        """Add nodes and their sources; a node that exists keeps its key and text and gets the new sources too.

        `lifetime` says how long a node lives. "all": as long as all of its sources, because its text is about all of
        them (a gist, a summary). "any": as long as one of its sources (an entity, a fact). "layer": until its layer
        removes it; it only loses the links to sources that are removed. Sources are edges of the space `made-of:LAYER`,
        `seen-in:LAYER` or `drawn-from:LAYER`; give a node the same lifetime each time. Ids are unique over all layers.
        Returns keys by id.
        """
        keys = self._find_keys_of_nodes(made)
        fresh = list({node.id: node for node in made if node.id not in keys}.values())
        rows = [
            {
                "id": n.id,
                "layer": n.layer,
                "level": n.level,
                "position": n.position,
                "text": n.text,
                "data": encode_json(n.data),
            }
            for n in fresh
        ]
        keys.update(zip((n.id for n in fresh), self._insert_nodes(rows), strict=True))
        for space, pairs in self._pair_sources(made, keys, lifetime).items():
            self._put_pairs(space, pairs)
        return keys

    def update_nodes(self, changed: Sequence[Node], *, lifetime: Lifetime = "all") -> dict[str, int]:
        """Replace text, data, level, position and sources of nodes that exist; they keep their ids and keys.

        For the other node layers, a node with a new text is one that was removed and made again: what was made from it
        goes, if its lifetime says so, and the layers that had processed it process it again. Nodes of its own layer
        are left to the layer. Vectors stay: replace them with `replace_vectors`. Raises ValueError for a node that does
        not exist. Returns keys by id.
        """
        keys = self._find_keys_of_nodes(changed)
        if missing := [node.id for node in changed if node.id not in keys]:
            raise ValueError(f"{missing[0]!r} is the id of no node: add it with put_nodes")
        texts = dict(
            self._connection.execute(
                select(nodes.c.key, nodes.c.text).where(nodes.c.key.in_(select_values(keys.values())))
            ).all()
        )
        rows = [
            {"at": keys[n.id], "t": n.text, "l": n.level, "p": n.position, "d": encode_json(n.data)} for n in changed
        ]
        values: dict[str, Any] = {
            "text": bindparam("t"),
            "level": bindparam("l"),
            "position": bindparam("p"),
            "data": bindparam("d"),
        }
        if rows:
            self._connection.execute(update(nodes).where(nodes.c.key == bindparam("at")).values(**values), rows)
        self._replace_sources(changed, keys, lifetime)
        reworded = [node for node in changed if texts[keys[node.id]] != node.text]
        self._remove_derived([keys[node.id] for node in reworded], {node.layer for node in reworded})
        return keys

    def _replace_sources(self, changed: Sequence[Node], keys: Mapping[str, int], lifetime: Lifetime) -> None:
        wanted = self._pair_sources(changed, keys, lifetime)
        for layer in {node.layer for node in changed}:
            nodes_of_layer = select_values(keys[node.id] for node in changed if node.layer == layer)
            for space in list_source_spaces(layer):
                query = select(edges.c.a, edges.c.b).where(edges.c.space == space, edges.c.a.in_(nodes_of_layer))
                found = {(row.a, row.b) for row in self._connection.execute(query)}
                self.remove_edges(space, np.array(sorted(found - wanted.get(space, {}).keys()), np.int64))
        for space, pairs in wanted.items():
            self._put_pairs(space, pairs)

    def _remove_derived(self, keys: Sequence[int], layers: set[str]) -> None:
        """Remove what other node layers than `layers` made from these nodes, as if the nodes were removed."""
        if not keys:
            return
        layer_spaces = [space for layer in layers for space in list_source_spaces(layer)]
        self.remove_nodes(self._find_orphans(keys, layer_spaces))
        seen = and_(edges.c.space.startswith("seen-in:", autoescape=True), edges.c.space.not_in(layer_spaces))
        self._drop_edges(and_(edges.c.b.in_(select_values(keys)), seen))
        self._forget_intake(keys)

    def _pair_sources(
        self, made: Sequence[Node], keys: Mapping[str, int], lifetime: Lifetime
    ) -> dict[str, dict[tuple[int, int], None]]:
        """The keys of each node and each of its sources, by space."""
        source_keys = self._find_keys({source for node in made for source in node.sources})
        pairs: dict[str, dict[tuple[int, int], None]] = defaultdict(dict)
        for node in made:
            space = name_source_space(node.layer, lifetime)
            pairs[space].update(((keys[node.id], source_keys[source]), None) for source in node.sources)
        return pairs

    def _put_pairs(self, space: str, pairs: Iterable[tuple[int, int]]) -> None:
        table = np.array(list(pairs), np.int64).reshape(-1, 2)
        self.put_edges(space, table[:, 0], table[:, 1], np.ones(len(table)))

    def remove_nodes(self, keys: Iterable[int]) -> list[int]:
        """Remove nodes with their edges and vectors, and the nodes made from them, if their lifetimes say so.

        The removal is logged for the layers that had processed the nodes. Returns the keys of all removed.
        """
        removed: list[int] = []
        front = sorted(set(keys))
        while front:
            orphans = self._find_orphans(front)
            self._drop_edges(edges.c.a.in_(select_values(front)))
            self._drop_edges(edges.c.b.in_(select_values(front)))
            self._drop_vectors(vectors.c.key.in_(select_values(front)))
            self._forget_intake(front)
            self._connection.execute(delete(nodes).where(nodes.c.key.in_(select_values(front))))
            removed += front
            front = sorted(orphans.difference(removed))
        return removed

    def _forget_intake(self, keys: Sequence[int]) -> None:
        log_removals(self._connection, keys)
        self._connection.execute(delete(intake).where(intake.c.node.in_(select_values(keys))))

    def _find_orphans(self, keys: Sequence[int], except_spaces: Sequence[str] = ()) -> set[int]:
        """Nodes to remove with these, by their lifetimes; links of the spaces `except_spaces` do not count."""
        orphans: set[int] = set()
        seen: dict[str, set[int]] = defaultdict(set)
        query = select(edges.c.a, edges.c.space).where(
            edges.c.b.in_(select_values(keys)), edges.c.space.not_in(except_spaces)
        )
        for a, space in self._connection.execute(query):
            if space.startswith("made-of:"):
                orphans.add(a)
            elif space.startswith("seen-in:"):
                seen[space].add(a)
        for space, candidates in seen.items():
            at = func.json_each(json.dumps(sorted(candidates))).table_valued("value").c.value
            # EXISTS, since one source that stays is enough, and a common name has thousands of sources.
            stays = exists().where(edges.c.a == at, edges.c.space == space, edges.c.b.not_in(select_values(keys)))
            orphans.update(self._connection.scalars(select(at).where(~stays)))
        return orphans

    def _insert_nodes(self, rows: Sequence[Mapping[str, Any]]) -> list[int]:
        last = self._read_last_key("nodes")
        keys = list(range(last + 1, last + 1 + len(rows)))
        if rows:
            blank = {"document": None, "start": None, "end": None}
            full = ({**blank, **row, "key": key} for key, row in zip(keys, rows, strict=True))
            self._connection.exec_driver_sql(_NODES, [tuple(row[name] for name in _NODE) for row in full])
        return keys

    def _find_keys_of_nodes(self, made: Sequence[Node]) -> dict[str, int]:
        layers = {node.id: node.layer for node in made}
        query = select(nodes.c.id, nodes.c.key, nodes.c.layer).where(nodes.c.id.in_(select_values(layers)))
        found: dict[str, int] = {}
        for node, key, layer in self._connection.execute(query):
            if layer != layers[node]:
                raise ValueError(
                    f"{node!r} is the id of a node in {layer!r} and in {layers[node]!r}: name the layer in ids"
                )
            found[node] = key
        return found

    def _find_keys(self, ids: Iterable[str]) -> dict[str, int]:
        query = select(nodes.c.id, nodes.c.key).where(nodes.c.id.in_(select_values(ids)))
        return {row[0]: row[1] for row in self._connection.execute(query)}

    def _read_last_key(self, table: str) -> int:
        # The sequence does not go back after deletions, so a key is never used twice.
        query = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        last = self._connection.exec_driver_sql(query, (table,)).scalar() or 0
        if type(last) is not int:
            raise Misfit(table, "no last key in the table sqlite_sequence")
        return last

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
        self._drop_vectors(and_(vectors.c.space == space, vectors.c.key.in_(select_values(keys))))

    def replace_vectors(self, space: str, keys: Sequence[int], rows: Rows) -> None:
        """Give these nodes other vectors (n, dimensions) in one space, or their first ones."""
        self.remove_vectors(space, keys)
        self.put_vectors(space, keys, rows)

    def put_edges(self, space: str, a: Keys, b: Keys, weights: Rows) -> None:
        """Add edges between node keys; an edge that exists keeps its weight."""
        rows = [(space, x, y, w) for x, y, w in zip(a.tolist(), b.tolist(), weights.tolist(), strict=True)]
        if not rows:
            return
        last = self._read_last_key("edges")
        self._connection.exec_driver_sql("INSERT OR IGNORE INTO edges (space, a, b, weight) VALUES (?, ?, ?, ?)", rows)
        self._changes[f"edges/{space}"].add(*load_edges(self._connection, space, last))

    def reweight_edges(self, space: str, pairs: Keys, weights: Rows) -> None:
        """Give the edges between these pairs of node keys (n, 2) other weights (n,).

        Of a pair that is given twice, the last weight counts. Raises ValueError for a pair without an edge.
        """
        rows = dict(zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True))
        table = np.array(list(rows), np.int64).reshape(-1, 2)
        keys, at = _find_edges(self._connection, space, table)
        if len(keys) < len(table):
            a, b = table[np.setdiff1d(np.arange(len(table)), at)[0]].tolist()
            raise ValueError(f"{space!r} has no edge from {a} to {b}: add it with put_edges")
        order = np.argsort(keys)
        keys, table, new = keys[order], table[at[order]], np.array(list(rows.values()), np.float64)[at[order]]
        _set_weights(self._connection, keys, new)
        self._changes[f"edges/{space}"].remove(keys.tolist())
        self._changes[f"edges/{space}"].add(keys, np.column_stack((table, new)))

    def remove_edges(self, space: str, pairs: Keys | None = None) -> None:
        """Remove the edges between these pairs of node keys (n, 2), or all edges of a space.

        Pairs without an edge are passed over. No node is removed, also not one that loses its last source.
        """
        if pairs is None:
            self._drop_edges(edges.c.space == space)
        else:
            keys, _ = _find_edges(self._connection, space, pairs)
            self._drop_edges(edges.c.key.in_(select_values(keys.tolist())))

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

    # ------------------------------------------------------------ changes of the arrays

    def finish(self) -> dict[str, tuple[int, int, Delta]]:
        """Give each changed space a new version. Returns, by space, the old version, the new one, and the changes."""
        deltas: dict[str, tuple[int, int, Delta]] = {}
        for space, changes in sorted(self._changes.items()):
            if changes:
                before = read_space_version(self._connection, space)
                deltas[space] = (before, self._renew_version(space), changes.make_delta())
        if self._changes_documents:
            self._renew_version("documents")
        return deltas

    def _renew_version(self, space: str) -> int:
        version = secrets.randbits(62) + 1  # a counter would repeat numbers after a tome is restored from a copy
        row = {"space": space, "version": version}
        self._connection.execute(insert(spaces).values(row).on_conflict_do_update(index_elements=["space"], set_=row))
        return version


def _find_moved_ids(connection: Connection, key: int, name: DocumentId) -> dict[int, str]:
    """The new ids, by node key, of the passages of a document that is now called `name`, and of what they made."""
    columns = (nodes.c.key, nodes.c.start, nodes.c.end, nodes.c.text)
    passages = connection.execute(select(*columns).where(nodes.c.document == key)).all()
    ids = {row.key: content_id("p", name, row.start, row.end, row.text) for row in passages}
    query = select(nodes.c.key, nodes.c.id).where(nodes.c.key.in_(select_values(_find_made_of(connection, ids))))
    return ids | {row.key: content_id(row.id[:1], "moved", name, row.id) for row in connection.execute(query)}


def _find_made_of(connection: Connection, keys: Iterable[int]) -> set[int]:
    """The nodes that were made from these, directly or not, by links of the spaces `made-of`."""
    found: set[int] = set()
    front = set(keys)
    while front:
        links = edges.c.space.startswith("made-of:", autoescape=True)
        made = connection.scalars(select(edges.c.a).where(edges.c.b.in_(select_values(front)), links))
        front = set(made) - found
        found |= front
    return found


def _find_edges(connection: Connection, space: str, pairs: Keys) -> tuple[Keys, Keys]:
    """The keys of the edges between these pairs of node keys (n, 2), and for each of them the row of its pair.

    A pair without an edge is left out.
    """
    values = json.dumps(np.asarray(pairs, np.int64).reshape(-1, 2).tolist())
    found = connection.exec_driver_sql(_EDGES, (values, space)).all()
    table = np.array([tuple(row) for row in found], np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _set_weights(connection: Connection, keys: Keys, weights: Rows) -> None:
    rows = list(zip(weights.tolist(), keys.tolist(), strict=True))
    if rows:
        connection.exec_driver_sql("UPDATE edges SET weight = ? WHERE key = ?", rows)
