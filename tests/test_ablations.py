"""What every named ablation changes: the layers it needs, the calls it makes, or the evidence it shows.

One row an ablation in `CHANGES`: a new ablation without a row fails. The setting `selection` is tried as well.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests import bridges
from tests.stories import put_texts

from tomewise.embedding.hash import HashEmbedder
from tomewise.loops.origins import EXTRACTS
from tomewise.memory.building import build
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import SYSTEMS, assemble, list_ablations
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Event, Evidence, Question

PAIR = "hipporag2+probe"  # it has the ablations of its recall
ABLATIONS = {name: found for name in (*SYSTEMS, PAIR) if (found := list_ablations(name))}
EMBEDDER = HashEmbedder()
QUESTION = "Whom did Ada meet?"
LONER = "Whom did Ada ever meet?"  # near to the question, and in no fact
MET = ("Ada > meet > Tom", "Ada > meet > Sam", "Ada > meet > Una", "Ada > did meet > Pip", "Ada > did meet > Rob")
CHAIN = ("\n".join(MET), "Tom > knew > Ida", "Ida > kept > Xyz")  # a walk alone ties the last to the question
ADDED = "It was so indeed, that winter."  # what each gist says beyond its passage
BESIDE = "Whom, once more: number 0."  # it follows that one
TEXTS = (*CHAIN, LONER, *(f"Whom, once more: number {number}." for number in range(14)))

# Ablations of these systems are tried over documents with titles, about a bridge or about two things.
OVER_LANDS = {"hybrid", "associative"}
CHOICE = f"{bridges.QUESTION.rstrip('?')}, the markka or the peseta?"
LAND_FACTS = {
    "Signmark": ["Signmark", "grew up in", "Finland"],
    "Finland": ["Finland", "had", "markka"],
    "Portugal": ["Portugal", "had", "escudo"],
    "Spain": ["Spain", "had", "peseta"],
}


@dataclass(frozen=True)
class Ran:
    """What answering one question with a system came to. `shown` are the texts in the last prompt."""

    layers: tuple[str, ...]
    calls: Counter[str]
    shown: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    events: tuple[Event, ...]

    def details(self, name: str) -> list[Mapping[str, Any]]:
        return [event.detail for event in self.events if event.name == name]

    def score(self, text: str) -> float:
        return next(piece.score for piece in self.evidence if piece.text.startswith(text))


def extract_lines(given: Any) -> dict[str, object]:
    lines = [line.split(" > ") for line in given.text.splitlines()]
    return {"entities": [], "triples": [line for line in lines if len(line) == 3]}


def relate_lines(given: Any) -> dict[str, object]:
    lines = [line.split(" > ") for line in given.text.splitlines()]
    ends = [(line[0], line[2]) for line in lines if len(line) == 3]
    return {"relationships": [{"source": head, "target": tail} for head, tail in ends]}


def plan_once(given: Any) -> dict[str, object]:
    concerns = [{"place": "local", "points": ["M1"], "subqueries": ["Ida"]}, {"subqueries": ["Xyz"]}]
    return {"sufficient": len(given.searched) > 1, "concerns": concerns}


def evolve_points(given: Any) -> dict[str, object]:
    """Two points at first, then a change of the first one."""
    if given.points:
        return {"updates": [{"point": "M1", "description": "Sam met Ada.", "entities": ["Xyz"]}]}
    return {"insertions": [{"description": f"{name} met Ada.", "entities": ["Ada", name]} for name in ("Sam", "Pip")]}


def note_lines(given: Any) -> dict[str, object]:
    """A fact for each passage but the last ones."""
    pieces = [piece for piece in given.evidence if piece.text not in TEXTS[-3:]]
    return {"facts": [{"label": each.label, "quote": each.text} for each in pieces]}


def make_model() -> ScriptedModel:
    """A model that plays every role, and declines to answer as long as it may."""
    return ScriptedModel(
        {
            "gist": lambda given: {"memory": f"{given.text}\n\n{ADDED}"},
            "summarise": lambda given: {"summary": f"Sum: {' '.join(text[:12] for text in given.texts)[:80]}"},
            "aggregate": lambda given: {"summary": f"Sum: {' '.join(text[:12] for text in given.texts)[:80]}"},
            "narrate": lambda given: {"summary": f"Course: {' '.join(text[:12] for text in given.texts)[:80]}"},
            "extract_facts": extract_lines,
            "filter_facts": lambda given: {"keep": [at for at, fact in enumerate(given.facts, 1) if "tom" in fact]},
            "select_nodes": lambda given: {"keep": list(range(1, 1 + len(given.nodes)))},
            "decompose": lambda _: {"subqueries": [QUESTION, "Whom did Ada once meet?"]},
            "keywords": lambda _: {"details": ["Ida"], "themes": ["Whom met"]},
            "probe": lambda given: {"probes": [f"number {len(given.past_probes) + place}" for place in range(3)]},
            "encode": lambda given: {"cue": f"cue of {given.probe}"},
            "fuse": lambda _: {"cue": "fused"},
            "extract_relations": relate_lines,
            "write_report": lambda given: {
                "title": f"On {given.entities[0].name}",
                "summary": " ".join(row.description for row in given.relations),
                "importance": 5,
            },
            "rate_report": lambda _: {"rating": 5},
            "map_reports": lambda given: {
                "points": [
                    {"description": "Ada met Tom.", "labels": [each.label], "score": 50} for each in given.evidence
                ]
            },
            "hypothesise": lambda _: {"answer": "Ada met Tom."},
            "explore": lambda given: {"answer": "Ada met Tom.", "score": 50, "follow_ups": ["Whom did Tom know?"]},
            "plan": plan_once,
            "evolve": evolve_points,
            "merge_points": lambda _: {"merges": [{"points": ["M1", "M2"], "description": "Ada met both."}]},
            "follow_up": lambda _: {"bridge": "Tom", "question": "Whom did Tom meet?"},
            "think": lambda given: {"thought": f"number {len(given.thoughts)}"},
            "step": lambda given: {"subquestion": f"number {len(given.asked)}"},
            "shorten": lambda given: {"gist": f"Page: {given.text[:40]}"},
            "look_up": lambda given: {"labels": [f"E{number}" for number in range(1, 9)]},
            "plan_reading": lambda _: {"questions": [QUESTION]},
            "extract_notes": note_lines,
            "infer_notes": lambda given: {
                "inferences": [{"rests_on": [given.facts[-1].label], "inference": "So Tom."}]
            },
            "refine_questions": lambda _: {},
            "carry_note": lambda given: {"note": given.evidence[0].text},
            "answer": lambda given: {"answer": "*" if given.may_decline else "Tom"},
        }
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tome with every layer of every system and ablation."""
    path = tmp_path_factory.mktemp("library") / "a.tome"
    store = SqlStore.open(path)
    put_texts(store, EMBEDDER, "story", *TEXTS)
    kit = Kit(store, make_model(), EMBEDDER)
    ways = [(system, settings) for system, changes in ABLATIONS.items() for settings in ({}, *changes.values())]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "umap", None)  # what is clustered by does not matter here
        for system, settings in ways:
            asyncio.run(build(assemble(system, kit, **settings).layers, store, lambda _: None))
    store.close()
    return path


