"""Doubles and contracts for people who add parts.

Each `check_` function holds one kind of part to what every user of that kind relies on, offline. It raises
AssertionError naming what does not hold. `ScriptedModel` and `HashEmbedder` stand in for a model and an embedder.

    def test_my_retriever():
        asyncio.run(check_retriever(MyRetriever(store), "a query that finds something"))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import ModelError, UsageError
from tomewise.language.scripted import ScriptedModel
from tomewise.language.usage import meter
from tomewise.memory.building import build
from tomewise.store.sqlite.export import export
from tomewise.store.sqlite.store import SqliteStore
from tomewise.types import (
    Answer,
    Document,
    Embedder,
    Event,
    Evidence,
    In,
    LanguageModel,
    Layer,
    Loop,
    Node,
    Out,
    Passage,
    Question,
    Retriever,
    Role,
    content_id,
)

__all__ = [
    "HashEmbedder",
    "ScriptedModel",
    "check_embedder",
    "check_language_model",
    "check_layer",
    "check_loop",
    "check_retriever",
    "check_store",
    "document_of",
]


def check_embedder(embedder: Embedder) -> None:
    """Unit rows in the order of the texts, equal for equal texts, whatever stands beside them."""
    texts = [
        "The tide turned at nine.",
        "",
        "Ein Haus am See",
        "潮は九時に変わった。",
        "The tide turned at nine.",
        "word " * 3000,
    ]
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), embedder.dimensions), f"shape {rows.shape}"
    assert rows.dtype == np.float32, f"dtype {rows.dtype}"
    assert np.isfinite(rows).all(), "vectors must be finite"
    filled = [index for index, text in enumerate(texts) if text]
    lengths = np.linalg.norm(rows[filled], axis=1)
    assert np.allclose(lengths, 1, atol=1e-4), f"rows must have unit length, not {lengths}"
    assert np.array_equal(rows[0], rows[4]), "equal texts must have equal vectors"
    assert np.allclose(embedder.embed(texts[:1])[0], rows[0], atol=1e-4), "a vector must not hang on its neighbours"
    assert embedder.embed([]).shape == (0, embedder.dimensions), "no texts, no rows"
    assert embedder.name, "an embedder needs a name"
    assert embedder.max_tokens >= 8, "an embedder that sees fewer than 8 tokens is of no use"
    long = embedder.tokenizer.encode("one two three " * 2000)
    assert len(long.ids) > 1000, "the tokenizer must not cut"


async def check_language_model(model: LanguageModel, role: Role[In, Out], given: In) -> None:
    """A reply of the role's type, reported to the meters; an unknown role is an error and never text."""
    assert model.name, "a model needs a name"
    assert model.window > 0, "a model needs a window"
    assert model.reckon(role, given) > 0, "a call takes tokens"
    with meter() as used:
        reply = await model.ask(role, given)
    assert isinstance(reply, role.output), f"{type(reply).__name__} is not {role.output.__name__}"
    usage = used.usage()
    assert usage.total.calls >= 1, "a call must be reported"
    assert role.name in usage.roles, "a call must be reported under its role"
    unknown = Role("no_such_role", role.input, role.output)
    try:
        await model.ask(unknown, given)
    except (ModelError, UsageError):
        return
    raise AssertionError("an unknown role must raise")


async def check_retriever(retriever: Retriever, query: str) -> None:
    """Best first, at most as many as asked, no node twice, the same every time, shorter lists prefixes of longer."""
    found = await retriever.retrieve(query, 5)
    assert found, "the query must find something"
    assert len(found) <= 5, f"{len(found)} pieces where 5 were asked"
    _check_evidence(found)
    order = [(-piece.score, piece.node) for piece in found]
    assert order == sorted(order), "best first, ties by node"
    assert await retriever.retrieve(query, 5) == found, "the same query must find the same"
    assert (await retriever.retrieve(query, 1))[0].node == found[0].node, "the first of one is the first of five"
    assert await retriever.retrieve(query, 0) == [], "nothing was asked"
    several = await asyncio.gather(*(retriever.retrieve(query, 5) for _ in range(4)))
    assert all(one == found for one in several), "side by side as one by one"


