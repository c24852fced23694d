"""The names of a graph, and which layer writes one."""

from __future__ import annotations

from types import SimpleNamespace

from tomewise.memory.graph.graph_names import GraphNames, find_graph


def test_a_layer_writes_a_graph_if_its_names_are_those_of_one():
    names = GraphNames("passages", "relations")
    others = [SimpleNamespace(name="tree"), SimpleNamespace(names=("schemata",))]
    assert find_graph([*others, SimpleNamespace(names=names)]) == names  # type: ignore[list-item]
    assert find_graph(others) is None  # type: ignore[arg-type]
