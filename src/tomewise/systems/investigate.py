"""Our own loop: it searches all memory that is built, takes notes, and goes on until it can answer."""

from __future__ import annotations

from tomewise.loops.over_built import OverBuilt, Part
from tomewise.loops.probe import Bounds, Probe
from tomewise.loops.workspace import OURS as OUR_RULES
from tomewise.loops.workspace import Consolidation, SelfProbe
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.derived import DenseDerived
from tomewise.recall.several_searches import LayeredRecall
from tomewise.systems.comorag import READING, Cycles, Probes, Reading
from tomewise.systems.from_passages import hybrid
from tomewise.systems.graph_walk import associative
from tomewise.systems.kit import CONTEXT, OURS, Context, Kit, Limit, System, SystemDeclaration, find_recall
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
    """The recipe of `investigate`: `loops.over_built` around `loops.probe`, with the rule of `loops.last_prompt`."""
    walk = find_recall("associative", associative(kit))
    words = find_recall("hybrid", hybrid(kit))
    tree = TreeLayer(kit.store, kit.model, kit.embedder)
    episodes = EpisodesLayer(kit.store, kit.model, kit.embedder)
    desk = kit.fusing_desk
    loop = Probe(
        LayeredRecall({}),
        desk,
        kit.embedder,
        SelfProbe(kit.model, limit=probes),
        Consolidation(desk),
        OUR_RULES,
        Bounds(cycles=cycles, limit=limit, budget=context, reading=reading, shares={}),
    )
    passages = {
        "graph": Part(walk.retriever, 8, LagFinder(kit, "associative", walk.layers)),
        "passages": Part(words.retriever, 8, desk=desk.alone),
    }
    beside = {
        "tree": Part(DenseDerived(kit.store, kit.embedder, tree), 2, LagFinder(kit, "raptor", [tree])),
        "episodes": Part(DenseDerived(kit.store, kit.embedder, episodes), 2, LagFinder(kit, "comorag", [episodes])),
    }
    return System(loop=OverBuilt(loop, passages, beside, "comorag"))


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
