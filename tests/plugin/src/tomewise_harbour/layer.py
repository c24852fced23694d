"""A layer on top of a graph: every fact retold as a sentence, which lives as long as its fact."""

from __future__ import annotations

from tomewise.parts import CallCount, Change, Estimate, Kit, LayerReport, Node, Report, ask_each, content_id
from tomewise_harbour.role import RETELL_FACT, FactIn


class RetoldLayer:
    """One sentence per fact of a graph of passages; the graph's other nodes are taken in without a call."""

    name = "retold"
    needs = ("graph:passages-triples",)
    writes = ("retold",)
    calls = CallCount("1 a fact")

    def __init__(self, kit: Kit) -> None:
        self._kit = kit

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Retell the new facts."""
        facts = self._find_facts(change)
        inputs = {key: FactIn(fact=node.text) for key, node in facts.items()}
        replies = await ask_each(self._kit.model, RETELL_FACT, inputs, report, "facts retold")
        pairs = [(facts[key].id, reply.sentence) for key, reply in replies.items()]
        nodes = [Node(id=content_id("h", *pair), layer="retold", text=pair[1], sources=pair[:1]) for pair in pairs]
        with self._kit.store.write() as write:
            write.put_nodes(nodes)
            write.record_intake(self.name, set(change.added) - replies.failed.keys(), replies.failed)
            write.record_build(self.name, {"model": self._kit.model.name})
        return LayerReport(layer=self.name, added=len(nodes), failed=dict(replies.failed))

    async def estimate(self, change: Change) -> Estimate:
        """One call a fact; facts that do not exist yet are not foreseen."""
        return Estimate(layer=self.name, model=self._kit.model.name, calls=len(self._find_facts(change)))

    def _find_facts(self, change: Change) -> dict[int, Node]:
        nodes = self._kit.store.nodes_at(change.added)
        return {key: node for key, node in nodes.items() if node.layer == "facts:passages-triples"}
