"""What tests of loops share: a retriever that is scripted, and the events and the answer of a loop."""

from __future__ import annotations

from collections.abc import Sequence

from tests.recall.shelves import Shelves

from tomewise.calls import NO_CALLS
from tomewise.embedding.hash import HashEmbedder
from tomewise.loops.desk import Desk, FusingDesk
from tomewise.loops.evidence import make_token_counter
from tomewise.types import Answer, Document, Event, Loop, Passage, Question, content_id

EMBEDDER = HashEmbedder(32)


class FreeShelves(Shelves):
    """Shelves that say that a search calls no model."""

    calls = NO_CALLS


def make_desk(store, model=None, count=None, plain=None):
    """A desk; without a model for what asks none. `count` is the embedder's by default. With `plain` it fuses."""
    counter = count or make_token_counter(EMBEDDER)
    return Desk(store, model, counter) if plain is None else FusingDesk(store, model, counter, plain=plain)


def count_words(texts):
    return [len(text.split()) for text in texts]


def put_passages(store, document: Document, passages: Sequence[Passage]) -> None:
    """A document cut into these passages, without vectors."""
    with store.write() as change:
        change.put_document(document, content_id("d", document.text), passages)


async def converse(loop: Loop, question: Question) -> tuple[list[Event], Answer]:
    """The events of a loop, and its answer."""
    items = [item async for item in loop.run(question)]
    assert isinstance(items[-1], Answer)
    return [item for item in items if isinstance(item, Event)], items[-1]


def list_roles(model) -> list[str]:
    return [call.role for call in model.calls]


def list_inputs(model, role: str):
    return [call.given for call in model.calls if call.role == role]
