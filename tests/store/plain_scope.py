"""Which nodes of a plain store lie within a scope, node by node."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from tests.store.plain_write import Content

from tomewise.store.lifetimes import name_source_space
from tomewise.types import Condition, Document, Metadata, Passage, Scope

_TESTS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def find_keys_within(content: Content, scope: Scope, layer: str) -> set[int]:
    """The keys of the nodes of one layer within the scope."""
    known: dict[int, bool] = {}
    own = [key for key, node in content.nodes.items() if node.layer == layer]
    return {key for key in own if _is_within(content, scope, key, known)}


def _is_within(content: Content, scope: Scope, key: int, known: dict[int, bool]) -> bool:
    if key not in known:
        known[key] = _find_out(content, scope, key, known)
    return known[key]


def _find_out(content: Content, scope: Scope, key: int, known: dict[int, bool]) -> bool:
    if key in content.passages:
        return _includes_passage(content, scope, key, content.passages[key])
    layer = content.nodes[key].layer
    made_of = [
        _is_within(content, scope, b, known)
        for lifetime in ("all", "layer")
        for a, b in content.edges.get(name_source_space(layer, lifetime), {})
        if a == key
    ]
    seen_in = [b for a, b in content.edges.get(name_source_space(layer, "any"), {}) if a == key]
    return (bool(made_of) and all(made_of)) or any(_is_within(content, scope, b, known) for b in seen_in)


def passes_conditions(document: Document, scope: Scope) -> bool:
    """Whether the documents and conditions of a scope leave this document."""
    if scope.documents is not None and document.id not in scope.documents:
        return False
    metadata = {**({"title": document.title} if document.title else {}), **document.metadata}
    return all(_passes(metadata, condition) for condition in scope.where)


def _includes_passage(content: Content, scope: Scope, key: int, passage: Passage) -> bool:
    if not passes_conditions(content.documents[passage.document][0], scope):
        return False
    if scope.entities is not None and not _list_seen(content, key, scope.entities) & scope.entities:
        return False
    seen = _list_seen(content, key, scope.without_entities)
    return not seen & scope.without_entities or bool(seen - scope.without_entities)


def _list_seen(content: Content, key: int, entities: frozenset[str]) -> set[str]:
    """The ids of the nodes seen in a passage, of the layers of these entities."""
    layers = {content.nodes[content.keys[name]].layer for name in entities if name in content.keys}
    spaces = [name_source_space(layer, "any") for layer in layers]
    return {content.nodes[a].id for space in spaces for a, b in content.edges.get(space, {}) if b == key}


def _passes(metadata: Metadata, condition: Condition) -> bool:
    value: Any = metadata.get(condition.field, ())
    values: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
    return any(_fits(item, condition) for item in values)


def _fits(item: Any, condition: Condition) -> bool:
    if _kind(item) is not _kind(condition.value):
        return condition.operator == "!="
    return bool(_TESTS[condition.operator](item, condition.value))


def _kind(value: Any) -> type:
    return bool if isinstance(value, bool) else str if isinstance(value, str) else float
