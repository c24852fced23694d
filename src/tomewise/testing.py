"""Test doubles and contract checks for people who add parts.

Each `check_` function checks, offline, what the users of one kind of part rely on. It raises AssertionError with the
rule that is broken. `ScriptedModel` and `HashEmbedder` replace a model and an embedder in tests.

    def test_my_retriever():
        asyncio.run(check_retriever(MyRetriever(store), "a query that finds something"))
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import numpy as np

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import ModelError, UsageError
from tomewise.language.scripted import ScriptedModel
from tomewise.language.usage import meter
from tomewise.memory.building import build
from tomewise.memory.grounds import find_grounds
from tomewise.store.sqlite.export import export
from tomewise.store.sqlite.store import SqliteStore
from tomewise.store.sqlite.write import PASSAGES, Write
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
    "check_state_layer",
    "check_store",
    "document_of",
]


def check_embedder(embedder: Embedder) -> None:
    """Check that there is one unit vector for each text, in order, and that it depends on that text alone."""
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
    assert np.allclose(embedder.embed(texts[:1])[0], rows[0], atol=1e-4), "a vector must not depend on its neighbours"
    assert embedder.embed([]).shape == (0, embedder.dimensions), "no texts must give no rows"
    assert embedder.name, "an embedder needs a name"
    assert embedder.max_tokens >= 8, "an embedder must see 8 tokens or more"
    long = embedder.tokenizer.encode("one two three " * 2000)
    assert len(long.ids) > 1000, "the tokenizer must not cut"


async def check_language_model(model: LanguageModel, role: Role[In, Out], given: In) -> None:
    """Check that a reply has the role's type and its cost reaches the meters, and that an unknown role raises."""
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
    """Check the ranking: best first, no more than the limit, no node twice, the same result every time."""
    found = await retriever.retrieve(query, 5)
    assert found, "the query must find something"
    assert len(found) <= 5, f"{len(found)} pieces of evidence are more than the limit of 5"
    _check_evidence(found)
    order = [(-piece.score, piece.node) for piece in found]
    assert order == sorted(order), "best first, ties by node"
    assert await retriever.retrieve(query, 5) == found, "the same query must find the same"
    assert (await retriever.retrieve(query, 1))[0].node == found[0].node, "any limit gives the same first"
    assert await retriever.retrieve(query, 0) == [], "a limit of 0 must give nothing"
    rankings = await asyncio.gather(*(retriever.retrieve(query, 5) for _ in range(4)))
    assert all(ranking == found for ranking in rankings), "searches at the same time must give the same"


async def check_loop(loop: Loop, question: Question) -> Answer:
    """Check that a loop yields events, then one answer, whose citations are from its evidence. Returns the answer."""
    outputs = [output async for output in loop.run(question)]
    assert outputs, "a loop must answer"
    for event in outputs[:-1]:
        assert isinstance(event, Event), "only events come before the answer"
        assert event.summary, f"the event {event.name!r} needs a summary: people read nothing else of most events"
        assert len(event.summary.splitlines()) == 1, f"the summary of the event {event.name!r} must be one line"
        json.dumps(event.detail)  # raises TypeError unless it is plain data
    answer = outputs[-1]
    assert isinstance(answer, Answer), "a loop ends with its answer"
    assert answer.text or not answer.resolved, "a resolved answer has a text"
    assert answer.choice is None or question.options, "a choice needs options"
    _check_evidence(answer.evidence)
    passages = {source for piece in answer.evidence for source in piece.sources}
    assert all(citation.passage in passages for citation in answer.citations), "citations come from the evidence"
    assert all(citation.end - citation.start == len(citation.quote) for citation in answer.citations), (
        "spans fit quotes"
    )
    return answer


