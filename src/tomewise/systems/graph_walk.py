"""Answers from a walk over a graph of entities, facts and passages: HippoRAG 2, CogitoRAG, and ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import Calls, Style
from tomewise.memory.summaries import SummariesLayer
from tomewise.recall.coverage import Coverage
from tomewise.recall.diffusion import CogniRank, DecomposedRecall, Diffusion, walk_one_step, walk_to_end
from tomewise.recall.evidence_forms import SelectedFacts, WithGists
from tomewise.recall.graph_index import GraphIndexes, Weigh
from tomewise.recall.leads import GraphLeads
from tomewise.recall.linking import Linking, NearestFacts, RecognisedFacts
from tomewise.recall.rewriting import is_slow
from tomewise.recall.rewritten_walk import RewrittenWalk
from tomewise.recall.seeding import (
    CogitoSeeds,
    ExpandedPassageSeeds,
    HippoSeeds,
    MentionSeeds,
    PassageSeeds,
    SumOfSeeds,
)
from tomewise.recall.title_links import TitleLinks
from tomewise.systems.from_passages import Comparisons, compare, make_rewriter
from tomewise.systems.kit import CONTEXT, Above0, Count, Kit, Positive, Recipe, System, Together, Weight, answer_once
from tomewise.types import Layer, Retriever

# How many pieces of another carrier use about as many tokens as a passage with its gist.
_PASSAGES_A_PAIR, _FACTS_A_PAIR = 2, 20
Extraction: TypeAlias = Literal["facts", "entities then triples", "relations"]
_KINDS: Mapping[Extraction, tuple[Style, Calls]] = {
    "facts": ("triples", 1),
    "entities then triples": ("triples", 2),
    "relations": ("relations", 1),
}
Recognition: TypeAlias = Literal["none", "model"]
Carrier: TypeAlias = Literal["passages and gists", "passages and what gists add", "passages", "triples"]


def hipporag2(
    kit: Kit,
    *,
    extraction: Extraction = "facts",
    together: Together = 1,
    recognition: Recognition = "model",
    facts: Count = 5,
    passage_weight: Weight = 0.05,
    seeded: Count = 200,
    neighbours: Count = 0,
    limit: Count = 20,
    context: Count = CONTEXT,
) -> System:
    """Walk a graph of entities and passages from the facts that a model recognises as useful, then answer.

    HippoRAG 2 (arXiv 2502.14802): `recall.diffusion.Diffusion` over `memory.graph`, with one model call for each
    question to recognise facts. `neighbours` passages before and after each hit are shown as well.

    Deviations: only the best `seeded` passages are seeds, not all; entities and triples are extracted in one call
    unless `extraction` is "entities then triples"; "relations" takes the graph of HGMem instead.
    """
    graph = make_graph(kit, extraction, together)
    recall = make_hippo_recall(kit, graph, recognition, facts, passage_weight, seeded)
    return answer_once(kit, recall, limit, context, (graph,), neighbours)


def cogitorag(
    kit: Kit,
    *,
    source: Literal["gists", "passages", "summaries"] = "gists",
    extraction: Extraction = "facts",
    together: Together = 1,
    recognition: Recognition = "none",
    facts: Count = 5,
    alpha: Weight = 2.0,
    beta: Weight = 1.0,
    restart: Weight = 0.5,
    blend: Weight = 0.95,
    passage_weight: Weight = 0.05,
    spreading: Literal["walk", "one step"] = "walk",
    ranking: Literal["cognirank", "diffusion"] = "cognirank",
    asking: Literal["parts", "whole"] = "parts",
    carrier: Carrier = "passages and gists",
    limit: Count = 20,
    context: Count = CONTEXT,
) -> System:
    """Understand passages as gists, diffuse through their graph, rank with CogniRank, answer from passages and gists.

    CogitoRAG, sections 4.1 to 4.3, equations 11 to 19. The paper leaves some choices open (which walk, how many
    candidates); `recall.walk` and `recall.diffusion` state ours. Each `carrier` is compared at
    equal tokens: `context` counts a pair as a whole, and carriers with shorter pieces retrieve more than `limit` of
    them, so that `context` is the limit for each. One call restates, or reads, `together` neighbouring passages.

    Deviations: passages are seeds too, as in the released code, because that improves recall; the paper seeds entities
    alone, which is `passage_weight=0` and an ablation here. Entities and triples are extracted in one call unless
    `extraction` is "entities then triples". A gist equal to its passage is not shown.
    """
    graph = make_graph(kit, extraction, together, source)
    indexes = GraphIndexes(kit.store, graph.names.instance, restart=restart)
    seeding = SumOfSeeds([CogitoSeeds(alpha=alpha, beta=beta), PassageSeeds(kit.store, weight=passage_weight)])
    linking = link_facts(kit, graph, recognition, facts)
    walks = {"walk": walk_to_end, "one step": walk_one_step}
    diffusion = Diffusion(kit.store, kit.embedder, indexes, linking, seeding, spreading=walks[spreading])
    rankings: Mapping[str, Retriever] = {
        "cognirank": CogniRank(kit.store, diffusion, blend=blend),
        "diffusion": diffusion,
    }
    nearest = NearestFacts(kit.store, graph.names.instance, limit=_FACTS_A_PAIR * limit)
    recall = rankings[ranking]
    if carrier == "triples":
        recall = SelectedFacts(kit.store, kit.embedder, nearest, graph.names.instance)
    forms: Mapping[str, Retriever] = {"parts": DecomposedRecall(recall, kit.model), "whole": recall}
    recall = forms[asking]
    carriers: Mapping[Carrier, tuple[Retriever, int]] = {
        "passages and gists": (WithGists(recall, kit.store), limit),
        "passages and what gists add": (
            WithGists(recall, kit.store, only_new_sentences=True),
            _PASSAGES_A_PAIR * limit,
        ),
        "passages": (recall, _PASSAGES_A_PAIR * limit),
        "triples": (recall, _FACTS_A_PAIR * limit),
    }
    retriever, most = carriers[carrier]
    return answer_once(kit, retriever, most, context, (*list_source_layers(kit, together)[source], graph))


def associative(
    kit: Kit,
    *,
    extraction: Extraction = "facts",
    together: Together = 1,
    facts: Count = 3,
    mention_weight: Weight = 8.0,
    passage_weight: Weight = 0.05,
    seeded: Count = 200,
    expanded: Count = 0,
    restart: Weight = 0.3,
    links: Literal["by title", "equal"] = "by title",
    rewriting: Weight = 0.7,
    rewritten: Count = 3,
    names: Count = 8,
    temperature: Above0 = 0.05,
    drop: Weight = 0.02,
    coverage: Weight = 1.0,
    covering: Positive = 30,
    comparisons: Comparisons = "apart",
    neighbours: Count = 0,
    limit: Count = 20,
    context: Count = CONTEXT,
) -> System:
    """Walk the graph from facts and names, ask again with the names that the first passages hold, then answer.

    Our own system; it calls no model before the answer. It adds to HippoRAG 2: seeds for entities that the question
    names; links from a passage to every entity extracted from it, stronger where its title has the entity; the question
    asked again with `names` entities of each of the first `rewritten` passages (`recall.rewriting`), where `rewriting`
    is the weight of what these questions find; and of the first `covering` passages, those earlier that together hold
    more of the question's words (`recall.coverage`). With `comparisons` "apart" each of the things that a question
    compares is also searched by itself (`recall.comparing`). `expanded` facts also seed the passages near to the
    question with their entities before it. `neighbours` passages before and after each hit are shown as well. One call
    reads `together` neighbouring passages.
    """
    graph = make_graph(kit, extraction, together)
    weighings: Mapping[str, Weigh | None] = {"by title": TitleLinks(kit.store, graph.names).weigh, "equal": None}
    indexes = GraphIndexes(
        kit.store, graph.names.instance, links="extracted", between=2.0, restart=restart, weigh=weighings[links]
    )
    seeding = SumOfSeeds(
        [
            HippoSeeds(),
            MentionSeeds(kit.store, graph.names, weight=mention_weight),
            ExpandedPassageSeeds(kit.store, kit.embedder, weight=passage_weight, keep=seeded, facts=expanded),
        ]
    )
    linking = NearestFacts(kit.store, graph.names.instance, limit=facts)
    recall = RewrittenWalk(
        kit.store,
        Diffusion(kit.store, kit.embedder, indexes, linking, seeding),
        GraphLeads(kit.store, graph.names, nearest_first=is_slow(kit.embedder)),
        make_rewriter(kit, rewriting, rewritten, names, temperature, drop),
        Coverage(kit.store, weight=coverage, reach=covering),
    )
    return answer_once(kit, compare(recall, comparisons), limit, context, (graph,), neighbours)


def make_graph(kit: Kit, extraction: Extraction, together: int, source: str = "passages") -> GraphLayer:
    """The graph of one kind of extraction; relations are typed entities and relationships with descriptions."""
    style, calls = _KINDS[extraction]
    return GraphLayer(kit.store, kit.model, kit.embedder, source=source, style=style, calls=calls, together=together)


def make_hippo_recall(
    kit: Kit, graph: GraphLayer, recognition: str, facts: int, passage_weight: float, seeded: int
) -> Retriever:
    """HippoRAG 2's recall over this graph."""
    indexes = GraphIndexes(kit.store, graph.names.instance)
    seeding = SumOfSeeds([HippoSeeds(), PassageSeeds(kit.store, weight=passage_weight, keep=seeded)])
    return Diffusion(kit.store, kit.embedder, indexes, link_facts(kit, graph, recognition, facts), seeding)


