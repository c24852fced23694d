"""The systems over a graph, from texts to an answer, and what a build takes from files of extractions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply, UsageError
from tomewise.events import Fallbacks
from tomewise.fallbacks import count_fallbacks
from tomewise.language.extractive import ExtractiveModel
from tomewise.memory.building import build, find_backlog
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.run import meter
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.testing import check_layer, check_loop, check_retriever, document_of, put_document
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Document, Event, Progress, Question

EMBEDDER = HashEmbedder()
SYSTEMS = ("hipporag2", "cogitorag", "associative")
VARIANTS = [*((name, {}) for name in SYSTEMS), ("associative", {"extraction": "relations"})]  # test_ablations has more
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
ANSWER = "Tom Hale"


def quiet(_: Progress) -> None:
    pass


@pytest.fixture
def store(tmp_path: Path):
    made = SqlStore.open(tmp_path / "a.tome")
    for number, text in enumerate(TEXTS):
        put_document(made, EMBEDDER, document_of(f"d{number}", text))
    yield made
    made.close()


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
async def test_from_texts_to_an_answer(store, name, options):
    system = assemble(name, Kit(store, ExtractiveModel(EMBEDDER), EMBEDDER), **options)
    assert find_backlog(system.layers, store).counts
    reports = await build(system.layers, store, quiet)
    assert not any(report.failed for report in reports)
    assert find_backlog(system.layers, store).counts == {}
    assert [layer.name for layer in system.layers if layer.name.startswith("graph:")]
    await check_retriever(system.retriever, QUESTION, store)
    free = await check_loop(system.loop, Question(text=QUESTION, force=True))
    assert free.resolved
    # Triples are in small letters, in which the extractive model finds no names.
    text = free.text if free.evidence[0].layer == "passages" else free.evidence[1].text
    assert ANSWER.lower() in text.lower()
    chosen = await check_loop(system.loop, Question(text=QUESTION, options=("Sam Reed", ANSWER)))
    assert chosen.choice == "B"


@pytest.mark.parametrize("name", SYSTEMS)
async def test_their_memory_is_a_pure_function_of_the_documents(tmp_path, name):
    numbers = iter(range(10))
    await check_layer(
        lambda store: assemble(name, Kit(store, ExtractiveModel(EMBEDDER), EMBEDDER)).layers,
        lambda: SqlStore.open(tmp_path / f"{next(numbers)}.tome"),
        EMBEDDER,
    )


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
    assert report.usage.total.calls == 1
    assert "ada kept light" in {
        node.text for node in tome.store.nodes(GraphNames("passages", "triples").facts).values()
    }
    with pytest.raises(UsageError, match="graph:gists-triples, which is read from gists"):
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


@pytest.mark.parametrize("name", ["cogitorag", "hipporag2+probe"])
async def test_entities_then_triples_is_a_graph_of_its_own(store: SqlStore, name: str) -> None:
    model = ExtractiveModel(EMBEDDER)
    once = assemble(name, Kit(store, model, EMBEDDER)).layers[-1]
    twice = assemble(name, Kit(store, model, EMBEDDER), extraction="entities then triples")
    assert twice.layers[-1].name == f"{once.name}-in-2-calls"
    with meter() as used:
        await build(twice.layers, store, quiet)
    roles = used.usage().roles
    assert roles["extract_entities"].calls == roles["extract_triples"].calls == len(TEXTS)
    assert "extract_facts" not in roles
    found = await twice.retriever.retrieve(QUESTION, 1)
    assert ANSWER in found[0].text


async def test_what_fell_back_stands_in_the_events(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tomewise.recall.diffusion.has_one_clause", lambda question: False)  # so that it is asked
    bad = BadReply("no JSON")
    model = ScriptedModel(
        {
            "extract_facts": lambda given: {"triples": [["Tom Hale", "sold", "Heron"]] if "sold" in given.text else []},
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
    assert first.events[-1] == seen[-1] == Fallbacks(counts={"facts not filtered": 1})
    second = await answer_question(hippo, Question(text=QUESTION))
    assert second.events[-1].detail == {"ranked by cosine alone": 1}
    cogito = assemble("cogitorag", kit, source="passages", carrier="passages")
    with count_fallbacks() as counts:
        third = await answer_question(cogito, Question(text=QUESTION))
    assert third.events[-1].detail == dict(counts) == {"question asked whole": 1}
    plain = await answer_question(assemble("naive", kit), Question(text=QUESTION))
    assert [event.name for event in plain.events] == ["retrieved"]
