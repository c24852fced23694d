"""Which nodes lie within a scope: conditions on documents and entities in SQL, derived layers as arrays."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from tomewise.store.lifetimes import list_source_spaces, name_source_space
from tomewise.store.records import PASSAGES
from tomewise.store.sqlite.mirror import Columns
from tomewise.types import Condition, Scope

Keys = NDArray[np.int64]
Begin = Callable[[], AbstractContextManager[Connection]]

_MOST_CACHED = 32  # scopes and layers whose keys are cached in memory
_OPERATORS = {sign: sign for sign in ("=", "<", "<=", ">", ">=")}
_LARGEST = 2**63 - 1  # of the integers of SQLite
_LISTED = "(SELECT value FROM json_each(?))"

# The title is a field too, where the metadata has none of that name.
_TITLED = """CASE documents.title WHEN '' THEN documents.metadata
ELSE json_insert(documents.metadata, '$.title', documents.title) END"""

# Each value of each field as a row: a list has one row for each item, and JSON keeps true apart from 1.
_VALUES = f"""FROM json_each({_TITLED}) AS field, json_each(CASE field.type WHEN 'array' THEN field.value
WHEN 'true' THEN '[true]' WHEN 'false' THEN '[false]' ELSE json_array(field.value) END) AS item WHERE field.key = ?"""

_VERSIONS = """SELECT space, version FROM spaces
WHERE space IN ('documents', 'vectors/passages') OR space LIKE 'edges/made-of:%' OR space LIKE 'edges/seen-in:%'
OR space LIKE 'edges/drawn-from:%'"""
_SEES = f"nodes.key IN (SELECT edges.b FROM edges WHERE edges.space IN {_LISTED} AND edges.a IN {_LISTED})"
_SEES_OTHERS = f"""EXISTS (SELECT 1 FROM edges
WHERE edges.b = nodes.key AND edges.space IN {_LISTED} AND edges.a NOT IN {_LISTED})"""


class ScopeKeys:
    """Finds the keys of the nodes of a layer within a scope. They are cached until their spaces change."""

    def __init__(self, begin_read: Begin, edges: Callable[[str], Columns]) -> None:
        self._begin_read = begin_read
        self._edges = edges
        self._guard = threading.Lock()
        self._cache: OrderedDict[tuple[Scope, str], tuple[dict[str, int], Keys]] = OrderedDict()

    def find(self, scope: Scope, layer: str) -> Keys:
        """The keys, ascending. See `store.contract.Texts`."""
        with self._begin_read() as connection:
            # Whatever decides about a scope changes one of these; `documents` changes with the metadata.
            versions: dict[str, int] = {row[0]: row[1] for row in connection.exec_driver_sql(_VERSIONS)}
            cached = self._look_up(scope, layer, versions)
            if cached is not None:
                return cached
            below = [] if layer == PASSAGES else _list_layers_below(connection, layer)
            keys = find_passages(connection, scope) if layer == PASSAGES else None
        if keys is None:
            keys = self._find_derived(layer, [self.find(scope, name) for name in below])
        keys.setflags(write=False)  # callers share it
        with self._guard:
            self._cache[scope, layer] = versions, keys
            if len(self._cache) > _MOST_CACHED:
                self._cache.popitem(last=False)
        return keys

    def _look_up(self, scope: Scope, layer: str, versions: dict[str, int]) -> Keys | None:
        with self._guard:
            cached = self._cache.get((scope, layer))
            if cached is None or cached[0] != versions:
                return None
            self._cache.move_to_end((scope, layer))
            return cached[1]

    def _find_derived(self, layer: str, known: Sequence[Keys]) -> Keys:
        """The nodes of a layer within the scope; `known` are those of the layers from which it was made."""
        seen_in = self._load_pairs(name_source_space(layer, "any"))
        made_of = np.concatenate(
            [self._load_pairs(name_source_space(layer, lifetime)) for lifetime in ("all", "layer")]
        )
        size = 1 + max((int(pairs.max(initial=0)) for pairs in (made_of, seen_in, *known)), default=0)
        is_within = np.zeros(size, np.bool_)
        for keys in known:
            is_within[keys] = True
        is_within[made_of[:, 0]] = True
        # One round for each level of the layer: a node outside takes out the nodes made from it.
        while (outside := made_of[is_within[made_of[:, 0]] & ~is_within[made_of[:, 1]], 0]).size:
            is_within[outside] = False
        is_of_layer = np.zeros(size, np.bool_)
        is_of_layer[made_of[:, 0]] = is_within[made_of[:, 0]]
        is_of_layer[seen_in[is_within[seen_in[:, 1]], 0]] = True
        return np.flatnonzero(is_of_layer)

    def _load_pairs(self, space: str) -> Keys:
        return self._edges(space).rows.reshape(-1, 3)[:, :2].astype(np.int64)


def find_passages(connection: Connection, scope: Scope) -> Keys:
    """The keys of the passages within a scope, ascending."""
    query, values = select_passages(connection, scope)
    cursor: Any = connection.exec_driver_sql(f"{query} ORDER BY nodes.key", tuple(values)).cursor
    return np.fromiter((row[0] for row in cursor), np.int64)


def select_passages(connection: Connection, scope: Scope) -> tuple[str, list[Any]]:
    """A query for the keys of the passages within a scope, which ends with its tests, and the values of the query."""
    tests: list[str] = ["nodes.layer = ?"]
    values: list[Any] = [PASSAGES]
    for test, test_values in (*_list_document_tests(scope), *_list_entity_tests(connection, scope)):
        tests.append(test)
        values += test_values
    return f"SELECT nodes.key FROM nodes WHERE {' AND '.join(tests)}", values


def find_documents(connection: Connection, scope: Scope) -> list[int]:
    """The keys of the documents that the documents and conditions of a scope leave."""
    query, values = _select_documents(scope) or ("SELECT documents.key FROM documents", [])
    return [row[0] for row in connection.exec_driver_sql(query, tuple(values))]


def _select_documents(scope: Scope) -> tuple[str, list[Any]] | None:
    """A query for the keys of the documents of a scope, and its values; None if it names neither any nor conditions."""
    tests = [_make_condition_test(condition) for condition in scope.where]
    if scope.documents is not None:
        tests.append((f"documents.id IN {_LISTED}", [_write_json(sorted(scope.documents))]))
    if not tests:
        return None
    test = " AND ".join(test for test, _ in tests)
    return f"SELECT documents.key FROM documents WHERE {test}", [value for _, values in tests for value in values]


def _list_document_tests(scope: Scope) -> Iterator[tuple[str, list[Any]]]:
    """The test of a passage's document in SQL, with its values. Each document is tested once."""
    if (selected := _select_documents(scope)) is not None:
        yield f"nodes.document IN ({selected[0]})", selected[1]


