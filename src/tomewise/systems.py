"""Every system, wired from parts. A recipe only wires: what a part does is in the part."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from tomewise.embedding.remembered import Remembered
from tomewise.errors import UnknownName, UsageError
from tomewise.loops.citing import Citer
from tomewise.loops.consolidation import Consolidating, Consolidation, NoConsolidation, WithoutKnown
from tomewise.loops.context import HISTORY
from tomewise.loops.once import Once
from tomewise.loops.probe import Bounds, Probe
from tomewise.loops.probing import Probing, SameQuestion, SelfProbe, WithoutMissing
from tomewise.loops.selection import BestSoFar, NewestFirst, Selection
from tomewise.loops.showing import Shelf, token_counter
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph import GraphLayer
from tomewise.memory.graph_names import Calls
from tomewise.memory.summaries import SummariesLayer
from tomewise.memory.tree import TreeLayer
from tomewise.recall.carriers import SelectedFacts, WithGists
from tomewise.recall.derived import DenseDerived
from tomewise.recall.diffusion import CogniRank, Decomposed, Diffusion, one_step, walked
from tomewise.recall.facts import Linking, NearestFacts, RecognisedFacts
from tomewise.recall.flat import Dense, Everything, Fused, Lexical
from tomewise.recall.graph_index import GraphIndexes
from tomewise.recall.seeding import (
    CogitoSeeds,
    ExpandedPassageSeeds,
    HippoSeeds,
    MentionSeeds,
    PassageSeeds,
    SumOfSeeds,
)
from tomewise.recall.tree import CollapsedTree, TreeTraversal
from tomewise.recall.trilayer import LayeredRecall
from tomewise.types import Embedder, LanguageModel, Layer, Loop, Retriever
from tomewise.working.pool import Pool

if TYPE_CHECKING:
    from tomewise.store.sqlite import SqliteStore

CONTEXT = 6000  # tokens of evidence shown to the answering role, the same for every system unless said otherwise
_ALL = 10**9
_DEVIATIONS = "Deviations:"  # opens the paragraph of a recipe's docstring that `tome systems` shows
# How many pieces of another carrier take about the room of a passage with its gist.
_PASSAGES_A_PAIR, _FACTS_A_PAIR = 2, 20
Extraction: TypeAlias = Literal["facts", "entities then triples"]
Recognition: TypeAlias = Literal["none", "model"]
Carrier: TypeAlias = Literal["passages and gists", "passages and what gists add", "passages", "triples"]


@dataclass(frozen=True, slots=True)
class Kit:
    """What a recipe wires from; parts get its members, never the kit."""

    store: SqliteStore
    model: LanguageModel
    embedder: Embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A way of answering: a loop over a retriever, and the memory layers that it needs, lowest first."""

    loop: Loop
    retriever: Retriever
    layers: tuple[Layer, ...] = ()


Recipe = Callable[..., System]
_Workspace = tuple[Probing, Consolidating, Selection]  # what the probing loop asks for, notes and shows


def naive(kit: Kit, *, limit: int = 20, context: int = CONTEXT) -> System:
    """Retrieve the passages nearest to the question, then answer."""
    return _once(kit, Dense(kit.store, kit.embedder), limit, context)


def hybrid(kit: Kit, *, limit: int = 20, context: int = CONTEXT) -> System:
    """Retrieve by meaning and by words, fuse both rankings, then answer."""
    return _once(kit, _hybrid(kit), limit, context)


def full_context(kit: Kit) -> System:
    """Show the documents from the beginning, as much as the model's window holds, then answer."""
    return _once(kit, Everything(kit.store), _ALL, None)


