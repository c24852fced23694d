"""ComoRAG, and its loop, which also runs over the recall of other systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from tomewise.embedding.cached_embedder import CachedEmbedder
from tomewise.errors import UsageError
from tomewise.loops.consolidation import Consolidating, Consolidation, NoConsolidation, WithoutKnown
from tomewise.loops.context import HISTORY
from tomewise.loops.desk import Desk
from tomewise.loops.probe import Bounds, Probe, Workspace
from tomewise.loops.probing import Probing, SameQuestion, SelfProbe, WithoutMissing
from tomewise.loops.selection import BestSoFar, NewestFirst
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.derived import DenseDerived
from tomewise.recall.layered import LayeredRecall
from tomewise.systems.graph_walk import associative, make_hippo_recall
from tomewise.systems.kit import CONTEXT, Count, Kit, Recall, Recipe, System, Together, Weight, find_recall
from tomewise.types import Layer, Retriever


def comorag(
    kit: Kit,
    *,
    together: Together = 1,
    veridical: Count = 8,
    semantic: Count = 2,
    episodic: Count = 2,
    history: Count = 1,
    consolidation: Literal["cues", "none"] = "cues",
    regulation: Literal["probes", "none"] = "probes",
    probes: Count = 3,
    cycles: Count = 5,
    fuse: Weight = 0.5,
    workspace: Literal["best so far", "as published"] = "best so far",
    recall: Literal["hipporag2", "associative"] = "hipporag2",
    on_exhaustion: Literal["decline", "force"] = "decline",
    stride: Count = 0,
    levels: Count = 1,
    limit: Count = 20,
    context: Count = CONTEXT,
) -> System:
    """Recall from a graph, a summary tree and the story's course; probe, note and fuse until the question is answered.

    ComoRAG, section 2: `loops.probe` over `memory.graph`, `memory.tree` and `memory.episodes`. Those modules say what
    they do where the paper leaves a choice open. Shares of the context are 8:2:2:1 (appendix B.4); a share of 0 leaves
    a layer out. Windows of the episodes begin every `stride` passages (0: where the previous window ends). `levels` is
    the number of levels: 1 has the windows alone, each further level summarises the level below. With the `workspace`
    as published, an attempt sees new evidence first, each layer has its own cue, and no role sees earlier cues or what
    the last attempt lacked, and a first answer that is only partly supported ends the loop. One call reads the facts of
    `together` neighbouring passages.

    Deviations: the veridical recall is HippoRAG 2's without its recognition of facts by a model. With `recall`
    "associative" it is that of our own system, which asks again with names from the first passages.
    """
    kit = with_query_cache(kit)
    desk = kit.desk
    graph = GraphLayer(kit.store, kit.model, kit.embedder, together=together)
    tree = TreeLayer(kit.store, kit.model, kit.embedder)
    episodes = EpisodesLayer(kit.store, kit.model, kit.embedder, stride=stride, levels=levels)
    recalls: Mapping[str, Retriever] = {
        "hipporag2": make_hippo_recall(kit, graph, "none", 5, 0.05, 200),
        "associative": find_recall("associative", associative(kit, together=together)).retriever,
    }
    parts: dict[str, tuple[int, Retriever, Layer]] = {
        "veridical": (veridical, recalls[recall], graph),
        "semantic": (semantic, DenseDerived(kit.store, kit.embedder, tree), tree),
        "episodic": (episodic, DenseDerived(kit.store, kit.embedder, episodes), episodes),
    }
    used = {name: part for name, part in parts.items() if part[0]}
    if not used:
        raise UsageError(f"comorag without any layer finds nothing: give a share to one or more of {', '.join(parts)}")
    shares = {name: share for name, (share, _, _) in used.items()} | {HISTORY: history}
    retrievers = {name: retriever for name, (_, retriever, _) in used.items()}
    probing: Mapping[str, Probing] = {"probes": SelfProbe(kit.model, limit=probes), "none": SameQuestion()}
    consolidating: Mapping[str, Consolidating] = {
        "cues": Consolidation(desk),
        "none": NoConsolidation(),
    }
    probing_best, consolidating_best = probing[regulation], consolidating[consolidation]
    workspaces = {
        "best so far": Workspace(probing_best, consolidating_best, BestSoFar(), kit.embedder),
        "as published": Workspace(
            WithoutMissing(probing_best), WithoutKnown(consolidating_best), NewestFirst(), kit.embedder
        ),
    }
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
    return probe_loop(desk, retrievers, workspaces[workspace], bounds, layers)


def with_query_cache(kit: Kit) -> Kit:
    """The kit with a cache of query vectors, for a loop that searches several layers with the same query."""
    return replace(kit, embedder=CachedEmbedder(kit.embedder))


def probe(
    kit: Kit,
    recall: Recall | System,
    *,
    probes: Count = 3,
    cycles: Count = 5,
    limit: Count = 20,
    context: Count = CONTEXT,
) -> System:
    """ComoRAG's loop."""
    recall = find_recall("this System", recall)
    bounds = Bounds(cycles=cycles, limit=limit, budget=context, shares={"passages": 12, HISTORY: 1})
    desk = kit.desk
    workspace = Workspace(SelfProbe(kit.model, limit=probes), Consolidation(desk), BestSoFar(), kit.embedder)
    return probe_loop(desk, {"passages": recall.retriever}, workspace, bounds, recall.layers)


def probe_loop(
    desk: Desk,
    retrievers: Mapping[str, Retriever],
    workspace: Workspace,
    bounds: Bounds,
    layers: tuple[Layer, ...],
) -> System:
    """A system that runs ComoRAG's loop over these retrievers. Only one of them alone is the system's retriever."""
    loop = Probe(LayeredRecall(retrievers), desk, workspace, bounds)
    alone = next(iter(retrievers.values())) if len(retrievers) == 1 else None
    return System(loop=loop, retriever=alone, layers=layers)


RECIPES: Mapping[str, Recipe] = {
    "comorag": comorag,
}

# Named variations of a recipe: the rows of the papers' ablation tables.
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
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
