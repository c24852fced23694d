"""Scopes as people state them: names of documents and conditions such as `year>=1911`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from shlex import quote
from typing import Literal, TypeAlias, get_args

from tomewise.errors import NotBuilt, UnknownName, UsageError, suggest
from tomewise.store.contract import Store
from tomewise.store.records import DocumentRecord
from tomewise.tome.arguments import check_type
from tomewise.tome.document_names import find_document, find_exactly, suggest_document
from tomewise.types import Condition, Scalar, Scope

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]

_CONDITION = re.compile(r"([^=!<>]+)(!=|<=|>=|==?|<|>)(.*)", re.DOTALL)
_OPERATORS: Mapping[str, Operator] = {**{sign: sign for sign in get_args(Operator)}, "==": "="}
_INTEGER = re.compile(r"[+-]?\d{1,300}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,2})?", re.ASCII | re.IGNORECASE)


def find_scope(
    store: Store,
    *named: str | PathLike[str] | DocumentRecord | Scope,
    where: str | Condition | Sequence[str | Condition] = (),
) -> Scope | None:
    """The scope of documents and conditions, or the one that is given alone; None for the whole tome.

    Raises UnknownName for a document that does not exist, and UsageError for a condition that cannot be read and for a
    scope without a passage.
    """
    for each in named:
        check_type("a document", each, str | PathLike | DocumentRecord | Scope, "a name, or a Scope alone")
    scopes = [each for each in named if isinstance(each, Scope)]
    wanted = "a condition such as 'year>=1911', or a list of these"
    check_type("where", where, str | Condition | Sequence, wanted)
    stated = (where,) if isinstance(where, str | Condition) else tuple(where)
    for condition in stated:
        check_type("where", condition, str | Condition, wanted)
    if scopes and (len(named) > 1 or stated):
        raise UsageError("give either a Scope or documents and conditions: a Scope has places for both")
    found = [record for each in named if not isinstance(each, Scope) for record in _find_documents(each, store)]
    ids = frozenset(record.id for record in found)
    conditions = tuple(parse_condition(text) if isinstance(text, str) else text for text in stated)
    scope = scopes[0] if scopes else Scope(documents=ids if named else None, where=conditions)
    if scope == Scope():
        return None
    check_scope(scope, store)
    return scope


def _find_documents(named: str | PathLike[str] | DocumentRecord, store: Store) -> Sequence[DocumentRecord]:
    """The documents that a name stands for: those that a removal would take, else those in a folder whose path ends so,
    else one whose id has it as a part."""
    if isinstance(named, DocumentRecord):
        return (named,)
    name = fspath(named)
    try:
        return find_exactly(name, store).records
    except UnknownName:
        return _find_below(name, store) or (find_document(name, store),)


def _find_below(name: str, store: Store) -> Sequence[DocumentRecord]:
    """The documents in the folder whose path ends with this name. Raises UnknownName where several folders do."""
    inside = f"/{name.strip('/')}/"
    folders: dict[str, list[DocumentRecord]] = {}
    for record in store.documents():
        start, found, _ = f"/{record.id}".partition(inside)
        if found:
            folders.setdefault(f"{start}{inside}"[1:], []).append(record)
    if len(folders) > 1:
        raise UnknownName(f"{name!r} fits {len(folders)} folders: give more of the path of one, {' or '.join(folders)}")
    return next(iter(folders.values()), [])


def parse_condition(text: str) -> Condition:
    """A condition from `FIELD OPERATOR VALUE`; the operators are =, !=, <, <=, > and >=.

    A value that looks like a number, `true` or `false` is one; in quotation marks it is a text.
    """
    parts = _CONDITION.fullmatch(text)
    field, operator, value = map(str.strip, parts.groups()) if parts else ("", "", "")
    if not field:
        raise UsageError(
            f'cannot read the condition {text!a}: give a field, an operator and a value, such as "year>=1911"'
        )
    return Condition(field, _OPERATORS[operator], _parse_value(value))


def _parse_value(text: str) -> Scalar:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def check_scope(scope: Scope, store: Store) -> None:
    """Raise UnknownName for an unknown document, and UsageError for a scope without a passage: before any call."""
    for document in sorted(scope.documents or ()):
        if not store.documents([document]):
            raise UnknownName(f"no document {document!a} in {store.address}: {suggest_document(document, store)}")
    for condition in scope.where:
        if _holds_surrogate(condition.field) or _holds_surrogate(str(condition.value)):
            raise UsageError(f"the condition on {condition.field!a} holds bytes that are not UTF-8: type it again")
    keys = store.keys_within(scope)
    if keys is not None and not len(keys):
        raise UsageError(f"no passage is within the scope ({scope}): {_explain_empty(scope, store)}")


def _holds_surrogate(text: str) -> bool:
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def _explain_empty(scope: Scope, store: Store) -> str:
    known = {"title", *(field for record in store.documents() for field in record.metadata)}
    for condition in scope.where:
        if condition.field not in known:
            near = suggest(condition.field, known)
            return f"no document has the field {condition.field!r}; {near}`tome show` lists the fields"
    return "widen it; `tome show` lists the documents with their fields"


def check_documents(store: Store) -> None:
    """Raise NotBuilt for an empty tome."""
    if not store.holds_documents():
        where = quote(store.address)
        raise NotBuilt(f"{store.address} holds no document yet: add one with `tome add --tome {where} PATH`")
