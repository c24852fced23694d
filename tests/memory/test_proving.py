"""What a model invents does not become memory: its sentences are asked for once more, then they leave alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.memory.memories import EMBEDDER, build_layer, build_layers, keep_replies, put_passages, put_text
from tests.recall.relation_tomes import list_relations

from tomewise import Tome
from tomewise.errors import BadReply
from tomewise.language.roles import Batch, RestateIn
from tomewise.memory.communities.communities_layer import CommunitiesLayer
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.parts import Kit, make_layers
from tomewise.run import meter
from tomewise.store.records import BUILDS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel
from tomewise.types import Abilities, Document

TEXT = "Ada Marsh kept the light. It rained on 3 May 1911."
LIE = "Napoleon Bonaparte sold her 40 boats."
LINES = [f"{n}. Ada Marsh kept the light at Skerry in May, and rain fell on boat {n}." for n in range(24)]


def script(restated: Any = (), **replies: Any) -> ScriptedModel:
    """Plays roles of memory; of each sentence that is asked for again it writes `restated`, or raises it."""

    def restate(given: RestateIn) -> Any:
        return restated if isinstance(restated, Exception) else {"sentences": restated}

    return ScriptedModel({**replies, "restate": restate})


def list_roles(model: ScriptedModel) -> list[str]:
    return [call.role for call in model.calls]


async def write_gist(store: SqlStore, model: ScriptedModel) -> str:
    put_text(store, "d", TEXT)
    report = await build_layer(GistsLayer(store, keep_replies(model, store)), store)
    assert not report.failed
    (gist,) = store.nodes("gists").values()
    return gist.text


@pytest.mark.parametrize(
    ("restated", "gist"),
    [
        ([], TEXT),
        ([""], TEXT),
        ([LIE], TEXT),
        (["The Duke of Wellington sold it."], TEXT),
        (
            ["She kept it alone. Napoleon Bonaparte saw it."],
            f"Ada Marsh kept the light. She kept it alone. {TEXT[26:]}",
        ),
        (["She sold boats."], f"Ada Marsh kept the light. She sold boats. {TEXT[26:]}"),
        (BadReply("no JSON"), TEXT),
    ],
)
async def test_an_invented_sentence_is_asked_for_once_more_and_then_leaves_alone(
    store: SqlStore, restated: Any, gist: str
) -> None:
    written = {"memory": f"Ada Marsh kept the light. {LIE} It rained on 3 May 1911."}
    model = script(restated, gist=lambda given: written)
    assert await write_gist(store, model) == gist
    assert list_roles(model) == ["gist", "restate"]
    again = model.calls[1].given
    assert (again.texts, again.sentences, again.names) == ([TEXT], [LIE], ["Napoleon Bonaparte", "40"])


async def test_what_stands_in_another_spelling_is_not_asked_again_and_what_lacks_support_is_counted(store) -> None:
    written = {"memory": "On the third of May 1911 it rained. Ada never kept the light. Whales sing of hills."}
    model = script(gist=lambda given: written)
    assert await write_gist(store, model) == written["memory"]
    assert list_roles(model) == ["gist"]
    flags = store.notes(BUILDS)["gists"]["flags"]
    assert flags["scripted"]["unsupported"]["count"] == 2
    assert set(flags["scripted"]) == {"unsupported"}


async def test_a_gist_of_which_nothing_is_left_fails_and_no_call_is_repeated(store: SqlStore) -> None:
    put_text(store, "d", TEXT)
    model = script(gist=lambda given: {"memory": LIE})
    for _ in range(2):
        report = await build_layer(GistsLayer(store, keep_replies(model, store)), store)
        assert "names what its texts do not have" in next(iter(report.failed.values()))
    assert list_roles(model) == ["gist", "restate"]
    assert not store.nodes("gists")


async def test_each_passage_of_a_batch_is_proved_by_its_own_text(store: SqlStore) -> None:
    put_passages(store, "d", "Ada Marsh kept the light.", "Tom Hale sold a boat.")

    def reply(given: Any) -> Any:
        assert isinstance(given, Batch)
        return {
            "passages": [
                {"label": f"P{n}", "memory": f"{each.text} Ida Poe left in 1912."}
                for n, each in enumerate(given.passages, 1)
            ]
        }

    model = script(gist=reply)
    report = await build_layer(GistsLayer(store, keep_replies(model, store), together=2), store)
    assert sorted(node.text for node in store.nodes("gists").values()) == [
        "Ada Marsh kept the light.",
        "Tom Hale sold a boat.",
    ]
    assert sorted(list_roles(model)) == ["gist", "restate", "restate"]
    assert report.notes == ("of what the model wrote: 2 asked again, 2 left out (tome show --flags)",)


@pytest.mark.parametrize("name", ["summaries", "pages", "episodes", "tree", "memtree", "schemata"])
async def test_no_summary_of_any_layer_keeps_an_invention(name: str, store: SqlStore) -> None:
    put_passages(store, "d", *LINES)

    def summarise(given: Any) -> dict[str, str]:
        text = f"{given.grounds[-1]} {LIE}"
        return {"summary": text, "gist": text}

    model = script(**dict.fromkeys(("summarise", "narrate", "aggregate", "shorten"), summarise))
    (layer,) = make_layers(Kit(store, keep_replies(model, store), EMBEDDER), name)
    report = await build_layer(layer, store)
    texts = [node.text for node in store.nodes(layer.name).values()]
    assert report.added
    assert [text for text in texts if "Napoleon" in text] == []
    assert any("Ada Marsh" in text for text in texts)
    assert "restate" in list_roles(model)
    assert set(store.notes(BUILDS)[layer.name]["flags"]["scripted"]) >= {"asked again", "left out"}


async def test_a_fact_with_an_invented_date_leaves_and_a_name_for_he_stays(store: SqlStore) -> None:
    put_text(store, "d", TEXT)
    triples = [["Ada Marsh", "kept", "the light"], ["Ada Marsh", "left in 1912", "the light"], ["Tom", "saw", "rain"]]
    model = script(extract_facts=lambda given: {"entities": ["Ada Marsh", "the year 1912"], "triples": triples})
    layer = GraphLayer(store, keep_replies(model, store), EMBEDDER)
    await build_layer(layer, store)
    assert {node.text for node in store.nodes(layer.names.facts).values()} == {
        "ada marsh kept the light",
        "tom saw rain",
    }
    assert {node.text for node in store.nodes(layer.names.entities).values()} == {
        *("ada marsh", "the light", "tom", "rain")
    }
    assert list_roles(model) == ["extract_facts"]
    assert store.notes(BUILDS)[layer.name]["flags"]["scripted"]["left out"]["count"] == 2


async def test_a_relation_leaves_with_its_description(store: SqlStore) -> None:
    put_text(store, "d", "Ada Marsh met Tom Hale at Skerry.")
    pairs = [("Ada Marsh", "Tom Hale", "They met."), ("Ada Marsh", "Ida Poe", "They met."), ("Tom Hale", "Skerry", LIE)]
    relations = [{"source": a, "target": b, "description": text} for a, b, text in pairs]
    entities = [{"name": "Ada Marsh", "description": f"She met Tom. {LIE}"}, {"name": "Ida Poe"}]
    model = script(extract_relations=lambda given: {"entities": entities, "relationships": relations})
    layer = GraphLayer(store, keep_replies(model, store), EMBEDDER, style="relations")
    await build_layer(layer, store)
    assert {node.text for node in store.nodes(layer.names.entities).values()} == {"ada marsh", "tom hale", "ida poe"}
    assert len(store.nodes(layer.names.facts)) == 2
    assert [node.data["description"] for node in store.nodes(layer.names.mentions).values()] == ["She met Tom.", ""]


async def test_a_report_loses_a_finding_and_may_say_how_many_links_there_are(store: SqlStore) -> None:
    put_text(store, "d", "name1 ~ name2 ~ they met once\nname2 ~ name3 ~ they met once")

    def report(given: Any) -> dict[str, Any]:
        most = max(given.entities, key=lambda row: row.degree)
        return {
            "title": most.name,
            "summary": f"{most.name} has {most.degree} links. {LIE}",
            "findings": [
                {"headline": "boats", "explanation": LIE},
                {"headline": "meeting", "explanation": "They met once."},
            ],
        }

    model = script(extract_relations=list_relations, write_report=report)
    graph = GraphLayer(store, model, EMBEDDER, style="relations")
    layer = CommunitiesLayer(store, model, EMBEDDER, graph.names)
    await build_layers([graph, layer], store)
    texts = [node.text for node in store.nodes(layer.communities.reports).values()]
    assert texts == ["name2\nname2 has 2 links.\nmeeting: They met once."]


async def test_a_model_without_cost_is_not_asked_again(store: SqlStore) -> None:
    async def measure(*_: Any) -> int:
        return 1

    model = script(gist=lambda given: {"memory": f"{TEXT} {LIE}"})
    model.abilities = Abilities(measure_reply=measure)
    assert await write_gist(store, model) == f"{TEXT} {LIE}"
    assert list_roles(model) == ["gist"]


async def test_the_call_that_asks_again_is_paid_in_the_same_build(store: SqlStore) -> None:
    with meter() as used:
        await write_gist(store, script(gist=lambda given: {"memory": f"{TEXT} {LIE}"}))
    assert {role: cost.calls for role, cost in used.measure_cost().roles.items()} == {"gist": 1, "restate": 1}


def test_flags_are_shown_and_their_examples_go_with_what_they_may_tell_of(
    here: Path, command: Callable[..., Any]
) -> None:
    model = script(gist=lambda given: {"memory": f"{given.text} {LIE}"})
    with Tome.open(here / "memory.tome", embedder="hash", model=model) as tome:
        tome.add(Document(id="d", text=TEXT))
        tome.build(layers="gists")
        assert tome.memory.flags()["gists"]["scripted"]["left out"] == {"count": 1, "examples": [LIE]}
    shown = command("show", "--flags").out
    assert "gists, scripted: 1 left out" in shown
    assert LIE in shown
    assert "shown alone" in command("show", "--flags", "d").err
    with Tome.open(here / "memory.tome") as tome:
        tome.add(Document(id="e", text="It rained."))
        assert LIE in str(tome.memory.flags())
        tome.remove("d")
        assert tome.memory.flags()["gists"]["scripted"]["left out"] == {"count": 1, "examples": []}