def hipporag2(
    kit: Kit,
    *,
    extraction: Extraction = "facts",
    recognition: Recognition = "model",
    facts: int = 5,
    passage_weight: float = 0.05,
    seeded: int = 200,
    limit: int = 20,
    context: int = CONTEXT,
) -> System:
    """Walk a graph of entities and passages from the facts that a model recognises as useful, then answer.

    HippoRAG 2 (arXiv 2502.14802): `recall.diffusion.Diffusion` over `memory.graph`, one call of the model for each
    question to recognise facts.

    Deviations: passages are seeded up to the best `seeded` and not all; entities and triples are extracted in one call
    unless `extraction` says otherwise.
    """
    graph = _graph(kit, extraction)
    recall = _hippo(kit, graph, recognition, facts, passage_weight, seeded)
    return _once(kit, recall, limit, context, (graph,))


def cogitorag(
    kit: Kit,
    *,
    source: Literal["gists", "passages", "summaries"] = "gists",
    extraction: Extraction = "facts",
    recognition: Recognition = "none",
    facts: int = 5,
    alpha: float = 2.0,
    beta: float = 1.0,
    restart: float = 0.5,
    blend: float = 0.95,
    passage_weight: float = 0.05,
    spreading: Literal["walk", "one step"] = "walk",
    ranking: Literal["cognirank", "diffusion"] = "cognirank",
    asking: Literal["parts", "whole"] = "parts",
    carrier: Carrier = "passages and gists",
    limit: int = 20,
    context: int = CONTEXT,
) -> System:
    """Understand passages as gists, diffuse through their graph, rank with CogniRank, answer from passages and gists.

    CogitoRAG, sections 4.1 to 4.3, equations 11 to 19. The gaps of the paper (which walk, how many candidates) are
    closed in `recall.walk` and `recall.diffusion`. Carriers are compared at equal tokens: `context` counts a pair
    whole, and more pieces than `limit` are asked for where they are shorter than pairs, so that context bounds each.

    Deviations: passages are seeded as the released code does, since recall is the better for it; the paper seeds
    entities alone, which is `passage_weight=0` and an ablation here. Entities and triples are extracted in one call
    unless `extraction` says otherwise. A gist equal to its passage is not shown.
    """
    graph = _graph(kit, extraction, source)
    indexes = GraphIndexes(kit.store, graph.names.instance, restart=restart)
    seeding = SumOfSeeds([CogitoSeeds(alpha=alpha, beta=beta), PassageSeeds(kit.store, weight=passage_weight)])
    linking = _linking(kit, graph, recognition, facts)
    walks = {"walk": walked, "one step": one_step}
    diffusion = Diffusion(kit.store, kit.embedder, indexes, linking, seeding, spreading=walks[spreading])
    ranked: Mapping[str, Retriever] = {
        "cognirank": CogniRank(kit.store, diffusion, blend=blend),
        "diffusion": diffusion,
    }
    nearest = NearestFacts(kit.store, graph.names.instance, limit=_FACTS_A_PAIR * limit)
    bearing = ranked[ranking]
    if carrier == "triples":
        bearing = SelectedFacts(kit.store, kit.embedder, nearest, graph.names.instance)
    parts: Mapping[str, Retriever] = {"parts": Decomposed(bearing, kit.model), "whole": bearing}
    found = parts[asking]
    carriers: Mapping[Carrier, tuple[Retriever, int]] = {
        "passages and gists": (WithGists(found, kit.store), limit),
        "passages and what gists add": (WithGists(found, kit.store, added=True), _PASSAGES_A_PAIR * limit),
        "passages": (found, _PASSAGES_A_PAIR * limit),
        "triples": (found, _FACTS_A_PAIR * limit),
    }
    carried, most = carriers[carrier]
    return _once(kit, carried, most, context, (*_sources(kit)[source], graph))


