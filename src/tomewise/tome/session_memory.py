"""What a session holds in memory while a question is answered: the working memory, and what is forgotten."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from tomewise.errors import Locked, StoreError, UsageError
from tomewise.events import ATTEMPTS, is_event, make_event
from tomewise.loops.evidence import EXTRACTS
from tomewise.run import warn_unkept
from tomewise.store.contract import Store
from tomewise.store.lookups import find_keys
from tomewise.store.records import SESSIONS
from tomewise.store.rights import hold_session
from tomewise.systems.kit import Kit
from tomewise.systems.registry import parse_variant
from tomewise.tome.session_record import SessionRecord, make_turn, read_session
from tomewise.types import Answer, Event, FromSession, Loop, NodeId
from tomewise.working.lasting_memory import MemoryLoop, WorkingMemory


class Continuation:
    """A question that goes on from what a session holds: what it starts with, and what it leaves."""

    def __init__(self, record: SessionRecord, limit: int, store: Store) -> None:
        """`record` is the session before the question; `limit` bounds entries of the working memory, and turns."""
        self.record = record
        self._limit = limit
        self._store = store
        self._memory: WorkingMemory | None = None
        self._lost: tuple[str, ...] = ()
        self._notes: tuple[str, ...] = ()
        self._nodes: Set[NodeId] = frozenset()

    def open_memory(self, loop: Loop) -> WorkingMemory | None:
        """The working memory with which the loop goes on, without what rests on nodes that are gone."""
        self._memory = memory = open_memory(loop, self.record)
        self.record, self._lost = forget_missing(self.record, memory, self._store)
        if memory:
            self._notes, self._nodes = memory.notes, memory.find_nodes()
        return memory

    @property
    def resumed(self) -> Event:
        """Where the question starts."""
        name, kind, number = self.record.name, self.record.memory_kind, self.record.count + 1
        return make_event(
            "resumed", session=name, question=number, memory=kind, known=self._notes, forgotten=self._lost
        )

    def add_turn(self, asked: str, text: str, answer: Answer) -> Answer:
        """The answer to a question that stands alone as `text`, with what it took from the session. Takes it in."""
        memory = self._memory
        record, later = forget_missing(self.record, memory, self._store)
        left = memory.shrink(self._limit) if memory else ()
        turns = (*record.turns, make_turn(asked, text, answer))
        origin = FromSession(
            name=record.name,
            number=record.count + 1,
            question=text,
            notes=_find_notes(answer, self._notes),
            passages=_find_passages(answer, self._nodes),
            dropped=(*self._lost, *later, *left, *(turn.asked for turn in turns[: -self._limit])),
        )
        record = replace(record, count=origin.number, turns=turns[-self._limit :])
        self.record = replace(record, memory_kind=memory.kind, memory=memory.dump()) if memory else record
        closing = make_event("session", notes=origin.notes, passages=origin.passages, dropped=origin.dropped)
        return replace(answer, session=origin, events=(*answer.events, closing))

    def save(self) -> None:
        """Store what the question left; with a warning, the session stays as it was."""
        record = self.record
        try:
            with self._store.write() as change:
                # Behind a pooler nobody can hold a session from one transaction to the next.
                row = change.note(SESSIONS, record.name)
                if (read_session(record.name, row).count if row else 0) != record.count - 1:
                    raise Locked(f"the session {record.name!r} answered another question meanwhile: ask again")
                change.put_note(SESSIONS, record.name, record.as_row())
        except StoreError as error:
            warn_unkept(error)


def _find_notes(answer: Answer, notes: Sequence[str]) -> tuple[str, ...]:
    """Those of the earlier notes that an answering call saw."""
    attempts = (event for event in answer.events if is_event(event, *ATTEMPTS))
    shown = {note for attempt in attempts for note in attempt.detail["notes"]}
    return tuple(note for note in notes if note in shown)


def _find_passages(answer: Answer, nodes: Set[NodeId]) -> tuple[NodeId, ...]:
    """The passages that the answering call saw and that are among the `nodes` on which earlier entries rest."""
    shown = dict.fromkeys(
        source for piece in answer.evidence for source in piece.sources if source == piece.id or piece.layer == EXTRACTS
    )
    return tuple(node for node in shown if node in nodes)


# ---------------------------------------------------------------- the working memory, and what is forgotten


def open_memory(loop: Loop, record: SessionRecord) -> WorkingMemory | None:
    """The working memory of a session, a new one before its first answer; None for a loop that has none."""
    if not isinstance(loop, MemoryLoop):
        return None
    if record.memory is None:
        return loop.open_memory()
    memory = loop.open_memory(record.memory)
    if memory.kind != record.memory_kind:
        kinds = f"holds a {record.memory_kind}, and {record.system} needs a {memory.kind}"
        raise StoreError(f"{record.name!r} {kinds}: delete it")
    return memory


def list_notes(record: SessionRecord, kit: Kit) -> tuple[str, ...]:
    """The notes of the working memory of a session."""
    memory = _load_memory(record, kit)
    return memory.notes if memory else ()


def _load_memory(record: SessionRecord, kit: Kit) -> WorkingMemory | None:
    return open_memory(parse_variant(record.system).wire(kit).loop, record) if record.memory else None


def forget_missing(
    record: SessionRecord, memory: WorkingMemory | None, store: Store
) -> tuple[SessionRecord, tuple[str, ...]]:
    """Forget what rests on nodes that the store no longer has. Returns the record, and the notes that left."""
    passages = {passage for turn in record.turns for passage in turn.passages}
    nodes = passages | (memory.find_nodes() if memory else frozenset())
    missing = nodes - find_keys(store, nodes).keys()
    if not missing:
        return record, ()
    lost = memory.forget(missing) if memory else ()
    return record.forget(missing), lost


def forget_in_all(kit: Kit) -> None:
    """Forget in every session what rests on removed nodes.

    A session that answers a question at this moment does so itself when it ends. If the system of a session is not
    installed here, its memory cannot be read: then it is removed if it may rest on what is gone, and the turns stay.
    """
    for name in kit.store.note_names(SESSIONS):
        try:
            with hold_session(kit.store, name):
                _forget_in_session(name, kit)
        except StoreError:  # in use, or damaged: the next question forgets, or refuses
            continue


def _forget_in_session(name: str, kit: Kit) -> None:
    row = kit.store.note(SESSIONS, name)
    if row is None:
        return
    record = read_session(name, row)
    try:
        memory = _load_memory(record, kit)
        after, _ = forget_missing(record, memory, kit.store)
        after = replace(after, memory=memory.dump()) if memory else after
    except (UsageError, StoreError):
        after, _ = forget_missing(replace(record, memory=None, memory_kind=""), None, kit.store)
    if after != record:
        with kit.store.write() as change:
            change.put_note(SESSIONS, name, after.as_row())
