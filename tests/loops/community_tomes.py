"""Small tomes with communities: a graph of relations, and a report of scripted words about each of its communities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.memory.communities.test_communities_layer import write_report
from tests.recall.relation_tomes import EMBEDDER, list_relations

from tomewise.memory.building import build
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.testing import ScriptedModel, put_document
from tomewise.types import Answer, Document, Question

Plays = Mapping[str, Callable[[Any], object]]
REPLY = {"answer": "In the tower", "supported": "full"}


async def build_tome(folder: Path, texts: Sequence[str]) -> SqlStore:
    """A tome of one document `d<number>` for each text, with the layers of graphrag."""
    store = SqlStore.open(folder / "a.tome")
    for number, text in enumerate(texts):
        put_document(store, EMBEDDER, Document(id=f"d{number}", text=text, metadata={"number": number}))
    model = ScriptedModel({"extract_relations": list_relations, "write_report": write_report})
    await build(assemble("graphrag", Kit(store, model, EMBEDDER)).layers, store, lambda _: None)
    return store


async def ask(store: SqlStore, question: Question, plays: Plays, **settings: Any) -> tuple[Answer, ScriptedModel]:
    """The answer of graphrag with these settings, and the model with what it was asked."""
    model = ScriptedModel({"answer": lambda _: REPLY, **plays})
    system = assemble("graphrag", Kit(store, model, EMBEDDER), **settings)
    return await answer_question(system, question), model


def write_groups(groups: int, size: int) -> list[str]:
    """One text a group: all of it know one another, and the first of each knows the first of the next."""
    texts = []
    for group in range(groups):
        people = range(size * group, size * group + size)
        pairs = [(a, b) for a in people for b in people if a < b]
        if group:
            pairs.append((size * (group - 1), size * group))
        lines = [f"Name{a} ~ Name{b} ~ They met in place{group} once" for a, b in pairs]
        texts.append("\n".join([*lines, *(f"Name{person} = Somebody of place{group}" for person in people)]))
    return texts
