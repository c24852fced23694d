"""Our own loop: it searches all memory that is built, takes notes, and goes on until it can answer."""

from __future__ import annotations

from dataclasses import replace

from tomewise.loops.probe import OverBuilt, Part, Probe
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.derived import DenseDerived
from tomewise.systems.comorag import Cycles, Probes
from tomewise.systems.from_passages import hybrid
from tomewise.systems.graph_walk import associative
from tomewise.systems.kit import (
    CONTEXT,
    OURS,
    READING,
    Context,
    Kit,
    Limit,
    Reading,
    System,
    SystemDeclaration,
    find_recall,
)
from tomewise.systems.lag import LagFinder


def investigate(
    kit: Kit,
    *,
    probes: Probes = 3,
    cycles: Cycles = 5,
    reading: Reading = READING,
    limit: Limit = 20,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `investigate`: `loops.probe` over what is built, with the rule of `loops.last_prompt`."""
    walk = find_recall("associative", associative(kit))
    words = find_recall("hybrid", hybrid(kit))
    tree = TreeLayer(kit.store, kit.model, kit.embedder)
    episodes = EpisodesLayer(kit.store, kit.model, kit.embedder)
    beside = {
        "tree": Part(DenseDerived(kit.store, kit.embedder, tree), 2, LagFinder(kit, "raptor", [tree])),
        "episodes": Part(DenseDerived(kit.store, kit.embedder, episodes), 2, LagFinder(kit, "comorag", [episodes])),
    }
    loop = Probe(
        parts={"graph": Part(walk.retriever, 8, LagFinder(kit, "associative", walk.layers)), **beside},
        desk=kit.fusing_desk,
        embedder=kit.embedder,
        cycles=cycles,
        probes=probes,
        limit=limit,
        budget=context,
        reading=reading,
        unread_only=True,
        adds_up=True,
    )
    plain = replace(loop, parts={"passages": Part(words.retriever, 8), **beside}, desk=kit.fusing_desk.alone)
    return System(loop=OverBuilt([loop, plain], "comorag"))


SYSTEMS = {
    "investigate": SystemDeclaration(
        recipe=investigate,
        kind="loop",
        summary="Search all memory that is built, note what is found, and ask further until the question is answered.",
        paper=OURS,
        about=(
            "It needs no layer. It searches the graph as `associative` does, or passages as `hybrid` does where no "
            "graph is built, and the tree and the episodes where they are built; `tome build --system comorag` makes "
            "all three. The loop is that of ComoRAG with rules of our own: an attempt sees the best evidence of all "
            "cycles, and a first answer that is supported only partly does not end it."
        ),
        no_recall="searches what is built",
    ),
}
