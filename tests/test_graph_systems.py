"""The systems over a graph, from texts to an answer, and what a build takes from files of extractions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply, UsageError
from tomewise.events import make_event
from tomewise.memory.building import build
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.run import meter
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.testing import document_of, put_document
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Document, Event, Progress, Question

EMBEDDER = HashEmbedder()
TEXTS = (
    "Ada Marsh kept the lighthouse at Skerry. She was the daughter of Captain Marsh.",
    "Captain Marsh sailed the Heron from Ostend until 1911.",
    "Tom Hale sold the Heron to Ida Poe in May 1912.",
    "Ida Poe lived in Ghent with her brother Sam Poe.",
    "The lighthouse at Skerry was built by Sam Poe.",
    "It rained on the harbour all that winter, and nobody came.",
    "The council of Ghent bought the harbour from Tom Hale.",
)
QUESTION = "Who sold the Heron to Ida Poe?"


def quiet(_: Progress) -> None:
    pass


@pytest.fixture
def store(tmp_path: Path):
    made = SqlStore.open(tmp_path / "a.tome")
    for number, text in enumerate(TEXTS):
        put_document(made, EMBEDDER, document_of(f"d{number}", text))
    yield made
    made.close()


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of extractions."""

    def write(*rows: Mapping[str, object]) -> Path:
        path = tmp_path / "given.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def test_a_build_tells_what_given_extractions_cover_and_asks_for_the_rest(write_rows, tome):
    tome.add(Document(id="a", text="Ada kept the light."), Document(id="b", text="Tom Hale rowed to Skerry."))
    triples = [{"id": "a", "triples": [["Ada", "kept", "light"]]}, {"id": "elsewhere", "triples": []}]
    report = tome.build("hipporag2", extractions=write_rows(*triples))
    (graph,) = report.layers
    assert graph.notes[0] == "given.jsonl: covers 1 of 2 passages; 1 of its texts is not in this tome"
    assert report.cost.calls == 2
    assert "ada kept light" in {
        node.text for node in tome.store.nodes(GraphNames("passages", "triples", 2).facts).values()
    }
    with pytest.raises(UsageError, match="graph:gists-triples-in-2-calls, which is read from gists"):
        tome.build("cogitorag", extractions=write_rows(*triples))


def test_relations_are_imported_by_a_system_that_has_a_layer_for_them(write_rows, tome):
    tome.add(Document(id="a", text=TEXTS[2]), Document(id="b", text=TEXTS[5]))
    sold = {"head": "TOM HALE", "tail": "IDA POE", "description": "Tom Hale sold a boat.", "keywords": "sale"}
    rows = write_rows(
        {"kind": "passage", "index": 0, "text": TEXTS[2]},
        {"kind": "entity", "name": "TOM HALE", "type": "PERSON", "description": "A seller of boats.", "passages": [0]},
        {"kind": "relation", **sold, "weight": 3.0, "passages": [0]},
    )
    with pytest.raises(UsageError, match="holds relations of passages, which this system has no layer for"):
        tome.build("associative", extractions=rows)
    (graph,) = tome.build("associative extraction=relations", extractions=rows).layers
    assert graph.notes[0] == "given.jsonl: covers 1 of 2 passages"
    facts = {node.text for node in tome.store.nodes(GraphNames("passages", "relations").facts).values()}
    assert facts == {"sale: ida poe, tom hale. Tom Hale sold a boat."}


async def test_what_fell_back_stands_in_the_events(store: SqlStore) -> None:
    bad = BadReply("no JSON")
    model = ScriptedModel(
        {
            "extract_entities": lambda _: {"entities": []},
            "extract_triples": lambda given: {"triples": [["Tom Hale", "sold", "Heron"]] * ("sold" in given.text)},
            "filter_facts": [bad, {"keep": []}],
            "decompose": [bad],
            "answer": lambda _: {"answer": "Tom Hale"},
        }
    )
    kit = Kit(store, model, EMBEDDER)
    hippo = assemble("hipporag2", kit)
    await build(hippo.layers, store, quiet)
    seen: list[Event] = []
    first = await answer_question(hippo, Question(text=QUESTION), seen.append)
    assert first.events[-1] == seen[-1] == make_event("fallbacks", counts={"facts not filtered": 1})
    second = await answer_question(hippo, Question(text=QUESTION))
    assert second.events[-1].detail == {"counts": {"ranked by cosine alone": 1}}
    cogito = assemble("cogitorag", kit, source="passages", carrier="passages")
    with meter() as used:
        third = await answer_question(cogito, Question(text=QUESTION))
    assert third.events[-1].detail["counts"] == dict(used.fallbacks) == {"question asked whole": 1}
    plain = await answer_question(assemble("naive", kit), Question(text=QUESTION))
    assert [event.name for event in plain.events] == ["retrieved"]
