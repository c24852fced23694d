"""The working memory of a session: opened by the loop that made it, without what rests on removed documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tomewise.errors import StoreError, UsageError
from tomewise.store.lookups import find_keys
from tomewise.store.records import SESSIONS
from tomewise.store.rights import hold_session
from tomewise.systems.kit import Kit
from tomewise.systems.registry import parse_variant
from tomewise.tome.session_record import SessionRecord, read_session
from tomewise.types import Loop
from tomewise.working.lasting_memory import MemoryLoop, WorkingMemory

if TYPE_CHECKING:
    from tomewise.store.contract import Store


def open_memory(loop: Loop, record: SessionRecord) -> WorkingMemory | None:
    """The working memory of a session, a new one before its first answer; None for a loop that has none."""
    if not isinstance(loop, MemoryLoop):
        return None
    if record.memory is None:
        return loop.open_memory()
    memory = loop.open_memory(record.memory)
    if memory.kind != record.kind:
        raise StoreError(f"{record.name!r} holds a {record.kind}, and {record.system} needs a {memory.kind}: delete it")
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
        after, _ = forget_missing(replace(record, memory=None, kind=""), None, kit.store)
    if after != record:
        with kit.store.write() as change:
            change.put_note(SESSIONS, name, after.as_row())