def associative(
    kit: Kit,
    *,
    extraction: Extraction = "facts",
    facts: int = 5,
    expanded: int = 3,
    mention_weight: float = 1.0,
    passage_weight: float = 0.05,
    seeded: int = 200,
    limit: int = 20,
    context: int = CONTEXT,
) -> System:
    """Walk the graph from facts, from names in the question, and from passages near to what the facts add to it.

    Ours; no model is asked before the answer. To HippoRAG 2 it adds seeds for entities that the question names,
    passage seeds by the question expanded with the entities of its best facts, and links from a passage to every
    entity extracted from it.
    """
    graph = _graph(kit, extraction)
    indexes = GraphIndexes(kit.store, graph.names.instance, links="extracted", between=2.0)
    seeding = SumOfSeeds(
        [
            HippoSeeds(),
            MentionSeeds(kit.store, graph.names, weight=mention_weight),
            ExpandedPassageSeeds(kit.store, kit.embedder, weight=passage_weight, keep=seeded, facts=expanded),
        ]
    )
    linking = NearestFacts(kit.store, graph.names.instance, limit=facts)
    recall = Diffusion(kit.store, kit.embedder, indexes, linking, seeding)
    return _once(kit, recall, limit, context, (graph,))


def raptor(
    kit: Kit, *, search: Literal["collapsed", "traversal"] = "collapsed", limit: int = 20, context: int = CONTEXT
) -> System:
    """Retrieve passages and the summaries above them from one tree, then answer.

    RAPTOR (arXiv 2401.18059): `recall.tree` over `memory.tree`, the tree collapsed or traversed from its top.
    """
    tree = TreeLayer(kit.store, kit.model, kit.embedder)
    searches: Mapping[str, Retriever] = {
        "collapsed": CollapsedTree(kit.store, kit.embedder),
        "traversal": TreeTraversal(kit.store, kit.embedder),
    }
    return _once(kit, searches[search], limit, context, (tree,))


def comorag(
    kit: Kit,
    *,
    veridical: int = 8,
    semantic: int = 2,
    episodic: int = 2,
    history: int = 1,
    consolidation: Literal["cues", "none"] = "cues",
    regulation: Literal["probes", "none"] = "probes",
    probes: int = 3,
    cycles: int = 5,
    fuse: float = 0.5,
    workspace: Literal["best so far", "as published"] = "best so far",
    on_exhaustion: Literal["decline", "force"] = "decline",
    stride: int = 0,
    levels: int = 1,
    limit: int = 20,
    context: int = CONTEXT,
) -> System:
    """Recall from a graph, a summary tree and the story's course; probe, note and fuse until the question is answered.

    ComoRAG, section 2: `loops.probe` over `memory.graph`, `memory.tree` and `memory.episodes`; how the gaps of the
    paper are closed stands there. Shares of the context are 8:2:2:1 (appendix B.4); a share of 0 leaves a layer out.
    Windows of the episodes begin every `stride` passages (0: where the one before ends), and are summarised in turn on
    so many `levels` (1: the windows alone). With the `workspace` as published an attempt sees what is new first, each
    layer has a cue of its own, no role is told what earlier cues say or what the last attempt lacked, and a first
    answer that is supported only partly ends the loop.

    Deviations: the veridical recall is HippoRAG 2's without its recognition of facts by a model.
    """
    kit = _probed(kit)
    graph = GraphLayer(kit.store, kit.model, kit.embedder)
    tree = TreeLayer(kit.store, kit.model, kit.embedder)
    episodes = EpisodesLayer(kit.store, kit.model, kit.embedder, stride=stride, levels=levels)
    parts: dict[str, tuple[int, Retriever, Layer]] = {
        "veridical": (veridical, _hippo(kit, graph, "none", 5, 0.05, 200), graph),
        "semantic": (semantic, DenseDerived(kit.store, kit.embedder, tree.name), tree),
        "episodic": (episodic, DenseDerived(kit.store, kit.embedder, episodes.name), episodes),
    }
    used = {name: part for name, part in parts.items() if part[0]}
    if not used:
        raise UsageError(f"comorag without any layer finds nothing: give a share to {', '.join(parts)} or some of them")
    shares = {name: share for name, (share, _, _) in used.items()} | {HISTORY: history}
    retrievers = {name: retriever for name, (_, retriever, _) in used.items()}
    probing: Mapping[str, Probing] = {"probes": SelfProbe(kit.model, limit=probes), "none": SameQuestion()}
    consolidating: Mapping[str, Consolidating] = {"cues": Consolidation(kit.model), "none": NoConsolidation()}
    best = probing[regulation], consolidating[consolidation], BestSoFar()
    published = WithoutMissing(best[0]), WithoutKnown(best[1]), NewestFirst()
    workspaces: Mapping[str, _Workspace] = {"best so far": best, "as published": published}
    layers = tuple(layer for _, _, layer in used.values())
    bounds = Bounds(
        cycles=cycles,
        limit=limit,
        budget=context,
        shares=shares,
        fuse=fuse,
        on_exhaustion=on_exhaustion,
        accept_partly=workspace == "as published",
    )
    return _probing(kit, retrievers, workspaces[workspace], bounds, layers)


