"""Scripted conversations walk every branch of ComoRAG's algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.loops.doubles import make_desk

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply
from tomewise.loops.consolidation import Consolidation, NoConsolidation
from tomewise.loops.context import HISTORY
from tomewise.loops.evidence import make_token_counter
from tomewise.loops.probe import Bounds, Probe, Workspace
from tomewise.loops.probing import SameQuestion, SelfProbe
from tomewise.loops.selection import BestSoFar
from tomewise.recall.layered import LayeredRecall
from tomewise.run import meter
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_loop, document_of, put_document
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Answer, Event, Evidence, Question, Scope

ANSWERED = {"answer": "at nine", "quotes": [{"label": "E1", "quote": "the tide turned"}]}
DECLINED = {"answer": "*"}
QUESTION = Question(text="When did the tide turn?", force=True)
LAYERS = ("veridical", "semantic", "episodic")
SHARES = {"veridical": 8, "semantic": 2, "episodic": 2, HISTORY: 1}


class Shelves:
    """A retriever that gives what stands under a query, and remembers what it was asked."""

    def __init__(self, layer: str, found: dict[str, Sequence[Evidence]], ground: Sequence[Evidence] = ()) -> None:
        self.asked: list[tuple[str, int]] = []
        self.scopes: set[Scope | None] = set()
        self._layer = layer
        self._found = found
        self._ground = ground

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        self.asked.append((query, limit))
        self.scopes.add(within)
        return list(self._found.get(query, self._ground))[:limit]


def piece(node: str, text: str, passage: str, layer: str = "passages", score: float = 1.0) -> Evidence:
    return Evidence(node=node, layer=layer, text=text, score=score, sources=(passage,))


@pytest.fixture
def store(tmp_path):
    made = SqlStore.open(tmp_path / "a.tome")
    embedder = HashEmbedder(32)
    for number in range(8):
        put_document(made, embedder, document_of(f"d{number}", f"Number {number}: the tide turned, said Ada {number}."))
    yield made
    made.close()


@pytest.fixture
def passages(store):
    return list(store.passages().values())


def build(store, model, recall, *, probing=None, consolidating=None, plain=None, **bounds: Any) -> Probe:
    desk = make_desk(store, model, plain=plain)
    return Probe(
        LayeredRecall(recall),
        desk,
        Workspace(probing or SelfProbe(model), consolidating or Consolidation(desk), BestSoFar(), HashEmbedder(32)),
        Bounds(shares={name: SHARES[name] for name in (*recall, HISTORY)}, **bounds),
    )


def three(passages, **by_query: Sequence[int]) -> dict[str, Shelves]:
    """Three layers; each query finds the passages numbered, as other nodes in each layer."""

    def shelf(layer: str) -> dict[str, Sequence[Evidence]]:
        return {
            query.replace("_", " "): [piece(f"{layer}-{n}", passages[n].text, passages[n].id, layer) for n in numbers]
            for query, numbers in by_query.items()
        }

    return {layer: Shelves(layer, {QUESTION.text: shelf(layer)["first"], **shelf(layer)}) for layer in LAYERS}


async def conversation(loop: Probe, question: Question = QUESTION) -> tuple[list[Event], Answer]:
    seen = [what async for what in loop.run(question)]
    assert isinstance(seen[-1], Answer)
    return [what for what in seen if isinstance(what, Event)], seen[-1]


def roles(model: ScriptedModel) -> list[str]:
    return [call.role for call in model.calls]


async def test_answers_at_once_without_encoding(store, passages):
    model = ScriptedModel({"answer": [ANSWERED]})
    events, answer = await conversation(build(store, model, three(passages, first=[0, 1])))
    assert roles(model) == ["answer"]
    assert answer.text == "at nine"
    assert answer.resolved
    assert not answer.forced
    assert answer.citations[0].quote == "the tide turned"
    assert [event.name for event in events] == ["recalled", "recalled", "recalled", "tried", "stopped"]
    assert events[0].summary.startswith("probe: ")
    assert events[-2].summary.startswith("answer: ")
    assert events[-1].summary == f"reason: {events[-1].detail['reason']}"


async def test_every_search_stays_within_the_scope_of_the_question(store, passages):
    scope = Scope(documents=frozenset({"d0"}))
    replies = {
        "answer": [DECLINED, ANSWERED],
        "encode": lambda _: {"cue": "cue"},
        "probe": [{"probes": ["where is the keeper"]}],
    }
    recall = three(passages, first=[0, 1], where_is_the_keeper=[2])
    model = ScriptedModel(replies)
    await conversation(build(store, model, recall), replace(QUESTION, within=scope))
    assert [len(shelves.asked) for shelves in recall.values()] == [2, 2, 2]
    assert [shelves.scopes for shelves in recall.values()] == [{scope}] * 3


async def test_the_first_failure_is_encoded_then_probed_then_consolidated(store, passages):
    model = ScriptedModel(
        {
            "answer": [DECLINED, ANSWERED],
            "encode": lambda given: {"cue": f"cue of {given.probe} in {given.layer}"},
            "probe": [{"probes": ["where is the keeper"]}],
        }
    )
    recall = three(passages, first=[0, 1], where_is_the_keeper=[2])
    events, answer = await conversation(build(store, model, recall))
    assert roles(model) == ["answer", "encode", "probe", "encode", "answer"], "one cue is not fused"
    probe, last = model.calls[2].given, model.calls[-1].given
    assert probe.past_probes == [QUESTION.text]
    assert probe.cues == [f"cue of {QUESTION.text} in {', '.join(LAYERS)}"]
    assert last.notes == [*probe.cues, f"cue of where is the keeper in {', '.join(LAYERS)}"]
    assert {item.text for item in last.evidence} == {passages[number].text for number in (0, 1, 2)}
    assert last.may_decline
    assert answer.resolved
    names = [event.name for event in events]
    assert names.index("probed") < names.index("fused") < len(names) - 1


async def test_a_cycle_is_three_rounds_of_calls_deep(store, passages):
    model = ScriptedModel(
        {
            "answer": [DECLINED, ANSWERED],
            "encode": lambda given: {"cue": given.layer},
            "probe": [{"probes": ["a", "b", "c"]}],
            "fuse": [{"cue": "so"}],
        },
        latency=0.1,
    )
    loop = build(store, model, three(passages, first=[0], a=[1], b=[2], c=[3]))
    with meter() as used:
        await conversation(loop)
    assert used.usage().depth == 2 + 3  # try and encode, then probe, encode beside fuse, try


async def test_gives_up_after_the_last_cycle_and_is_forced(store, passages):
    model = ScriptedModel(
        {
            "answer": [DECLINED, DECLINED, DECLINED, ANSWERED],
            "encode": lambda given: {"cue": f"{given.probe}/{given.layer}"},
            "probe": [{"probes": ["one"]}, {"probes": ["two"]}],
            "fuse": lambda given: {"cue": "fused"},
        }
    )
    events, answer = await conversation(build(store, model, three(passages, first=[0], one=[1], two=[2]), cycles=2))
    assert answer.forced
    assert answer.resolved
    assert events[-2].detail["reason"] == "no cycle is left (allowed: 2)"
    assert [call.given.may_decline for call in model.calls if call.role == "answer"] == [True, True, True, False]
    assert roles(model).count("probe") == 2  # nothing is probed or fused after the last failure
    assert roles(model).count("fuse") == 1  # in the first cycle there is one cue
    probes = [call.given for call in model.calls if call.role == "probe"]
    assert probes[1].past_probes == [QUESTION.text, "one"]
    assert all(cue.startswith("one/") for cue in probes[1].cues), "only the cues of the previous step"


async def test_without_force_the_question_is_declined_in_the_end(store, passages):
    declined = {"answer": "*", "missing": "the hour of the tide"}
    model = ScriptedModel({"answer": [declined], "encode": lambda given: {"cue": ""}, "probe": [{"probes": []}]})
    loop = build(store, model, three(passages, first=[0]))
    events, answer = await conversation(loop, replace(QUESTION, force=False))
    assert (answer.text, answer.resolved, answer.forced) == ("", False, False)
    assert (answer.missing, answer.supported) == ("the hour of the tide", "none")
    assert [piece.text for piece in answer.evidence] == [passages[0].text] * 3, "what was read stays to be shown"
    assert events[-1].detail["reason"] == "no new probe was thought of"


async def test_a_loop_can_force_every_question(store, passages):
    model = ScriptedModel(
        {"answer": [DECLINED, ANSWERED], "encode": lambda given: {"cue": ""}, "probe": [{"probes": []}]}
    )
    loop = build(store, model, three(passages, first=[0]), on_exhaustion="force")
    _, answer = await conversation(loop, replace(QUESTION, force=False))
    assert (answer.resolved, answer.forced) == (True, True)


async def test_without_cycles_the_question_is_asked_once(store, passages):
    for force in (True, False):
        model = ScriptedModel({"answer": [ANSWERED]})
        loop = build(store, model, three(passages, first=[0]), cycles=0)
        _, answer = await conversation(loop, replace(QUESTION, force=force))
        assert [call.given.may_decline for call in model.calls] == [not force]
        assert (answer.resolved, answer.forced) == (True, False)


async def test_the_prober_reads_what_was_missing(store, passages):
    model = ScriptedModel(
        {
            "answer": [{"answer": "*", "missing": "who kept the light"}, ANSWERED],
            "encode": lambda given: {"cue": ""},
            "probe": [{"probes": ["more"]}],
        }
    )
    await conversation(build(store, model, three(passages, first=[0], more=[1])))
    (probe,) = [call.given for call in model.calls if call.role == "probe"]
    assert probe.missing == "who kept the light"
    assert probe.cues == [], "an empty cue means that nothing was found, and no evidence takes its place"


async def test_probes_of_one_cycle_do_not_starve_each_other(store, passages):
    model = ScriptedModel(
        {
            "answer": [DECLINED, ANSWERED],
            "encode": lambda given: {"cue": f"cue of {given.probe}"},
            "probe": [{"probes": ["a", "b"]}],
        }
    )
    found = three(passages, first=[0], a=[1, 2], b=[2, 3])
    events, _ = await conversation(build(store, model, {"veridical": found["veridical"]}, limit=2))
    units = [event.detail for event in events if event.name == "recalled" and event.step == 1]
    assert [[piece["node"] for piece in unit["evidence"]] for unit in units] == [
        ["veridical-1", "veridical-2"],
        ["veridical-2", "veridical-3"],
    ], "each keeps its own best hits"
    shown = [piece.text for piece in model.calls[-1].given.evidence]
    assert sorted(shown) == sorted(passages[number].text for number in range(4)), "each piece once"


async def test_a_search_that_repeats_another_of_its_cycle_is_encoded_once(store, passages):
    model = ScriptedModel(
        {
            "answer": [DECLINED, ANSWERED],
            "encode": lambda given: {"cue": f"cue of {given.probe}"},
            "probe": [{"probes": ["a", "b"]}],
        }
    )
    await conversation(build(store, model, three(passages, first=[0], a=[1, 2], b=[2, 1])))
    assert [call.given.probe for call in model.calls if call.role == "encode"] == [QUESTION.text, "a / b"]


async def test_the_encoder_sees_the_earlier_cues_nearest_first(store, passages):
    model = ScriptedModel(
        {
            "answer": [DECLINED, DECLINED, ANSWERED],
            "encode": lambda given: {"cue": f"cue {given.probe}"},
            "probe": [{"probes": ["boat"]}, {"probes": ["lamp"]}],
            "fuse": [{"cue": "so"}],
        }
    )
    await conversation(build(store, model, three(passages, first=[0], boat=[1], lamp=[2])))
    known = [call.given.known for call in model.calls if call.role == "encode"]
    assert known == [[], [f"cue {QUESTION.text}"], [f"cue {QUESTION.text}", "cue boat"]]


async def test_a_later_attempt_shows_what_searches_agree_on(store, passages):
    """With room for two pieces: the question's best hit, and what two probes find; no cue names it."""
    model = ScriptedModel(
        {"answer": [DECLINED, ANSWERED], "encode": lambda given: {"cue": ""}, "probe": [{"probes": ["a", "b"]}]}
    )
    size = make_token_counter(HashEmbedder(32))([passages[0].text])[0] + 12
    found = three(passages, first=[0, 1, 2, 3], a=[5, 7], b=[6, 5])
    loop = build(store, model, {"veridical": found["veridical"]}, cycles=1, budget=2 * size + 9, plain=Shelves("", {}))
    await conversation(loop)
    last = [call.given for call in model.calls if call.role == "answer"][1]
    assert {piece.text for piece in last.evidence} == {passages[0].text, passages[5].text}


