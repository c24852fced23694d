"""Which nodes of a plain store lie within a scope, node by node."""

from __future__ import annotations

import operator
from typing import Any

from tests.store.plain_write import Content

from tomewise.store.lifetimes import list_source_spaces, name_source_space
from tomewise.types import Condition, Document, Passage, Scope

_TESTS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def is_within(content: Content, scope: Scope, key: int) -> bool:
    """Whether this node is within the scope."""
    if key in content.passages:
        return _includes_passage(content, scope, key, content.passages[key])
    made_of, seen_in, drawn_from = (
        [is_within(content, scope, b) for a, b in content.edges.get(space, {}) if a == key]
        for space in list_source_spaces(content.nodes[key].layer)
    )
    return any(seen_in) or (bool(made_of + drawn_from) and all(made_of + drawn_from))


def passes_conditions(document: Document, scope: Scope) -> bool:
    """Whether the documents and conditions of a scope leave this document."""
    if scope.documents is not None and document.id not in scope.documents:
        return False
    metadata = {**({"title": document.title} if document.title else {}), **document.metadata}
    return all(_passes(metadata.get(condition.field, ()), condition) for condition in scope.where)


def _includes_passage(content: Content, scope: Scope, key: int, passage: Passage) -> bool:
    if not passes_conditions(content.documents[passage.document][0], scope):
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
