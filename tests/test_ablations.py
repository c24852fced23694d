"""What every named ablation changes: the layers it needs, the calls it makes, or the evidence it shows.

One row an ablation in `CHANGES`: a new ablation without a row fails.
"""

from __future__ import annotations

import asyncio
import operator
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests import bridges
from tests.stories import put_texts

from tomewise.embedding.hash import HashEmbedder
from tomewise.memory.building import build
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import SYSTEMS, assemble, find_declaration
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Event, Evidence, Question

PAIR = "hipporag2+probe"  # it has the ablations of its recall
ABLATIONS = {name: found for name in (*SYSTEMS, PAIR) if (found := find_declaration(name).ablations)}
EMBEDDER = HashEmbedder()
QUESTION = "Whom did Ada meet?"
SETTLED = "Whom did Ada meet at once?"
LONER = "Whom did Ada ever meet?"  # near to the question, and in no fact
MET = ("Ada > meet > Tom", "Ada > meet > Sam", "Ada > meet > Una", "Ada > did meet > Pip", "Ada > did meet > Rob")
CHAIN = ("\n".join(MET), "Tom > knew > Ida", "Ida > kept > Xyz")  # a walk alone ties the last to the question
ADDED = "It was so indeed, that winter."  # what each gist says beyond its passage
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

    @property
    def texts(self) -> list[str]:
        return [piece.text for piece in self.evidence]

    @property
    def kinds(self) -> set[str]:
        return {piece.layer for piece in self.evidence}

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


def look_once(given: Any) -> dict[str, object]:
    """All tools, one after the other in two replies."""
    first = [{"tool": "find", "what": "Ida"}, {"tool": "search", "what": "Ida"}, {"tool": "read", "what": "part 1"}]
    asked = {look.tool for look in (*given.tried, *given.results)}
    return {"looks": [{"tool": "outline"}] if "find" in asked else first, "finished": "outline" in asked}