GUESS = {"answer": "at ten", "supported": "partly", "missing": "who saw the tide"}


async def test_a_first_answer_that_is_supported_only_partly_does_not_end_the_loop(store, passages):
    model = ScriptedModel(
        {"answer": [GUESS, ANSWERED], "encode": lambda given: {"cue": "c"}, "probe": [{"probes": ["more"]}]}
    )
    events, answer = await conversation(build(store, model, three(passages, first=[0], more=[1])))
    (probe,) = [call.given for call in model.calls if call.role == "probe"]
    assert probe.missing == "who saw the tide"
    assert (answer.text, answer.forced, answer.missing) == ("at nine", False, "")
    tried = [event.detail for event in events if event.name == "tried"]
    assert [(attempt["failed"], attempt["kept"]) for attempt in tried] == [
        (False, "supported only partly, so the loop goes on"),
        (False, ""),
    ]
    assert events[-1].detail["reason"] == "it was answered"


@pytest.mark.parametrize("later", [DECLINED, BadReply("no JSON")])
async def test_an_answer_that_was_kept_stands_before_any_guess(store, passages, later):
    model = ScriptedModel(
        {"answer": [GUESS, later], "encode": lambda given: {"cue": "c"}, "probe": [{"probes": ["more"]}]}
    )
    events, answer = await conversation(build(store, model, three(passages, first=[0], more=[1]), cycles=1))
    assert roles(model).count("answer") == 2, "nobody is made to answer"
    assert (answer.text, answer.resolved, answer.forced) == ("at ten", True, False)
    assert (answer.supported, answer.missing) == ("partly", "who saw the tide")
    assert events[-1].detail["reason"] == "no cycle is left (allowed: 1); the answer that was kept stands"


