"""The probing loop: ComoRAG's algorithm 1 call by call, and what ours does otherwise."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.loops.doubles import EMBEDDER, Shelves, converse, list_inputs, list_roles, make_desk
from tests.loops.slow_comorag import LAYERS, World, follow_algorithm

from tomewise.errors import BadReply, BudgetExceeded, Refused
from tomewise.loops.desk import FusingDesk
from tomewise.loops.evidence import FENCE, make_token_counter
from tomewise.loops.probe import Part, Probe
from tomewise.run import meter
from tomewise.store.records import PASSAGES
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_loop, document_of, put_document
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Answer, Event, Evidence, Question, Scope

STEM = "When?"
QUESTION = Question(text=STEM, force=True)
DECLINED, ANSWERED = {"answer": "*", "missing": "the hour"}, {"answer": "at nine"}
GUESS = {"answer": "at ten", "supported": "partly", "missing": "who saw the tide"}
COUNT = make_token_counter(EMBEDDER)
SHARES = {"v": 8, "s": 2}
Found = Mapping[str, str]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = SqlStore.open(tmp_path_factory.mktemp("probe") / "a.tome")
    for number in range(8):
        put_document(made, EMBEDDER, document_of(f"d{number}", f"Number {number}: the tide turned, said Ada {number}."))
    yield made
    made.close()


def make_recall(store, found: Found) -> dict[str, Shelves]:
    """Two layers, passages v and s: "v0 s1" under a query is a piece of passage 0 in the one, of 1 in the other."""
    passages, layers = list(store.passages().values()), {"v": PASSAGES, "s": "s"}

    def list_pieces(layer: str, nodes: str) -> list[Evidence]:
        numbers = [int(node[1:]) for node in nodes.split() if node[0] == layer]
        return [
            Evidence(id=f"{layer}{n}", layer=layers[layer], text=f"{layer}{n}", score=1.0, sources=(passages[n].id,))
            for n in numbers
        ]

    return {
        layer: Shelves({query: list_pieces(layer, nodes) for query, nodes in found.items()}) for layer in ("v", "s")
    }


def name_cue(given: Any) -> object:
    return {"cue": f"{given.probe} {given.layer}"}


def make_model(answers: Sequence[Any], probes: Sequence[Any] = (), cue: Any = name_cue, *, more="", **settings: Any):
    fusions = iter("ABCDEF")
    return ScriptedModel(
        {
            "answer": answers,
            "probe": [reply if isinstance(reply, Exception) else {"probes": reply} for reply in probes],
            "encode": cue,
            "fuse": lambda _: {"cue": f"fused {next(fusions)}{more}"},
        },
        **settings,
    )


def build(store, model, recall, *, published=False, regulated=True, plain=None, shares=SHARES, **settings: Any):
    """Our loop, or the loop as published, which makes the model answer in the end."""
    desk = make_desk(store, model, plain=plain) if published or plain else FusingDesk(store, model, COUNT)
    ours = {"unread_only": True, "adds_up": True}
    rules = {"fuse": 1.0, "unread_only": not regulated} | ({} if regulated else {"probes": 0}) if published else ours
    parts = {layer: Part(retriever, shares[layer]) for layer, retriever in recall.items()}
    return Probe(parts=parts, desk=desk, embedder=EMBEDDER, **{**rules, **settings})


@dataclass
class Played:
    """A conversation: the model with its calls, the shelves, the events and the answer."""

    model: ScriptedModel
    recall: dict[str, Shelves]
    events: list[Event]
    answer: Answer

    def list_details(self, name: str, step: int | None = None) -> list[Any]:
        return [event.detail for event in self.events if event.name == name and step in (None, event.step)]

    @property
    def reason(self) -> str:
        return self.list_details("stopped")[0]["reason"]


async def play(
    store, found: Found, answers, probes=(), *, question=QUESTION, cue: Any = name_cue, **settings
) -> Played:
    model, recall = make_model(answers, probes, cue), make_recall(store, {STEM: "v0 s0", **found})
    events, answer = await converse(build(store, model, recall, **settings), question)
    return Played(model, recall, events, answer)


# ---------------------------------------------------------------- as published


@pytest.mark.parametrize("seed", range(60))
async def test_random_stories_go_as_a_slow_reading_of_algorithm_1_says(store, seed):
    world = World(random.Random(seed), [passage.id for passage in store.passages().values()])
    model, recall = world.make_model(), {layer: Shelves(world.found[layer]) for layer in LAYERS}
    bounds = {**world.bounds, "reading": 10**6}
    probe = build(store, model, recall, published=True, regulated=world.regulated, **bounds)
    events, answer = await converse(probe, Question(text=world.question))
    calls, ending = follow_algorithm(world)
    assert world.list_calls(model.calls, calls) == calls
    assert (answer.text or None, answer.forced) == (ending, False)
    assert [event.name for event in events].count("skipped") == world.skipped


@pytest.mark.parametrize(
    ("answers", "probes", "settings", "error"),
    [
        ([DECLINED, DECLINED, BadReply("nothing at all")], [[]], {"cycles": 1}, BadReply("nothing at all")),
        ([Refused("not at all")] * 9, [[]], {"cycles": 0}, Refused("not at all")),
        ([DECLINED], [BudgetExceeded("used up")], {}, BudgetExceeded("used up")),
    ],
    ids=["forced", "one attempt", "used up"],
)
async def test_what_leaves_no_usable_reply_is_an_error_and_no_failure_to_answer(
    store, answers, probes, settings, error
):
    with pytest.raises(type(error), match=str(error)):
        await play(store, {}, answers, probes, published=True, **settings)


async def test_the_best_of_a_layer_is_shown_or_none(store):
    passages = list(store.passages().values())
    texts = ["long " * 120, "short", "brief"]
    pieces = [Evidence(id=text, layer="s", text=text, score=1, sources=(passages[0].id,)) for text in texts]
    for published in (True, False):
        recall = make_recall(store, {STEM: "v0 v1 v2 v3 v4 v5 v6 v7"}) | {"s": Shelves({STEM: pieces})}
        loop = build(store, make_model([ANSWERED]), recall, published=published, budget=300)
        _, answer = await converse(loop, Question(text=STEM))
        shown = {piece.id[0] for piece in answer.evidence}
        assert shown == {"v"} if published else "v" in shown, "nothing shorter takes the share of the best"


async def test_the_encoder_reads_what_the_answering_role_has_no_room_for(store):
    everything = " ".join(f"v{number}" for number in range(8))
    played = await play(
        store, {STEM: everything}, [DECLINED, ANSWERED], [[]], published=True, cycles=1, budget=60, reading=600
    )
    (read,), shown = list_inputs(played.model, "encode"), list_inputs(played.model, "answer")[0]
    assert len(shown.evidence) < len(read.evidence) == 8


async def test_roles_are_shown_no_more_than_the_window_holds(store):
    long = "word " * 3000
    model = make_model(
        [DECLINED, DECLINED, ANSWERED], [["a"], ["b"]], lambda _: {"cue": long}, more=f" {long}", window=2048
    )
    recall = make_recall(store, {STEM: "v0 s0", "a": "v1 s1", "b": "v2 s2"})
    await converse(build(store, model, recall, published=True, budget=700), Question(text=STEM))
    asked = [call.given for call in model.calls]
    for attempt in list_inputs(model, "answer"):
        texts = [*(piece.text for piece in attempt.evidence), *attempt.notes]
        assert 0 < sum(make_token_counter(EMBEDDER)(texts)) <= 700, "cues and history count too"
        assert attempt.evidence, "however long cues are"
    assert set(list_roles(model)) == {"answer", "probe", "encode", "fuse"}
    assert all(len(given.model_dump_json()) / 4 < model.window for given in asked)
    (fused,) = [note for note in asked[-1].notes if note.startswith("fused")]
    assert fused.endswith("word …"), "what is too long is cut short and not left out"


@pytest.mark.parametrize(("v", "s", "shown"), [(8, 2, "s0 v0 v1 v2 v3"), (2, 8, "s0 s1 s2 v0 v1")])
async def test_derived_texts_have_their_share_and_passages_the_rest(store, v, s, shown):
    everything = " ".join(f"v{n} s{n}" for n in range(8))
    budget = 11 * (1 + FENCE) // 2 + 1  # for five pieces and a half, a third of it kept for notes
    played = await play(store, {STEM: everything}, [ANSWERED], budget=budget, shares={"v": v, "s": s})
    assert {piece.text for piece in played.answer.evidence} == set(shown.split())


async def test_options_reach_the_answering_role_alone_and_it_may_always_decline_but_at_the_end(store):
    replies = [DECLINED, {"answer": "* unclear", "choice": "B"}, {"answer": "* unclear", "choice": "B"}]
    question = replace(QUESTION, options=("by lamplight", "at noon"))
    played = await play(store, {"a": "v1"}, replies, [["a"]], question=question, cycles=1)
    assert (played.answer.choice, played.answer.forced) == ("B", True), "made to answer, its letter counts"
    attempts = list_inputs(played.model, "answer")
    assert [attempt.may_decline for attempt in attempts] == [True, True, False]
    assert all(attempt.options == list(question.options) for attempt in attempts)
    assert {call.role for call in played.model.calls if "lamplight" in call.given.model_dump_json()} == {"answer"}
    assert not [query for shelves in played.recall.values() for query in shelves.asked if "lamplight" in query]


# ---------------------------------------------------------------- ours


async def test_the_contract_of_loops_holds_and_an_answer_at_once_takes_one_call(store):
    cited = {"answer": "the tide turned", "quotes": [{"label": "E1", "quote": "the tide turned"}]}
    model = make_model([cited])
    answer = await check_loop(build(store, model, make_recall(store, {STEM: "v0 v1 s0"})), QUESTION)
    assert (answer.text, answer.resolved, answer.forced) == ("the tide turned", True, False)
    assert answer.quotes[0].text == "the tide turned"
    played = await play(store, {}, [cited])
    assert [event.name for event in played.events] == ["recalled", "recalled", "tried", "stopped"]
    assert [event.summary.split(":")[0] for event in played.events[1:]] == ["probe", "answer", "reason"]


async def test_every_search_stays_within_the_scope_of_the_question(store):
    scope = Scope(documents=frozenset({"d0"}))
    played = await play(
        store, {"where": "v2"}, [DECLINED, ANSWERED], [["where"]], question=replace(QUESTION, within=scope)
    )
    assert [shelves.scopes for shelves in played.recall.values()] == [[scope, scope]] * 2


async def test_the_first_failure_is_encoded_then_probed_then_consolidated(store):
    played = await play(store, {"where": "v2 s2"}, [DECLINED, ANSWERED], [["where"]])
    assert list_roles(played.model) == ["answer", "encode", "probe", "encode", "answer"], "one cue is not fused"
    probe, last = played.model.calls[2].given, played.model.calls[-1].given
    assert (probe.past_probes, probe.cues) == ([STEM], ["When? v, s"])
    assert last.notes == ["When? v, s", "where v, s"]
    assert {item.text for item in last.evidence} == {"v0", "s0", "v2", "s2"}
    assert last.may_decline
    names = [event.name for event in played.events]
    assert names.index("probed") < names.index("fused") < len(names) - 1


async def test_a_cycle_is_three_rounds_of_calls_deep(store):
    model = make_model([DECLINED, ANSWERED], [["a", "b", "c"]], latency=0.1)
    recall = make_recall(store, {STEM: "v0", "a": "v1", "b": "v2", "c": "v3"})
    with meter() as used:
        await converse(build(store, model, recall), QUESTION)
    assert used.measure_cost().depth == 2 + 3  # try and encode, then probe, encode beside fuse, try


async def test_without_force_the_question_is_declined_in_the_end_with_what_is_missing(store):
    declined = {"answer": "*", "missing": "the hour of the tide"}
    played = await play(store, {}, [declined], [[]], question=Question(text=STEM))
    answer = played.answer
    assert (answer.text, answer.resolved, answer.forced) == ("", False, False)
    assert (answer.missing, answer.claimed) == ("the hour of the tide", "none")
    assert {piece.text for piece in answer.evidence} == {"v0", "s0"}, "what was read stays to be shown"
    assert played.reason == "no new probe was thought of"


async def test_the_prober_reads_what_was_missing(store):
    declined = {"answer": "*", "missing": "who kept the light"}
    played = await play(store, {"more": "v1"}, [declined, ANSWERED], [["more"]], cue=lambda _: {"cue": ""})
    (probe,) = list_inputs(played.model, "probe")
    assert probe.missing == "who kept the light"
    assert probe.cues == [], "an empty cue means that nothing was found, and no evidence takes its place"


async def test_the_encoder_sees_the_earlier_cues_nearest_first(store):
    found = {"boat": "v1", "lamp": "v2"}
    played = await play(
        store, found, [DECLINED] * 2 + [ANSWERED], [["boat"], ["lamp"]], cue=lambda given: {"cue": f"cue {given.probe}"}
    )
    known = [given.known for given in list_inputs(played.model, "encode")]
    assert known == [[], [f"cue {STEM}"], [f"cue {STEM}", "cue boat"]]


async def test_no_call_reads_what_another_reads_or_no_new_passage(store):
    found = {STEM: "v0", "a": "v1 v2 v3 s1", "b": "v3 v2 s2", "c": "s3 v0"}
    played = await play(store, found, [DECLINED, ANSWERED], [["a", "b", "c"]])
    first, shared = list_inputs(played.model, "encode")
    assert (first.probe, shared.probe) == (STEM, "a; b")
    assert {piece.text for piece in shared.evidence} == {"v1", "v2", "v3", "s1", "s2"}
    assert [cued["probe"] for cued in played.list_details("encoded")] == [STEM, "a; b"]
    played = await play(store, {"c": "s3"}, [DECLINED], [["c"]], question=Question(text=STEM))
    assert played.reason == "no new evidence was found", "a summary of what was read is no news"


@pytest.mark.parametrize("context", [60, 600])
async def test_the_cues_of_the_first_read_are_shown_before_the_loop_ends(store, context):
    everything = " ".join(f"v{number}" for number in range(8))
    found, question = {STEM: everything}, Question(text=STEM)
    played = await play(
        store, found, [DECLINED, ANSWERED], [[]], question=question, cycles=3, budget=context, reading=600
    )
    first, *later = list_inputs(played.model, "answer")
    assert (len(first.evidence) < 8) == bool(later) == played.answer.resolved
    assert [attempt.notes for attempt in later] == [["When? v"]] * len(later)
    assert played.reason == ("it was answered" if later else "no new probe was thought of")


@pytest.mark.parametrize("published", [True, False])
async def test_a_call_reads_no_more_than_there_is_room_for(store, published):
    passages, room = list(store.passages().values()), 120
    texts = {"v": "tide " * 70, "s": "light " * 60}
    layers = {"v": PASSAGES, "s": "s"}
    recall = {
        name: Shelves({STEM: [Evidence(id=name, layer=layers[name], text=text, score=1, sources=(passages[0].id,))]})
        for name, text in texts.items()
    }
    model = make_model([DECLINED] * 2, [[]])
    loop = build(store, model, recall, published=published, cycles=1, budget=60, reading=room)
    events, _ = await converse(loop, Question(text=STEM))
    read = [sum(COUNT([piece.text for piece in given.evidence])) for given in list_inputs(model, "encode")]
    assert sorted(read) == ([60, 70] if published else [70])
    assert max(read) <= room
    assert [event.name for event in events].count("skipped") == (not published)


async def test_a_later_attempt_has_the_cues_of_the_newest_step_first_and_what_they_rest_on(store):
    found = {STEM: "v0 v1 v2", "a": "v3 v4 v5", "b": "v6 v7"}

    def cue(given):
        return {"cue": f"It is {given.probe}, so.", "labels": ["E3"] if given.probe == "a" else []}

    played = await play(store, found, [DECLINED] * 2 + [ANSWERED], [["a"], ["b"]], cue=cue, budget=200)
    concluded = [note for note in list_inputs(played.model, "answer")[-1].notes if note.startswith("It is")]
    assert concluded[:2] == ["It is b, so.", "It is a, so."], "these discover, the oldest says the question again"
    ranked = [piece.text for piece in played.answer.evidence]
    assert ranked.index("v5") < ranked.index("v4"), "named by a cue, though its search found it last"


async def test_a_later_attempt_shows_what_searches_agree_on(store):
    """With room for two pieces: the question's best hit, and what two probes find; no cue names it."""
    size = make_token_counter(EMBEDDER)(["v0"])[0] + 12
    played = await play(
        store,
        {STEM: "v0 v1 v2 v3", "a": "v5 v7", "b": "v6 v5"},
        [DECLINED, ANSWERED],
        [["a", "b"]],
        cue=lambda _: {"cue": ""},
        cycles=1,
        budget=2 * size + 1,
        plain=Shelves({}),
    )
    assert {piece.text for piece in list_inputs(played.model, "answer")[1].evidence} == {"v0", "v5"}


