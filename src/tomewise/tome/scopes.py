"""Scopes as people state them: names of documents and conditions such as `year>=1911`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.store.contract import Store
from tomewise.store.records import DocumentRecord
from tomewise.tome.arguments import check_type, read_texts
from tomewise.tome.document_names import find_document, find_exactly, suggest_document
from tomewise.tome.scope_words import describe_scope
from tomewise.types import Condition, Question, Scalar, Scope

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]

_CONDITION = re.compile(r"([^=!<>]+)(!=|<=|>=|==?|<|>)(.*)", re.DOTALL)
_OPERATORS: Mapping[str, Operator] = {**{sign: sign for sign in get_args(Operator)}, "==": "="}
_INTEGER = re.compile(r"[+-]?\d{1,300}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,2})?", re.ASCII | re.IGNORECASE)
# What the methods that take a `Narrowing` take, for hints.
_ARGUMENTS = (
    *("within", "documents", "where", "options", "instructions", "force", "strict", "fresh"),
    *("system", "settings", "on_event", "limit", "return_exceptions"),
)


class Narrowing(TypedDict, total=False):
    """How a question or a search is narrowed: `within` a scope, or by `documents` and `where`.

    `documents` are ids, paths, titles, folders, patterns (see `tome.document_names`), or parts of an id that no other
    id has. `where` are conditions, as texts (`"year>=1911"`, see `parse_condition`) or as `Condition`; `title` is a
    field.
    """

    within: Scope | None
    documents: str | Sequence[str]
    where: str | Condition | Sequence[str | Condition]


def find_scope(
    store: Store,
    *,
    within: Scope | None = None,
    documents: str | Sequence[str] = (),
    where: str | Condition | Sequence[str | Condition] = (),
    **unknown: object,
) -> Scope | None:
    """The scope that a caller states, None for the whole tome.

    Raises UnknownName for a document that does not exist, and UsageError for a condition that cannot be read, for a
    scope without a passage, and for an argument that no method which narrows a question takes.
    """
    for name in unknown:
        hint = "" if name in _ARGUMENTS else suggest(name, _ARGUMENTS)  # not every method takes all of these
        raise UsageError(f"{name!r} is not an argument: {hint}a setting goes into `settings`")
    check_type("within", within, Scope | None, "a Scope")
    names = (documents,) if isinstance(documents, str) else read_texts("documents", documents)
    check_type("where", where, str | Condition | Sequence, "a condition such as 'year>=1911', or a list of these")
    stated = (where,) if isinstance(where, str | Condition) else tuple(where)
    for condition in stated:
        check_type("where", condition, str | Condition, "a condition such as 'year>=1911', or a list of these")
    if names or stated:
        if within is not None:
            raise UsageError("give either a Scope or documents and conditions: a Scope has places for both")
        ids = frozenset(record.id for name in names for record in _find_documents(name, store))
        conditions = tuple(parse_condition(text) if isinstance(text, str) else text for text in stated)
        within = Scope(documents=ids if names else None, where=conditions)
    if within is None or within == Scope():
        return None
    _check_scope(within, store)
    return within


def find_scope_of(
    find: Callable[[Sequence[str]], Sequence[DocumentRecord]], names: Sequence[str], where: Sequence[str], store: Store
) -> Scope | None:
    """The scope that a client of a server states; `find` finds the documents of the names, and looks up no path."""
    ids = frozenset(record.id for record in find(names))
    return find_scope(store, within=Scope(documents=ids if names else None, where=tuple(map(parse_condition, where))))


async def narrow(question: Question, store: Store, **narrowing: Any) -> Question:
    """The question with the scope that its caller states; for `narrowing` see `Narrowing`. Raises like `find_scope`."""
    if not narrowing and question.within is None:
        return question
    if question.within is not None:
        if any(narrowing.values()):
            raise UsageError("a Question has its own scope: put documents and conditions there")
        narrowing = {"within": question.within}
    return replace(question, within=await asyncio.to_thread(find_scope, store, **narrowing))


def _find_documents(name: str, store: Store) -> Sequence[DocumentRecord]:
    """The documents that a name stands for: those that a removal would take, else one whose id has it as a part."""
    try:
        return find_exactly(name, store).records
    except UnknownName:
        return (find_document(name, store),)


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


def _check_scope(scope: Scope, store: Store) -> None:
    """Raise UnknownName for an unknown document, and UsageError for a scope without a passage: before any call."""
    for document in sorted(scope.documents or ()):
        if not store.documents([document]):
            raise UnknownName(f"no document {document!a} in {store.address}: {suggest_document(document, store)}")
    for condition in scope.where:
        if _holds_surrogate(condition.field) or _holds_surrogate(str(condition.value)):
            raise UsageError(f"the condition on {condition.field!a} holds bytes that are not UTF-8: type it again")
    keys = store.keys_within(scope)
    if keys is not None and not len(keys):
        raise UsageError(f"no passage is within the scope ({describe_scope(scope)}): {_explain_empty(scope, store)}")


def _holds_surrogate(text: str) -> bool:
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def _explain_empty(scope: Scope, store: Store) -> str:
    known = {"title", *(field for record in store.documents() for field in record.metadata)}
    for condition in scope.where:
        if condition.field not in known:
            near = suggest(condition.field, known)
            return f"no document has the field {condition.field!r}; {near}`tome show` lists the fields"
    return "widen it; `tome show` lists the documents with their fields"
