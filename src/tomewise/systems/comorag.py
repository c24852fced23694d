"""ComoRAG, and its loop, which also runs over the recall of other systems."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from tomewise.errors import UsageError
from tomewise.loops.probe import Bounds, Probe
from tomewise.loops.steps import HISTORY
from tomewise.loops.workspace import (
    BestSoFar,
    Consolidating,
    Consolidation,
    NewestFirst,
    NoConsolidation,
    Probing,
    SameQuestion,
    SelfProbe,
)
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.derived import DenseDerived
from tomewise.recall.several_searches import LayeredRecall
from tomewise.systems.graph_walk import associative, make_hippo_recall
from tomewise.systems.kit import (
    CONTEXT,
    Context,
    Count,
    Kit,
    Limit,
    Multiplies,
    Recall,
    System,
    SystemDeclaration,
    Together,
    Weight,
    find_recall,
)
from tomewise.types import Layer, Retriever

Probes: TypeAlias = Annotated[Count, "probing questions of a cycle at most", Multiplies("calls of a question", most=20)]
Cycles: TypeAlias = Annotated[
    Count, "cycles after the first attempt at most", Multiplies("calls of a question", most=20)
]


def comorag(
    kit: Kit,
    *,
    together: Together = 1,
    veridical: Annotated[Count, "share of the graph in the context; 0 leaves it out"] = 8,
    semantic: Annotated[Count, "share of the summary tree in the context; 0 leaves it out"] = 2,
    episodic: Annotated[Count, "share of the episodes in the context; 0 leaves them out"] = 2,
    history: Annotated[Count, "share of earlier notes in the context"] = 1,
    consolidation: Annotated[Literal["cues", "none"], "whether notes are taken of what a cycle found"] = "cues",
    regulation: Annotated[
        Literal["probes", "none"], "whether a cycle asks probing questions, or the same one again"
    ] = "probes",
    probes: Probes = 3,
    cycles: Cycles = 5,
    fuse: Annotated[Weight, "share of the notes that is fused to one text, from 0 to 1"] = 0.5,
    workspace: Annotated[
        Literal["best so far", "as published"],
        "what an attempt sees first: the best evidence of all cycles, or new evidence as in the paper",
    ] = "best so far",
    recall: Annotated[Literal["hipporag2", "associative"], "the system whose recall searches the graph"] = "hipporag2",
    on_exhaustion: Annotated[Literal["decline", "force"], "what follows the last cycle without an answer"] = "decline",
    stride: Annotated[Count, "passages from one window of the episodes to the next; 0: to the end of the window"] = 0,
    levels: Annotated[Count, "levels of the episodes: the windows, and summaries of the level below"] = 1,
    limit: Limit = 20,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `comorag`, section 2: `loops.probe` over `memory.graph`, `memory.tree` and `memory.episodes`.

    Those modules say what they do where the paper leaves a choice open.
    """
    desk = kit.desk
    graph = GraphLayer(kit.store, kit.model, kit.embedder, together=together)
    tree = TreeLayer(kit.store, kit.model, kit.embedder)
    episodes = EpisodesLayer(kit.store, kit.model, kit.embedder, stride=stride, levels=levels)
    if recall == "hipporag2":
        walk = make_hippo_recall(kit, graph, "none", 5, 0.05)
    else:
        walk = find_recall(recall, associative(kit, together=together)).retriever
    parts: dict[str, tuple[int, Retriever, Layer]] = {
        "veridical": (veridical, walk, graph),
        "semantic": (semantic, DenseDerived(kit.store, kit.embedder, tree), tree),
        "episodic": (episodic, DenseDerived(kit.store, kit.embedder, episodes), episodes),
    }
    used = {name: part for name, part in parts.items() if part[0]}
    if not used:
        raise UsageError(f"comorag without any layer finds nothing: give a share to one or more of {', '.join(parts)}")
    shares = {name: share for name, (share, _, _) in used.items()} | {HISTORY: history}
    retrievers = {name: retriever for name, (_, retriever, _) in used.items()}
    published = workspace == "as published"
    probing: Probing = SameQuestion()
    if regulation == "probes":
        probing = SelfProbe(kit.model, limit=probes, sees_missing=not published)
    consolidating: Consolidating = NoConsolidation()
    if consolidation == "cues":
        consolidating = Consolidation(desk, sees_known=not published)
    bounds = Bounds(
        cycles=cycles,
        limit=limit,
        budget=context,
        shares=shares,
        fuse=fuse,
        on_exhaustion=on_exhaustion,
        accept_partly=published,
    )
    loop = Probe(
        LayeredRecall(retrievers),
        desk,
        kit.embedder,
        probing,
        consolidating,
        NewestFirst() if published else BestSoFar(),
        bounds,
    )
    alone = next(iter(retrievers.values())) if len(retrievers) == 1 else None
    return System(loop=loop, retriever=alone, layers=tuple(layer for _, _, layer in used.values()))


def probe(
    kit: Kit,
    recall: Recall | System,
    *,
    probes: Probes = 3,
    cycles: Cycles = 5,
    limit: Limit = 20,
    context: Context = CONTEXT,
) -> System:
    """ComoRAG's loop."""
    recall = find_recall("this System", recall)
    bounds = Bounds(cycles=cycles, limit=limit, budget=context, shares={"passages": 12, HISTORY: 1})
    desk = kit.desk
    loop = Probe(
        LayeredRecall({"passages": recall.retriever}),
        desk,
        kit.embedder,
        SelfProbe(kit.model, limit=probes),
        Consolidation(desk),
        BestSoFar(),
        bounds,
    )
    return System(loop=loop, retriever=recall.retriever, layers=recall.layers)


SYSTEMS = {
    "comorag": SystemDeclaration(
        recipe=comorag,
        kind="loop",
        summary=(
            "Recall from a graph, a summary tree and the story's course; probe, note and fuse until the question is "
            "answered."
        ),
        paper="ComoRAG, arXiv 2508.10419",
        about=(
            "Shares of the context are 8:2:2:1 (appendix B.4). With the `workspace` as published, an attempt sees new "
            "evidence first, each layer has its own cue, no role sees earlier cues or what the last attempt lacked, "
            "and a first answer that is only partly supported ends the loop."
        ),
        deviations=(
            "the veridical recall is HippoRAG 2's without its recognition of facts by a model. With `recall` "
            '"associative" it is that of our own system, which asks again with names from the first passages.'
        ),
        no_recall="searches several layers at once",
        ablations={
            "without veridical": {"veridical": 0},
            "without semantic": {"semantic": 0},
            "without episodic": {"episodic": 0},
            "without metacognition": {"consolidation": "none"},
            "without regulation": {"regulation": "none"},
            "without both": {"consolidation": "none", "regulation": "none", "cycles": 0},
            "as published": {"workspace": "as published", "on_exhaustion": "force"},
        },
    ),
}

LOOPS = {
    "probe": SystemDeclaration(recipe=probe, kind="loop", summary="ComoRAG's loop.", paper="ComoRAG, arXiv 2508.10419"),
}
