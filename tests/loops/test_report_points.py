"""Answers from reports: which are read, in which batches, and what the answering role sees of the points."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.loops.community_tomes import ask, build_tome, write_groups
from tests.recall.relation_tomes import EMBEDDER

from tomewise.errors import BadReply
from tomewise.language.roles import MapOut
from tomewise.loops.evidence import FENCE, make_token_counter, measure_pieces
from tomewise.loops.report_points import Point, fit_reports, read_points
from tomewise.memory.communities.community_names import CommunityNames
from tomewise.memory.communities.community_state import load_state
from tomewise.recall.community_reports import CommunityReports
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.kit import Kit
from tomewise.testing import ScriptedModel
from tomewise.types import Question, Scope

NAMES = CommunityNames()
QUESTION = Question(text="Where did they meet?")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    """Thirty groups of four, so that communities of level 0 are divided."""
    opened = await build_tome(tmp_path, write_groups(30, 4))
    assert max(node.level for node in opened.nodes("reports").values()) > 0
    yield opened
    opened.close()


def list_titles(store: SqlStore, level: int) -> set[str]:
    """The page: the report about the deepest community down to a level, for each entity that has one."""
    state = load_state(store, NAMES)
    titles = {node.data["digest"]: node.data["title"] for node in store.nodes(NAMES.reports).values()}
    inner = state.list_inner_pairs()
    found = set()
    for vertex in state.graph.neighbours:
        around = [
            each for each in state.partition.communities.values() if vertex in each.members and each.level <= level
        ]
        reported = [each for each in around if each.number in inner]
        deepest = max(reported, key=lambda each: each.level)
        found.add(titles[state.make_digest(deepest, inner[deepest.number])])
    return found


def map_all(given: Any) -> dict[str, object]:
    points = [
        {"description": f"Point on {each.text.splitlines()[0]}", "labels": [each.label], "score": 90 - 5 * place}
        for place, each in enumerate(given.evidence)
    ]
    return {"points": points}


@pytest.mark.parametrize("level", [0, 1, 2])
async def test_a_level_is_the_deepest_report_of_each_entity(store: SqlStore, level: int) -> None:
    answer, model = await ask(store, QUESTION, {"map_reports": map_all}, mode="global", level=level)
    chosen = next(event for event in answer.events if event.name == "reports chosen")
    assert set(chosen.detail["reports"]) == list_titles(store, level)
    assert Counter(call.role for call in model.calls) == {"map_reports": chosen.detail["batches"], "answer": 1}


async def test_batches_hold_what_fits_and_every_report_once(store: SqlStore) -> None:
    answer, model = await ask(store, QUESTION, {"map_reports": map_all}, mode="global", context=260)
    seen = [each.text for call in model.calls if call.role == "map_reports" for each in call.given.evidence]
    shelf = CommunityReports(store, EMBEDDER, NAMES).load(None)
    reports = {text for each in shelf.communities.values() for text in (each.report.text, each.short_text)}
    assert len(seen) == len(set(seen)) == len(list_titles(store, 2))
    batches = [[each.text for each in call.given.evidence] for call in model.calls if call.role == "map_reports"]
    assert len(batches) > 1
    words = [sum(len(text.split()) for text in batch) for batch in batches if len(batch) > 1]
    assert all(size <= 260 for size in words)
    assert all(text in reports for text in seen)
    assert answer.resolved


async def test_the_best_points_come_first_and_their_passages_are_shown(store: SqlStore) -> None:
    def map_some(given: Any) -> dict[str, object]:
        scores = [0, 40, 90, 70]
        points = [
            {"description": f"Point {score}", "labels": ["E1"] if score == 90 else ["E9"], "score": score}
            for score in scores
        ]
        return {"points": points}

    answer, model = await ask(store, QUESTION, {"map_reports": map_some}, mode="global")
    (given,) = [call.given for call in model.calls if call.role == "answer"]
    assert given.notes == ["Point 90", "Point 70", "Point 40"]
    assert given.evidence
    assert all(piece.layer == "passages" for piece in answer.evidence)


async def test_without_a_point_nothing_is_asked_and_the_question_is_declined(store: SqlStore) -> None:
    answer, model = await ask(store, QUESTION, {"map_reports": lambda _: {"points": []}}, mode="global")
    assert not answer.resolved
    assert answer.missing
    assert not [call for call in model.calls if call.role == "answer"]


@pytest.mark.parametrize("mode", ["global", "dynamic"])
async def test_a_guess_without_a_point_rests_on_passages(store: SqlStore, mode: str) -> None:
    forced = Question(text=QUESTION.text, force=True)
    replies = {"map_reports": lambda _: {"points": []}, "rate_report": lambda _: {"reason": "", "rating": 0}}
    answer, model = await ask(store, forced, replies, mode=mode)
    (given,) = [call.given for call in model.calls if call.role == "answer"]
    assert not given.notes
    assert {each.kind for each in given.evidence} == {"passage"}
    assert answer.resolved


async def test_options_reach_the_answering_role_alone(store: SqlStore) -> None:
    asked = Question(text=QUESTION.text, options=("the tower", "the harbour"))
    _, model = await ask(store, asked, {"map_reports": map_all}, mode="global")
    for call in model.calls:
        assert ("the harbour" in call.given.model_dump_json()) == (call.role == "answer")


async def test_a_batch_whose_reply_is_bad_is_left_out(store: SqlStore) -> None:
    def fail_sometimes(given: Any) -> dict[str, object]:
        if "Name0" in given.evidence[0].text:
            raise BadReply("nothing")
        return map_all(given)

    answer, _ = await ask(store, QUESTION, {"map_reports": fail_sometimes}, mode="global", context=120)
    assert answer.resolved
    assert [event for event in answer.events if event.name == "skipped"]

    def fail(given: Any) -> dict[str, object]:
        raise BadReply("nothing")

    with pytest.raises(BadReply):
        await ask(store, QUESTION, {"map_reports": fail}, mode="global")


def rate_slowly(store: SqlStore, wanted: set[str], most: int) -> set[str]:
    """The page: rate level 0; keep what is relevant, drop its parent, rate its parts; else the whole next level."""
    state = load_state(store, NAMES)
    titles = {node.data["digest"]: node.data["title"] for node in store.nodes(NAMES.reports).values()}
    inner = state.list_inner_pairs()
    by_number = state.partition.communities
    title = {number: titles[state.make_digest(by_number[number], pairs)] for number, pairs in inner.items()}
    level, waiting = 0, [number for number in title if by_number[number].level == 0]
    kept: set[int] = set()
    while waiting:
        children = []
        for number in waiting:
            if title[number] in wanted:
                kept.add(number)
                kept.discard(by_number[number].parent or 0)
                children += [
                    child.number
                    for child in state.partition.list_children(number)
                    if child.number in title and child.level <= most
                ]
        level += 1
        waiting = children
        if not waiting and not kept and level <= most:
            waiting = [number for number in title if by_number[number].level == level]
    return {title[number] for number in kept}


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("share", [0, 1, 2, 3, 4])
async def test_rated_reports_are_those_of_the_page(store: SqlStore, share: int, level: int) -> None:
    titles = sorted(node.data["title"] for node in store.nodes(NAMES.reports).values())
    wanted = {title for place, title in enumerate(titles) if place % 4 >= share}

    def rate(given: Any) -> dict[str, object]:
        return {"rating": 3 if given.report.splitlines()[0] in wanted else 0}

    plays = {"rate_report": rate, "map_reports": map_all}
    answer, model = await ask(store, QUESTION, plays, mode="dynamic", level=level)
    chosen = next(event for event in answer.events if event.name == "reports chosen")
    assert set(chosen.detail["reports"]) == rate_slowly(store, wanted, level)
    assert chosen.detail["rated"] == sum(call.role == "rate_report" for call in model.calls)


@pytest.mark.parametrize("documents", [5, 9, 20, 30])
async def test_no_report_is_rated_twice(store: SqlStore, documents: int) -> None:
    """Within a scope a report may have no report above it."""
    within = Scope(documents=frozenset(f"d{number}" for number in range(documents)))
    plays = {"rate_report": lambda _: {"rating": 0}, "map_reports": map_all}
    _, model = await ask(store, Question(text="Where?", within=within), plays, mode="dynamic")
    rated = Counter(call.given.report for call in model.calls)
    shelf = CommunityReports(store, EMBEDDER, NAMES).load(within)
    assert rated == Counter(each.report.text for each in shelf.communities.values())


async def test_a_report_larger_than_its_room_is_read_by_its_summary(store: SqlStore) -> None:
    count = make_token_counter(EMBEDDER)
    for context in (60, 100):
        _, model = await ask(store, QUESTION, {"map_reports": map_all}, mode="global", context=context)
        batches = [call.given.evidence for call in model.calls if call.role == "map_reports"]
        assert batches
        for batch in batches:
            assert all(each.text for each in batch)
            assert sum(count([each.text for each in batch])) + FENCE * len(batch) <= context
    shelf = CommunityReports(store, EMBEDDER, NAMES).load(None)
    desk = Kit(store, ScriptedModel({}), EMBEDDER).make_desk("as found")
    for community in shelf.communities.values():
        size, short = count([community.report.text, community.short_text])
        if short < size:
            (fitted,) = fit_reports(desk, [community], size + FENCE - 1)
            assert fitted.report.text == community.short_text.strip()


@pytest.mark.parametrize("words", [20, 200, 600])
async def test_a_point_larger_than_its_share_is_cut(store: SqlStore, words: int) -> None:
    def map_long(_: Any) -> dict[str, object]:
        text = " ".join(f"w{number}" for number in range(words))
        return {"points": [{"description": text, "labels": ["E1"], "score": 50}]}

    answer, model = await ask(store, QUESTION, {"map_reports": map_long}, mode="global", context=600)
    (given,) = [call.given for call in model.calls if call.role == "answer"]
    count = make_token_counter(EMBEDDER)
    notes = sum(count(given.notes)) + FENCE * len(given.notes)
    assert given.notes
    assert all(note.startswith("w0 ") for note in given.notes)
    assert notes <= 300
    assert notes + sum(measure_pieces(answer.evidence, count)) <= 600
    assert answer.evidence


async def test_a_point_without_a_score_counts(store: SqlStore) -> None:
    def map_plainly(_: Any) -> dict[str, object]:
        return {"points": [{"description": "They met in place3", "labels": ["E1"]}]}

    answer, model = await ask(store, QUESTION, {"map_reports": map_plainly}, mode="global")
    assert answer.resolved
    (given,) = [call.given for call in model.calls if call.role == "answer"]
    assert "They met in place3" in given.notes


async def test_a_rating_that_cannot_be_read_twice_is_none(store: SqlStore) -> None:
    asked: Counter[str] = Counter()

    def rate(given: Any) -> dict[str, object]:
        asked[given.report] += 1
        if asked[given.report] == 1 or "Name0" in given.report:
            raise BadReply("nothing")
        return {"rating": 5}

    answer, _ = await ask(store, QUESTION, {"rate_report": rate, "map_reports": map_all}, mode="dynamic")
    chosen = next(event for event in answer.events if event.name == "reports chosen")
    assert chosen.detail["reports"]
    assert not [title for title in chosen.detail["reports"] if "Name0 " in title]
    assert set(asked.values()) == {2}


async def test_a_scope_leaves_only_reports_that_rest_on_it(store: SqlStore) -> None:
    within = Scope(documents=frozenset(["d0", "d1"]))
    answer, _ = await ask(store, Question(text="Where?", within=within), {"map_reports": map_all}, mode="global")
    places = {word for event in answer.events for note in event.detail.get("notes", []) for word in note.split()}
    assert {word for word in places if word.startswith("place")} <= {"place0", "place1"}
    assert {source for piece in answer.evidence for source in piece.sources}


def test_points_name_the_reports_of_their_labels() -> None:
    reply = MapOut.model_validate(
        {"points": [{"description": "a", "labels": ["E2", "E7"], "score": 5}, {"description": "b", "score": 7}]}
    )
    assert read_points(reply, [10, 20]) == [Point("a", 5, (20,)), Point("b", 7, (10, 20))]
