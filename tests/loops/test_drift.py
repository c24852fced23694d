"""DRIFT: a made-up answer, folds of reports, follow-ups by score, and one answer from all of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from tests.loops.community_tomes import ask, build_tome, write_groups

from tomewise.errors import BadReply
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Question

QUESTION = Question(text="Where did they meet?")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    opened = await build_tome(tmp_path, write_groups(30, 4))
    assert max(node.level for node in opened.nodes("reports").values()) > 0
    yield opened
    opened.close()


def explore(given: Any) -> dict[str, object]:
    """Names three follow-ups a step, which no other step names, with a score that depends on what it was asked."""
    seed = crc32(f"{given.query}{[each.text for each in given.evidence if each.kind == 'summary']}".encode())
    follow_ups = [f"Where was {seed + place}?" for place in range(3)]
    return {"answer": f"Answer {seed}", "score": 1 + seed % 90, "follow_ups": follow_ups}


def play(explorer: object) -> dict[str, Any]:
    return {"hypothesise": lambda _: {"answer": "They met in place3 once"}, "explore": explorer}


@pytest.mark.parametrize(("follow_ups", "depth"), [(5, 2), (2, 3), (20, 1), (0, 2), (5, 0)])
async def test_follow_ups_go_by_the_score_of_the_step_that_names_them(
    store: SqlStore, follow_ups: int, depth: int
) -> None:
    answer, model = await ask(store, QUESTION, play(explore), mode="drift", follow_ups=follow_ups, depth=depth)
    steps = [event for event in answer.events if event.name == "followed up"]
    assert [event.detail["query"] for event in steps[:5]] == [QUESTION.text] * 5
    waiting = [(event.detail["score"], query) for event in steps[:5] for query in event.detail["follow_ups"]]
    rest = steps[5:]
    for _ in range(depth):
        waiting.sort(key=lambda item: -item[0])
        taken, rest = rest[:follow_ups], rest[follow_ups:]
        assert [event.detail["query"] for event in taken] == [query for _, query in waiting[:follow_ups]]
        del waiting[:follow_ups]
        waiting += [(event.detail["score"], query) for event in taken for query in event.detail["follow_ups"]]
    assert not rest
    calls = Counter(call.role for call in model.calls)
    assert calls == {"hypothesise": 1, "explore": len(steps), "answer": 1}
    (given,) = [call.given for call in model.calls if call.role == "answer"]
    best = sorted(steps, key=lambda event: -event.detail["score"])
    assert given.notes == [event.detail["notes"][0] for event in best]
    assert answer.resolved


async def test_a_follow_up_is_asked_once(store: SqlStore) -> None:
    def repeat(given: Any) -> dict[str, object]:
        return {"answer": "", "score": 0, "follow_ups": [QUESTION.text, "Who  was IT?", "who was it?"]}

    _, model = await ask(store, QUESTION, play(repeat), mode="drift")
    queries = [call.given.query for call in model.calls if call.role == "explore"]
    assert queries == [QUESTION.text] * 5 + ["Who  was IT?"]


async def test_reports_are_read_first_then_what_is_near(store: SqlStore) -> None:
    _, model = await ask(store, QUESTION, play(explore), mode="drift", follow_ups=2, depth=1)
    shown = [[each.kind for each in call.given.evidence] for call in model.calls if call.role == "explore"]
    assert all(set(kinds) == {"summary"} for kinds in shown[:5])
    assert all({"entity", "fact", "passage"} <= set(kinds) for kinds in shown[5:])
    reports = [each.text for call in model.calls[1:6] for each in call.given.evidence]
    assert len(reports) == len(set(reports)) == min(20, len(store.nodes("reports")))


async def test_reports_below_the_level_are_not_read(store: SqlStore) -> None:
    levels = {node.text: node.level for node in store.nodes("reports").values()}
    for level in (0, 1):
        _, model = await ask(store, QUESTION, play(explore), mode="drift", level=level, depth=0)
        shown = [each.text for call in model.calls if call.role == "explore" for each in call.given.evidence]
        assert max(levels[text] for text in shown) == level


@pytest.mark.parametrize("texts", [[], ["Nothing related here"]])
async def test_nobody_is_asked_about_nothing(tmp_path: Path, texts: list[str]) -> None:
    store = await build_tome(tmp_path, texts)
    answer, model = await ask(store, QUESTION, play(explore), mode="drift")
    assert not answer.resolved
    assert answer.missing
    assert not model.calls
    guess, model = await ask(store, Question(text="Where?", force=True), play(explore), mode="drift")
    assert guess.resolved
    assert [call.role for call in model.calls] == ["answer"]
    store.close()


async def test_bad_replies_are_skipped_unless_all_are_bad(store: SqlStore) -> None:
    asked = []

    def fail_first(given: Any) -> dict[str, object]:
        asked.append(given.query)
        if len(asked) < 3:
            raise BadReply("nothing")
        return {"answer": "In place3", "score": 50, "follow_ups": []}

    def fail(given: Any) -> dict[str, object]:
        raise BadReply("nothing")

    answer, _ = await ask(store, QUESTION, {"hypothesise": fail, "explore": fail_first}, mode="drift")
    assert answer.resolved
    assert sum(event.name == "skipped" for event in answer.events) == 3
    with pytest.raises(BadReply):
        await ask(store, QUESTION, {"hypothesise": fail, "explore": fail}, mode="drift")


async def test_without_reports_the_question_is_searched(tmp_path: Path) -> None:
    store = await build_tome(tmp_path, ["Ada = A keeper who met them in the tower"])
    _, model = await ask(store, QUESTION, play(explore), mode="drift", follow_ups=1, depth=1)
    assert [call.given.query for call in model.calls if call.role == "explore"] == [QUESTION.text]
    store.close()
