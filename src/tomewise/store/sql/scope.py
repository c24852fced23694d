"""Which nodes lie within a scope: conditions on documents and entities in SQL, derived layers as arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tomewise.store.nearest import Keys
from tomewise.store.records import PASSAGES, PREFIXES, list_source_spaces, name_source_space
from tomewise.store.sql.arrays import Arrays
from tomewise.store.sql.dialects import Transaction
from tomewise.types import Scope

_MOST_CACHED = 32  # scopes and layers whose keys are cached in memory
# Whatever decides about a scope changes one of these; `documents` changes with the metadata.
_VERSIONS = """SELECT spaces.space, spaces.version
FROM spaces WHERE space IN ('documents', 'vectors/passages') """ + " ".join(
    f"OR space LIKE 'edges/{prefix}:%'" for prefix in PREFIXES.values()
)
# The tests of the entities that a passage sees.
_SEES = "nodes.key IN (SELECT edges.b FROM edges WHERE edges.space IN :spaces_{0} AND edges.a IN :keys_{0})"
_SEES_OTHERS = """EXISTS (SELECT 1 FROM edges WHERE edges.b = nodes.key AND edges.space IN :spaces_without
  AND edges.a NOT IN :keys_without)"""
_BELOW = """SELECT nodes.layer
FROM nodes JOIN edges ON nodes.key = edges.b WHERE edges.space IN :spaces AND nodes.layer NOT IN :layers
GROUP BY nodes.layer ORDER BY nodes.layer"""


class ScopeKeys:
    """Finds the keys of the nodes of a layer within a scope. They are cached until their spaces change."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        # For each scope and layer a list: empty at first, then with the versions of the spaces and the keys.
        self._find_cached: Callable[..., list[tuple[dict[str, int], Keys]]] = lru_cache(_MOST_CACHED)(lambda *_: [])

    def find(self, scope: Scope, layer: str, transaction: Transaction) -> Keys:
        """The keys, ascending. See `store.contract.Texts`."""
        versions: dict[str, int] = dict(transaction.fetch(_VERSIONS))
        kinds = tuple(type(condition.value) for condition in scope.where)  # for Python, True equals 1
        cached = self._find_cached(scope, kinds, layer)
        for known, keys in cached:
            if known == versions:
                return keys
        if layer == PASSAGES:
            keys = _find_passages(transaction, scope)
        else:
            source_spaces = list_source_spaces(layer)
            # The layers from whose nodes this one was made, without itself; passages always.
            layers = transaction.fetch(_BELOW, spaces=source_spaces, layers=[layer, PASSAGES])
            below = [self.find(scope, name, transaction) for name in (PASSAGES, *(name for (name,) in layers))]
            keys = self._find_derived(source_spaces, below, transaction)
        keys.setflags(write=False)  # callers share it
        cached[:] = [(versions, keys)]
        return keys

    def _find_derived(self, source_spaces: list[str], known: Sequence[Keys], transaction: Transaction) -> Keys:
        """The nodes of a layer within the scope; `known` are those of the layers from which it was made."""
        made_of, seen_in, drawn_from = (
            self._arrays.columns(f"edges/{space}", transaction).rows.reshape(-1, 3)[:, :2].astype(np.int64)
            for space in source_spaces
        )
        made_of = np.concatenate((made_of, drawn_from))
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


def _find_passages(transaction: Transaction, scope: Scope) -> Keys:
    """The keys of the passages within a scope."""
    query = "SELECT nodes.key FROM nodes WHERE nodes.layer = 'passages'"
    tests, values = write_document_tests(scope, transaction)
    if tests:  # each document is tested once
        query += f" AND nodes.document IN (SELECT documents.key FROM documents WHERE {' AND '.join(tests)})"
    if scope.entities is not None:
        values["spaces_within"], values["keys_within"] = _find_entities(transaction, scope.entities)
        query += f" AND {_SEES.format('within')}"
    if scope.without_entities:
        values["spaces_without"], values["keys_without"] = _find_entities(transaction, scope.without_entities)
        query += f" AND NOT ({_SEES.format('without')} AND NOT {_SEES_OTHERS})"
    rows = transaction.ask(f"{query} ORDER BY nodes.key", **values)
    return np.fromiter((key for (key,) in rows), np.int64)


def write_document_tests(scope: Scope, transaction: Transaction) -> tuple[list[str], dict[str, Any]]:
    """The tests of a document by the documents and conditions of a scope, and their values."""
    tests, values = list[str](), dict[str, Any]()
    for place, condition in enumerate(scope.where):
        test, of_test = transaction.write_condition(condition, place)
        tests.append(test)
        values |= of_test
    if scope.documents is not None:
        tests.append("documents.id IN :documents")
        values["documents"] = sorted(scope.documents)
    return tests, values


def _find_entities(transaction: Transaction, entities: frozenset[str]) -> tuple[list[str], list[int]]:
    """The spaces of edges from such entities to the passages that see them, and the keys of these entities."""
    query = "SELECT nodes.layer, nodes.key\nFROM nodes WHERE nodes.id IN :ids"
    found = list(transaction.fetch(query, ids=sorted(entities)))
    return sorted({name_source_space(layer, "any") for layer, _ in found}), [key for _, key in found]