async def check_layer(
    make: Callable[[SqliteStore], Sequence[Layer]], stores: Callable[[], SqliteStore], embedder: Embedder
) -> None:
    """Check that a layer is a pure function of its passages.

    Documents added in any order give the same memory; a document that is added and removed leaves no trace; a layer
    that is up to date adds nothing. `make` returns the layer after those it needs, `stores` a new empty store.
    """
    texts = (
        "Ada Marsh kept the lighthouse at Skerry.",
        "The keeper met Tom Hale in May 1911.",
        "Hale sold Ada a boat.",
    )
    documents = [document_of(f"d{number}", text) for number, text in enumerate(texts)]
    forward, backward = stores(), stores()
    for document in documents:
        put_document(forward, embedder, document)
        await _build_layers(make, forward)
    for document in reversed(documents):
        put_document(backward, embedder, document)
    await _build_layers(make, backward)
    whole = list(export(forward))
    assert whole == list(export(backward)), "the order of adding must not matter"
    reports = await build(make(forward), forward, lambda _: None)
    assert not any(report.added for report in reports), "a layer that is up to date must add nothing"
    put_document(forward, embedder, document_of("guest", "Ada Marsh wrote to Ida Poe about the boat."))
    await _build_layers(make, forward)
    assert list(export(forward)) != whole, "a new document must be remembered"
    with forward.write() as change:
        change.remove_document("guest")
    await _build_layers(make, forward)
    assert list(export(forward)) == whole, "adding and removing a document must leave no trace"


async def check_state_layer(
    make: Callable[[SqliteStore], Sequence[Layer]],
    stores: Callable[[], SqliteStore],
    embedder: Embedder,
    check: Callable[[SqliteStore], None],
) -> None:
    """Check that a layer is a state that takes in batches, whatever the order of the passages makes of it.

    Each batch is one commit, with what it took in, and leaves a sound state; a build that is stopped between two
    batches goes on with the next one and repeats no call; equal histories give equal memories; after a removal no node
    is left that rests on nothing. `make` returns the layer, with batches of one or two passages and a model that keeps
    its replies (`language.cached.Cached`, as in a kit), after the layers that it needs; `stores` a new empty store.
    `check` raises AssertionError if the state of the layer in a store is not sound, by the layer's own rules.
    """
    documents = [document_of(f"d{number}", text) for number, text in enumerate(_STATE_TEXTS)]
    whole, commits, calls = await _build_state(make, _fill(stores(), embedder, documents), check)
    assert commits > 1, "give the layer batches of one or two passages, so that there is more than one"
    again, _, _ = await _build_state(make, _fill(stores(), embedder, documents), check)
    assert list(export(again)) == list(export(whole)), "equal histories must give equal memories"
    for stop in range(1, commits):
        store, _, first_calls = await _build_state(make, _fill(stores(), embedder, documents), check, stop=stop)
        _, other_commits, other_calls = await _build_state(make, store, check)
        assert stop + other_commits == commits, "a stopped build must go on with the next batch"
        assert first_calls + other_calls == calls, "a stopped build must repeat no finished call"
        assert list(export(store)) == list(export(whole)), "a stopped build must end like one that was not"
    assert (await _build_state(make, whole, check))[1] == 0, "a layer that is up to date must change nothing"
    for document in (*documents[::2], *documents[1::2]):
        with whole.write() as change:
            change.remove_document(document.id)
        await _build_state(make, whole, check)
        _check_grounds(make(whole)[-1], whole)
    _fill(whole, embedder, documents[:1])
    assert (await _build_state(make, whole, check))[1] > 0, "a document that comes after a removal must be taken in"


_STATE_TEXTS = (
    "Ada Marsh kept the lighthouse at Skerry.",
    "The keeper met Tom Hale in May 1911.",
    "Tom Hale sold Ada Marsh a boat.",
    "Ida Poe wrote to Ada Marsh about the boat.",
    "The lighthouse at Skerry was sold to Ida Poe.",
)


class _Stopped(Exception):
    """Stands for the end of a process between two commits."""


class _WatchedStore:
    """A store that checks each commit which changes the memory, and refuses to begin the one after `stop` of them."""

    def __init__(self, store: SqliteStore, check: Callable[[SqliteStore], None], stop: int | None) -> None:
        self._store = store
        self._check = check
        self._stop = stop
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextmanager
    def write(self) -> Iterator[Write]:
        if self.commits == self._stop:
            raise _Stopped
        memory, taken = self._read()
        with self._store.write() as change:
            yield change
        memory_after, taken_after = self._read()
        if (memory, taken) != (memory_after, taken_after):
            self.commits += 1
            assert memory == memory_after or taken != taken_after, "a batch must be one commit, with what it took in"
            self._check(self._store)

    def _read(self) -> tuple[list[str], object]:
        """The memory without the intake; the intake and the removals that layers have yet to follow."""
        lines = list(export(self._store))
        intake = [line for line in lines if '"kind": "intake"' in line]
        removals = {layer: self._store.find_removed_ids(layer) for layer in self._store.builds()}
        return [line for line in lines if line not in set(intake)], (intake, removals)


