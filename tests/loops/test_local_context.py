"""Local answers: how the context is shared between reports, entities, relations and passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.loops.community_tomes import ask, build_tome, write_groups
from tests.recall.relation_tomes import EMBEDDER

from tomewise.loops.evidence import FENCE, describe_source, make_token_counter
from tomewise.loops.local_context import rank_reports
from tomewise.memory.communities.community_names import CommunityNames
from tomewise.recall.community_reports import CommunityReports
from tomewise.store.lookups import find_keys, read_places
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Evidence, Question, Scope

QUESTION = Question(text="Who is Name3?")
COUNT = make_token_counter(EMBEDDER)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    opened = await build_tome(tmp_path, write_groups(30, 4))
    assert max(node.level for node in opened.nodes("reports").values()) > 0
    yield opened
    opened.close()


def measure(pieces: list[Evidence]) -> int:
    return sum(FENCE + COUNT([f"{describe_source(piece)}\n{piece.text}"])[0] for piece in pieces)


@pytest.mark.parametrize("context", [300, 1200, 6000])
async def test_each_kind_keeps_to_its_share_in_the_order_of_the_page(store: SqlStore, context: int) -> None:
    answer, model = await ask(store, QUESTION, {}, context=context)
    kinds = [piece.kind or "passage" for piece in answer.evidence]
    assert kinds == sorted(kinds, key=["summary", "entity", "fact", "passage"].index)
    shown = {kind: [piece for piece in answer.evidence if (piece.kind or "passage") == kind] for kind in set(kinds)}
    assert measure(shown.get("summary", [])) <= 0.15 * context + 1
    assert measure([*shown.get("entity", []), *shown.get("fact", [])]) <= 0.35 * context + 1
    assert measure(list(answer.evidence)) <= context
    assert shown["passage"]
    assert Counter(call.role for call in model.calls) == {"answer": 1}


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
async def test_shares_above_the_whole_do_not_exceed_it(store: SqlStore, share: float) -> None:
    answer, _ = await ask(store, QUESTION, {}, context=600, reports=share, relations=share)
    assert answer.evidence
    assert measure(list(answer.evidence)) <= 600


async def test_reports_lead_to_passages_of_the_scope(tmp_path: Path) -> None:
    relation = "Ann ~ Bob ~ They met in the tower once"
    store = await build_tome(tmp_path, [relation, f"Other words\n{relation}"])
    within = Scope(documents=frozenset({"d0"}))
    plays = {
        "hypothesise": lambda _: {"answer": "In the tower"},
        "explore": lambda _: {"answer": "In the tower", "score": 5},
    }
    for mode in ("local", "drift"):
        answer, model = await ask(store, Question(text="Where did they meet?", within=within), plays, mode=mode)
        sources = [source for piece in answer.evidence for source in piece.sources]
        assert {document for document, _ in read_places(store, sources).values()} <= {"d0"}
        shown = [
            each
            for call in model.calls
            if call.role in ("explore", "answer")
            for each in call.given.evidence
            if each.kind == "summary"
        ]
        assert {each.document for each in shown} == {"d0"}
    store.close()


async def test_a_report_that_does_not_fit_is_shown_by_its_summary(store: SqlStore) -> None:
    whole, _ = await ask(store, QUESTION, {}, context=6000, reports=1.0, relations=0.0)
    (first, *_) = [piece for piece in whole.evidence if piece.kind == "summary"]
    short = store.nodes_at(find_keys(store, [first.node]).values())
    (node,) = short.values()
    text = f"{node.data['title']}\n{node.data['summary']}"
    room = measure([first]) - 1
    less, _ = await ask(store, QUESTION, {}, context=room, reports=1.0, relations=0.0)
    assert [piece.text for piece in less.evidence if piece.node == first.node] == [text]


async def test_reports_stand_by_found_entities_then_importance(store: SqlStore) -> None:
    shelf = CommunityReports(store, EMBEDDER, CommunityNames()).load(None)
    homes = shelf.find_homes(2)
    entities = sorted(homes)[3:15]
    ranked = rank_reports([*entities, 10**6], shelf, 2)
    counts = [sum(homes[entity] == each.key for entity in entities) for each in ranked]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == len(entities)


async def test_shares_of_nothing_leave_kinds_out(store: SqlStore) -> None:
    without_reports, _ = await ask(store, QUESTION, {}, reports=0.0)
    assert {piece.kind for piece in without_reports.evidence} == {"entity", "fact", ""}
    without_relations, _ = await ask(store, QUESTION, {}, relations=0.0)
    assert {piece.kind for piece in without_relations.evidence} == {"summary", ""}


async def test_every_piece_leads_to_passages(store: SqlStore) -> None:
    answer, _ = await ask(store, QUESTION, {})
    assert all(piece.sources for piece in answer.evidence)
    assert read_places(store, (source for piece in answer.evidence for source in piece.sources))