def _list_entity_tests(connection: Connection, scope: Scope) -> Iterator[tuple[str, list[Any]]]:
    """The tests of the entities that a passage sees, with their values."""
    if scope.entities is not None:
        keys, spaces = _find_entities(connection, scope.entities)
        yield _SEES, [spaces, keys]
    if scope.without_entities:
        keys, spaces = _find_entities(connection, scope.without_entities)
        yield f"NOT ({_SEES} AND NOT {_SEES_OTHERS})", [spaces, keys, spaces, keys]


def _make_condition_test(condition: Condition) -> tuple[str, list[Any]]:
    """A test of one field. Values of another kind are unequal, and neither less nor greater."""
    value = condition.value
    if isinstance(value, bool):
        kinds = "('true', 'false')"
    else:
        kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
    if isinstance(value, int) and abs(value) > _LARGEST:
        value = float(value)
    values = [condition.field, value]
    if condition.operator == "!=":
        return f"EXISTS (SELECT 1 {_VALUES} AND NOT (item.type IN {kinds} AND item.value = ?))", values
    operator = _OPERATORS[condition.operator]  # looked up, so that nothing but an operator gets into the statement
    return f"EXISTS (SELECT 1 {_VALUES} AND item.type IN {kinds} AND item.value {operator} ?)", values


def _find_entities(connection: Connection, entities: frozenset[str]) -> tuple[str, str]:
    """The keys of entities, and the spaces of edges from such entities to the passages that see them, as JSON."""
    query = f"SELECT key, layer FROM nodes WHERE id IN {_LISTED}"
    found = connection.exec_driver_sql(query, (_write_json(sorted(entities)),)).all()
    return _write_json([key for key, _ in found]), _write_json(sorted({f"seen-in:{layer}" for _, layer in found}))


def _list_layers_below(connection: Connection, layer: str) -> list[str]:
    """The layers from whose nodes a layer was made, without itself; passages always."""
    query = f"""SELECT DISTINCT nodes.layer FROM edges JOIN nodes ON nodes.key = edges.b
    WHERE edges.space IN {_LISTED} AND nodes.layer NOT IN (?, ?)"""
    spaces = _write_json(list_source_spaces(layer))
    found = connection.exec_driver_sql(query, (spaces, layer, PASSAGES))
    return [PASSAGES, *sorted(row[0] for row in found)]


def _write_json(values: Sequence[Any]) -> str:
    return json.dumps(values)
