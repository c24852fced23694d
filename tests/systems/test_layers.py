"""Memory layers by name."""

from __future__ import annotations

import pytest
from tests.installed_plugin import forget_parts

import tomewise
from tomewise.errors import UnknownName, UsageError
from tomewise.memory.summaries import SummariesLayer
from tomewise.systems.layers import make_layers
from tomewise.tome.tome import Tome
from tomewise.types import Document


class Shorter(SummariesLayer):
    """Summaries of gists would be another layer; this one needs a graph below it."""

    name = "shorter"
    needs = ("facts:gists-triples",)


@pytest.fixture
def tome(here, monkeypatch):
    forget_parts(monkeypatch)
    with Tome.open(here / "m.tome", embedder="hash") as tome:
        tome.add(Document(id="d", text="Ada Marsh kept the light at Skerry. Tom Hale sold a boat to her in May 1911."))
        yield tome


def test_a_layer_comes_after_those_it_needs(tome):
    tomewise.register("layers", "shorter", Shorter)
    names = [layer.name for layer in make_layers(tome.kit, "shorter", "gists", "schemata")]
    assert names == ["gists", "graph:gists-triples", "shorter", "schemata"]


def test_names_that_no_layer_has(tome):
    with pytest.raises(UnknownName, match=r"'gist' is not a layer: did you mean 'gists'\?"):
        make_layers(tome.kit, "gist")
    with pytest.raises(UnknownName, match="is not the name of a graph"):
        make_layers(tome.kit, "graph:nothing")
    tomewise.register("layers", "other", Shorter)
    with pytest.raises(UsageError, match="is not a layer of that name"):
        make_layers(tome.kit, "other")
    tomewise.register("layers", "gists", Shorter)
    with pytest.raises(UsageError, match="one of Tomewise's own layers"):
        make_layers(tome.kit, "gists")


def test_a_tome_builds_layers_by_name_beside_those_of_a_system(tome):
    foreseen = tome.memory.estimate("naive", layers="summaries").layers
    assert [(each.layer, each.cost.calls) for each in foreseen] == [("summaries", 1)]
    report = tome.build("associative", layers=["summaries", "graph:passages-triples"])
    assert {layer.layer for layer in report.layers} == {"summaries", "graph:passages-triples"}
    assert len(tome.store.nodes("summaries")) == 1