async def check_loop(loop: Loop, question: Question) -> Answer:
    """Events, then exactly one answer, whose citations rest on its evidence. Returns the answer."""
    seen = [what async for what in loop.run(question)]
    assert seen, "a loop must answer"
    assert all(isinstance(what, Event) for what in seen[:-1]), "only events come before the answer"
    answer = seen[-1]
    assert isinstance(answer, Answer), "a loop ends with its answer"
    assert answer.text or not answer.resolved, "a resolved answer says something"
    assert (answer.choice is not None) <= bool(question.options), "no choice without options"
    _check_evidence(answer.evidence)
    ground = {source for piece in answer.evidence for source in piece.sources}
    assert all(citation.passage in ground for citation in answer.citations), "citations come from the evidence"
    assert all(citation.end - citation.start == len(citation.quote) for citation in answer.citations), (
        "spans fit quotes"
    )
    return answer


async def check_layer(
    make: Callable[[SqliteStore], Sequence[Layer]], stores: Callable[[], SqliteStore], embedder: Embedder
) -> None:
    """A layer that is a pure function of its passages: any order of adding gives the same memory, adding and removing

    leaves what was there, and a layer that is up to date has nothing to do. `make` gives the layer and whatever it
    needs, `stores` a new empty store each time.
    """
    texts = (
        "Ada Marsh kept the lighthouse at Skerry.",
        "The keeper met Tom Hale in May 1911.",
        "Hale sold Ada a boat.",
    )
    documents = [document_of(f"d{number}", text) for number, text in enumerate(texts)]
    forward, backward = stores(), stores()
    for document in documents:
        put(forward, embedder, document)
        await _built(make, forward)
    for document in reversed(documents):
        put(backward, embedder, document)
    await _built(make, backward)
    whole = list(export(forward))
    assert whole == list(export(backward)), "the order of adding must not matter"
    reports = await build(make(forward), forward, lambda _: None)
    assert not any(report.added for report in reports), "nothing new, nothing to do"
    put(forward, embedder, document_of("guest", "Ada Marsh wrote to Ida Poe about the boat."))
    await _built(make, forward)
    assert list(export(forward)) != whole, "a new document must be remembered"
    with forward.write() as change:
        change.remove_document("guest")
    await _built(make, forward)
    assert list(export(forward)) == whole, "adding and removing must leave what was there"


def check_store(make: Callable[[Path], SqliteStore], path: Path) -> None:
    """What is committed is there for others, what fails leaves nothing, keys never come back, arrays follow."""
    embedder = HashEmbedder(16)
    store = make(path)
    with store.write() as change:
        change.set_meta("dimensions", "16")
    first = put(store, embedder, document_of("one", "The first text."))
    before = list(export(store))
    second = put(store, embedder, document_of("two", "The second text."))
    assert store.vectors("passages").keys.tolist() == first + second, "arrays follow what is added"
    gist = Node(id="g1", layer="gists", text="both", sources=(store.passages(second)[second[0]].id,))
    try:
        with store.write() as change:
            change.put_nodes([gist])
            raise KeyError("stop")
    except KeyError:
        pass
    assert store.nodes("gists") == {}, "a transaction that fails leaves nothing"
    with store.write() as change:
        change.put_nodes([gist])
        change.record_intake("gists", second)
    assert make(path).nodes("gists"), "what is committed is there for others"
    with store.write() as change:
        gone = change.remove_document("two")
    assert len(gone) == 2, "what rests on a document goes with it"
    assert list(export(store)) == before, "adding and removing leaves what was there"
    assert store.vectors("passages").keys.tolist() == first, "arrays follow what is removed"
    assert put(store, embedder, document_of("two", "The second text."))[0] not in second, "keys never come back"


def document_of(name: str, text: str) -> Document:
    """A small document."""
    return Document(id=name, text=text)


def put(store: SqliteStore, embedder: Embedder, document: Document) -> list[int]:
    """Add a document as one passage, embedded. Returns its key."""
    end = len(document.text)
    name = content_id("p", document.id, 0, end, document.text)
    passage = Passage(id=name, document=document.id, position=0, start=0, end=end, text=document.text)
    with store.write() as change:
        change.set_meta("dimensions", str(embedder.dimensions))
        keys = change.put_document(document, content_id("d", document.text), [passage])
        change.put_vectors("passages", keys, embedder.embed([passage.content]))
    return keys


async def _built(make: Callable[[SqliteStore], Sequence[Layer]], store: SqliteStore) -> None:
    reports = await build(make(store), store, lambda _: None)
    failed = {report.layer: report.failed for report in reports if report.failed}
    assert not failed, f"failed: {failed}"


def _check_evidence(found: Sequence[Evidence]) -> None:
    nodes = [piece.node for piece in found]
    assert len(set(nodes)) == len(nodes), "no evidence twice"
    assert all(piece.text and piece.sources for piece in found), "evidence has a text and rests on passages"
    assert all(np.isfinite(piece.score) for piece in found), "scores are finite"
