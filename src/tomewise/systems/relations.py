"""Answers from a graph of relations: LightRAG, which keywords search, and GraphRAG, with reports about communities."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from tomewise.language.roles.community_roles import REPORT_WORDS
from tomewise.loops.evidence import measure_pieces
from tomewise.loops.local_search import Drift, LocalAnswer, LocalSearch, LocalShares
from tomewise.loops.report_points import ReportPoints
from tomewise.memory.communities.communities_layer import CommunitiesLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.recall.community_reports import CommunityReports
from tomewise.recall.flat import Dense
from tomewise.recall.keyword_graph import KeywordGraph, Mode
from tomewise.recall.local_relations import LocalGraph
from tomewise.systems.kit import (
    Context,
    Count,
    Gleanings,
    Kit,
    Limit,
    Multiplies,
    Positive,
    Share,
    System,
    SystemDeclaration,
    answer_once,
)
from tomewise.types import Layer, Loop, Retriever

_LIMIT = 200  # what has room is far less
_LIGHTRAG_CONTEXT = 30_000  # tokens of the released code


def lightrag(
    kit: Kit,
    *,
    mode: Annotated[
        Mode,
        (
            "local: entities near what the question names; global: relations near its themes; hybrid: both; mix: "
            "both, and passages near the question"
        ),
    ] = "hybrid",
    keywords: Annotated[bool, "whether a model names keywords; else the question searches"] = True,
    graph: Annotated[bool, "whether the graph is searched; else passages near the question"] = True,
    gleanings: Gleanings = 1,
    limit: Limit = _LIMIT,
    context: Context = _LIGHTRAG_CONTEXT,
) -> System:
    """The recipe of `lightrag`: `recall.keyword_graph` over a `memory.graph` of relations."""
    layer = GraphLayer(kit.store, kit.model, kit.embedder, style="relations", gleanings=gleanings)
    measure = partial(measure_pieces, count=kit.count_tokens)
    recall = KeywordGraph(
        kit.store, kit.embedder, kit.model, layer.names, measure, mode=mode, keywords=keywords, room=context
    )
    found: Retriever = recall if graph else Dense(kit.store, kit.embedder)
    return answer_once(kit, found, (layer,) if graph else (), limit=limit, context=context)


_GRAPHRAG_CONTEXT = 12_000  # tokens of the released code


def graphrag(
    kit: Kit,
    *,
    mode: Annotated[
        Literal["local", "global", "dynamic", "drift"],
        "from what is near in the graph, all reports, reports rated first, or follow-up questions",
    ] = "local",
    level: Annotated[Count, "the deepest level of communities whose reports are used"] = 2,
    entities: Annotated[Positive, "entities that a local search finds", Multiplies("evidence", most=1000)] = 20,
    relations: Annotated[Share, "share of the context for entities and relations in a local answer; 0 for none"] = 0.35,
    reports: Annotated[
        Share, "share of the context for reports in a local answer; 0 for none, which needs none"
    ] = 0.15,
    threshold: Annotated[int, Field(ge=0, le=5), "the rating from which on a report is read with mode=dynamic"] = 1,
    follow_ups: Annotated[
        Count,
        "follow-up questions of a round with mode=drift",
        Multiplies("calls of a question", most=50),
    ] = 20,
    depth: Annotated[
        Count,
        "rounds of follow-up questions with mode=drift",
        Multiplies("calls of a question", most=10),
    ] = 3,
    report_words: Annotated[int, Field(ge=50, le=4000), "words of a report at most"] = REPORT_WORDS,
    gleanings: Gleanings = 1,
    context: Context = _GRAPHRAG_CONTEXT,
) -> System:
    """The recipe of `graphrag`: `memory.communities` over a `memory.graph` of relations."""
    graph = GraphLayer(kit.store, kit.model, kit.embedder, style="relations", gleanings=gleanings)
    communities = CommunitiesLayer(kit.store, kit.model, kit.embedder, graph.names, words=report_words)
    shelf = CommunityReports(kit.store, kit.embedder, communities.communities)
    near = LocalGraph(kit.store, kit.embedder, graph.names, entities=entities)
    desk = kit.desk
    search = LocalSearch(desk, near, shelf, level=level)
    loops: Mapping[str, Loop] = {
        "local": LocalAnswer(search, LocalShares(reports=reports, relations=relations), budget=context),
        "global": ReportPoints(desk, shelf, level, budget=context),
        "dynamic": ReportPoints(desk, shelf, level, budget=context, threshold=threshold),
        "drift": Drift(search, follow_ups=follow_ups, depth=depth, budget=context),
    }
    layers: tuple[Layer, ...] = (graph, communities) if reports > 0 or mode != "local" else (graph,)
    return System(loop=loops[mode], layers=layers)


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
            "A fifth of the context is for entities, 27 of 100 for relations, the rest for passages. Without gleanings "
            "the graph is that of `hgmem`."
        ),
        deviations=(
            "an entity or a relation is found by what single passages say of it, and shows what three of them say, not "
            "one text that a model merged; a level without keywords is searched with the question; extraction sees up "
            "to three sentences before its passage; answers have the short form of every system, not several "
            "paragraphs."
        ),
        ablations={
            "local": {"mode": "local"},
            "global": {"mode": "global"},
            "mix, as released": {"mode": "mix"},
            "without graph": {"graph": False},
            "without keywords": {"keywords": False},
        },
    ),
    "graphrag": SystemDeclaration(
        recipe=graphrag,
        kind="one search",
        summary=(
            "Group the entities of a graph into communities with a report about each; answer from what is near in the "
            "graph, or from the reports about everything."
        ),
        paper="GraphRAG, arXiv 2404.16130",
        about=(
            "`mode=local` fills the context with reports, entities, relations and passages around 20 entities; "
            "`global` asks every batch of reports for points and answers from the best; `dynamic` rates reports first, "
            "from the coarsest level down; `drift` asks follow-up questions. Later builds keep the communities and "
            "write only reports whose members or relations changed."
        ),
        deviations=(
            "later builds keep the partition; all relations of a community reach its report; entities of all "
            "components are found; passages stand beside the points of a global answer, so that it can quote, and it "
            "has 300 words at most, not 2,000; a local one has the short form of every system, not several paragraphs; "
            "extraction sees up to three sentences before its passage; DRIFT draws nothing at random."
        ),
        ablations={
            "global": {"mode": "global"},
            "dynamic": {"mode": "dynamic"},
            "drift": {"mode": "drift"},
            "global, level 0": {"mode": "global", "level": 0},
            "global, level 1": {"mode": "global", "level": 1},
            "without reports": {"reports": 0.0},
            "without relations": {"relations": 0.0},
        },
        no_recall="has no ranking of its own: it fills shares of a context",
    ),
}
