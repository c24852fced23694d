"""Layers that map nodes to nodes: ours, and those that state no more than a declaration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.stories import put_texts

from tomewise.errors import UsageError
from tomewise.language.cached import Cached
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.language.roles import GIST
from tomewise.language.roles.memory_roles import GistOut
from tomewise.language.together import Batch
from tomewise.memory.building import build, estimate
from tomewise.memory.gists import GistsLayer
from tomewise.parts import (
    DocumentLayer,
    Kit,
    MappedLayer,
    Node,
    Passage,
    PassageIn,
    Role,
    Window,
    make_layers,
)
from tomewise.store.contract import Store
from tomewise.store.lookups import read_vectors
from tomewise.store.records import BUILDS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_mapped_layer, document_of, put_document
from tomewise.types import Layer, Progress, content_id

EMBEDDER = HashEmbedder(32)


class QuestionsOut(BaseModel):
    questions: list[str]


POSE = "Ask: {% if passages is defined %}{{ passages | length }} texts{% else %}{{ text }}{% endif %}"


class Questions(MappedLayer[Passage, PassageIn, QuestionsOut]):
    """The questions that each passage answers: several nodes a reply."""

    name = "questions"
    role = Role("pose", PassageIn, QuestionsOut, output_tokens=64, prompt=POSE)

    def make_input(self, passage: Passage) -> PassageIn:
        return PassageIn(text=passage.text)

    def make_nodes(self, passage: Passage, reply: QuestionsOut) -> list[Node]:
        return [self.make_node(passage, question, about="who") for question in reply.questions]


class TextsIn(BaseModel):
    texts: list[str]


class AbstractOut(BaseModel):
    abstract: str


class Abstracts(DocumentLayer[TextsIn, AbstractOut]):
    """One node a document."""

    name = "abstracts"
    role = Role("condense", TextsIn, AbstractOut, prompt="{{ texts }}")

    def make_windows(self, document: str, passages: Mapping[int, Passage]) -> Iterator[tuple[Window, TextsIn]]:
        ids = tuple(passage.id for passage in passages.values())
        node = content_id(self.name, *ids)
        yield (
            Window(node=node, document=document, position=0, sources=ids, keys=tuple(passages)),
            TextsIn(texts=[passage.text for passage in passages.values()]),
        )

    def read_text(self, reply: AbstractOut) -> str:
        return reply.abstract


def pose(given: PassageIn) -> dict[str, list[str]]:
    return {"questions": [f"Who? {given.text}", f"Where? {given.text}"]}


def pose_together(given: PassageIn | Batch) -> dict[str, Any]:
    if isinstance(given, PassageIn):
        return pose(given)
    return {"passages": [{"label": f"P{n}", **pose(each)} for n, each in enumerate(given.passages, start=1)]}


SCRIPT = {"pose": pose, "condense": lambda given: {"abstract": " ".join(given.texts)}}


def quiet(_: Progress) -> None:
    pass


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Store]:
    return (SqlStore.open(tmp_path / f"{number}.tome") for number in count())


@pytest.mark.parametrize("name", ["gists", "summaries", "pages", "graph:passages-triples", "graph:gists-triples"])
async def test_our_layers_pass_the_contract(name: str, stores: Iterator[Store]) -> None:
    def make(store: Store) -> Sequence[Layer]:
        return make_layers(Kit(store, Cached(ExtractiveModel(EMBEDDER), Prompts(), store.calls), EMBEDDER), name)

    await check_mapped_layer(make, lambda: next(stores), EMBEDDER)


@pytest.mark.parametrize("kind", [Questions, Abstracts])
async def test_a_declaration_passes_the_contract(kind: type[MappedLayer], stores: Iterator[Store]) -> None:
    def make(store: Store) -> Sequence[Layer]:
        return [kind(store, Cached(ScriptedModel(SCRIPT), Prompts(), store.calls), EMBEDDER)]

    await check_mapped_layer(make, lambda: next(stores), EMBEDDER)


async def test_what_the_driver_records(stores: Iterator[Store]) -> None:
    store = next(stores)
    put_document(store, EMBEDDER, document_of("d", "Ada kept the light."))
    layer = Questions(store, ScriptedModel(SCRIPT, name="scripted"), EMBEDDER)
    (foreseen,) = await estimate([layer], store)
    assert (foreseen.calls, foreseen.model, foreseen.output_tokens) == (1, "scripted", 64)
    assert foreseen.input_tokens > 0
    (report,) = await build([layer], store, quiet)
    assert report.added == 2
    nodes = store.nodes("questions")
    assert sorted(node.text for node in nodes.values()) == ["Where? Ada kept the light.", "Who? Ada kept the light."]
    assert {node.data["about"] for node in nodes.values()} == {"who"}
    assert read_vectors(store, "questions").keys.tolist() == sorted(nodes)
    assert store.notes(BUILDS)["questions"] == {"model": "scripted", "together": [1]}


async def test_neighbours_share_a_call(stores: Iterator[Store]) -> None:
    store = next(stores)
    put_texts(store, EMBEDDER, "d", *(f"Ada kept light {number}." for number in range(3)))
    model = ScriptedModel({"pose": pose_together})
    layer = Questions(store, model, together=2)
    assert layer.calls.formula == "1 for 2 passages and 1 a passage whose part of it is unusable"
    assert (await build([layer], store, quiet))[0].added == 6
    assert sorted(isinstance(call.given, Batch) for call in model.calls) == [False, True]
    assert store.notes(BUILDS)["questions"]["together"] == [2]
    assert not len(read_vectors(store, "questions").keys), "a layer without an embedder has no vectors"


def test_inputs_that_are_no_passages_are_asked_about_one_by_one(stores: Iterator[Store]) -> None:
    with pytest.raises(UsageError, match="its inputs are no passages"):
        Abstracts(next(stores), ScriptedModel({}), together=2)


async def test_an_estimate_foresees_the_nodes_that_layers_below_will_make(stores: Iterator[Store]) -> None:
    store = next(stores)
    put_texts(store, EMBEDDER, "d", *(f"Ada kept light {number}." for number in range(3)))

    class Titles(MappedLayer[Node, PassageIn, GistOut]):
        name, needs, role = "titles", ("gists",), GIST

        def make_input(self, source: Node, /) -> PassageIn:
            return PassageIn(text=f"Title of: {source.text}")

        def make_nodes(self, source: Node, reply: GistOut, /) -> list[Node]:
            return [self.make_node(source, reply.memory)]

    class Marks(Titles):
        name, needs = "marks", ("titles",)

    model = ScriptedModel({"gist": lambda given: {"memory": f"said {given.text[:90]}"}})
    layers = [GistsLayer(store, model), Titles(store, model), Marks(store, model)]
    before = await estimate(layers, store)
    await build(layers, store, lambda _: None)
    assert [each.calls for each in before] == [len(store.node_keys("passages"))] * 3
    assert sum(each.calls for each in before) == len(model.calls)
    assert [each.calls for each in await estimate(layers, store)] == [0, 0, 0]
