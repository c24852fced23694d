"""One write transaction on a tome: the possible changes, and what each of them removes or updates with it."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tomewise.store.records import PASSAGES, SETTINGS, Lifetime, list_source_spaces, name_source_space
from tomewise.store.sql.arrays import read_space_version
from tomewise.store.sql.dialects import Transaction
from tomewise.store.sql.mirror import Changes, Deltas, Keys, Rows
from tomewise.store.sql.node_rows import INDEXED, list_indexed_texts
from tomewise.store.sql.row_values import encode_json
from tomewise.store.sql.stored_records import NOTES, StoredNotes
from tomewise.store.sql.texts import find_dependants, find_orphans
from tomewise.types import Document, DocumentId, Node, Passage, content_id
from tomewise.types.place import write_places

_BATCH = 10_000  # vectors written at a time
_NAMED = "SELECT documents.key\nFROM documents WHERE documents.id = :id"
_MOVE = """
UPDATE documents SET id = :id, source = :source, digest = :digest, metadata = :metadata WHERE key = :key
"""
# The nodes that were made from the passages of a document, directly or not.
_MADE_OF = """SELECT nodes.key, nodes.id
FROM nodes WHERE nodes.document IS NULL AND nodes.key IN (
  WITH RECURSIVE made (key) AS (SELECT key FROM nodes WHERE document = :document
    UNION SELECT edges.a FROM edges JOIN made ON edges.b = made.key WHERE edges.space LIKE 'made-of:%')
  SELECT key FROM made)"""
_ROW = """SELECT nodes.id, nodes.layer, nodes.level, nodes.position, nodes.document, nodes.start, nodes."end",
nodes.text, nodes.data
FROM nodes WHERE nodes.key = :key"""
_WITH_IDS = "SELECT nodes.id, nodes.key, nodes.layer\nFROM nodes WHERE nodes.id IN :ids"
_LINKS = """SELECT edges.key, edges.space, edges.a, edges.b
FROM edges WHERE edges.a IN :keys AND edges.space IN :spaces"""
_SEEN = "b IN :keys AND space LIKE 'seen-in:%' AND space NOT IN :spaces"
_LOG = """
INSERT INTO removals (layer, node) SELECT intake.layer, nodes.id FROM intake JOIN nodes ON nodes.key = intake.node
WHERE intake.node IN :keys ON CONFLICT DO NOTHING
"""


class Write(StoredNotes):
    """The methods that change a tome in a transaction. It collects the changes of each space of arrays."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._ask, self._fetch = transaction.ask, transaction.fetch
        self._changes: dict[str, Changes] = defaultdict(Changes)
        self.rows_written = 0
        self._changes_documents = False  # their ids, sources, folders or metadata

    def read(self) -> AbstractContextManager[Transaction]:
        """This transaction, which sees its own changes."""
        return nullcontext(self._transaction)

    # ------------------------------------------------------------ documents

    def put_document(self, document: Document, digest: str, passages: Sequence[Passage]) -> list[int]:
        """Add a document; it replaces a document of the same id. Returns the keys of its passages."""
        self._transaction.check_document(document)
        self.remove_document(document.id)
        self._changes_documents = True
        (key,) = self._transaction.find_new_keys("documents", 1)
        row = key, document.id, document.title, document.source, digest, len(document.text), document.text
        self._transaction.insert_rows("documents", [(*row, encode_json(document.metadata), "")])
        rows = []
        for each in passages:
            data = encode_json(write_places(each.place, each.marks))
            rows.append((each.id, PASSAGES, 0, each.position, key, each.start, each.end, each.text, data))
        keys = self._insert_nodes(rows)
        self._transaction.index_words(self._list_indexed_texts("nodes.document = :key ORDER BY nodes.key", key))
        return keys

    def remove_document(self, document: DocumentId) -> list[int]:
        """Remove a document, its passages, and all that was made from them. Returns the keys of all nodes removed."""
        row = next(self._fetch(_NAMED, id=document), None)
        if row is None:
            return []
        (key,) = row
        passages = self._list_indexed_texts("nodes.document = :key", key)
        self._transaction.forget_words(passages)
        removed = self.remove_nodes(passage for passage, _ in passages)
        self._ask("DELETE FROM documents WHERE key = :key", key=key)
        self._changes_documents = True
        return removed

    def move_document(self, former: DocumentId, document: Document, digest: str) -> None:
        """Give a document another id, source and metadata; title and text must be the same.

        The document keeps its vectors and all that was made from it; its nodes keep their keys. Its passages get the
        ids that they would have under the new id, and what was made from them gets new ids too, since a document that
        later has the old id may bring nodes of the old ids again. `data["document"]`, where there is one, gets the new
        id as well.
        """
        ((key,),) = self._fetch(_NAMED, id=former)
        values = {"key": key, "id": document.id, "source": document.source, "digest": digest}
        self._ask(_MOVE, **values, metadata=encode_json(document.metadata))
        self._changes_documents = True
        if former == document.id:
            return
        ids = self._find_moved_ids(key, document.id)
        self._update_rows({key: {"id": name} for key, name in ids.items()})
        # These spaces get new versions, so that nobody uses ids that were read before.
        query = "SELECT vectors.space\nFROM vectors WHERE vectors.key IN :keys GROUP BY vectors.space"
        for (space,) in self._fetch(query, keys=list(ids)):
            self._changes[f"vectors/{space}"].is_renewed = True
        names_document = f"{self._transaction.text_field.format('nodes.data', 'document')} = :former"
        query = f"SELECT nodes.key, nodes.data\nFROM nodes WHERE nodes.key IN :keys AND {names_document}"
        renamed = dict(self._fetch(query, keys=list(ids), former=former))
        self._update_rows(
            {key: {"data": encode_json({**data, "document": document.id})} for key, data in renamed.items()}
        )

    def set_folders(self, folders: Mapping[DocumentId, str]) -> None:
        """Record the folders that documents were added with. Ids without a document are passed over."""
        if folders:
            rows = [{"id": id, "folder": folder} for id, folder in folders.items()]
            self._transaction.repeat("UPDATE documents SET folder = :folder WHERE id = :id", rows)
            self._changes_documents = True

    def renew_passage(self, key: int) -> int:
        """Remove a passage with all that was made from it, and add the same passage again. Returns its new key."""
        ((*row, data),) = self._fetch(_ROW, key=key)
        texts = self._list_indexed_texts("nodes.key = :key", key)
        query = "SELECT vectors.space, vectors.vector\nFROM vectors WHERE vectors.key = :key"
        stored_vectors = list(self._fetch(query, key=key))
        self._transaction.forget_words(texts)
        self.remove_nodes([key])
        (fresh,) = self._insert_nodes([(*row, encode_json(data))])
        self._transaction.index_words([(fresh, text) for _, text in texts])
        for space, vector in stored_vectors:
            self.put_vectors(space, [fresh], np.frombuffer(vector, np.float32)[None])
        return fresh

    def _list_indexed_texts(self, test: str, key: int) -> list[tuple[int, str]]:
        return list_indexed_texts(self._fetch(f"{INDEXED} WHERE {test}", key=key))

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
        rows = [(n.id, n.layer, n.level, n.position, None, None, None, n.text, encode_json(n.data)) for n in fresh]
        keys.update(zip((n.id for n in fresh), self._insert_nodes(rows), strict=True))
        self._put_sources(made, keys, lifetime)
        return keys

    def update_nodes(self, changed: Sequence[Node], *, lifetime: Lifetime = "all") -> dict[str, int]:
        """Replace text, data, level, position and sources of nodes that exist; they keep their ids and keys.

        For the other node layers, a node with a new text is one that was removed and made again: what was made from it
        goes, if its lifetime says so, and the layers that had processed it process it again. Nodes of its own layer
        are left to the layer. Vectors stay: replace them with `put_vectors`. Raises ValueError for a node that does
        not exist. Returns keys by id.
        """
        keys = self._find_keys_of_nodes(changed)
        if missing := [node.id for node in changed if node.id not in keys]:
            raise ValueError(f"{missing[0]!r} is the id of no node: add it with put_nodes")
        query = "SELECT nodes.key, nodes.text\nFROM nodes WHERE nodes.key IN :keys"
        texts: dict[int, str] = dict(self._fetch(query, keys=list(keys.values())))
        self._update_rows(
            {
                keys[n.id]: {"text": n.text, "level": n.level, "position": n.position, "data": encode_json(n.data)}
                for n in changed
            }
        )
        wanted = self._put_sources(changed, keys, lifetime)
        source_spaces = [space for layer in {node.layer for node in changed} for space in list_source_spaces(layer)]
        found = self._fetch(_LINKS, keys=list(keys.values()), spaces=source_spaces)
        gone = [key for key, space, *ends in found if tuple(ends) not in wanted[space]]
        self._drop("edges", "key IN :keys", keys=gone)
        reworded = [node for node in changed if texts[keys[node.id]] != node.text]
        self._remove_derived([keys[node.id] for node in reworded], {node.layer for node in reworded})
        return keys

    def _update_rows(self, values: Mapping[int, Mapping[str, Any]]) -> None:
        """Give the nodes under these keys other values, all of the same columns."""
        if values:
            names = ", ".join(f"{name} = :{name}" for name in next(iter(values.values())))
            rows = [{"at": key, **each} for key, each in values.items()]
            self._transaction.repeat(f"UPDATE nodes SET {names} WHERE key = :at", rows)

    def _remove_derived(self, keys: Sequence[int], layers: set[str]) -> None:
        """Remove what other node layers than `layers` made from these nodes, as if the nodes were removed."""
        if not keys:
            return
        layer_spaces = [space for layer in layers for space in list_source_spaces(layer)]
        self.remove_nodes(find_orphans(self._transaction, keys, keys, layer_spaces))
        self._drop("edges", _SEEN, keys=list(keys), spaces=layer_spaces)
        self._forget_intake(keys)

    def _put_sources(
        self, made: Sequence[Node], keys: Mapping[str, int], lifetime: Lifetime
    ) -> dict[str, dict[tuple[int, int], None]]:
        """Put the edges from each node to its sources. Returns the keys of both, in one order, by space."""
        sources = {source for node in made for source in node.sources}
        source_keys = {id: key for id, key, _ in self._fetch(_WITH_IDS, ids=list(sources))}
        pairs: dict[str, dict[tuple[int, int], None]] = defaultdict(dict)
        for node in made:
            ends = ((keys[node.id], source_keys[source]) for source in node.sources)
            pairs[name_source_space(node.layer, lifetime)].update(dict.fromkeys(ends))
        for space, found in pairs.items():
            table = np.array(list(found), np.int64).reshape(-1, 2)
            self.put_edges(space, table[:, 0], table[:, 1], np.ones(len(table)))
        return pairs

    def remove_nodes(self, keys: Iterable[int]) -> list[int]:
        """Remove nodes with their edges and vectors, and the nodes made from them, if their lifetimes say so.

        The removal is logged for the layers that had processed the nodes. Returns the keys of all removed.
        """
        removed = find_dependants(self._transaction, keys)
        if removed:
            self._forget_intake(removed)
            for table, column in (("edges", "a"), ("edges", "b"), ("vectors", "key")):
                self._drop(table, f"{column} IN :keys", keys=removed)
            self._ask("DELETE FROM nodes WHERE key IN :keys", keys=removed)
        return removed

    def _forget_intake(self, keys: Sequence[int]) -> None:
        """Log these nodes as removed for the layers that had processed them or failed to, which forget them."""
        self._ask(_LOG, keys=list(keys))
        self._ask("DELETE FROM intake WHERE node IN :keys", keys=list(keys))

    def _insert_nodes(self, rows: Sequence[tuple[Any, ...]]) -> list[int]:
        """Insert rows with all columns but the key. Returns their keys."""
        self.rows_written += len(rows)
        keys = self._transaction.find_new_keys("nodes", len(rows))
        self._transaction.insert_rows("nodes", [(key, *row) for key, row in zip(keys, rows, strict=True)])
        return keys

    def _find_keys_of_nodes(self, made: Sequence[Node]) -> dict[str, int]:
        layers = {node.id: node.layer for node in made}
        found: dict[str, int] = {}
        for node, key, layer in self._fetch(_WITH_IDS, ids=list(layers)):
            if layer != layers[node]:
                raise ValueError(
                    f"{node!r} is the id of a node in {layer!r} and in {layers[node]!r}: name the layer in ids"
                )
            found[node] = key
        return found

    # ------------------------------------------------------------ arrays

    def put_vectors(self, space: str, keys: Sequence[int], rows: Rows, *, replace: bool = False) -> None:
        """Add vectors (n, dimensions) for node keys without a vector in this space; with `replace`, also for others."""
        at = np.asarray(keys, np.int64)
        if len(at) != len(rows):
            raise ValueError(f"{len(at)} keys for {len(rows)} vectors: give one key for each")
        if not len(at):
            return
        if replace:
            self._drop("vectors", "space = :space AND key IN :keys", space=space, keys=at.tolist())
        order = np.argsort(at)
        at, table = at[order], np.ascontiguousarray(rows[order], dtype=np.float32)
        for start in range(0, len(at), _BATCH):  # so that the rows are not all in memory twice
            batch = slice(start, start + _BATCH)
            self._transaction.insert_vectors(space, at[batch], table[batch])
        self._changes[f"vectors/{space}"].add(at, table)

    def put_edges(self, space: str, a: Keys, b: Keys, weights: Rows, *, replace: bool = False) -> None:
        """Add edges between node keys; an edge that exists keeps its weight and its key.

        With `replace`, it gets the new weight; of a pair that is given twice, the last weight counts.
        """
        if replace:
            wanted = dict(zip(zip(a.tolist(), b.tolist(), strict=True), weights.tolist(), strict=True))
            pairs = np.array(list(wanted), np.int64).reshape(-1, 2)
            (a, b), weights = pairs.T, np.array(list(wanted.values()), np.float64)
            self._reweight_edges(space, pairs, weights)
        if len(a):
            self.rows_written += len(a)
            fresh = self._transaction.insert_missing_edges(space, a, b, weights)
            self._changes[f"edges/{space}"].add(*fresh)

    def _reweight_edges(self, space: str, pairs: Keys, weights: Rows) -> None:
        """Give the edges that exist between these pairs of node keys (n, 2) other weights."""
        keys, at = self._transaction.find_edges(space, pairs)
        order = np.argsort(keys)
        keys, pairs, weights = keys[order], pairs[at[order]], weights[at[order]]
        self._transaction.set_weights(keys, weights)
        self._changes[f"edges/{space}"].remove(keys.tolist())
        self._changes[f"edges/{space}"].add(keys, np.column_stack((pairs, weights)))

    def remove_edges(self, space: str, pairs: Keys | None = None) -> None:
        """Remove the edges between these pairs of node keys (n, 2), or all edges of a space.

        Pairs without an edge are passed over. No node is removed, also not one that loses its last source.
        """
        if pairs is None:
            self._drop("edges", "space = :space", space=space)
        else:
            keys, _ = self._transaction.find_edges(space, pairs)
            self._drop("edges", "key IN :keys", keys=keys.tolist())

    def _drop(self, table: str, test: str, **values: Any) -> None:
        """Delete the rows of `edges` or `vectors` that pass a test, which changes their spaces."""
        keys: dict[str, list[int]] = defaultdict(list)
        for space, key in self._ask(f"DELETE FROM {table} WHERE {test} RETURNING space, key", **values):
            keys[space].append(key)
        for space, space_keys in keys.items():
            self._changes[f"{table}/{space}"].remove(space_keys)

    # ------------------------------------------------------------ notes and intake

    def put_note(self, kind: str, name: str, data: Any) -> None:
        """Store a note; it replaces an earlier note of this kind and name."""
        table, key, note = NOTES[kind]
        self._transaction.upsert(table, [{key: name, note: data if kind == SETTINGS else encode_json(data)}])

    def remove_note(self, kind: str, name: str) -> bool:
        """Remove a note, and return whether it existed."""
        table, key, _ = NOTES[kind]
        return bool(self._ask(f"DELETE FROM {table} WHERE {key} = :name", name=name).rowcount)

    def record_intake(self, layer: str, taken: Iterable[int], failed: Mapping[int, str] | None = None) -> None:
        """Record which nodes a layer has processed, and which failed, each with its reason. Empties its removal log."""
        reasons = dict.fromkeys(taken, "") | dict(failed or {})
        if reasons:
            rows = [{"layer": layer, "node": key, "failure": reason} for key, reason in reasons.items()]
            self._transaction.upsert("intake", rows)
        self._ask("DELETE FROM removals WHERE layer = :layer", layer=layer)

    def forget_intake(self, layer: str) -> None:
        """Forget what a layer has processed, removals too, so that it processes all nodes again."""
        self._ask("DELETE FROM removals WHERE layer = :layer", layer=layer)
        self._ask("DELETE FROM intake WHERE layer = :layer", layer=layer)

    # ------------------------------------------------------------ changes of the arrays

    def finish(self) -> Deltas:
        """Give each changed space a new version. Returns, by space, the old version, the new one, and the changes."""
        deltas = {}
        for space, changes in sorted(self._changes.items()):
            if changes:
                before = read_space_version(self._transaction, space)
                deltas[space] = (before, self._renew_version(space), changes.make_delta())
        if self._changes_documents:
            self._renew_version("documents")
        return deltas

    def _renew_version(self, space: str) -> int:
        version = secrets.randbits(62) + 1  # a counter would repeat numbers after a tome is restored from a copy
        self._transaction.upsert("spaces", [{"space": space, "version": version}])
        return version

    def _find_moved_ids(self, key: int, name: DocumentId) -> dict[int, str]:
        """The new ids, by key, of the passages of a document that is now called `name`, and of what they made."""
        query = 'SELECT nodes.key, nodes.start, nodes."end", nodes.text\nFROM nodes WHERE nodes.document = :document'
        passages = self._fetch(query, document=key)
        ids: dict[int, str] = {passage: content_id("p", name, *place) for passage, *place in passages}
        made = self._fetch(_MADE_OF, document=key)
        return ids | {node: content_id(id[:1], "moved", name, id) for node, id in made}
