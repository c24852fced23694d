"""What a tome keeps of a session: the turns, and the working memory; plain data in the store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from tomewise.errors import StoreError, UsageError
from tomewise.store.contract import Store
from tomewise.store.records import SESSIONS
from tomewise.types import Answer, Noun, PassageId, Scope, read_plain
from tomewise.types.plain import describe_invalid
from tomewise.types.proof import quote_words

_FIELDS = ("system", "within", "count", "turns", "memory_kind", "memory")  # that the store keeps
_LONGEST_NAME = 200  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Noun):
    """A question of a session: as it was asked, as it was answered, and the answer, empty if it was declined.

    Where quotations stood in place of an answer, it is these, between quotation marks.
    `passages` are those that the answer rests on: cited ones, or all that were shown where none is cited.
    """

    asked: str
    question: str
    answer: str
    passages: tuple[PassageId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord(Noun):
    """A session: what its first question fixed, how many questions it answered, and what is kept of them.

    `memory` is the dump of a working memory of the kind `memory_kind`; None if the loop has none, and turns are all
    there is. `notes` are what it holds in words, where the session was read with its system.
    """

    name: str
    system: str
    within: Scope | None = None
    count: int = 0
    turns: tuple[Turn, ...] = ()
    memory_kind: str = ""
    memory: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def forget(self, passages: Collection[PassageId]) -> SessionRecord:
        """The record without the answers that rest on these passages.

        Later questions may have taken names from such an answer, so these are kept only as they were asked.
        """
        gone = frozenset(passages)
        turns: list[Turn] = []
        has_lost = False
        for turn in self.turns:
            kept = replace(turn, question=turn.asked) if has_lost else turn
            if not gone.isdisjoint(turn.passages):
                has_lost = True
                kept = replace(kept, answer="", passages=())
            turns.append(kept)
        return replace(self, turns=tuple(turns))

    def as_row(self) -> dict[str, Any]:
        """The plain data that the store keeps under the name."""
        return {name: value for name, value in self.to_dict().items() if name in _FIELDS}


def read_session(name: str, row: Mapping[str, Any]) -> SessionRecord:
    """The record of which `as_row` made `row`. Raises StoreError for damaged data."""
    try:
        return read_plain(SessionRecord, {**{field: row[field] for field in _FIELDS}, "name": name})
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"the row {name!a} of the table sessions is damaged ({describe_invalid(error)}): "
            f"delete it with `tome sessions {quote(name)} --delete`"
        ) from None


def make_turn(asked: str, question: str, answer: Answer) -> Turn:
    """The turn of an answer."""
    passages = [quote.passage for quote in answer.quotes]
    passages = passages or [source for piece in answer.evidence for source in piece.sources]
    text = quote_words(answer) if answer.resolved else ""
    return Turn(asked=asked, question=question, answer=text, passages=tuple(dict.fromkeys(passages)) if text else ())


def check_name(name: str) -> str:
    """The name unchanged. Raises UsageError for one that cannot be typed again."""
    if (
        not isinstance(name, str)
        or not name.strip()
        or name != name.strip()
        or len(name) > _LONGEST_NAME
        or not name.isprintable()
    ):
        raise UsageError(f"a session cannot be named {name!a}: use up to {_LONGEST_NAME} printable characters")
    return name


def find_session(name: str, store: Store) -> SessionRecord | None:
    row = store.note(SESSIONS, name)
    return None if row is None else read_session(name, row)