async def test_an_attempt_sees_more_of_what_searches_found_than_their_units_read(store):
    played = await play(store, {STEM: "v0 v1"}, [ANSWERED], limit=1, plain=Shelves({}))
    assert {piece.text for piece in played.answer.evidence} == {"v0", "v1"}
    assert [len(each["evidence"]) for each in played.list_details("recalled")] == [1, 0]


async def test_a_first_answer_that_is_supported_only_partly_does_not_end_the_loop(store):
    played = await play(store, {"more": "v1"}, [GUESS, ANSWERED], [["more"]])
    assert list_inputs(played.model, "probe")[0].missing == "who saw the tide"
    assert (played.answer.text, played.answer.forced, played.answer.missing) == ("at nine", False, "")
    goes_on = "supported only partly, so the loop goes on"
    assert [(tried["failed"], tried["kept"]) for tried in played.list_details("tried")] == [
        (False, goes_on),
        (False, ""),
    ]
    assert played.reason == "it was answered"


@pytest.mark.parametrize("later", [DECLINED, BadReply("no JSON")])
async def test_an_answer_that_was_kept_stands_before_any_guess(store, later):
    played = await play(store, {"more": "v1"}, [GUESS, later], [["more"]], cycles=1)
    answer = played.answer
    assert len(list_inputs(played.model, "answer")) == 2, "nobody is made to answer"
    assert (answer.text, answer.resolved, answer.forced) == ("at ten", True, False)
    assert (answer.claimed, answer.missing) == ("partly", "who saw the tide")
    assert played.reason == "no cycle is left (allowed: 1)"


@pytest.mark.parametrize(
    ("answers", "bounds"),
    [([DECLINED, GUESS], {}), ([GUESS], {"cycles": 0}), ([GUESS], {"published": True})],
    ids=["from the first cycle on", "without cycles", "as published"],
)
async def test_an_answer_that_is_supported_partly_may_end_the_loop(store, answers, bounds):
    played = await play(store, {"more": "v1"}, answers, [["more"]], **bounds)
    assert len(list_inputs(played.model, "answer")) == len(answers)
    assert (played.answer.text, played.answer.claimed) == ("at ten", "partly")
    assert "kept" not in played.reason


@pytest.mark.parametrize(
    ("replies", "limit", "probes"),
    [([STEM, "a", "A ", "b", "", "c", "d"], 3, ["a", "b", "c"]), ([STEM, "a", "b"], 1, ["a"])],
)
async def test_probes_are_new_and_at_most_so_many(store, replies, limit, probes):
    model, recall = make_model([DECLINED] * 2, [replies]), make_recall(store, {STEM: "v0"})
    loop = build(store, model, recall, published=True, cycles=1, probes=limit)
    played = Played(model, recall, *await converse(loop, Question(text=STEM)))
    assert played.list_details("probed") == [{"probes": probes}]