def link_facts(kit: Kit, graph: GraphLayer, recognition: str, facts: int) -> Linking:
    nearest = NearestFacts(kit.store, graph.names.instance, limit=facts)
    linkings: Mapping[str, Linking] = {"none": nearest, "model": RecognisedFacts(nearest, kit.model)}
    return linkings[recognition]


def list_source_layers(kit: Kit, together: int) -> Mapping[str, tuple[Layer, ...]]:
    """The layers below the graph, by the source of its texts."""
    gists, summaries = GistsLayer(kit.store, kit.model, together=together), SummariesLayer(kit.store, kit.model)
    return {"gists": (gists,), "passages": (), "summaries": (summaries,)}


RECIPES: Mapping[str, Recipe] = {
    "hipporag2": hipporag2,
    "cogitorag": cogitorag,
    "associative": associative,
}

# Named variations of a recipe: the rows of the papers' ablation tables.
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "hipporag2": {"without recognition": {"recognition": "none"}},
    "cogitorag": {
        "without diffusion": {"spreading": "one step"},
        "without cognirank": {"ranking": "diffusion"},
        "without decomposition": {"asking": "whole"},
        "without passage seeds": {"passage_weight": 0.0},
        "graph from passages": {"source": "passages", "carrier": "passages"},
        "graph from summaries": {"source": "summaries", "carrier": "passages"},
        "answer from passages": {"carrier": "passages"},
        "answer from what gists add": {"carrier": "passages and what gists add"},
        "answer from triples": {"carrier": "triples"},
    },
    "associative": {
        "without rewriting": {"rewriting": 0.0},
        "without coverage": {"coverage": 0.0},
        "without comparisons": {"comparisons": "whole"},
        "as before": {
            "facts": 5,
            "mention_weight": 1.0,
            "expanded": 3,
            "restart": 0.5,
            "links": "equal",
            "rewriting": 0.0,
            "coverage": 0.0,
            "comparisons": "whole",
        },
    },
}
