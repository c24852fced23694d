"""ComoRAG, and its loop, which also runs over the recall of other systems."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from tomewise.errors import UsageError
from tomewise.loops.probe import Part, Probe
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.derived import DenseDerived
from tomewise.systems.graph_walk import make_hippo_recall
from tomewise.systems.kit import (
    CONTEXT,
    READING,
    Context,
    Count,
    Kit,
    Limit,
    Multiplies,
    Positive,
    Reading,
    Recall,
    Share,
    System,
    SystemDeclaration,
    Together,
    find_recall,
)
from tomewise.types import Layer, Retriever

Probes: TypeAlias = Annotated[
    Positive, "probing questions of a cycle at most", Multiplies("calls of a question", most=20)
]
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
    consolidation: Annotated[Literal["cues", "none"], "whether notes are taken of what a cycle found"] = "cues",
    regulation: Annotated[
        Literal["probes", "none"], "whether a cycle asks probing questions, or the same one again"
    ] = "probes",
    probes: Probes = 3,
    cycles: Cycles = 5,
    fuse: Annotated[Share, "share of the notes that is fused to one text"] = 0.5,
    stride: Annotated[Count, "passages from one window of the episodes to the next; 0: to the end of the window"] = 0,
    levels: Annotated[Count, "levels of the episodes: the windows, and summaries of the level below"] = 1,
    reading: Reading = READING,
    limit: Limit = 20,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `comorag`, section 2: `loops.probe` over `memory.graph`, `memory.tree` and `memory.episodes`.

    Those modules say what they do where the paper leaves a choice open.
    """
    graph = GraphLayer(kit.store, kit.model, kit.embedder, together=together)
    tree = TreeLayer(kit.store, kit.model, kit.embedder)
    episodes = EpisodesLayer(kit.store, kit.model, kit.embedder, stride=stride, levels=levels)
    parts: dict[str, tuple[int, Retriever, Layer]] = {
        "veridical": (veridical, make_hippo_recall(kit, graph, "none", 5, 0.05), graph),
        "semantic": (semantic, DenseDerived(kit.store, kit.embedder, tree), tree),
        "episodic": (episodic, DenseDerived(kit.store, kit.embedder, episodes), episodes),
    }
    used = {name: part for name, part in parts.items() if part[0]}
    if not used:
        raise UsageError(f"comorag without any layer finds nothing: give a share to one or more of {', '.join(parts)}")
    loop = Probe(
        parts={name: Part(retriever, share) for name, (share, retriever, _) in used.items()},
        desk=kit.desk,
        embedder=kit.embedder,
        cycles=cycles,
        probes=probes if regulation == "probes" else 0,
        limit=limit,
        budget=context,
        reading=reading,
        fuse=fuse,
        takes_notes=consolidation == "cues",
        unread_only=regulation == "none",  # "duplicated evidence is removed" (section 4.2)
    )
    alone = next(retriever for _, retriever, _ in used.values()) if len(used) == 1 else None
    return System(loop=loop, retriever=alone, layers=tuple(layer for _, _, layer in used.values()))


def probe(
    kit: Kit,
    recall: Recall | System,
    *,
    probes: Probes = 3,
    cycles: Cycles = 5,
    reading: Reading = READING,
    limit: Limit = 20,
    context: Context = CONTEXT,
) -> System:
    """ComoRAG's loop around another recall (section 4.3, table 3), which has the shares of all three layers."""
    recall = find_recall("this System", recall)
    loop = Probe(
        parts={"passages": Part(recall.retriever, 12)},
        desk=kit.desk,
        embedder=kit.embedder,
        cycles=cycles,
        probes=probes,
        limit=limit,
        budget=context,
        reading=reading,
    )
    return System(loop=loop, retriever=recall.retriever, layers=recall.layers)


_PAPER = "ComoRAG, arXiv 2508.10419"
SYSTEMS = {
    "comorag": SystemDeclaration(
        recipe=comorag,
        kind="loop",
        summary=(
            "Recall from a graph, a summary tree and the story's course; probe, note and fuse until the question is "
            "answered."
        ),
        paper=_PAPER,
        about=(
            "An attempt sees what its cycle found and noted, each layer within its share of the context (8:2:2:1 with "
            "what earlier notes say when fused), and ends the loop unless it is declined."
        ),
        deviations=(
            "the veridical recall is HippoRAG 2's without its recognition of facts by a model, over triples of one "
            "call a passage, which sees up to three sentences before it and gives about 15 facts at most; passages "
            "have the size of the tome (512 tokens in the paper); documents of up to 5 passages have windows of 2 (3 "
            "in the paper). An answer that is supported only partly ends the loop, where the paper's prompt says not "
            "to infer. A question that asks for a guess gets one more call in the end."
        ),
        no_recall="searches several layers at once",
        ablations={
            "without veridical": {"veridical": 0},
            "without semantic": {"semantic": 0},
            "without episodic": {"episodic": 0},
            "without metacognition": {"consolidation": "none"},
            "without regulation": {"regulation": "none"},
            "without both": {"consolidation": "none", "regulation": "none", "cycles": 0},
        },
    ),
}

LOOPS = {
    "probe": SystemDeclaration(
        recipe=probe,
        kind="loop",
        summary="ComoRAG's loop.",
        paper=_PAPER,
        deviations=(
            "one recall has the shares of all three layers. A question that asks for a guess gets one more call in "
            "the end."
        ),
    ),
}
