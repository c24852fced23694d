"""A layer on top of a graph: every fact retold as a sentence, which lives as long as its fact."""

from tomewise.parts import MappedLayer, Node
from tomewise_harbour.role import RETELL_FACT, FactIn, FactOut


class RetoldLayer(MappedLayer[Node, FactIn, FactOut]):
    """One sentence per fact of a graph of passages."""

    name = "retold"
    needs = ("facts:passages-triples",)
    role = RETELL_FACT

    def make_input(self, fact: Node) -> FactIn:
        """What the role is asked."""
        return FactIn(fact=fact.text)

    def make_nodes(self, fact: Node, reply: FactOut) -> list[Node]:
        """The sentence."""
        return [self.make_node(fact, reply.sentence)]