def extract_lands(given: Any) -> dict[str, object]:
    head, relation, tail = LAND_FACTS[given.text.split()[0]]
    return {"entities": [head, tail], "triples": [[head, relation, tail]]}


@pytest.fixture(scope="module")
def lands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tome of the documents of `bridges`, with their graph."""
    path = tmp_path_factory.mktemp("lands") / "lands.tome"
    with Tome.open(path, model=ScriptedModel({"extract_facts": extract_lands}), embedder=EMBEDDER) as tome:
        tome.add(*bridges.DOCUMENTS)
        tome.build("associative")
    return path


@pytest.fixture(autouse=True)
def _split_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tomewise.recall.diffusion.has_one_clause", lambda question: False)


@pytest.fixture
def open_copy(library: Path, lands: Path, tmp_path: Path):
    """A copy of the library, or of the lands."""
    opened = []

    def copy(name: str) -> SqlStore:
        opened.append(SqlStore.open(shutil.copy(lands if name == "lands" else library, tmp_path / "a.tome")))
        return opened[-1]

    yield copy
    for store in opened:
        store.close()


async def run(store: SqlStore, name: str, settings: Mapping[str, Any], question: str) -> Ran:
    model = make_model()
    several = {"chunk": 250, "memory": 31} if name == "cosmir" else {}  # tokens: two chunks, and a ledger that forgets
    system = assemble(name, Kit(store, model, EMBEDDER), **(several | {**settings}))
    answer = await answer_question(system, Question(text=question, force=True))
    layers = tuple(layer.name for layer in system.layers)
    shown = tuple(piece.text for piece in model.calls[-1].given.evidence)
    return Ran(layers, Counter(call.role for call in model.calls), shown, answer.evidence, answer.events)


def texts(ran: Ran) -> list[str]:
    return [piece.text for piece in ran.evidence]


def kinds(ran: Ran) -> set[str]:
    return {piece.layer for piece in ran.evidence}


def no_call_of(*roles: str) -> Callable[[Ran, Ran], None]:
    def check(full: Ran, ablated: Ran) -> None:
        assert all(full.calls[role] for role in roles)
        assert not any(ablated.calls[role] for role in roles)

    return check


def no_layer(name: str, kind: str) -> Callable[[Ran, Ran], None]:
    """Without a layer of memory, and without evidence of that kind."""

    def check(full: Ran, ablated: Ran) -> None:
        assert {*full.layers} - {*ablated.layers} == {name}
        assert kind in kinds(full) - kinds(ablated)

    return check


def one_fact_less(full: Ran, ablated: Ran) -> None:
    assert (full.calls["filter_facts"], ablated.calls["filter_facts"]) == (1, 0)
    assert full.score(CHAIN[1]) > ablated.score(CHAIN[1]), "the walk starts at Tom alone, not at all whom Ada met"


def from_the_top(full: Ran, ablated: Ran) -> None:
    assert full.layers == ablated.layers
    assert len(ablated.evidence) < len(full.evidence) == 20, "five nodes of each level, not twenty of all"


def one_step_only(full: Ran, ablated: Ran) -> None:
    assert full.score(CHAIN[2]) > 0
    assert ablated.score(CHAIN[2]) < 0, "two steps from the entities of the question: it follows by its cosine"
    assert ablated.score(CHAIN[1]) > 0, "one step from Tom"
    assert ablated.score(LONER) > 0, "seeded itself"


def masses_alone(full: Ran, ablated: Ran) -> None:
    assert {piece.node: piece.score for piece in full.evidence} != {
        piece.node: piece.score for piece in ablated.evidence
    }
    assert full.score(CHAIN[0]) == pytest.approx(1, abs=0.06)
    assert ablated.score(CHAIN[0]) == 1, "masses are parts of the greatest"
    assert min(piece.score for piece in ablated.evidence) > 0, "the least of the candidates counts 0 in CogniRank alone"


def entities_alone(full: Ran, ablated: Ran) -> None:
    assert full.score(LONER) > 0, "a passage that no fact ties to the question is reached as it is seeded"
    assert ablated.score(LONER) < 0, "it follows by its cosine alone"


def read_from(source: str) -> Callable[[Ran, Ran], None]:
    def check(full: Ran, ablated: Ran) -> None:
        assert full.layers == ("gists", "graph:gists-triples")
        assert ablated.layers == ("gists", *((source,) if source != "passages" else ()), f"graph:{source}-triples")
        assert {text.endswith(ADDED) for ran in (full, ablated) for text in texts(ran)} == {True}, "the same carrier"

    return check


def passages_alone(full: Ran, ablated: Ran) -> None:
    assert full.layers == ablated.layers
    assert all(text.endswith(ADDED) for text in texts(full))
    assert {*texts(ablated)} <= {*TEXTS}


def what_gists_add(full: Ran, ablated: Ran) -> None:
    assert full.layers == ablated.layers
    assert {*texts(full)} == {f"{text}\n\nGist of this passage:\n{text}\n\n{ADDED}" for text in TEXTS}
    assert {*texts(ablated)} == {f"{text}\n\nGist of this passage:\n{ADDED}" for text in TEXTS}


def facts_alone(full: Ran, ablated: Ran) -> None:
    assert full.layers == ablated.layers
    assert kinds(ablated) == {"facts"}
    facts = [line.lower().replace(" > ", " ") for text in CHAIN for line in text.splitlines()]
    assert {*texts(ablated)} == {*facts}
    assert {*texts(ablated)[: len(MET)]} == {*facts[: len(MET)]}, "first those that the question hits"


def one_shot(full: Ran, ablated: Ran) -> None:
    no_call_of("probe", "encode")(full, ablated)
    assert full.calls["answer"] > ablated.calls["answer"] == 1


def as_published(full: Ran, ablated: Ran) -> None:
    assert full.layers == ablated.layers
    assert full.calls["encode"] < ablated.calls["encode"], "a cue for each layer, not for each probe"


def search_only(place: str) -> Callable[[Ran, Ran], None]:
    def check(full: Ran, ablated: Ran) -> None:
        assert [each["place"] for each in full.details("explored")] == ["everywhere", "local", "global"]
        assert [each["place"] for each in ablated.details("explored")] == ["everywhere", place, place]

    return check


def go_on(full: Ran, ablated: Ran) -> None:
    reasons = [ran.details("stopped")[0]["reason"] for ran in (full, ablated)]
    assert reasons == ["the memory suffices", "no new subquery was thought of"]


def no_update(full: Ran, ablated: Ran) -> None:
    assert [len(each["updated"]) for each in full.details("evolved")] == [0, 1]
    assert [len(each["updated"]) for each in ablated.details("evolved")] == [0, 0]


def wider_search(full: Ran, ablated: Ran) -> None:
    narrowed = [[each.get("narrowed_to", 0) for each in ran.details("explored")][1] for ran in (full, ablated)]
    assert narrowed[0] < narrowed[1], "the neighbours of neighbours too"


def other_vertices(full: Ran, ablated: Ran) -> None:
    assert full.details("evolved")[1]["updated"][0]["entities"] == "Ada; Sam"
    assert ablated.details("evolved")[1]["updated"][0]["entities"] == "Xyz"


def originals_too(full: Ran, ablated: Ran) -> None:
    assert [[row["point"] for row in ran.events[-1].detail["pool"]] for ran in (full, ablated)] == [
        ["M3"],
        ["M1", "M2", "M3"],
    ]


def one_page_after_another(full: Ran, ablated: Ran) -> None:
    assert full.layers == ablated.layers
    assert full.calls["look_up"] == 1 < ablated.calls["look_up"]


def gists_alone(full: Ran, ablated: Ran) -> None:
    no_call_of("look_up")(full, ablated)
    assert (kinds(full), kinds(ablated)) == ({"passages"}, {"pages"}), "all pages were looked up, or none"


def check_single_reading(full: Ran, ablated: Ran) -> None:
    assert (full.calls["extract_notes"], ablated.calls["extract_notes"]) == (3, 2)


def keep_all_facts(full: Ran, ablated: Ran) -> None:
    of_full, of_ablated = ([piece.text for piece in ran.evidence if piece.layer == EXTRACTS] for ran in (full, ablated))
    assert {*of_full} < {*of_ablated} == {*TEXTS[:-3]}


def show_no_passage(full: Ran, ablated: Ran) -> None:
    assert (kinds(full), kinds(ablated)) == ({EXTRACTS, "passages"}, {EXTRACTS})


def read_both_ways(full: Ran, ablated: Ran) -> None:
    assert ablated.calls == {"carry_note": 2 * full.calls["carry_note"], "answer": 1}


def run_five_times(full: Ran, ablated: Ran) -> None:
    assert ablated.calls == {role: 5 * calls for role, calls in full.calls.items()}


def network_alone(full: Ran, ablated: Ran) -> None:
    assert (full.layers, ablated.layers) == (("schemata",), ("schemata:levels=0",))
    assert (kinds(full), kinds(ablated)) == ({"passages", "schemata"}, {"passages"})
    assert ablated.calls["select_nodes"] > 1, "it grows along links"


def builds_other_tree(name: str) -> Callable[[Ran, Ran], None]:
    def check(full: Ran, ablated: Ran) -> None:
        assert (full.layers, ablated.layers) == (("memtree",), (f"memtree:{name}",))
        nodes = [piece for piece in ablated.evidence if piece.layer == ablated.layers[0]]
        assert nodes
        assert all(piece.text.startswith("Sum:") != (name == "aggregation=0") for piece in nodes)

    return check


def searches_by(*first: str, question: bool = False) -> Callable[[Ran, Ran], None]:
    """The first entities tell by which keywords was searched; and whether the question itself found passages."""

    def check(full: Ran, ablated: Ran) -> None:
        assert full.layers == ablated.layers
        assert LONER in texts(full), "in no fact: the question found it"
        assert (LONER in texts(ablated)) == question
        entities = [piece.text for piece in ablated.evidence if piece.layer == "entities"]
        assert tuple(entities[: len(first)]) == first

    return check


def searches_without_keywords(full: Ran, ablated: Ran) -> None:
    no_call_of("keywords")(full, ablated)
    searches_by("ada", "tom", question=True)(full, ablated)


def searches_passages_alone(full: Ran, ablated: Ran) -> None:
    no_call_of("keywords")(full, ablated)
    assert (full.layers, ablated.layers) == (("graph:passages-relations",), ())
    assert (kinds(full), kinds(ablated)) == ({"passages", "facts", "entities"}, {"passages"})


def builds_schemata(name: str) -> Callable[[Ran, Ran], None]:
    def check(full: Ran, ablated: Ran) -> None:
        assert ablated.layers == (f"schemata:{name}",)
        below = [source for piece in ablated.evidence if piece.layer == ablated.layers[0] for source in piece.sources]
        assert below, "a summary was found"

    return check


def put_kept_first(full: Ran, ablated: Ran) -> None:
    """The search puts what the model kept first; fused, what other searches find too may stand before it."""
    assert [piece.score for piece in ablated.evidence] == [1 / rank for rank in range(1, 1 + len(ablated.evidence))]
    assert [piece.score for piece in full.evidence] != [1 / rank for rank in range(1, 1 + len(full.evidence))]


def check_entities(full: Ran, ablated: Ran) -> None:
    assert ablated.layers == ("graph:passages-triples", "schemata:entities:passages-triples")
    assert kinds(ablated) >= {"passages", "schemata:entities:passages-triples"}


def check_search_without_model(full: Ran, ablated: Ran) -> None:
    no_call_of("select_nodes")(full, ablated)
    assert full.layers == ablated.layers
    assert len(ablated.evidence) > 0


def rewrites_of(ran: Ran) -> set[str]:
    return {piece.rewrite.name for piece in ran.evidence if piece.rewrite}


def without_lift(full: Ran, ablated: Ran) -> None:
    """What is near to a rewritten question is lifted by it alone."""
    assert full.score("Spain") > ablated.score("Spain") + 0.3
    assert not rewrites_of(ablated)


def without_coverage(full: Ran, ablated: Ran) -> None:
    """The first passage has the word Signmark; that on Spain has others, that on Finland fewer."""
    assert full.score("Spain") > ablated.score("Spain")
    assert full.score("Finland") < ablated.score("Finland")


def check_whole_question(full: Ran, ablated: Ran) -> None:
    assert "the markka" in rewrites_of(full)
    assert "the markka" not in rewrites_of(ablated)


def rank_as_found(full: Ran, ablated: Ran) -> None:
    """The rule of the last prompt puts forward what stands beside the passage that is nearest to the question."""
    places = [
        next(place for place, text in enumerate(texts(ran)) if text.startswith(BESIDE)) for ran in (full, ablated)
    ]
    assert places[0] < places[1]
    assert len(ablated.shown) == len(ablated.evidence), "each piece by itself"


def show_apart(full: Ran, ablated: Ran) -> None:
    rank_as_found(full, ablated)
    assert len(full.shown) < len(full.evidence), "passages that follow one another are one piece"
    assert any(f"{LONER} {BESIDE}" in text for text in full.shown)


def reads_reports(*roles: str) -> Callable[[Ran, Ran], None]:
    """Reports are read by these roles, and the answer is from what they say and from passages."""

    def check(full: Ran, ablated: Ran) -> None:
        assert full.layers == ablated.layers == ("graph:passages-relations", "communities")
        assert full.calls == {"answer": 1}
        assert {*ablated.calls} == {*roles, "answer"}
        assert kinds(ablated) == {"passages"}
        (chosen,) = ablated.details("reports chosen")
        assert chosen["reports"]

    return check


def without_relations(full: Ran, ablated: Ran) -> None:
    assert full.layers == ablated.layers
    assert kinds(full) - kinds(ablated) == {"entities", "facts"}


CHANGES: Mapping[tuple[str, str], Callable[[Ran, Ran], None]] = {
    ("hybrid", "without rewriting"): without_lift,
    ("hybrid", "without comparisons"): check_whole_question,
    ("associative", "without rewriting"): without_lift,
    ("associative", "without coverage"): without_coverage,
    ("associative", "without comparisons"): check_whole_question,
    ("hipporag2", "without recognition"): one_fact_less,
    ("hipporag2+probe", "without recognition"): no_call_of("filter_facts"),
    ("raptor", "traversal"): from_the_top,
    ("memtree", "batches of one"): builds_other_tree("batch=1"),
    ("memtree", "without aggregation"): builds_other_tree("aggregation=0"),
    ("lightrag", "local"): searches_by("ida"),
    ("lightrag", "global"): searches_by("ada", "tom"),
    ("lightrag", "hybrid"): searches_by("ida", "ada"),
    ("lightrag", "without graph"): searches_passages_alone,
    ("lightrag", "without keywords"): searches_without_keywords,
    ("cogitorag", "without diffusion"): one_step_only,
    ("cogitorag", "without cognirank"): masses_alone,
    ("cogitorag", "without decomposition"): no_call_of("decompose"),
    ("cogitorag", "without passage seeds"): entities_alone,
    ("cogitorag", "graph from passages"): read_from("passages"),
    ("cogitorag", "graph from summaries"): read_from("summaries"),
    ("cogitorag", "answer from passages"): passages_alone,
    ("cogitorag", "answer from what gists add"): what_gists_add,
    ("cogitorag", "answer from triples"): facts_alone,
    ("cam", "links only"): network_alone,
    ("cam", "without hierarchy"): builds_schemata("levels=1"),
    ("cam", "without flexibility"): builds_schemata("disjoint"),
    ("cam", "shuffled clusters"): builds_schemata("shuffled"),
    ("cam", "links as published"): builds_schemata("theta=0.5"),
    ("cam", "with entities"): check_entities,
    ("cam", "hierarchical retrieval"): check_search_without_model,
    ("cam", "global retrieval"): check_search_without_model,
    ("comorag", "without veridical"): no_layer("graph:passages-triples", "passages"),
    ("comorag", "without semantic"): no_layer("tree", "tree"),
    ("comorag", "without episodic"): no_layer("episodes", "episodes"),
    ("comorag", "without metacognition"): no_call_of("encode"),
    ("comorag", "without regulation"): no_call_of("probe"),
    ("comorag", "without both"): one_shot,
    ("comorag", "as published"): as_published,
    ("hgmem", "global only"): search_only("global"),
    ("hgmem", "local only"): search_only("local"),
    ("hgmem", "without update"): no_update,
    ("hgmem", "without merging"): no_call_of("merge_points"),
    ("hgmem", "two-hop neighbourhood"): wider_search,
    ("hgmem", "update replaces vertices"): other_vertices,
    ("hgmem", "merged points stay"): originals_too,
    ("hgmem", "go on although sufficient"): go_on,
    ("graphrag", "global"): reads_reports("map_reports"),
    ("graphrag", "dynamic"): reads_reports("rate_report", "map_reports"),
    ("graphrag", "drift"): reads_reports("hypothesise", "explore"),
    ("graphrag", "global, level 0"): reads_reports("map_reports"),
    ("graphrag", "global, level 1"): reads_reports("map_reports"),
    ("graphrag", "without reports"): no_layer("communities", "reports"),
    ("graphrag", "without relations"): without_relations,
    ("read_agent", "sequential"): one_page_after_another,
    ("read_agent", "without look-up"): gists_alone,
    ("cosmir", "extraction alone"): no_call_of("infer_notes", "refine_questions"),
    ("cosmir", "without inference"): no_call_of("infer_notes"),
    ("cosmir", "without refinement"): no_call_of("refine_questions"),
    ("cosmir", "without recovery"): check_single_reading,
    ("cosmir", "unbounded ledger"): keep_all_facts,
    ("cosmir", "ledger alone"): show_no_passage,
    ("chain_of_agents", "bidirectional"): read_both_ways,
    ("chain_of_agents", "self-consistent"): run_five_times,
}
NAMED = [(system, ablation) for system, changes in ABLATIONS.items() for ablation in changes]
FEW = {"selection": "as found", "limit": 20}
SELECTIONS = {
    **dict.fromkeys(("naive", "hybrid", "associative", "hipporag2", "raptor", "memtree"), (FEW, show_apart)),
    **dict.fromkeys((PAIR, "comorag", "hgmem"), ({"selection": "as found"}, show_apart)),
    "cogitorag": (FEW, rank_as_found),
    "cam": (FEW, put_kept_first),
}


@pytest.mark.parametrize(("system", "ablation"), NAMED, ids=[f"{system}:{ablation}" for system, ablation in NAMED])
async def test_an_ablation_changes_what_its_name_says(open_copy, system, ablation):
    assert (system, ablation) in CHANGES, "say in CHANGES what this ablation changes"
    store, question, base = open_copy("lands" if system in OVER_LANDS else "library"), QUESTION, {}
    if system in OVER_LANDS:
        question = CHOICE if ablation == "without comparisons" else bridges.QUESTION
    if system in SELECTIONS:
        base, _ = SELECTIONS[system]  # only what the system finds itself, so that each part shows
    full = await run(store, system, base, question)
    CHANGES[system, ablation](full, await run(store, system, {**base, **ABLATIONS[system][ablation]}, question))


@pytest.mark.parametrize("system", SELECTIONS)
async def test_evidence_is_selected_from_all_searches_or_as_it_was_found(open_copy, system):
    store, (as_found, check) = open_copy("library"), SELECTIONS[system]
    check(await run(store, system, {}, QUESTION), await run(store, system, as_found, QUESTION))


def test_no_row_is_of_an_ablation_that_is_gone():
    assert CHANGES.keys() == {*NAMED}