async def test_from_the_first_cycle_on_an_answer_that_is_supported_partly_ends_the_loop(store, passages):
    model = ScriptedModel(
        {"answer": [DECLINED, GUESS], "encode": lambda given: {"cue": "c"}, "probe": [{"probes": ["more"]}]}
    )
    events, answer = await conversation(build(store, model, three(passages, first=[0], more=[1])))
    assert (answer.text, answer.supported) == ("at ten", "partly")
    assert events[-1].detail["reason"] == "it was answered"


@pytest.mark.parametrize("bounds", [{"cycles": 0}, {"accept_partly": True}])
async def test_a_first_answer_that_is_supported_partly_may_end_the_loop(store, passages, bounds):
    model = ScriptedModel({"answer": [GUESS]})
    events, answer = await conversation(build(store, model, three(passages, first=[0]), **bounds))
    assert (roles(model), answer.text) == (["answer"], "at ten")
    assert "kept" not in str(events[-1].detail["reason"])


@pytest.mark.parametrize(
    "reply",
    [
        {"answer": "*", "choice": "null"},
        {"answer": "*", "choice": "None"},
        {"answer": "*", "choice": "N/A"},
        {"answer": "*", "choice": "A"},
        {"answer": "* (not stated)"},
        {"answer": "*not stated"},
        {"answer": "At nine, perhaps.", "supported": "none"},
    ],
)
async def test_a_refusal_in_any_spelling_goes_on(store, passages, reply):
    model = ScriptedModel({"answer": [reply, ANSWERED], "encode": lambda given: {"cue": ""}, "probe": [{"probes": []}]})
    _, answer = await conversation(build(store, model, three(passages, first=[0])))
    assert (answer.text, answer.forced) == ("at nine", True)