def make_model() -> ScriptedModel:
    """A model that plays every role, and declines to answer as long as it may."""
    return ScriptedModel(
        {
            "gist": lambda given: {"memory": f"{given.text}\n\n{ADDED}"},
            "summarise": lambda given: {"summary": f"Sum: {' '.join(text[:12] for text in given.texts)[:80]}"},
            "aggregate": lambda given: {"summary": f"Sum: {' '.join(text[:12] for text in given.texts)[:80]}"},
            "narrate": lambda given: {"summary": f"Course: {' '.join(text[:12] for text in given.texts)[:80]}"},
            "extract_facts": extract_lines,
            "extract_entities": lambda _: {"entities": []},
            "extract_triples": extract_lines,
            "filter_facts": lambda given: {"keep": [at for at, fact in enumerate(given.facts, 1) if "tom" in fact]},
            "select_nodes": lambda given: {"keep": list(range(1, 1 + len(given.nodes)))},
            "decompose": lambda _: {"subqueries": [QUESTION, "Whom did Ada once meet?"]},
            "keywords": lambda _: {"details": ["Ida"], "themes": ["Whom met"]},
            "probe": lambda given: {"probes": [f"number {len(given.past_probes) + place}" for place in range(3)]},
            "encode": lambda given: {"cue": f"cue of {given.probe}"},
            "fuse": lambda _: {"cue": "fused"},
            "extract_relations": relate_lines,
            "glean_relations": lambda _: {},
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
            "choose_looks": look_once,
            "think": lambda given: {"thought": f"number {len(given.thoughts)}"},
            "step": lambda given: {"subquestion": f"number {len(given.asked)}"},
            "shorten": lambda given: {"gist": f"Page: {given.text[:40]}"},
            "look_up": lambda given: {"labels": [f"E{number}" for number in range(1, 9)]},
            "plan_reading": lambda _: {"questions": [QUESTION], "needs_all": False},
            "extract_notes": note_lines,
            "infer_notes": lambda given: {"inferences": [{"rests_on": ["F1"], "inference": "So Tom."}]},
            "refine_questions": lambda _: {},
            "carry_note": lambda given: {"note": given.evidence[0].text},
            "mark_facts": note_lines,
            "update_ledger": lambda given: {"answered": [1], "settled": True} if given.question == SETTLED else {},
            "answer": lambda given: {"answer": "*" if given.may_decline else "Tom"},
        }
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tome with every layer of every system and ablation."""
    path = tmp_path_factory.mktemp("library") / "library.tome"
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


@pytest.fixture(scope="module")
def stores(library: Path, lands: Path) -> Iterator[dict[str, SqlStore]]:
    """The library and the lands, which questions only read."""
    opened = {path.stem: SqlStore.open(path) for path in (library, lands)}
    yield opened
    for store in opened.values():
        store.close()


@pytest.fixture(scope="module")
def run(stores: Mapping[str, SqlStore]) -> Callable[..., Ran]:
    """Ask a question of a system with settings; what was asked before is not asked again."""

    @cache
    def ask(name: str, question: str, settings: tuple[tuple[str, Any], ...]) -> Ran:
        model = make_model()
        # In tokens, two chunks. With one passage a search, a second round finds new ones.
        several = {"read_through": {"chunk": 250}, "hgmem": {"limit": 1}}.get(name, {})
        store = stores["lands" if name.partition("+")[0] in OVER_LANDS else "library"]
        system = assemble(name, Kit(store, model, EMBEDDER), **(several | dict(settings)))
        answer = asyncio.run(answer_question(system, Question(text=question, force=True)))
        layers = tuple(layer.name for layer in system.layers)
        shown = tuple(piece.text for piece in model.calls[-1].given.evidence)
        return Ran(layers, Counter(call.role for call in model.calls), shown, answer.evidence, answer.events)

    return lambda name, question=QUESTION, **settings: ask(name, question, tuple(settings.items()))


Check = Callable[[Ran, Ran], None]


def expect(measure: Callable[[Ran], Any], after: Any) -> Check:
    """What is measured is this with the ablation, and something else without it."""

    def check(full: Ran, ablated: Ran) -> None:
        assert measure(ablated) == after != measure(full)

    return check


def compare(relation: Callable[[Any, Any], bool], measure: Callable[[Ran], Any]) -> Check:
    """What is measured without the ablation, and with it, stand in this relation."""

    def check(full: Ran, ablated: Ran) -> None:
        assert relation(measure(full), measure(ablated))

    return check


def expect_layers(*layers: str) -> Check:
    return expect(lambda ran: ran.layers, layers)


def expect_no_layer(name: str) -> Check:
    return expect(lambda ran: name in ran.layers, False)


def expect_no_call(*roles: str) -> Check:
    return expect(lambda ran: [ran.calls[role] > 0 for role in roles], [False] * len(roles))


def expect_places(*places: str) -> Check:
    return expect(lambda ran: [each["place"] for each in ran.details("explored")], list(places))


def expect_roles(*roles: str) -> Check:
    return expect(lambda ran: {*ran.calls}, {*roles})


def expect_no_look(tool: str) -> Check:
    """No look with this tool is taken."""
    return expect(
        lambda ran: tool in [each["tool"] for each in ran.details("looked") if "not taken" not in each["result"]], False
    )


def list_rewrites(ran: Ran) -> set[str]:
    return {piece.rewrite.name for piece in ran.evidence if piece.rewrite}


def list_facts() -> set[str]:
    return {line.lower().replace(" > ", " ") for text in CHAIN for line in text.splitlines()}


def check_masses_alone(full: Ran, ablated: Ran) -> None:
    assert full.score(CHAIN[0]) == pytest.approx(1, abs=0.06)
    assert ablated.score(CHAIN[0]) == 1, "masses are parts of the greatest"
    assert ablated.score(CHAIN[2]) > full.score(CHAIN[2]) == 0, "the least of the candidates counts 0 in CogniRank"


def check_keywords(*first: str) -> Check:
    """The first entities tell by which keywords was searched."""
    return expect(lambda ran: tuple(piece.text for piece in ran.evidence if piece.layer == "entities")[:2], first)


def check_coverage(full: Ran, ablated: Ran) -> None:
    """The first passage has the word Signmark; that on Spain has others, that on Finland fewer."""
    assert full.score("Spain") > ablated.score("Spain")
    assert full.score("Finland") < ablated.score("Finland")


CHANGES: Mapping[tuple[str, str], Check] = {
    ("hybrid", "without rewriting"): expect(list_rewrites, set()),
    ("hybrid", "without comparisons"): expect(lambda ran: "the markka" in list_rewrites(ran), False),
    ("associative", "without rewriting"): compare(operator.gt, lambda ran: ran.score("Spain")),
    ("associative", "without coverage"): check_coverage,
    ("associative", "without comparisons"): expect(lambda ran: "the markka" in list_rewrites(ran), False),
    ("hipporag2", "without recognition"): expect_no_call("filter_facts"),
    ("hipporag2+probe", "without recognition"): expect_no_call("filter_facts"),
    ("raptor", "traversal"): compare(operator.gt, lambda ran: len(ran.evidence)),  # five nodes of each level
    ("memtree", "without aggregation"): expect(lambda ran: any(text.startswith("Sum:") for text in ran.texts), False),
    ("lightrag", "local"): check_keywords("ida", "pip"),
    ("lightrag", "global"): check_keywords("ada", "pip"),
    ("lightrag", "mix, as released"): expect(lambda ran: LONER in ran.texts, True),  # in no fact
    ("lightrag", "without graph"): expect(lambda ran: ran.kinds, {"passages"}),
    ("lightrag", "without keywords"): expect_no_call("keywords"),
    # Two steps from the entities of the question, a passage follows by its cosine alone.
    ("cogitorag", "without diffusion"): expect(lambda ran: [ran.score(text) >= 0 for text in CHAIN[1:]], [True, False]),
    ("cogitorag", "without cognirank"): check_masses_alone,
    ("cogitorag", "without decomposition"): expect_no_call("decompose"),
    ("cogitorag", "graph from passages"): expect_layers("gists", "graph:passages-triples-in-2-calls"),
    ("cogitorag", "graph from summaries"): expect_layers("gists", "summaries", "graph:summaries-triples-in-2-calls"),
    ("cogitorag", "answer from passages"): expect(lambda ran: {*ran.texts} <= {*TEXTS}, True),
    ("cogitorag", "answer from triples"): expect(lambda ran: {*ran.texts}, list_facts()),
    ("cam", "links only"): expect(lambda ran: (ran.layers, ran.kinds), (("schemata:levels=0",), {"passages"})),
    ("cam", "without flexibility"): expect_layers("schemata:disjoint"),
    ("cam", "as published"): expect_layers("schemata:as published"),
    ("cam", "with entities"): expect_layers("graph:passages-triples", "schemata:entities:passages-triples"),
    ("cam", "hierarchical retrieval"): expect_no_call("select_nodes"),
    ("cam", "global retrieval"): expect_no_call("select_nodes"),
    ("cam", "filled pools"): compare(operator.gt, lambda ran: ran.calls["select_nodes"]),  # one pool has all
    ("comorag", "without veridical"): expect_no_layer("graph:passages-triples"),
    ("comorag", "without semantic"): expect_no_layer("tree"),
    ("comorag", "without episodic"): expect_no_layer("episodes"),
    ("comorag", "without metacognition"): expect_no_call("encode"),
    ("comorag", "without regulation"): expect_no_call("probe"),
    ("comorag", "without both"): expect_no_call("probe", "encode"),
    ("hgmem", "global only"): expect_places("everywhere", "global", "global"),
    ("hgmem", "local only"): expect_places("everywhere", "local", "local"),
    ("hgmem", "without update"): expect(lambda ran: [len(each["updated"]) for each in ran.details("evolved")], [0, 0]),
    ("hgmem", "without merging"): expect_no_call("merge_points"),
    ("hgmem", "two-hop neighbourhood"): compare(operator.lt, lambda ran: ran.details("explored")[1]["narrowed_to"]),
    ("hgmem", "update replaces vertices"): expect(
        lambda ran: ran.details("evolved")[1]["updated"][0]["entities"], "Xyz"
    ),
    ("hgmem", "merged points stay"): expect(
        lambda ran: [row["point"] for row in ran.events[-1].detail["pool"]], ["M1", "M2", "M3"]
    ),
    ("hgmem", "go on although sufficient"): expect(
        lambda ran: ran.details("stopped")[0]["reason"], "no round is left (allowed: 4)"
    ),
    ("graphrag", "global"): expect_roles("map_reports", "answer"),
    ("graphrag", "dynamic"): expect_roles("rate_report", "map_reports", "answer"),
    ("graphrag", "drift"): expect_roles("hypothesise", "explore", "answer"),
    ("graphrag", "global, level 0"): expect_roles("map_reports", "answer"),
    ("graphrag", "global, level 1"): expect_roles("map_reports", "answer"),
    ("graphrag", "without reports"): expect_no_layer("communities"),
    ("graphrag", "without relations"): expect(lambda ran: "facts" in ran.kinds, False),
    ("read_agent", "sequential"): compare(operator.lt, lambda ran: ran.calls["look_up"]),
    ("read_agent", "without look-up"): expect(lambda ran: (ran.calls["look_up"], ran.kinds), (0, {"pages"})),
    ("read_through", "without recovery"): expect(lambda ran: ran.calls["mark_facts"], 2),
    **{("explore", f"without {tool}"): expect_no_look(tool) for tool in ("find", "search", "read", "outline")},
    ("read_through", "to the end"): compare(operator.lt, lambda ran: ran.calls["mark_facts"]),
}
NAMED = [(system, ablation) for system, changes in ABLATIONS.items() for ablation in changes]
WIDE = ("naive", "hybrid", "associative", "hipporag2", "raptor", "memtree", "cogitorag", "cam")


@pytest.mark.parametrize(("system", "ablation"), NAMED, ids=[f"{system}:{ablation}" for system, ablation in NAMED])
def test_an_ablation_changes_what_its_name_says(run, system, ablation):
    assert CHANGES.keys() == {*NAMED}, "one row an ablation"
    question = QUESTION
    if ablation == "to the end":
        question = SETTLED
    if system in OVER_LANDS:
        question = CHOICE if ablation == "without comparisons" else bridges.QUESTION
    base: dict[str, Any] = {"limit": 20} if system in WIDE else {}  # so that each part shows
    if system == "cogitorag" and ablation != "without decomposition":
        base["asking"] = "whole"  # its own scores; merged parts have places
    name = "associative+once" if system == "associative" else system  # its own scores, which are not fused
    changed = {**base, **ABLATIONS[system][ablation]}
    CHANGES[system, ablation](run(name, question, **base), run(name, question, **changed))