def _fill(store: SqliteStore, embedder: Embedder, documents: Sequence[Document]) -> SqliteStore:
    for document in documents:
        put_document(store, embedder, document)
    return store


async def _build_state(
    make: Callable[[SqliteStore], Sequence[Layer]],
    store: SqliteStore,
    check: Callable[[SqliteStore], None],
    stop: int | None = None,
) -> tuple[SqliteStore, int, int]:
    """Build, and stop after so many commits. Returns the store, the number of commits, and that of calls."""
    watched = _WatchedStore(store, check, stop)
    with meter() as used, suppress(_Stopped):
        layers = make(cast("SqliteStore", watched))
        reports = await build(layers, store, lambda _: None)
        _check_writes(layers, store)
        assert not any(report.failed for report in reports), "no reply may fail in this check"
    return store, watched.commits, used.usage().total.calls


def _check_writes(layers: Sequence[Layer], store: SqliteStore) -> None:
    named = {PASSAGES, *(name for layer in layers for name in layer.writes)}
    unnamed = [name for name, counts in store.layers().items() if counts["nodes"] and name not in named]
    assert not unnamed, f"nodes in {unnamed}: a layer must name in `writes` each node layer that holds its nodes"


def _check_grounds(layer: Layer, store: SqliteStore) -> None:
    for node_layer in layer.writes:
        for leaves in find_grounds(store, store.node_keys(node_layer), node_layer).values():
            resting = {node.layer for node in store.nodes_at(leaves).values()}
            assert resting.isdisjoint(layer.writes), f"a node of {node_layer} rests on nothing: remove it"


def check_store(make: Callable[[Path], SqliteStore], path: Path) -> None:
    """Check that commits are visible, failures leave nothing, keys are never used again, and arrays are up to date."""
    embedder = HashEmbedder(16)
    store = make(path)
    with store.write() as change:
        change.set_meta("dimensions", "16")
    first = put_document(store, embedder, document_of("one", "The first text."))
    before = list(export(store))
    second = put_document(store, embedder, document_of("two", "The second text."))
    assert store.vectors("passages").keys.tolist() == first + second, "arrays must follow an addition"
    gist = Node(id="g1", layer="gists", text="both", sources=(store.passages(second)[second[0]].id,))
    try:
        with store.write() as change:
            change.put_nodes([gist])
            raise KeyError("stop")
    except KeyError:
        pass
    assert store.nodes("gists") == {}, "a failed transaction must leave nothing"
    with store.write() as change:
        change.put_nodes([gist])
        change.record_intake("gists", second)
    assert make(path).nodes("gists"), "another connection must see what was committed"
    with store.write() as change:
        removed = change.remove_document("two")
    assert len(removed) == 2, "a document must take with it what was derived from it"
    assert list(export(store)) == before, "adding and removing a document must leave no trace"
    assert store.vectors("passages").keys.tolist() == first, "arrays must follow a removal"
    assert put_document(store, embedder, document_of("two", "The second text."))[0] not in second, (
        "keys must never be used again"
    )


def document_of(name: str, text: str) -> Document:
    """A document with this id and text."""
    return Document(id=name, text=text)


def put_document(store: SqliteStore, embedder: Embedder, document: Document) -> list[int]:
    """Add a document as one passage, embedded. Returns its key."""
    end = len(document.text)
    name = content_id("p", document.id, 0, end, document.text)
    passage = Passage(id=name, document=document.id, position=0, start=0, end=end, text=document.text)
    with store.write() as change:
        change.set_meta("dimensions", str(embedder.dimensions))
        keys = change.put_document(document, content_id("d", document.text), [passage])
        change.put_vectors("passages", keys, embedder.embed([passage.content]))
    return keys


async def _build_layers(make: Callable[[SqliteStore], Sequence[Layer]], store: SqliteStore) -> None:
    layers = make(store)
    reports = await build(layers, store, lambda _: None)
    _check_writes(layers, store)
    failed = {report.layer: report.failed for report in reports if report.failed}
    assert not failed, f"failed: {failed}"


def _check_evidence(found: Sequence[Evidence]) -> None:
    nodes = [piece.node for piece in found]
    assert len(set(nodes)) == len(nodes), "evidence must not repeat"
    assert all(piece.text and piece.sources for piece in found), "evidence must have a text and source passages"
    assert all(np.isfinite(piece.score) for piece in found), "scores must be finite"