@pytest.mark.parametrize("choice", ["B", "(b)", "null"])
async def test_a_star_beside_a_letter_is_a_refusal_while_declining_is_allowed(store, passages, choice):
    question = replace(QUESTION, options=("at nine", "at ten"))
    replies = [{"answer": "* unclear", "choice": choice}, {"answer": "* unclear", "choice": "B"}]
    model = ScriptedModel({"answer": replies, "encode": lambda given: {"cue": ""}, "probe": [{"probes": []}]})
    _, answer = await conversation(build(store, model, three(passages, first=[0])), question)
    assert (answer.choice, answer.forced) == ("B", True), "made to answer, its letter counts"


@pytest.mark.parametrize("wording", ["*", " * ", "*.", "**", '"*"', ""])
async def test_the_failure_signal_in_any_dress(store, passages, wording):
    model = ScriptedModel(
        {"answer": [{"answer": wording}, ANSWERED], "encode": lambda given: {"cue": ""}, "probe": [{"probes": []}]}
    )
    _, answer = await conversation(build(store, model, three(passages, first=[0])))
    assert answer.forced, "a failure must start the loop"


async def test_probes_already_tried_are_not_new(store, passages):
    model = ScriptedModel(
        {
            "answer": [DECLINED, ANSWERED],
            "encode": lambda given: {"cue": "c"},
            "probe": [{"probes": ["when did the TIDE turn", " When did the tide turn? "]}],
        }
    )
    events, answer = await conversation(build(store, model, three(passages, first=[0])))
    assert next(event for event in events if event.name == "probed").detail["probes"] == []
    assert answer.forced