def raptor_probe(kit: Kit, *, probes: int = 3, cycles: int = 5, limit: int = 20, context: int = CONTEXT) -> System:
    """RAPTOR's recall inside of ComoRAG's loop."""
    kit = _probed(kit)
    return _plugged(kit, raptor(kit), probes, cycles, limit, context)


def hipporag2_probe(
    kit: Kit,
    *,
    extraction: Extraction = "facts",
    recognition: Recognition = "model",
    probes: int = 3,
    cycles: int = 5,
    limit: int = 20,
    context: int = CONTEXT,
) -> System:
    """HippoRAG 2's recall inside of ComoRAG's loop; recognition of facts costs one call for each search.

    As it is, in ComoRAG's table 3, so that from `hipporag2` it differs by the loop alone.
    """
    kit = _probed(kit)
    inside = hipporag2(kit, extraction=extraction, recognition=recognition)
    return _plugged(kit, inside, probes, cycles, limit, context)


def hybrid_probe(kit: Kit, *, probes: int = 3, cycles: int = 5, limit: int = 20, context: int = CONTEXT) -> System:
    """Hybrid recall inside of ComoRAG's loop."""
    kit = _probed(kit)
    return _plugged(kit, hybrid(kit), probes, cycles, limit, context)


def _once(kit: Kit, retriever: Retriever, limit: int, context: int | None, layers: tuple[Layer, ...] = ()) -> System:
    loop = Once(retriever, kit.model, Citer(kit.store), token_counter(kit.embedder), limit=limit, budget=context)
    return System(loop=loop, retriever=retriever, layers=layers)


def _hybrid(kit: Kit) -> Retriever:
    return Fused([Dense(kit.store, kit.embedder), Lexical(kit.store)])


def _graph(kit: Kit, extraction: Extraction, source: str = "passages") -> GraphLayer:
    calls: Mapping[Extraction, Calls] = {"facts": 1, "entities then triples": 2}
    return GraphLayer(kit.store, kit.model, kit.embedder, source=source, calls=calls[extraction])


def _hippo(kit: Kit, graph: GraphLayer, recognition: str, facts: int, passage_weight: float, seeded: int) -> Retriever:
    indexes = GraphIndexes(kit.store, graph.names.instance)
    seeding = SumOfSeeds([HippoSeeds(), PassageSeeds(kit.store, weight=passage_weight, keep=seeded)])
    return Diffusion(kit.store, kit.embedder, indexes, _linking(kit, graph, recognition, facts), seeding)


def _linking(kit: Kit, graph: GraphLayer, recognition: str, facts: int) -> Linking:
    nearest = NearestFacts(kit.store, graph.names.instance, limit=facts)
    linkings: Mapping[str, Linking] = {"none": nearest, "model": RecognisedFacts(nearest, kit.model)}
    return linkings[recognition]


def _sources(kit: Kit) -> Mapping[str, tuple[Layer, ...]]:
    gists, summaries = GistsLayer(kit.store, kit.model), SummariesLayer(kit.store, kit.model)
    return {"gists": (gists,), "passages": (), "summaries": (summaries,)}


def _probed(kit: Kit) -> Kit:
    """A kit for a loop that searches several layers for each probe."""
    return replace(kit, embedder=Remembered(kit.embedder))


