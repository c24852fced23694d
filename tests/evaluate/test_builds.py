"""The cost and the fallbacks of layers, and which graphs take given extractions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tomewise.errors import BadReply, UsageError
from tomewise.evaluate.metrics import find_metric
from tomewise.evaluate.report import make_json, write_markdown
from tomewise.evaluate.results import tabulate
from tomewise.evaluate.running import run
from tomewise.testing.scripted import ScriptedModel

ROLES = {
    "answer": lambda given: {"answer": "the lighthouse"},
    "gist": lambda given: {"memory": given.text},
    "decompose": lambda given: {},
    "filter_facts": lambda given: {"keep": [1]},
    "select_nodes": lambda given: {"keep": [1]},
    "extract_facts": lambda given: {"entities": ["Ada Marsh"], "triples": [["Ada Marsh", "kept", "a light"]]},
}
RANKED = {"retrieval_only": True, "metrics": (find_metric("recall@2"),)}


@pytest.fixture
def openie(dataset, tmp_path):
    """The dataset with triples of its documents."""
    path = tmp_path / "openie.jsonl"
    rows = [
        {"id": document.id, "entities": ["Ada Marsh"], "triples": [["Ada Marsh", "kept", f"lighthouse {document.id}"]]}
        for document in dataset.documents
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return replace(dataset, openie=path)


def count_extractions(model: ScriptedModel) -> int:
    return sum(call.role.startswith("extract") for call in model.calls)


async def test_given_extractions_replace_calls(experiment, tmp_path, openie):
    model = ScriptedModel(ROLES)
    results = await run(experiment(("hipporag2",), dataset=openie, model=model), tmp_path / "out")
    assert [row.error for row in results.rows] == [None] * 4
    assert count_extractions(model) == 0
    assert "given triples" not in write_markdown(tabulate(results))


async def test_a_graph_of_gists_asks_the_model_and_says_so(experiment, tmp_path, openie):
    model = ScriptedModel(ROLES)
    made = experiment(("cogitorag", "cogitorag:graph from passages"), dataset=openie, model=model)
    results = await run(made, tmp_path / "out")
    assert count_extractions(model) == 4
    assert results.builds["cogitorag"]["notes"] == ["asked the model: the given triples are of passages"]
    assert results.builds["cogitorag:graph from passages"]["notes"] == []
    assert "cogitorag: asked the model: the given triples are of passages." in write_markdown(tabulate(results))


async def test_retrieval_alone_leaves_out_systems_whose_graph_the_extraction_file_do_not_fit(
    experiment, tmp_path, openie
):
    model = ScriptedModel(ROLES)
    made = experiment(("naive", "cogitorag"), dataset=openie, model=model, **RANKED)
    for _ in range(2):  # a rerun gives the same reason
        results = await run(made, tmp_path / "out")
        assert results.systems == ("naive",)
        table = make_json(tabulate(results))
        assert table["refused"] == {"cogitorag": "the given triples are of passages, and graph:gists-triples is not"}
        assert any(note.startswith("Left out: cogitorag") for note in table["notes"])
    assert model.calls == []
    with pytest.raises(UsageError, match="cogitorag cannot be compared here"):
        await run(experiment(("cogitorag",), dataset=openie, model=model, **RANKED), tmp_path / "out")


async def test_each_system_is_charged_for_its_layers_whichever_ran_first(experiment, tmp_path):
    systems = ("hipporag2", "associative")
    together = await run(experiment(systems, model=ScriptedModel(ROLES)), tmp_path / "together")
    assert {name: build["calls"] for name, build in together.builds.items()} == {"hipporag2": 5, "associative": 5}
    alone = await run(experiment(systems[1:], model=ScriptedModel(ROLES)), tmp_path / "alone")
    counted = ("calls", "input_tokens", "output_tokens", "cost")
    for name in counted:
        assert alone.builds["associative"][name] == together.builds["associative"][name]
    later = await run(experiment(("hipporag2 facts=3",), model=ScriptedModel(ROLES)), tmp_path / "together")
    assert later.builds["hipporag2 facts=3"]["calls"] == 5


async def test_fallbacks_stand_in_the_table(experiment, tmp_path, monkeypatch):
    monkeypatch.setattr("tomewise.recall.diffusion.has_one_clause", lambda question: False)  # so each one is asked
    inventing = {"memory": "Percival Zweig kept it in 1877."}
    roles = {**ROLES, "gist": lambda given: inventing, "decompose": lambda given: BadReply("no JSON")}
    model = ScriptedModel(roles)
    results = await run(experiment(("naive", "cogitorag"), model=model), tmp_path)
    assert [row.fallbacks for row in results.rows] == [{}] * 4 + [{"question asked whole": 1}] * 4
    assert [call.role for call in model.calls].count("decompose") == 4  # the ranking does not ask again
    assert results.builds["cogitorag"]["fallbacks"] == {"gists": 5}
    text = write_markdown(tabulate(results))
    assert "| fallbacks |" in text
    assert "What cogitorag fell back on, by kind or layer: question asked whole 4, gists 5." in text
    table = make_json(tabulate(results))["rows"]
    assert [line["fallbacks"] for line in table] == [{}, {"question asked whole": 4}]


async def test_texts_that_could_not_be_read_are_fallbacks(experiment, tmp_path):
    def extract(given):
        return BadReply("no JSON") if "Hale" in given.text else {"entities": [], "triples": []}

    results = await run(experiment(("hipporag2",), model=ScriptedModel({**ROLES, "extract_facts": extract})), tmp_path)
    assert results.builds["hipporag2"]["fallbacks"] == {"graph:passages-triples": 1}


async def test_a_table_says_how_the_network_of_the_schemata_came_out(experiment, tmp_path):
    results = await run(experiment(("cam",), model=ScriptedModel(ROLES)), tmp_path / "out")
    networks = results.builds["cam"]["networks"]["schemata"]
    passages = sum(network["passages"] for network in networks)
    assert passages
    text = write_markdown(tabulate(results))
    assert f"cam, schemata: alpha 0.7, sigma 1, k 10; {passages:,} passages, " in text
