"""Answers from a walk over a graph of entities, facts and passages: HippoRAG 2, CogitoRAG, and ours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from tomewise.loops.desk import Desk
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import Calls, Style
from tomewise.memory.summaries import SummariesLayer
from tomewise.recall.diffusion import (
    CogniRank,
    DecomposedRecall,
    Diffusion,
    RewrittenWalk,
    WordCoverage,
)
from tomewise.recall.evidence_forms import SelectedFacts, pair_with_gists
from tomewise.recall.graph_index import GraphIndexes
from tomewise.recall.mentions import TitleLinks
from tomewise.recall.rewriting import LARGE, GraphLeads
from tomewise.recall.seeding import (
    NearestFacts,
    Seeding,
    seed_cogito,
    seed_hippo,
    seed_mentions,
    seed_passages,
)
from tomewise.systems.from_passages import (
    Comparing,
    Drop,
    Names,
    RewritingWeight,
    Rewritten,
    Temperature,
    compare,
    make_rewriter,
)
from tomewise.systems.kit import (
    CONTEXT,
    OURS,
    Context,
    Count,
    Kit,
    Limit,
    Multiplies,
    Positive,
    System,
    SystemDeclaration,
    Together,
    Weight,
    answer_once,
    with_settings_of,
)
from tomewise.types import Layer, Retriever

_READ = 5  # passages, or facts in their place, that the reader gets in both papers
Extraction: TypeAlias = Literal["facts", "entities then triples", "relations"]
_KINDS: Mapping[Extraction, tuple[Style, Calls]] = {
    "facts": ("triples", 1),
    "entities then triples": ("triples", 2),
    "relations": ("relations", 1),
}
Carrier: TypeAlias = Literal["passages and gists", "passages", "triples"]
# Settings that several of these systems have.
Extracting: TypeAlias = Annotated[
    Extraction,
    "calls that read a passage: two, for entities and then triples; one for both; or one for the graph of HGMem",
]
Facts: TypeAlias = Annotated[
    Count, "facts nearest to the question from which the walk starts", Multiplies("facts", most=1000)
]
PassageWeight: TypeAlias = Annotated[Weight, "weight of passages among the seeds of the walk"]
Restart: TypeAlias = Annotated[Weight, "probability that the walk starts again at a seed"]


def hipporag2(
    kit: Kit,
    *,
    extraction: Extracting = "entities then triples",
    together: Together = 1,
    recognition: Annotated[
        Literal["none", "model"], "model: one call of each question picks the facts that help"
    ] = "model",
    facts: Facts = 5,
    passage_weight: PassageWeight = 0.05,
    limit: Limit = _READ,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `hipporag2`: `recall.diffusion.Diffusion` over `memory.graph`."""
    graph = make_graph(kit, extraction, together)
    recall = make_hippo_recall(kit, graph, recognition, facts, passage_weight)
    return answer_once(kit, recall, (graph,), limit=limit, context=context)