def _plugged(kit: Kit, system: System, probes: int, cycles: int, limit: int, context: int) -> System:
    bounds = Bounds(cycles=cycles, limit=limit, budget=context, shares={"passages": 12, HISTORY: 1})
    best = SelfProbe(kit.model, limit=probes), Consolidation(kit.model), BestSoFar()
    return _probing(kit, {"passages": system.retriever}, best, bounds, system.layers)


def _probing(
    kit: Kit,
    retrievers: Mapping[str, Retriever],
    workspace: _Workspace,
    bounds: Bounds,
    layers: tuple[Layer, ...],
) -> System:
    loop = Probe(
        LayeredRecall(retrievers),
        kit.model,
        *workspace,
        partial(Pool, kit.embedder),
        Citer(kit.store),
        Shelf(kit.store),
        token_counter(kit.embedder),
        bounds,
    )
    return System(loop=loop, retriever=next(iter(retrievers.values())), layers=layers)


RECIPES: Mapping[str, Recipe] = {
    "naive": naive,
    "hybrid": hybrid,
    "full_context": full_context,
    "hipporag2": hipporag2,
    "cogitorag": cogitorag,
    "associative": associative,
    "raptor": raptor,
    "comorag": comorag,
    "raptor+probe": raptor_probe,
    "hipporag2+probe": hipporag2_probe,
    "hybrid+probe": hybrid_probe,
}
DEFAULT = "hybrid"

# Named variations of a recipe: the rows of the papers' ablation tables.
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "hipporag2": {"without recognition": {"recognition": "none"}},
    "raptor": {"traversal": {"search": "traversal"}},
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
    "comorag": {
        "without veridical": {"veridical": 0},
        "without semantic": {"semantic": 0},
        "without episodic": {"episodic": 0},
        "without metacognition": {"consolidation": "none"},
        "without regulation": {"regulation": "none"},
        "without both": {"consolidation": "none", "regulation": "none", "cycles": 0},
        "as published": {"workspace": "as published", "on_exhaustion": "force"},
    },
    "hipporag2+probe": {"without recognition": {"recognition": "none"}},
}


def recipe_named(name: str) -> Recipe:
    """The recipe of a system. Raises UnknownName offering the nearest."""
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1, cutoff=0.3)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UnknownName(f"there is no system {name!r}: {hint}known are {', '.join(RECIPES)}")
    return RECIPES[name]


def describe(name: str) -> str:
    """The first line of a recipe's docstring."""
    return (inspect.getdoc(recipe_named(name)) or "").partition("\n")[0]


def deviations(name: str) -> str:
    """Where a recipe deviates from its paper, as its docstring says; empty where it does not say."""
    paragraphs = (inspect.getdoc(recipe_named(name)) or "").split("\n\n")
    said = next((text for text in paragraphs if text.startswith(_DEVIATIONS)), "")
    return " ".join(said.removeprefix(_DEVIATIONS).split())


def assemble(name: str, kit: Kit, **options: Any) -> System:
    """A system by name. Raises UnknownName and UsageError, see `check_settings`."""
    check_settings(name, options)
    return recipe_named(name)(kit, **options)


def check_settings(name: str, options: Mapping[str, Any]) -> None:
    """Raises UnknownName for a setting that the recipe does not have, UsageError for a value that it cannot take."""
    recipe = recipe_named(name)
    kinds = get_type_hints(recipe)
    known = [option for option in inspect.signature(recipe).parameters if option != "kit"]
    for option, value in options.items():
        if option not in known:
            raise UnknownName(f"{name} has no setting {option!r}: known are {', '.join(known) or 'none'}")
        if get_origin(kinds[option]) is Literal:
            fits, wanted = value in get_args(kinds[option]), " or ".join(map(repr, get_args(kinds[option])))
        else:
            whole = kinds[option] is int
            fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool) and value >= 0
            wanted = f"a {'whole ' * whole}number from 0 up"
        if not fits:
            raise UsageError(f"{name}: {option} must be {wanted}, not {value!r}")
