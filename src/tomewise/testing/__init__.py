"""Test doubles and contract checks for people who add parts.

Each `check_` function checks, offline, what the users of one kind of part rely on. It raises AssertionError with the
rule that is broken. `ScriptedModel`, and `HashEmbedder` or `NotingEmbedder`, replace a model and an embedder.

    def test_my_retriever():
        asyncio.run(check_retriever(MyRetriever(store), "a query that finds something"))
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Sequence

import numpy as np

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import ModelError, UsageError
from tomewise.language.wrapped import find_abilities
from tomewise.run import meter
from tomewise.store.contract import Store
from tomewise.testing.layer_checks import check_layer, check_mapped_layer, check_state_layer
from tomewise.testing.scripted import NotingEmbedder, ScriptedModel
from tomewise.testing.store_checks import (
    check_calls,
    check_changes,
    check_records,
    check_spaces,
    check_store,
    check_texts,
    check_transactions,
    check_words,
    document_of,
    put_document,
)
from tomewise.types import (
    Answer,
    Embedder,
    Event,
    Evidence,
    In,
    LanguageModel,
    Loop,
    Out,
    Question,
    Retriever,
    Role,
    Scope,
)

__all__ = [
    "HashEmbedder",
    "NotingEmbedder",
    "ScriptedModel",
    "check_calls",
    "check_changes",
    "check_embedder",
    "check_language_model",
    "check_layer",
    "check_loop",
    "check_mapped_layer",
    "check_records",
    "check_retriever",
    "check_spaces",
    "check_state_layer",
    "check_store",
    "check_texts",
    "check_transactions",
    "check_words",
    "document_of",
    "put_document",
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
    """Check that a reply has the role's type and its cost reaches the meters, and that an unknown role raises.

    Also checks what the model says of itself.
    """
    assert model.name, "a model needs a name"
    assert model.window > 0, "a model needs a window"
    assert model.count_input_tokens(role, given) > 0, "a call takes tokens"
    abilities = find_abilities(model, role)
    preparing = abilities.prepare()
    assert inspect.isawaitable(preparing), "`prepare` must be async"
    await preparing
    assert isinstance(abilities.is_quick(role, given), bool), "`is_quick` must return True or False"
    with meter() as used:
        reply = await model.ask(role, given)
    assert isinstance(reply, role.output), f"{type(reply).__name__} is not {role.output.__name__}"
    cost = used.measure_cost()
    assert cost.calls >= 1, "a call must be reported"
    assert role.name in cost.roles, "a call must be reported under its role"
    unknown = Role("no_such_role", role.input, role.output)
    try:
        await model.ask(unknown, given)
    except (ModelError, UsageError):
        return
    raise AssertionError("an unknown role must raise")


async def check_retriever(retriever: Retriever, query: str, store: Store | None = None) -> None:
    """Check the ranking: best first, no more than the limit, no node twice, the same result every time.

    With the store that it searches, also check scopes of one document: all evidence is from that document, and none of
    it is missing.
    """
    ranking = await retriever.retrieve(query, 5)
    assert ranking, "the query must find something"
    _check_ranking(ranking, 5)
    assert await retriever.retrieve(query, 5) == ranking, "the same query must find the same"
    assert (await retriever.retrieve(query, 1))[0].id == ranking[0].id, "any limit gives the same first"
    assert await retriever.retrieve(query, 0) == [], "a limit of 0 must give nothing"
    at_once = await asyncio.gather(*(retriever.retrieve(query, 5) for _ in range(4)))
    assert at_once == [ranking] * 4, "searches at the same time must give the same"
    assert await retriever.retrieve(query, 5, within=Scope()) == ranking, "an empty scope is the whole tome"
    assert await retriever.retrieve(query, 5, within=Scope(documents=frozenset())) == [], "no document, no evidence"
    if store is not None:
        for document in store.documents():
            await _check_scope(retriever, query, document.id, store)


async def _check_scope(retriever: Retriever, query: str, document: str, store: Store) -> None:
    """Check the ranking within one document."""
    scope = Scope(documents=frozenset({document}))
    passages = {passage.id for passage in store.passages(documents=[document]).values()}
    ranking = await retriever.retrieve(query, 5, within=scope)
    _check_ranking(ranking, 5)
    assert all(passages.issuperset(piece.sources) for piece in ranking), f"evidence must come from {document!r} alone"
    everything = await retriever.retrieve(query, 1000)
    known = {piece.id for piece in everything if passages.issuperset(piece.sources)}
    assert len(ranking) >= min(5, len(known)), f"{len(known)} pieces are from {document!r}, {len(ranking)} were found"
    assert await retriever.retrieve(query, 5, within=scope) == ranking, (
        "the same query must find the same within a scope"
    )


def _check_ranking(ranking: Sequence[Evidence], limit: int) -> None:
    assert len(ranking) <= limit, f"{len(ranking)} pieces of evidence are more than the limit of {limit}"
    _check_evidence(ranking)
    order = [(-piece.score, piece.id) for piece in ranking]
    assert order == sorted(order), "best first, ties by node"


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
    assert answer.words or not answer.resolved, "a resolved answer has a text, or quotations in place of one"
    assert answer.choice is None or question.options, "a choice needs options"
    _check_evidence(answer.evidence)
    passages = {source for piece in answer.evidence for source in piece.sources}
    assert all(quote.passage in passages for quote in answer.quotes), "quotes come from the evidence"
    assert all(quote.end - quote.start == len(quote.text) for quote in answer.quotes), "spans fit quotes"
    return answer


def _check_evidence(evidence: Sequence[Evidence]) -> None:
    nodes = [piece.id for piece in evidence]
    assert len(set(nodes)) == len(nodes), "evidence must not repeat"
    assert all(piece.text and piece.sources for piece in evidence), "evidence must have a text and source passages"
    assert all(np.isfinite(piece.score) for piece in evidence), "scores must be finite"