def cogitorag(
    kit: Kit,
    *,
    source: Annotated[Literal["gists", "passages", "summaries"], "texts from which the graph is extracted"] = "gists",
    extraction: Extracting = "entities then triples",
    together: Together = 1,
    facts: Facts = 5,
    alpha: Annotated[Weight, "reward for entities of several facts: how much of it"] = 2.0,
    beta: Annotated[Weight, "reward for entities of several facts: how soon it is full"] = 1.0,
    restart: Restart = 0.5,
    blend: Annotated[Weight, "share of the diffusion in CogniRank; the rest is similarity"] = 0.95,
    passage_weight: PassageWeight = 0.0,
    spreading: Annotated[Literal["walk", "one step"], "how far the seeds spread through the graph"] = "walk",
    ranking: Annotated[Literal["cognirank", "diffusion"], "what ranks the passages"] = "cognirank",
    asking: Annotated[
        Literal["parts", "whole"], "parts: one call cuts the question in parts, each is searched"
    ] = "parts",
    carrier: Annotated[Carrier, "what the answering role sees"] = "passages and gists",
    limit: Limit = _READ,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `cogitorag`: sections 4.2 and 4.3, equations 11 to 19.

    The paper leaves some choices open (which walk, how many candidates); `recall.walk` and `recall.diffusion` state
    ours.
    """
    graph = make_graph(kit, extraction, together, source)
    indexes = GraphIndexes(kit.store, graph.names.instance, restart=restart)
    seedings: list[Seeding] = [
        partial(seed_cogito, alpha=alpha, beta=beta),
        partial(seed_passages, kit.store, weight=passage_weight),
    ]
    linking = NearestFacts(kit.store, graph.names.instance, limit=facts)
    rank = partial(CogniRank, blend=blend) if ranking == "cognirank" else Diffusion
    recall: Retriever = rank(kit.store, kit.embedder, indexes, linking, seedings, one_step=spreading == "one step")
    if carrier == "triples":
        recall = SelectedFacts(kit.store, kit.embedder, graph.names.instance)
    if asking == "parts":
        recall = DecomposedRecall(recall, kit.model, shown=limit)
    gists, summaries = GistsLayer(kit.store, kit.model, together=together), SummariesLayer(kit.store, kit.model)
    paired = carrier == "passages and gists"
    read: Mapping[str, tuple[Layer, ...]] = {"gists": (gists,), "passages": (), "summaries": (summaries,)}
    layers = tuple(dict.fromkeys((*((gists,) if paired else ()), *read[source], graph)))
    desk = Desk(kit.store, kit.model, kit.count_tokens, partial(pair_with_gists, kit.store) if paired else list)
    return answer_once(kit, recall, layers, desk, limit=limit, context=context)


@with_settings_of(answer_once)
def associative(
    kit: Kit,
    *,
    extraction: Extracting = "facts",
    together: Together = 1,
    facts: Facts = 3,
    mention_weight: Annotated[Weight, "weight of the entities that the question names"] = 8.0,
    passage_weight: PassageWeight = 0.05,
    seeded: Annotated[Count, "best passages that are seeds of the walk"] = 200,
    restart: Restart = 0.3,
    rewriting: RewritingWeight = 0.7,
    rewritten: Rewritten = 3,
    names: Names = 8,
    temperature: Temperature = 0.05,
    drop: Drop = 0.02,
    coverage: Annotated[Weight, "weight of the question's words that passages together hold; 0: none"] = 1.0,
    covering: Annotated[Positive, "first passages that are ranked again by these words"] = 30,
    comparisons: Comparing = "apart",
    **answering: Any,
) -> System:
    """The recipe of `associative`: `recall.diffusion`, in `recall.several_searches` and `recall.placing`."""
    graph = make_graph(kit, extraction, together)
    titles = TitleLinks(kit.store, graph.names)
    leads = GraphLeads(kit.store, graph.names, nearest_first=kit.embedder.dimensions > LARGE)
    recall = RewrittenWalk(
        store=kit.store,
        embedder=kit.embedder,
        indexes=GraphIndexes(
            kit.store, graph.names.instance, links="extracted", between=2.0, restart=restart, titles=titles
        ),
        linking=NearestFacts(kit.store, graph.names.instance, limit=facts),
        seedings=[
            seed_hippo,
            partial(seed_mentions, kit.store, graph.names, weight=mention_weight),
            partial(seed_passages, kit.store, weight=passage_weight, keep=seeded),
        ],
        rewriter=make_rewriter(kit, leads.find_leads, rewriting, rewritten, names, temperature, drop),
        coverage=WordCoverage(kit.store, weight=coverage, reach=covering),
    )
    return answer_once(kit, compare(kit, recall, comparisons), (graph,), kit.fusing_desk, **answering)


def make_graph(kit: Kit, extraction: Extraction, together: int, source: str = "passages") -> GraphLayer:
    """The graph of one kind of extraction; relations are typed entities and relationships with descriptions."""
    style, calls = _KINDS[extraction]
    return GraphLayer(kit.store, kit.model, kit.embedder, source=source, style=style, calls=calls, together=together)


def make_hippo_recall(kit: Kit, graph: GraphLayer, recognition: str, facts: int, passage_weight: float) -> Retriever:
    """HippoRAG 2's recall over this graph."""
    indexes = GraphIndexes(kit.store, graph.names.instance)
    seedings: list[Seeding] = [seed_hippo, partial(seed_passages, kit.store, weight=passage_weight)]
    model = kit.model if recognition == "model" else None
    linking = NearestFacts(kit.store, graph.names.instance, limit=facts, model=model)
    return Diffusion(kit.store, kit.embedder, indexes, linking, seedings)


SYSTEMS = {
    "hipporag2": SystemDeclaration(
        recipe=hipporag2,
        kind="one search",
        summary="Walk a graph of entities and passages from the facts that a model recognises as useful, then answer.",
        paper="HippoRAG 2, arXiv 2502.14802",
        deviations=(
            "the walk is a local push, whose masses are exact to a small bound; a pair of nodes has one edge, whose "
            "weights add up; names of all scripts are kept; synonyms have three letters or digits on both sides; seeds "
            "that all weigh 0 rank by cosine; extraction sees up to three sentences before its passage, and gives "
            "about 15 facts of it at most."
        ),
        ablations={"without recognition": {"recognition": "none"}},
    ),
    "cogitorag": SystemDeclaration(
        recipe=cogitorag,
        kind="one search",
        summary=(
            "Understand passages as gists, diffuse through their graph, rank with CogniRank, answer from "
            "passages and gists."
        ),
        paper="CogitoRAG, arXiv 2602.15895",
        deviations=(
            "equation 16 has the rows of the graph normalised, since it loses mass as it is printed; a gist is written "
            "with up to three sentences before its passage in sight, and one that names what neither has is asked for "
            "again, and then replaced by the passage; a gist gives about 15 facts at most; memory nodes are no "
            "vertices of the graph; synonym edges are ours; a fact is embedded as the text of a tuple, not as its "
            "three parts in a row (equation 8); a search that finds no fact ranks by cosine."
        ),
        ablations={
            "without diffusion": {"spreading": "one step"},
            "without cognirank": {"ranking": "diffusion"},
            "without decomposition": {"asking": "whole"},
            "graph from passages": {"source": "passages"},
            "graph from summaries": {"source": "summaries"},
            "answer from passages": {"carrier": "passages"},
            "answer from triples": {"carrier": "triples"},
        },
    ),
    "associative": SystemDeclaration(
        recipe=associative,
        kind="one search",
        summary=(
            "Walk the graph from facts and names, ask again with the names that the first passages hold, then answer."
        ),
        paper=OURS,
        about=(
            "It calls no model before the answer. It adds to HippoRAG 2: seeds for entities that the question names; "
            "links from a passage to every entity extracted from it, stronger where its title has the entity; the "
            "question asked again with entities of the first passages; and of the first passages, those earlier that "
            "together hold more of the question's words."
        ),
        ablations={
            "without rewriting": {"rewriting": 0.0},
            "without coverage": {"coverage": 0.0},
            "without comparisons": {"comparisons": "whole"},
        },
    ),
}
