"""What a tome keeps of a session: the turns, and the working memory; plain data in the store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from shlex import quote
from typing import Any

from pydantic import TypeAdapter

from tomewise.errors import StoreError, UsageError
from tomewise.outgoing import answer_models
from tomewise.outgoing.form import Naming
from tomewise.store.contract import Store
from tomewise.store.records import SESSIONS
from tomewise.types import Answer, PassageId, Scope

_FIELDS = ("system", "within", "count", "turns", "memory")
_LONGEST_NAME = 200  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A question of a session: as it was asked, as it was answered, and the answer, empty if it was declined.

    `passages` are those that the answer rests on: cited ones, or all that were shown where none is cited.
    """

    asked: str
    question: str
    answer: str
    passages: tuple[PassageId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session: what its first question fixed, how many questions it answered, and what is kept of them.

    `memory` is the dump of a working memory of the kind `kind`; None if the loop has none, and turns are all there is.
    """

    name: str
    system: str
    within: Scope | None = None
    count: int = 0
    turns: tuple[Turn, ...] = ()
    kind: str = ""
    memory: Mapping[str, Any] | None = None

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

    def describe(self, notes: Sequence[str] = (), naming: Naming | None = None) -> answer_models.Session:
        """The session as it goes out, with the notes of its working memory: what `tome sessions NAME --json` prints."""
        return answer_models.Session.of(self, naming, notes=notes)

    def as_row(self) -> dict[str, Any]:
        """The plain data that the store keeps under the name."""
        return {
            "system": self.system,
            "within": answer_models.Scope.of(self.within).write() if self.within else None,
            "count": self.count,
            "turns": [asdict(turn) for turn in self.turns],
            "memory_kind": self.kind,
            "memory": self.memory,
        }


def read_session(name: str, row: Mapping[str, Any]) -> SessionRecord:
    """The record of which `as_row` made `row`. Raises StoreError for damaged data."""
    try:
        fields = {**{field: row[field] for field in _FIELDS}, "name": name, "kind": row["memory_kind"]}
        record: SessionRecord = _make_checker().validate_python(fields)
    except (KeyError, TypeError, ValueError) as error:
        problem = str(error).splitlines()[0]
        raise StoreError(
            f"the row {name!a} of the table sessions is damaged ({problem}): "
            f"delete it with `tome sessions {quote(name)} --delete`"
        ) from None
    return record


@cache
def _make_checker() -> TypeAdapter[SessionRecord]:
    return TypeAdapter(SessionRecord)  # only now, since it takes a while to make


def make_turn(asked: str, question: str, answer: Answer) -> Turn:
    """The turn of an answer."""
    passages = [citation.passage for citation in answer.citations]
    passages = passages or [source for piece in answer.evidence for source in piece.sources]
    text = answer.text if answer.resolved else ""
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
