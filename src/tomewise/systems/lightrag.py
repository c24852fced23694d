"""Answers from a graph of relations that keywords of two levels search: LightRAG."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from tomewise.loops.evidence import measure_pieces
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.recall.flat import Dense
from tomewise.recall.keyword_graph import KeywordGraph, Mode
from tomewise.systems.declaration import SystemDeclaration
from tomewise.systems.kit import CONTEXT, Context, Gleanings, Kit, Limit, System, answer_once
from tomewise.types import Retriever

_LIMIT = 200  # what has room is far less


def lightrag(
    kit: Kit,
    *,
    mode: Annotated[
        Mode,
        (
            "local: entities near what the question names; global: relations near its themes; hybrid: both; mix: "
            "both, and passages near the question"
        ),
    ] = "mix",
    keywords: Annotated[bool, "whether a model names keywords; else the question searches"] = True,
    graph: Annotated[bool, "whether the graph is searched; else passages near the question"] = True,
    gleanings: Gleanings = 0,
    limit: Limit = _LIMIT,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `lightrag`: `recall.keyword_graph` over a `memory.graph` of relations."""
    layer = GraphLayer(kit.store, kit.model, kit.embedder, style="relations", gleanings=gleanings)
    measure = partial(measure_pieces, count=kit.count_tokens)
    recall = KeywordGraph(
        kit.store, kit.embedder, kit.model, layer.names, measure, mode=mode, keywords=keywords, room=context
    )
    found: Retriever = recall if graph else Dense(kit.store, kit.embedder)
    return answer_once(kit, found, limit, context, (layer,) if graph else (), "as found")


SYSTEMS = {
    "lightrag": SystemDeclaration(
        recipe=lightrag,
        kind="one search",
        summary=(
            "Search a graph of entities and relations with keywords of two levels, what the question names and what it "
            "is about; then answer from what they find and its passages."
        ),
        paper="LightRAG, arXiv 2410.05779",
        about=(
            "A fifth of the context is for entities, 27 of 100 for relations, the rest for passages. The graph is that "
            "of `hgmem`."
        ),
        deviations=(
            "an entity or a relation is found by what single passages say of it, and shows what three of them say; no "
            "least cosine; ties are ordered by id; a level without keywords is searched with the question, and the "
            "mode never changes; no reranker."
        ),
        ablations={
            "local": {"mode": "local"},
            "global": {"mode": "global"},
            "hybrid": {"mode": "hybrid"},
            "without graph": {"graph": False},
            "without keywords": {"keywords": False},
        },
    ),
}