async def test_at_most_three_probes_each_once(store, passages):
    probe = SelfProbe(ScriptedModel({"probe": [{"probes": ["a", "A ", "b", "", "c", "d"]}]}))
    assert await probe.find_probes("q", ["q"], [], "") == ["a", "b", "c"]
    again = SelfProbe(ScriptedModel({"probe": [{"probes": ["a", "b", "", "c", "d"]}]}), limit=2)
    assert await again.find_probes("q", ["q"], [], "") == ["a", "b"]


async def test_stops_when_nothing_new_is_found(store, passages):
    model = ScriptedModel(
        {
            "answer": [DECLINED, ANSWERED],
            "encode": lambda given: {"cue": "c"},
            "probe": [{"probes": ["again"]}],
        }
    )
    events, answer = await conversation(build(store, model, three(passages, first=[0, 1], again=[1, 0])))
    assert events[-2].detail["reason"] == "no new evidence was found"
    assert answer.forced


async def test_evidence_seen_before_gives_its_place_to_what_lies_deeper(store, passages):
    model = ScriptedModel(
        {
            "answer": [DECLINED, ANSWERED],
            "encode": lambda given: {"cue": "c"},
            "probe": [{"probes": ["deeper"]}],
            "fuse": [{"cue": "f"}],
        }
    )
    recall = three(passages, first=[0, 1], deeper=[0, 1, 2, 3])
    events, _ = await conversation(build(store, model, recall, limit=2))
    found = [event.detail for event in events if event.name == "recalled" and event.step == 1]
    assert [[piece["node"] for piece in unit["evidence"]] for unit in found] == [
        [f"{layer}-2", f"{layer}-3"] for layer in LAYERS
    ]
    assert recall["veridical"].asked[-1][1] > 2, (
        "asked for more than the cut, so that what is seen can be dropped first"
    )


