"""HGMem with scripted conversations: each operation, each malformed reply, and what memories share: nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from tests.recall.relation_tomes import EMBEDDER, build_store

from tomewise.errors import BadReply, ModelUnavailable, UsageError
from tomewise.language.roles import EVOLVE
from tomewise.loops.evidence import make_token_counter, measure_texts
from tomewise.store.export import export
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.testing import check_loop
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Answer, Event, Question, Scope
from tomewise.working.hypergraph import Hypergraph

TEXTS = (
    "Xodar ~ Carter ~ Carter defeated Xodar in the ship",
    "Issus ~ Xodar ~ Issus degraded Xodar to a slave",
    "Issus ~ Phaidor ~ Phaidor serves Issus",
    "Carter ~ Dejah Thoris ~ she married Carter",
    "Zat Arras ~ Zodanga ~ Zat Arras rules Zodanga",
)
STEM = "Why is Xodar a slave?"
ANSWERED = {"answer": "for his defeat"}
ENOUGH = {"reasoning": "it is settled", "sufficient": True}
NOTHING: dict[str, Any] = {}
POINT = {"description": "Issus degraded Xodar.", "entities": ["Issus", "Xodar"], "evidence": ["E1"]}
OTHER = {"description": "Carter defeated Xodar.", "entities": ["Carter", "Xodar"]}


@pytest.fixture
async def store(tmp_path):
    made = await build_store(tmp_path, *TEXTS)
    yield made
    made.close()


def search_for(query: str, place: str = "global", *points: str) -> dict[str, Any]:
    return {"concern": f"on {query}", "place": place, "points": list(points), "subqueries": [query]}


def plan(*concerns: dict[str, Any]) -> dict[str, Any]:
    return {"reasoning": "not yet", "sufficient": False, "concerns": list(concerns)}


def insert(*records: dict[str, Any]) -> dict[str, Any]:
    return {"insertions": list(records)}


def merge_pairs(*pairs: list[str]) -> dict[str, Any]:
    return {"merges": [{"points": pair, "description": "Both."} for pair in pairs]}


def remember(memory: Hypergraph, text: str, name: str = "Carter") -> str:
    """Insert a point that is about one entity of the graph. Returns its id."""
    return memory.insert(text, [name]).id


def measure(query: str, text: str) -> float:
    """The cosine of a text with a query."""
    return float(EMBEDDER.embed([text])[0] @ EMBEDDER.embed([query])[0])


def make_model(
    evolve: Any = (), plans: Any = (ENOUGH,), merges: Any = (NOTHING,), answer: Any = None, **limits: Any
) -> ScriptedModel:
    """Each round takes the next reply; empty ones follow, and the memory suffices."""
    scripts = {"evolve": (evolve, NOTHING), "plan": (plans, ENOUGH), "merge_points": (merges, NOTHING)}
    replies = {role: script if callable(script) else [*script, *[last] * 9] for role, (script, last) in scripts.items()}
    return ScriptedModel({**replies, "answer": answer or (lambda _: ANSWERED)}, **{"window": 32_000, **limits})


@dataclass(frozen=True)
class Asked:
    """A question that was answered, the model that was asked, and the memory in the end."""

    model: Any
    events: list[Event]
    answer: Answer
    memory: Hypergraph

    @property
    def roles(self) -> list[str]:
        return [call.role for call in self.model.calls]

    @property
    def points(self) -> dict[str, tuple[str, str]]:
        """What the memory holds in the end: the description and the entities by point."""
        return {row["point"]: (row["description"], row["entities"]) for row in self.last["pool"]}

    @property
    def last(self) -> Any:
        return self.events[-1].detail

    @property
    def searches(self) -> list[tuple[str, str]]:
        return [(each["subquery"], each["place"]) for each in self.details("explored")]

    def details(self, name: str) -> list[Any]:
        return [event.detail for event in self.events if event.name == name]

    def inputs(self, role: str) -> list[Any]:
        return [call.given for call in self.model.calls if call.role == role]


@pytest.fixture
def ask(store: SqlStore) -> Callable[..., Awaitable[Asked]]:
    """Ask with scripted replies. Few passages a search, so that later rounds find new ones."""

    async def run(
        evolve: Any = (), plans: Any = (ENOUGH,), merges: Any = (NOTHING,), *, question: Question | str = STEM,
        answer: Any = None, model: Any = None, memory: Hypergraph | None = None, over: Any = None,
        embedder: Any = EMBEDDER, system: str = "hgmem", window: int = 32_000, **settings: Any,
    ) -> Asked:  # fmt: skip
        model = model or make_model(evolve, plans, merges, answer, window=window)
        loop: Any = assemble(system, Kit(over or store, model, embedder), **{"limit": 1, **settings}).loop
        question = Question(text=question) if isinstance(question, str) else question
        memory = Hypergraph() if memory is None else memory
        *events, found = [output async for output in loop.run(question, memory)]
        return Asked(model, events, found, memory)

    return run


async def test_the_question_is_searched_for_points_are_made_and_the_answer_sees_them(ask):
    asked = await ask([insert(POINT, OTHER)])
    assert asked.roles == ["evolve", "plan", "answer"]
    names = [event.name for event in asked.events]
    assert names == ["explored", "evolved", "planned", "stopped", "answered from points"]
    (read,), (given,) = asked.inputs("evolve"), asked.inputs("answer")
    titles = [piece.title for piece in read.evidence if piece.kind == "fact"]
    assert titles
    assert not [title for title in titles if title.islower()], "names are written as in the texts"
    assert given.notes == ["Issus degraded Xodar.", "Carter defeated Xodar."]
    assert [piece.text for piece in given.evidence] == [*TEXTS[:4]], "the passages of the vertices"
    assert asked.answer.text == "for his defeat"
    (planned,) = asked.inputs("plan")
    made = [("M1", ["Issus", "Xodar"]), ("M2", ["Carter", "Xodar"])]
    assert [(point.id, point.entities) for point in planned.points] == made
    assert planned.searched == [STEM]
    assert asked.events[3].detail["reason"] == "the memory suffices"
    assert (asked.last["points"], asked.last["vertices_per_point"]) == (2, 2.0)


async def test_points_are_updated_and_merged(ask):
    update = {"point": "M1", "description": "Issus degraded Xodar\nin disgust.", "entities": ["Zodanga"]}
    asked = await ask(
        [insert(POINT), {"updates": [update], "insertions": [OTHER]}],
        [plan(search_for("who defeated him")), ENOUGH],
        [{"merges": [{"points": ["M1", "M2"], "description": "Xodar is punished for his defeat."}]}],
    )
    assert asked.points == {"M3": ("Xodar is punished for his defeat.", "Carter; Issus; Xodar")}
    first, second = asked.details("evolved")
    assert [row["point"] for row in first["inserted"]] == ["M1"]
    assert second["updated"][0]["description"] == "Issus degraded Xodar\nin disgust.", "several lines are kept"
    assert second["updated"][0]["entities"] == "Issus; Xodar", "an update changes the description alone"
    assert [(row["point"], row["parts"]) for row in asked.details("merged")[0]["merged"]] == [("M3", "M1, M2")]
    assert asked.last["vertices_per_point"] == 3.0


@pytest.mark.parametrize(
    ("replies", "reasons"),
    [
        ({"evolve": {"updates": [{"point": "M9", "description": "x"}]}}, ["'M9' is not a memory point"]),
        ({"evolve": {"updates": [{"point": 0, "description": "x"}]}}, ["'0' is not a memory point"]),
        ({"evolve": {"updates": [{"point": "M1"}]}}, ["needs a description"]),
        ({"evolve": insert({"description": "text", "entities": []})}, ["needs an entity"]),
        ({"evolve": insert({"description": "text", "entities": ["", "\n", "?"]})}, ["without a name"] * 3),
        ({"evolve": insert({"description": " \n ", "entities": ["Issus"]})}, ["needs a description"]),
        ({"evolve": insert({**OTHER, "evidence": ["E99", "page"]})}, ["no evidence was shown as E99, page"]),
        ({"evolve": insert({**OTHER, "evidence": ["E1, E99", "page"]})}, ["not shown: 'E99'", "not shown: 'page'"]),
        ({"merge_points": {"merges": [{"points": [], "description": "x"}]}}, ["a merge of nothing"]),
        ({"merge_points": {"merges": [{"points": ["M1"], "description": "x"}]}}, ["two or more different"]),
        ({"merge_points": {"merges": [{"points": ["M1", "M7"], "description": "x"}]}}, ["'M7' is not a memory"]),
        ({"merge_points": {"merges": [{"points": ["M1", "M2"]}]}}, ["needs a description"]),
        ({"merge_points": merge_pairs(["M1", "M2"], ["M2", "M3"])}, ["'M2' is not a memory point"]),
        ({"merge_points": merge_pairs(["M1", "M2"], ["M4", "M3"])}, ["M4 is merged twice"]),
        ({"plan": plan({**search_for("a ship"), "subqueries": ["a ship", "a boat"]})}, ["a second subquery"]),
        ({"plan": plan(search_for("a ship", "local", "M1", "M2"))}, ["a second point of one concern: M2"]),
        ({"plan": plan(*map(search_for, "abcd"))}, ["beyond the limit of 3: 'd'"]),
        ({"plan": plan({"concern": "", "subqueries": []}, search_for("a ship"))}, ["without words"]),
        (
            {"plan": plan(search_for("a ship", "local", "M9", "7"))},
            ["'M9' is not a memory point", "'7' is not a memory point", "around no point"],
        ),
        ({"plan": BadReply("no JSON")}, ["no JSON"]),
        ({"evolve": BadReply("no JSON")}, ["no JSON"]),
        ({"merge_points": BadReply("no JSON")}, ["no JSON"]),
    ],
)  # fmt: skip
async def test_what_cannot_be_used_of_a_reply_is_recorded_and_skipped(ask, replies, reasons):
    third = {"description": "Phaidor serves.", "entities": ["Phaidor"]}
    asked = await ask(
        [insert(POINT, OTHER, third), replies.get("evolve", NOTHING)],
        [replies.get("plan", plan(search_for("a ship"))), ENOUGH],
        [replies.get("merge_points", NOTHING)],
    )
    recorded = [detail["reason"] for detail in asked.details("skipped")]
    for reason in reasons:
        assert any(reason in line for line in recorded), f"{reason} is not in {recorded}"
    assert asked.answer.text == "for his defeat"
    assert len(asked.points) >= 2


async def test_labels_are_read_however_they_are_written_and_never_mean_all_evidence(ask):
    record = {**POINT, "evidence": "[E1], E2"}
    update = {"point": 1, "description": "Issus degraded Xodar to a slave.", "evidence": ["the last one"]}
    asked = await ask(
        [insert(record, {**OTHER, "evidence": ["all of them"]}, OTHER), {"updates": [update]}],
        [plan(search_for("whom", "local", "[M1]")), ENOUGH],
        [{"merges": [{"points": "M1, [M2]", "description": "Both."}]}],
    )
    (merged,) = asked.memory.points
    assert (merged.id, merged.parts) == ("M3", ("M1", "M2")), "the point whose label means nothing is not there"
    assert asked.details("evolved")[1]["updated"] == [], "nor is the update whose label means nothing"
    assert 0 < len(merged.grounds) <= 2, "a record without labels has no grounds"
    others = asked.memory.find_nodes().difference(merged.grounds)
    assert asked.memory.forget(others) == ("Both.",), "but it may tell of all that was shown"
    assert asked.searches[1][1] == "local"


async def test_an_entity_that_the_graph_does_not_know_lives_in_this_memory_alone(ask, store):
    before = list(export(store))
    outside = {"description": "It is a degradation.", "entities": ["Degradation", "XODAR"]}
    asked = await ask([insert(outside)], [plan(search_for("why", "local", "M1")), ENOUGH])
    assert asked.points == {"M1": ("It is a degradation.", "Degradation; XODAR")}
    assert asked.searches[1] == ("why", "local"), "the graph knows one of them"
    assert list(export(store)) == before, "the long-term graph is never written to"


async def test_a_local_search_around_points_outside_the_graph_is_global(ask):
    outside = {"description": "It is a degradation.", "entities": ["Degradation"]}
    alone = await ask([insert(outside)], [plan(search_for("why", "local", "M1")), ENOUGH])
    assert alone.searches[1][1] == "global"
    (skipped,) = alone.details("skipped")
    assert "no entity near these points: 'why' searches globally" in skipped["reason"]


async def test_four_rounds_at_most_no_plan_after_the_last_and_a_round_is_three_calls_deep(tmp_path):
    store = await build_store(tmp_path, *TEXTS, *(f"Zat ~ Dor ~ Zat met Dor in year {year}" for year in range(9)))
    plans = [plan(search_for(f"ship {n}")) for n in range(9)]
    delayed = make_model([insert(POINT, OTHER)] * 9, plans, latency=0.02)
    answer = await answer_question(assemble("hgmem", Kit(store, delayed, EMBEDDER), limit=1), Question(text=STEM))
    calls = Counter(call.role for call in delayed.calls)
    assert calls == {"evolve": 4, "plan": 3, "merge_points": 3, "answer": 1}
    assert answer.cost.depth == 1 + 3 * 3 + 1
    reasons = [event.detail["reason"] for event in answer.events if event.name == "stopped"]
    assert reasons == ["no round is left (allowed: 4)"]
    store.close()


async def test_two_questions_at_once_do_not_see_each_others_memory(store):
    def evolve(given: Any) -> dict[str, Any]:
        return insert({"description": f"Of {given.question}", "entities": ["Issus", "Xodar"]})

    model = make_model(evolve, lambda given: plan(search_for(f"more {len(given.searched)}")))
    loop = assemble("hgmem", Kit(store, model, EMBEDDER)).loop
    answers = await asyncio.gather(*(check_loop(loop, Question(text=text)) for text in ("one?", "two?")))
    assert [answer.text for answer in answers] == ["for his defeat"] * 2
    for call in model.calls:
        if call.role != "answer":
            assert {point.description for point in call.given.points} <= {f"Of {call.given.question}"}
    notes = {tuple(set(call.given.notes)) for call in model.calls if call.role == "answer"}
    assert notes == {("Of one?",), ("Of two?",)}


async def test_a_memory_that_is_given_is_planned_with_and_grows_while_the_question_is_searched_too(ask):
    memory = Hypergraph()
    remember(memory, "Carter won.")
    asked = await ask([insert(POINT)], [plan(search_for("whom", "local", "M1")), ENOUGH], memory=memory)
    assert asked.roles[:3] == ["plan", "evolve", "merge_points"]
    assert asked.searches == [(STEM, "everywhere"), ("whom", "local")]
    assert [point.id for point in memory.points] == ["M1", "M2"]
    again = await ask(memory=memory)
    assert again.roles == ["plan", "answer"], "what is known already may suffice"
    assert again.searches == []


async def test_a_round_without_a_usable_plan_searches_with_the_question(ask):
    asked = await ask([insert(POINT)] * 9, [BadReply("no JSON"), ENOUGH])
    assert asked.searches == [(STEM, "everywhere"), (STEM, "global")]


async def test_roles_see_the_past_points_that_are_near_to_the_question_up_to_a_bound(ask):
    memory = Hypergraph()
    for number in range(60):
        remember(memory, f"The tide of day {number} came at noon, with foam.")
    remember(memory, "Xodar is a slave of Carter.", "Xodar")
    for number in range(60):
        remember(memory, f"The wind of day {number} came at dawn, with rain.")
    asked = await ask([insert(POINT, OTHER)], [plan(search_for("a ship")), ENOUGH], memory=memory)
    for role in ("plan", "evolve", "merge_points"):
        (first, *_), count = asked.inputs(role), make_token_counter(EMBEDDER)
        assert "Xodar is a slave of Carter." in [point.description for point in first.points]
        assert sum(count([point.description for point in first.points])) <= 800
    (merging, *_) = asked.inputs("merge_points")
    assert [point.description for point in merging.points][-2:] == [POINT["description"], OTHER["description"]]


async def test_a_session_forgets_what_mattered_least_to_its_last_questions(ask):
    memory = Hypergraph()
    for number in range(20):
        for _ in range(2):
            remember(memory, f"The tide of day {number} came at noon.")
        memory.merge([point.id for point in memory.points[-2:]], f"The tides of day {number} came at noon.")
    relevant = remember(memory, "Xodar is a slave of Carter.", "Xodar")
    remember(memory, "The wind came at dawn.")
    await ask(memory=memory)
    await ask(question="When did the tide of day 3 come?", memory=memory)
    memory.shrink(4)
    assert relevant in [point.id for point in memory.points]
    assert "The tides of day 3 came at noon." in memory.notes
    assert Hypergraph.load(memory.dump()) == memory


async def test_every_search_stays_within_the_scope_of_the_question(ask):
    question = Question(text=STEM, within=Scope(documents=frozenset(("d0", "d1"))))
    plans = [plan(search_for("rules", "local", "M1"), search_for("Phaidor")), ENOUGH]
    asked = await ask([insert(POINT)], plans, question=question)
    shown = [piece["text"] for detail in asked.details("explored") for piece in detail["evidence"]]
    assert shown
    assert not [text for text in shown if any(word in text for word in ("Phaidor", "Zodanga", "married"))]
    assert {piece.text for piece in asked.answer.evidence} <= set(TEXTS[:2])


@pytest.mark.parametrize("part", ["plans", "evolve", "merges", "answer"])
async def test_a_model_that_is_gone_is_an_error(ask, part):
    scripts = {"evolve": [insert(POINT, OTHER)], "plans": [plan(search_for("a ship"))]}
    with pytest.raises(ModelUnavailable, match="quota"):
        await ask(**{**scripts, part: lambda _: ModelUnavailable("quota is used up")})


@pytest.mark.parametrize("setting", ["rounds", "subqueries"])
async def test_settings_that_find_nothing_are_refused(ask, setting):
    with pytest.raises(UsageError, match=setting):
        await ask(**{setting: 0})


async def test_evolving_is_shown_what_the_window_holds_passages_first(ask):
    whole, cut = await ask([NOTHING]), await ask([NOTHING], window=EVOLVE.output_tokens + 250)
    kinds = [[piece.kind for piece in asked.inputs("evolve")[0].evidence] for asked in (whole, cut)]
    assert {*kinds[0]} == {"passage", "fact", "entity"}
    assert "passage" in kinds[1]
    assert len(kinds[1]) < len(kinds[0])


async def test_an_entity_has_a_label_and_rests_on_the_passages_that_say_what_it_is(ask, tmp_path):
    (tmp_path / "described").mkdir()
    described = await build_store(tmp_path / "described", "Issus = the false goddess", *TEXTS)

    def find_label(given: Any) -> dict[str, Any]:
        (label,) = [item.label for item in given.evidence if item.kind == "entity" and "goddess" in item.text]
        return insert({**POINT, "entities": ["Helium"], "evidence": [label]})

    asked = await ask(find_label, over=described)
    assert [piece.text for piece in asked.answer.evidence] == ["Issus = the false goddess"]
    described.close()


def write_on(given: Any) -> dict[str, Any]:
    """A point for each passage that no point tells of yet."""
    known = {point.description for point in given.points}
    texts = {f"So it is seen: {item.text}.": item.label for item in given.evidence if item.kind == "passage"}
    names = ["Issus", "Xodar", "Zodanga"]
    return insert(
        *(
            {"description": text, "entities": names, "evidence": [label]}
            for text, label in texts.items()
            if text not in known
        )
    )


@pytest.mark.parametrize("context", [1200, 6000])
async def test_every_point_is_in_the_last_prompt_or_was_cut_by_the_budget_and_what_it_names_can_be_cited(
    ask, tmp_path, context
):
    (tmp_path / "long").mkdir()
    words = " ".join(f"word{number}" for number in range(80))
    long = await build_store(tmp_path / "long", *(f"Xodar ~ Issus ~ {words} of day {day}" for day in range(20)))
    plans = [plan(search_for(f"day {number}", "local", "M1")) for number in range(9)]

    def cite(given: Any) -> dict[str, Any]:
        piece = given.evidence[0]
        quote = " ".join(piece.text.split()[-9:])
        return {"answer": quote, "quotes": [{"label": piece.label, "quote": quote}]}

    model = make_model(write_on, plans, answer=cite)
    asked = await ask(model=model, over=long, context=context, limit=4)
    (given,), count = asked.inputs("answer"), make_token_counter(EMBEDDER)
    made = asked.memory.notes
    assert len(made) > 6
    left_out = [note for note in made if note not in given.notes]
    room = context // 2 - sum(measure_texts(given.notes, count))
    assert all(size > room for size in measure_texts(left_out, count)), "only what has no room is cut"
    assert asked.last["cut"] >= len(left_out)
    assert bool(left_out) == (context == 1200)
    assert asked.answer.coverage.dropped == asked.last["cut"], "and it is said"
    nearest = max(asked.memory.points, key=lambda point: measure(STEM, point.description))
    shown = {piece.id for piece in asked.answer.evidence}
    assert shown.issuperset(nearest.grounds), "what the nearest point rests on"
    assert asked.answer.quotes
    assert asked.answer.quotes[0].passage in shown
    long.close()


async def test_a_round_that_finds_no_new_passage_makes_no_call_but_that_of_its_plan(ask):
    plans = [plan(search_for("again", "local", "M1")), plan(search_for("who serves")), ENOUGH]
    asked = await ask([insert(POINT, OTHER)], plans, limit=9)
    reads = [{item.text for item in given.evidence if item.kind == "passage"} for given in asked.inputs("evolve")]
    assert len(asked.searches) == 3
    assert all(now - before for before, now in pairwise([set[str](), *reads])), "each call reads something new"
    assert len(reads) < 3
    assert asked.roles.count("merge_points") <= 1, "points that did not change are not merged again"


async def test_points_are_merged_where_two_stand_alone_and_some_changed(ask):
    plans = [plan(search_for(f"ship {number}")) for number in range(3)]
    alone = await ask([insert(POINT), NOTHING], plans[:2])
    assert "merge_points" not in alone.roles, "one point"
    both = await ask([insert(POINT, OTHER), NOTHING, NOTHING, NOTHING], plans)
    assert both.roles.count("merge_points") == 1, "nothing changed since"
    kept = await ask(
        [insert(POINT, OTHER), {"updates": [{"point": "M1", "description": "x"}]}] * 2,
        plans,
        [merge_pairs(["M1", "M2"])],
        keeps_merged=True,
    )
    assert [row["point"] for row in kept.last["pool"]][:3] == ["M1", "M2", "M3"]


async def test_what_is_read_has_a_budget_of_its_own(ask):
    wide, narrow = await ask([NOTHING], limit=5, context=10), await ask([NOTHING], limit=5, reading=60)
    sizes = [len(asked.inputs("evolve")[0].evidence) for asked in (wide, narrow)]
    assert sizes[0] > sizes[1] > 0
    assert [asked.details("evolved")[0]["cut"] > 0 for asked in (wide, narrow)] == [False, True]
