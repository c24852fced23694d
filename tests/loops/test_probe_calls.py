"""Every branch of ComoRAG's algorithm 1 as published, call by call: what each is given, which run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.loops.doubles import make_desk

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply, BudgetExceeded, ModelUnavailable, Refused, UsageError
from tomewise.loops.consolidation import Consolidation, NoConsolidation, WithoutKnown
from tomewise.loops.context import HISTORY
from tomewise.loops.probe import Bounds, Probe, Workspace
from tomewise.loops.probing import SameQuestion, SelfProbe, WithoutMissing
from tomewise.loops.selection import NewestFirst
from tomewise.recall.layered import LayeredRecall
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import document_of, put_document
from tomewise.testing.scripted import Call, ScriptedModel
from tomewise.types import Answer, Event, Evidence, Question, Scope

EMBEDDER = HashEmbedder(64)
STEM = "When?"
DECLINED, ANSWERED = {"answer": "*"}, {"answer": "at nine"}

# A call as a line: the answering role is given its evidence and notes, and "!" where it may not decline; the encoding
# role a probe, a layer and evidence; the prober what was tried and the cues; the fusing role cues.
FIRST = "answer v0 s0"
CUES = ["encode When? v: v0", "encode When? s: s0"]
PROBE = "probe When? | <When? v> <When? s>"


class Shelves:
    """A layer that gives what stands under a query."""

    def __init__(self, layer: str, found: dict[str, Sequence[int]], store: SqlStore) -> None:
        passages = list(store.passages().values())
        self._found = {
            query: [
                Evidence(node=f"{layer}{n}", layer=layer, text=f"{layer}{n}", score=1.0, sources=(passages[n].id,))
                for n in numbers
            ]
            for query, numbers in found.items()
        }

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        return list(self._found.get(query, ()))[:limit]


@pytest.fixture
def store(tmp_path):
    made = SqlStore.open(tmp_path / "a.tome")
    for number in range(5):
        put_document(made, EMBEDDER, document_of(f"d{number}", f"Passage {number}."))
    yield made
    made.close()


def line(call: Call) -> str:
    given: Any = call.given
    match call.role:
        case "answer":
            texts = [*(piece.text for piece in given.evidence), *(f"<{note}>" for note in given.notes)]
            return " ".join(["answer" if given.may_decline else "answer!", *given.options, *texts])
        case "encode":
            return f"encode {given.probe} {given.layer}: {' '.join(piece.text for piece in given.evidence)}"
        case "probe":
            return f"probe {', '.join(given.past_probes)} | {' '.join(f'<{cue}>' for cue in given.cues)}"
        case "fuse":
            return f"fuse {' '.join(f'<{cue}>' for cue in given.cues)}"
    raise AssertionError(f"nobody should ask {call.role}")


async def conversation(
    store: SqlStore,
    found: dict[str, tuple[Sequence[int], Sequence[int]]],
    answers: Sequence[Any],
    probes: Sequence[Any] = (),
    *,
    cue: Any = lambda given: {"cue": f"{given.probe} {given.layer}"},
    options: tuple[str, ...] = (),
    regulation: bool = True,
    metacognition: bool = True,
    **bounds: Any,
) -> tuple[list[str], list[Event], Answer]:
    """The calls, the events and the answer where each query finds these passages in the layers v and s."""
    fusions = iter("ABCDEF")
    model = ScriptedModel(
        {
            "answer": answers,
            "probe": [reply if isinstance(reply, Exception) else {"probes": reply} for reply in probes],
            "encode": cue,
            "fuse": lambda given: {"cue": f"fused {next(fusions)}"},
        }
    )
    layers = {
        name: Shelves(name, {query: by_layer[place] for query, by_layer in found.items()}, store)
        for place, name in enumerate("vs")
    }
    desk = make_desk(store, model)
    workspace = Workspace(
        WithoutMissing(SelfProbe(model) if regulation else SameQuestion()),
        WithoutKnown(Consolidation(desk) if metacognition else NoConsolidation()),
        NewestFirst(),
        EMBEDDER,
    )
    loop = Probe(
        LayeredRecall(layers),
        desk,
        workspace,
        Bounds(shares={"v": 8, "s": 2, HISTORY: 1}, **{"on_exhaustion": "force", **bounds}),
    )
    events: list[Event] = []
    async for what in loop.run(Question(text=STEM, options=options)):
        if isinstance(what, Answer):
            return [line(call) for call in model.calls], events, what
        events.append(what)
    raise AssertionError("no answer")


def side_by_side(calls: list[str], *expected: str | list[str]) -> None:
    """The calls are these; those of one list run side by side, so that their order does not count."""
    left = list(calls)
    for group in expected:
        wanted = [group] if isinstance(group, str) else group
        assert sorted(left[: len(wanted)]) == sorted(wanted), f"of {calls}"
        left = left[len(wanted) :]
    assert left == []


def reason(events: list[Event]) -> object:
    return next(event.detail["reason"] for event in events if event.name == "stopped")


def skip_reasons(events: list[Event]) -> list[tuple[int, object]]:
    return [(event.step, event.detail["reason"]) for event in events if event.name == "skipped"]


async def test_answered_at_step_0(store):
    calls, events, answer = await conversation(store, {STEM: ([0], [0])}, [ANSWERED])
    side_by_side(calls, FIRST)
    assert [event.name for event in events] == ["recalled", "recalled", "tried", "stopped"]
    assert reason(events) == "it was answered"
    assert (answer.text, answer.resolved, answer.forced) == ("at nine", True, False)


async def test_failed_then_answered_in_the_second_cycle(store):
    calls, events, answer = await conversation(
        store,
        {STEM: ([0], [0]), "a": ([1], []), "b": ([0, 1], [1]), "c": ([2], [2])},
        [DECLINED, DECLINED, ANSWERED],
        [["a", "b"], ["c"]],
        fuse=1.0,
    )
    side_by_side(
        calls,
        FIRST,
        CUES,
        PROBE,
        ["encode a v: v1", "encode b s: s1", "fuse <When? v> <When? s>"],
        "answer v0 v1 s0 s1 <fused A> <a v> <b s>",
        "probe When?, a, b | <a v> <b s>",
        ["encode c v: v2", "encode c s: s2", "fuse <When? v> <When? s> <a v> <b s>"],
        "answer v0 v1 v2 s0 s1 s2 <fused B> <c v> <c s>",
    )
    assert (answer.text, answer.forced) == ("at nine", False)
    assert {event.step for event in events} == {0, 1, 2}
    assert reason(events) == "it was answered"


@pytest.mark.parametrize("probes", [[], ["when", " WHEN? "]], ids=["none", "the question again"])
async def test_no_new_probe(store, probes):
    calls, events, answer = await conversation(store, {STEM: ([0], [0])}, [DECLINED, ANSWERED], [probes], fuse=1.0)
    side_by_side(calls, FIRST, CUES, PROBE, "answer! v0 s0 <When? v> <When? s>")
    assert reason(events) == "no new probe was thought of"
    assert (answer.text, answer.forced) == ("at nine", True)


@pytest.mark.parametrize("again", [([0], [0]), ([], [])], ids=["what was read", "nothing"])
async def test_no_new_evidence(store, again):
    found = {STEM: ([0], [0]), "a": again}
    calls, events, answer = await conversation(store, found, [DECLINED, ANSWERED], [["a"]], fuse=1.0)
    side_by_side(calls, FIRST, CUES, PROBE, "answer! v0 s0 <When? v> <When? s>")
    assert reason(events) == "no new evidence was found"
    assert answer.forced


async def test_exhausted_and_forced(store):
    found = {STEM: ([0], [0]), "a": ([1], [1])}
    calls, events, answer = await conversation(store, found, [DECLINED] * 2 + [ANSWERED], [["a"]], cycles=1, fuse=1.0)
    side_by_side(
        calls,
        FIRST,
        CUES,
        PROBE,
        ["encode a v: v1", "encode a s: s1", "fuse <When? v> <When? s>"],
        "answer v0 v1 s0 s1 <fused A> <a v> <a s>",
        "answer! v0 v1 s0 s1 <When? v> <When? s> <a v> <a s>",
    )
    assert reason(events) == "no cycle is left (allowed: 1)"
    assert (answer.text, answer.resolved, answer.forced) == ("at nine", True, True)


async def test_exhausted_and_failing(store):
    found = {STEM: ([0], [0]), "a": ([1], [])}
    calls, events, answer = await conversation(
        store, found, [DECLINED] * 2, [["a"]], cycles=1, on_exhaustion="decline", fuse=1.0
    )
    side_by_side(
        calls, FIRST, CUES, PROBE, ["encode a v: v1", "fuse <When? v> <When? s>"], "answer v0 v1 s0 <fused A> <a v>"
    )
    assert events[-1].name == "stopped"
    assert (answer.text, answer.choice, answer.resolved, answer.forced) == ("", None, False, False)


async def test_a_forced_answer_that_declines_all_the_same_is_none(store):
    calls, _, answer = await conversation(store, {STEM: ([0], [0])}, [DECLINED, DECLINED], [[]], fuse=1.0)
    assert calls[-1].startswith("answer!")
    assert (answer.text, answer.resolved, answer.forced) == ("", False, True)


async def test_multiple_choice(store):
    found = {STEM: ([0], [0]), "a": ([1], [])}
    chosen = {"answer": "ten", "choice": "B"}
    calls, _, answer = await conversation(store, found, [DECLINED, chosen], [["a"]], options=("nine", "ten"), fuse=1.0)
    side_by_side(
        calls,
        "answer nine ten v0 s0",
        CUES,
        PROBE,
        ["encode a v: v1", "fuse <When? v> <When? s>"],
        "answer nine ten v0 v1 s0 <fused A> <a v>",
    )
    assert (answer.choice, answer.text, answer.forced) == ("B", "ten", False)


async def test_what_is_none_of_the_options_is_a_failure(store):
    calls, _, answer = await conversation(
        store, {STEM: ([0], [])}, [{"answer": "eleven"}, {"answer": "nine"}], [[]], options=("nine", "ten")
    )
    side_by_side(
        calls, "answer nine ten v0", "encode When? v: v0", "probe When? | <When? v>", "answer! nine ten v0 <When? v>"
    )
    assert (answer.choice, answer.forced) == ("A", True)


async def test_a_malformed_reply_of_the_prober_ends_the_search(store):
    calls, events, answer = await conversation(
        store, {STEM: ([0], [0])}, [DECLINED, ANSWERED], [BadReply("no JSON")], fuse=1.0
    )
    side_by_side(calls, FIRST, CUES, PROBE, "answer! v0 s0 <When? v> <When? s>")
    assert skip_reasons(events) == [(1, "no JSON")]
    assert reason(events) == "no new probe was thought of"
    assert answer.forced


async def test_a_malformed_cue_is_none(store):
    def cue(given: Any) -> object:
        return BadReply("no cue") if given.layer == "s" else {"cue": f"{given.probe} {given.layer}"}

    found = {STEM: ([0], [0]), "a": ([1], [1])}
    calls, events, answer = await conversation(store, found, [DECLINED, ANSWERED], [["a"]], cue=cue, fuse=1.0)
    assert calls[-1] == "answer v0 v1 s0 s1 <fused A> <a v>"
    assert skip_reasons(events) == [(1, "no cue"), (1, "no cue")]
    assert not answer.forced


async def test_a_malformed_attempt_has_failed_and_a_malformed_forced_answer_is_an_error(store):
    found = {STEM: ([0], [0]), "a": ([1], [])}
    calls, events, answer = await conversation(store, found, [Refused("not this"), ANSWERED], [["a"]], fuse=1.0)
    side_by_side(calls[:4], FIRST, CUES, PROBE)
    assert skip_reasons(events) == [(0, "not this")]
    assert (answer.text, answer.forced) == ("at nine", False)
    with pytest.raises(BadReply, match="nothing at all"):
        await conversation(store, found, [DECLINED, BadReply("nothing at all")], [[]])


async def test_an_attempt_without_a_usable_reply_leaves_the_forced_answer_its_chance(store):
    calls, events, answer = await conversation(store, {STEM: ([0], [0])}, [Refused("once"), ANSWERED], [[]], fuse=1.0)
    side_by_side(calls, FIRST, CUES, PROBE, "answer! v0 s0 <When? v> <When? s>")
    assert skip_reasons(events) == [(0, "once")]
    assert (answer.text, answer.forced) == ("at nine", True)


async def test_the_error_that_is_raised_is_that_of_an_attempt(store):
    with pytest.raises(Refused, match="the attempt"):
        await conversation(
            store,
            {STEM: ([0], [0])},
            [Refused("the attempt")],
            [[]],
            cue=lambda given: BadReply("a cue"),
            on_exhaustion="decline",
        )


@pytest.mark.parametrize("bounds", [{}, {"on_exhaustion": "decline"}, {"cycles": 0}])
async def test_where_no_attempt_had_a_usable_reply_that_is_an_error_and_no_failure_to_answer(store, bounds):
    with pytest.raises(Refused, match="not at all"):
        await conversation(store, {STEM: ([0], [0])}, [Refused("not at all")] * 9, [[]], **bounds)


async def test_without_cycles_the_first_attempt_may_be_declined_where_exhaustion_is_failure(store):
    found = {STEM: ([0], [0])}
    calls, events, answer = await conversation(store, found, [DECLINED], cycles=0, on_exhaustion="decline")
    assert calls == [FIRST]
    assert (answer.resolved, answer.forced, events[-1].name) == (False, False, "stopped")


async def test_nothing_is_fused_where_what_is_fused_has_no_room(store):
    found = {STEM: ([0], [0]), "a": ([1], [])}
    calls, _, _ = await conversation(store, found, [DECLINED, ANSWERED], [["a"]], fuse=0.0)
    assert not [call for call in calls if call.startswith("fuse")]
    with pytest.raises(UsageError, match="from 0 to 1, not 7"):
        await conversation(store, found, [], fuse=7)
    with pytest.raises(UsageError, match="give 1 or more"):
        SelfProbe(ScriptedModel({}), limit=0)


async def test_roles_are_shown_no_more_than_the_window_holds(store):
    long = "word " * 3000
    model = ScriptedModel(
        {
            "answer": [DECLINED, DECLINED, ANSWERED],
            "probe": [{"probes": ["a"]}, {"probes": ["b"]}],
            "encode": lambda given: {"cue": f"{given.probe} {long}"},
            "fuse": lambda given: {"cue": f"fused {long}"},
        },
        window=2048,
    )
    found = {STEM: [0], "a": [1], "b": [2]}
    layers = {name: Shelves(name, found, store) for name in "vs"}
    desk = make_desk(store, model)
    loop = Probe(
        LayeredRecall(layers),
        desk,
        Workspace(SelfProbe(model), Consolidation(desk), NewestFirst(), EMBEDDER),
        Bounds(shares={"v": 8, "s": 2, HISTORY: 1}, fuse=1.0),
    )
    async for _ in loop.run(Question(text=STEM)):
        pass
    asked: list[Any] = [call.given for call in model.calls]
    assert {call.role for call in model.calls} == {"answer", "probe", "encode", "fuse"}
    assert all(len(given.model_dump_json()) / 4 < model.window for given in asked)
    fused = [note for note in asked[-1].notes if note.startswith("fused")]
    assert len(fused) == 1, "what is too long is cut short and not left out"
    assert fused[0].endswith("word …")


@pytest.mark.parametrize("error", [ModelUnavailable("gone"), BudgetExceeded("used up")])
async def test_what_every_further_call_would_meet_is_an_error_at_once(store, error):
    with pytest.raises(type(error)):
        await conversation(store, {STEM: ([0], [0])}, [DECLINED], [error])


async def test_an_empty_cue_is_neither_noted_nor_fused(store):
    def cue(given: Any) -> dict[str, str]:
        return {"cue": "" if given.layer == "s" else f"{given.probe} {given.layer}"}

    found = {STEM: ([0], [0]), "a": ([1], [1])}
    calls, _, _ = await conversation(store, found, [DECLINED, ANSWERED], [["a"]], cue=cue, fuse=1.0)
    assert sorted(calls[4:7]) == ["encode a s: s1", "encode a v: v1", "fuse <When? v>"]
    assert calls[7:] == ["answer v0 v1 s0 s1 <fused A> <a v>"]


async def test_where_all_cues_are_empty_nothing_is_fused(store):
    found = {STEM: ([0], [0]), "a": ([1], [1])}
    calls, _, answer = await conversation(
        store, found, [DECLINED, ANSWERED], [["a"]], cue=lambda given: {"cue": ""}, fuse=1.0
    )
    assert sorted(calls[4:6]) == ["encode a s: s1", "encode a v: v1"]
    assert calls[6:] == ["answer v0 v1 s0 s1"]
    assert answer.resolved


async def test_nothing_found_at_all(store):
    calls, events, answer = await conversation(store, {}, [DECLINED, ANSWERED], [["a"]])
    side_by_side(calls, "answer", "probe When? | ", "answer!")
    assert reason(events) == "no new evidence was found"
    assert answer.forced


async def test_without_metacognition(store):
    found = {STEM: ([0], [0]), "a": ([1], [])}
    calls, _, _ = await conversation(store, found, [DECLINED, ANSWERED], [["a"]], metacognition=False)
    side_by_side(calls, FIRST, "probe When? | <v0> <s0>", "answer v0 v1 s0")


async def test_without_regulation(store):
    found = {STEM: ([0, 1], [0])}
    calls, _, _ = await conversation(store, found, [DECLINED, ANSWERED], regulation=False, limit=1, fuse=1.0)
    side_by_side(
        calls, FIRST, CUES, ["encode When? v: v1", "fuse <When? v> <When? s>"], "answer v0 v1 s0 <fused A> <When? v>"
    )


async def test_without_both(store):
    calls, _, answer = await conversation(
        store, {STEM: ([0], [0])}, [DECLINED], regulation=False, metacognition=False, cycles=0
    )
    side_by_side(calls, "answer! v0 s0")
    assert (answer.resolved, answer.forced) == (False, False)