async def test_options_reach_the_answering_role_alone(store, passages):
    question = replace(QUESTION, options=("at nine", "at ten"), instructions="Be brief.")
    model = ScriptedModel(
        {
            "answer": [DECLINED, {"answer": "at ten", "choice": "B"}],
            "encode": lambda given: {"cue": "c"},
            "probe": [{"probes": ["more"]}],
            "fuse": [{"cue": "f"}],
        }
    )
    recall = three(passages, first=[0], more=[1])
    _, answer = await conversation(build(store, model, recall), question)
    assert answer.choice == "B"
    assert answer.text == "at ten"
    for call in model.calls:
        prompt = call.given.model_dump_json()
        assert ("at ten" in prompt) == (call.role == "answer")
    assert all("at ten" not in query for shelf in recall.values() for query, _ in shelf.asked)


async def test_a_choice_is_an_answer_even_where_the_text_is_empty(store, passages):
    question = replace(QUESTION, options=("at nine", "at ten"))
    model = ScriptedModel({"answer": [{"answer": "", "choice": "a"}]})
    _, answer = await conversation(build(store, model, three(passages, first=[0])), question)
    assert (answer.choice, answer.text, answer.resolved) == ("A", "at nine", True)


async def test_without_regulation_the_question_itself_goes_deeper(store, passages):
    model = ScriptedModel(
        {"answer": [DECLINED, ANSWERED], "encode": lambda given: {"cue": "c"}, "fuse": lambda given: {"cue": "f"}}
    )
    recall = three(passages, first=[0, 1, 2, 3])
    events, answer = await conversation(build(store, model, recall, probing=SameQuestion(), limit=2))
    assert "probe" not in roles(model)
    assert answer.resolved
    second = next(event for event in events if event.name == "recalled" and event.step == 1)
    assert [piece["node"] for piece in second.detail["evidence"]] == ["veridical-2", "veridical-3"]


async def test_without_metacognition_the_prober_reads_the_evidence(store, passages):
    model = ScriptedModel({"answer": [DECLINED, ANSWERED], "probe": [{"probes": ["more"]}]})
    recall = three(passages, first=[0], more=[1])
    await conversation(build(store, model, recall, consolidating=NoConsolidation()))
    assert roles(model) == ["answer", "probe", "answer"]
    assert model.calls[1].given.cues == [passages[0].text] * 3
    assert model.calls[2].given.notes == []


async def test_without_both_it_is_one_shot(store, passages):
    model = ScriptedModel({"answer": [ANSWERED]})
    loop = build(
        store, model, three(passages, first=[0]), probing=SameQuestion(), consolidating=NoConsolidation(), cycles=0
    )
    _, answer = await conversation(loop)
    assert not model.calls[0].given.may_decline
    assert not answer.forced


async def test_nothing_found_at_all(store, passages):
    model = ScriptedModel({"answer": [DECLINED, {"answer": "unknown"}], "probe": [{"probes": ["x"]}]})
    _, answer = await conversation(build(store, model, three(passages, first=[])))
    assert answer.forced
    assert roles(model) == ["answer", "probe", "answer"], "no evidence, no cue"


async def test_keeps_the_contract_of_loops(store, passages):
    model = ScriptedModel({"answer": [ANSWERED]})
    await check_loop(build(store, model, three(passages, first=[0, 1])), QUESTION)


async def test_an_error_of_the_model_reaches_the_caller(store, passages):
    from tomewise.errors import ModelUnavailable

    model = ScriptedModel({"answer": [ModelUnavailable("gone")]})
    with pytest.raises(ModelUnavailable, match="gone"):
        await conversation(build(store, model, three(passages, first=[0])))
