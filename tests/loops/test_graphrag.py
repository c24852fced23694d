"""GraphRAG's four ways to answer: from points of reports, by chosen reports, near to a question, by follow-ups."""

from __future__ import annotations

import asyncio
from collections import Counter
from zlib import crc32

import pytest
from tests.loops.community_tomes import ask, build_tome, write_groups
from tests.loops.doubles import list_inputs, list_roles
from tests.recall.relation_tomes import EMBEDDER

from tomewise.errors import BadReply
from tomewise.language.roles import MapOut
from tomewise.loops.evidence import FENCE, make_token_counter, measure_pieces
from tomewise.loops.local_search import rank_reports
from tomewise.loops.report_points import Point, read_points
from tomewise.memory.communities.community_names import CommunityNames
from tomewise.memory.communities.community_state import load_state
from tomewise.recall.community_reports import CommunityReports
from tomewise.store.lookups import find_keys, read_places
from tomewise.types import Question, Scope

NAMES = CommunityNames()
COUNT = make_token_counter(EMBEDDER)
QUESTION, FORCED = Question(text="Where did they meet?"), Question(text="Where did they meet?", force=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Thirty groups of four, so that communities of level 0 are divided."""
    opened = asyncio.run(build_tome(tmp_path_factory.mktemp("communities"), write_groups(30, 4)))
    assert max(node.level for node in opened.nodes("reports").values()) > 0
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def communities(store):
    """The communities by number, and the title of the report of each that has one."""
    state = load_state(store, NAMES)
    titles = {node.data["digest"]: node.data["title"] for node in store.nodes(NAMES.reports).values()}
    by_number = state.partition.communities
    inner = state.list_inner_pairs()
    return state, {number: titles[state.make_digest(by_number[number], pairs)] for number, pairs in inner.items()}


def load_shelf(store, within=None):
    return CommunityReports(store, EMBEDDER, NAMES).load(within)


def find_event(answer, name="reports chosen"):
    return next(event.detail for event in answer.events if event.name == name)


def raise_bad(given):
    raise BadReply("nothing")


def map_all(given):
    points = [
        {"description": f"Point on {each.text.splitlines()[0]}", "labels": [each.label], "score": 90 - 5 * place}
        for place, each in enumerate(given.evidence)
    ]
    return {"points": points}


MAP_ALL = {"map_reports": map_all}


def list_batches(model):
    return [[each.text for each in given.evidence] for given in list_inputs(model, "map_reports")]


# ---------------------------------------------------------------- points of all reports


def list_titles(communities, level):
    """The page: the report about the deepest community down to a level, for each entity that has one."""
    state, titles = communities
    found = set()
    for vertex in state.graph.neighbours:
        around = [each for each in state.partition.communities.values() if vertex in each.members]
        reported = [each for each in around if each.number in titles and each.level <= level]
        found.add(titles[max(reported, key=lambda each: each.level).number])
    return found


@pytest.mark.parametrize("level", [0, 1, 2])
async def test_a_level_is_the_deepest_report_of_each_entity(store, communities, level):
    answer, model = await ask(store, QUESTION, MAP_ALL, mode="global", level=level)
    chosen = find_event(answer)
    assert set(chosen["reports"]) == list_titles(communities, level)
    assert Counter(list_roles(model)) == {"map_reports": chosen["batches"], "answer": 1}


@pytest.mark.parametrize("context", [60, 260])
async def test_batches_hold_what_fits_and_a_report_larger_than_its_room_is_read_by_its_summary(
    store, communities, context
):
    _, model = await ask(store, QUESTION, MAP_ALL, mode="global", context=context)
    batches = list_batches(model)
    seen = [text for batch in batches for text in batch]
    assert len(seen) == len(set(seen)) == len(list_titles(communities, 2)), "every report once"
    assert all(seen)
    assert all(sum(COUNT(batch)) + FENCE * len(batch) <= context for batch in batches)


async def test_the_best_points_are_shown_with_their_passages(store):
    def map_some(_):
        scores = {"E9": 40, "E1": 90, "E2": 70, "E3": 0}
        points = [{"description": f"Point {n}", "labels": [label], "score": n} for label, n in scores.items()]
        return {"points": [*points, {"description": "Without a score", "labels": ["E1"]}]}

    answer, model = await ask(store, QUESTION, {"map_reports": map_some}, mode="global")
    (given,) = list_inputs(model, "answer")
    assert [note for note in given.notes if note != "Without a score"] == ["Point 90", "Point 70", "Point 40"]
    assert "Without a score" in given.notes
    assert given.evidence
    assert all(piece.layer == "passages" for piece in answer.evidence)


async def test_without_a_point_nothing_is_asked_and_the_question_is_declined(store):
    answer, model = await ask(store, QUESTION, {"map_reports": lambda _: {"points": []}}, mode="global")
    assert not answer.resolved
    assert answer.missing
    assert not list_inputs(model, "answer")


@pytest.mark.parametrize("mode", ["global", "dynamic"])
async def test_a_guess_without_a_point_rests_on_passages(store, mode):
    replies = {"map_reports": lambda _: {"points": []}, "rate_report": lambda _: {"reason": "", "rating": 0}}
    answer, model = await ask(store, FORCED, replies, mode=mode)
    (given,) = list_inputs(model, "answer")
    assert not given.notes
    assert {each.kind for each in given.evidence} == {"passage"}
    assert answer.resolved


async def test_a_batch_whose_reply_is_bad_is_left_out_and_where_all_are_that_is_an_error(store):
    def fail_sometimes(given):
        return raise_bad(given) if "Name0" in given.evidence[0].text else map_all(given)

    answer, _ = await ask(store, QUESTION, {"map_reports": fail_sometimes}, mode="global", context=120)
    assert answer.resolved
    assert find_event(answer, "skipped")
    with pytest.raises(BadReply):
        await ask(store, QUESTION, {"map_reports": raise_bad}, mode="global")


@pytest.mark.parametrize("words", [20, 200, 600])
async def test_a_point_larger_than_its_share_is_cut(store, words):
    point = {"description": " ".join(f"w{number}" for number in range(words)), "labels": ["E1"], "score": 50}
    answer, model = await ask(
        store, QUESTION, {"map_reports": lambda _: {"points": [point]}}, mode="global", context=600
    )
    (given,) = list_inputs(model, "answer")
    notes = sum(COUNT(given.notes)) + FENCE * len(given.notes)
    assert given.notes
    assert all(note.startswith("w0 ") for note in given.notes)
    assert notes <= 300
    assert notes + sum(measure_pieces(answer.evidence, COUNT)) <= 600
    assert answer.evidence


async def test_a_scope_leaves_only_reports_that_rest_on_it(store):
    within = Scope(documents=frozenset(["d0", "d1"]))
    answer, _ = await ask(store, Question(text="Where?", within=within), MAP_ALL, mode="global")
    places = {word for event in answer.events for note in event.detail.get("notes", []) for word in note.split()}
    assert {word for word in places if word.startswith("place")} <= {"place0", "place1"}
    assert {source for piece in answer.evidence for source in piece.sources}


# ---------------------------------------------------------------- points of chosen reports


def test_points_name_the_reports_of_their_labels():
    points = [{"description": "a", "labels": ["E2", "E7"], "score": 5}, {"description": "b", "score": 7}]
    reply = MapOut.model_validate({"points": points})
    assert read_points(reply, [10, 20]) == [Point("a", 5, (20,)), Point("b", 7)]


def rate_slowly(communities, wanted, most):
    """The page: rate level 0; keep what is relevant, drop its parent, rate its parts; else the whole next level."""
    state, title = communities
    by_number = state.partition.communities
    level, waiting = 0, [number for number in title if by_number[number].level == 0]
    kept = set()
    while waiting:
        children = []
        for number in waiting:
            if title[number] in wanted:
                kept.add(number)
                kept.discard(by_number[number].parent or 0)
                parts = state.partition.list_children(number)
                children += [part.number for part in parts if part.number in title and part.level <= most]
        level += 1
        waiting = children
        if not waiting and not kept and level <= most:
            waiting = [number for number in title if by_number[number].level == level]
    return {title[number] for number in kept}


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("share", [0, 1, 2, 3, 4])
async def test_rated_reports_are_those_of_the_page(store, communities, share, level):
    titles = sorted(communities[1].values())
    wanted = {title for place, title in enumerate(titles) if place % 4 >= share}

    def rate(given):
        return {"rating": 3 if given.report.splitlines()[0] in wanted else 2}

    plays = {"rate_report": rate, **MAP_ALL}
    answer, model = await ask(store, QUESTION, plays, mode="dynamic", level=level, threshold=3)
    chosen = find_event(answer)
    assert set(chosen["reports"]) == rate_slowly(communities, wanted, level)
    assert chosen["rated"] == list_roles(model).count("rate_report")


@pytest.mark.parametrize("documents", [5, 9, 20, 30])
async def test_no_report_is_rated_twice(store, documents):
    """Within a scope a report may have no report above it."""
    within = Scope(documents=frozenset(f"d{number}" for number in range(documents)))
    plays = {"rate_report": lambda _: {"rating": 0}, **MAP_ALL}
    _, model = await ask(store, Question(text="Where?", within=within), plays, mode="dynamic")
    rated = Counter(call.given.report for call in model.calls)
    assert rated == Counter(each.report.text for each in load_shelf(store, within).communities.values())


async def test_a_rating_that_cannot_be_read_twice_is_none(store):
    asked = Counter()

    def rate(given):
        asked[given.report] += 1
        return raise_bad(given) if asked[given.report] == 1 or "Name0" in given.report else {"rating": 5}

    answer, _ = await ask(store, QUESTION, {"rate_report": rate, **MAP_ALL}, mode="dynamic")
    reports = find_event(answer)["reports"]
    assert reports
    assert not [title for title in reports if "Name0 " in title]
    assert set(asked.values()) == {2}


# ---------------------------------------------------------------- near to a question

NEAR = Question(text="Who is Name3?")


@pytest.mark.parametrize("context", [300, 1200, 6000])
async def test_each_kind_keeps_to_its_share_in_the_order_of_the_page(store, context):
    answer, model = await ask(store, NEAR, {}, context=context)
    kinds = [piece.kind or "passage" for piece in answer.evidence]
    assert kinds == sorted(kinds, key=["summary", "entity", "fact", "passage"].index)
    used = Counter()
    for kind, tokens in zip(kinds, measure_pieces(answer.evidence, COUNT), strict=True):
        used[kind] += tokens
    assert used["summary"] <= 0.15 * context + 1
    assert used["entity"] + used["fact"] <= 0.35 * context + 1
    assert used.total() <= context
    assert used["passage"]
    assert list_roles(model) == ["answer"]
    assert all(piece.sources for piece in answer.evidence)
    assert read_places(store, (source for piece in answer.evidence for source in piece.sources))


@pytest.mark.parametrize("mode", ["local", "drift"])
async def test_reports_lead_to_passages_of_the_scope(tmp_path, mode):
    relation = "Ann ~ Bob ~ They met in the tower once"
    store = await build_tome(tmp_path, [relation, f"Other words\n{relation}"])
    asked = Question(text="Where did they meet?", within=Scope(documents=frozenset({"d0"})))
    answer, model = await ask(store, asked, play(lambda _: {"answer": "In the tower", "score": 5}), mode=mode)
    sources = [source for piece in answer.evidence for source in piece.sources]
    assert {document for document, _ in read_places(store, sources).values()} <= {"d0"}
    shown = [each for call in model.calls if call.role != "hypothesise" for each in call.given.evidence]
    assert {each.document for each in shown if each.kind == "summary"} == {"d0"}
    store.close()


# ---------------------------------------------------------------- by follow-ups


async def test_a_report_that_does_not_fit_is_shown_by_its_summary(store):
    whole, _ = await ask(store, NEAR, {}, context=6000, reports=1.0, relations=0.0)
    first = next(piece for piece in whole.evidence if piece.kind == "summary")
    (node,) = store.nodes_at(find_keys(store, [first.id]).values()).values()
    room = sum(measure_pieces([first], COUNT)) - 1
    less, _ = await ask(store, NEAR, {}, context=room, reports=1.0, relations=0.0)
    texts = [piece.text for piece in less.evidence if piece.id == first.id]
    assert texts == [f"{node.data['title']}\n{node.data['summary']}"]


def test_reports_stand_by_found_entities_then_importance(store):
    shelf = load_shelf(store)
    homes = shelf.find_homes(2)
    entities = sorted(homes)[3:15]
    ranked = rank_reports([*entities, 10**6], shelf, 2)
    counts = [sum(homes[entity] == each.key for entity in entities) for each in ranked]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == len(entities)


def explore(given):
    """Names three follow-ups a step, which no other step names, with a score that depends on what it was asked."""
    seed = crc32(f"{given.query}{[each.text for each in given.evidence if each.kind == 'summary']}".encode())
    return {
        "answer": f"Answer {seed}",
        "score": 1 + seed % 90,
        "follow_ups": [f"Where was {seed + n}?" for n in range(3)],
    }


def play(explorer):
    return {"hypothesise": lambda _: {"answer": "They met in place3 once"}, "explore": explorer}


def list_queries(model):
    return [given.query for given in list_inputs(model, "explore")]


@pytest.mark.parametrize(("follow_ups", "depth"), [(5, 2), (2, 3), (20, 1), (0, 2), (5, 0)])
async def test_follow_ups_go_by_the_score_of_the_step_that_names_them(store, follow_ups, depth):
    answer, model = await ask(store, QUESTION, play(explore), mode="drift", follow_ups=follow_ups, depth=depth)
    steps = [event.detail for event in answer.events if event.name == "followed up"]
    assert [step["query"] for step in steps[:5]] == [QUESTION.text] * 5
    waiting, taken, rest = [], steps[:5], steps[5:]
    for _ in range(depth):
        waiting += [(step["score"], query) for step in taken for query in step["follow_ups"]]
        waiting.sort(key=lambda item: -item[0])
        taken, rest = rest[:follow_ups], rest[follow_ups:]
        assert [step["query"] for step in taken] == [query for _, query in waiting[:follow_ups]]
        del waiting[:follow_ups]
    assert not rest
    assert Counter(list_roles(model)) == {"hypothesise": 1, "explore": len(steps), "answer": 1}
    (given,) = list_inputs(model, "answer")
    assert given.notes == [step["notes"][0] for step in sorted(steps, key=lambda step: -step["score"])]
    assert answer.resolved


async def test_a_follow_up_is_asked_once(store):
    reply = {"answer": "", "score": 0, "follow_ups": [QUESTION.text, "Who  was IT?", "who was it?"]}
    _, model = await ask(store, QUESTION, play(lambda _: reply), mode="drift")
    assert list_queries(model) == [QUESTION.text] * 5 + ["Who  was IT?"]


@pytest.mark.parametrize("texts", [[], ["Nothing related here"]])
async def test_nobody_is_asked_about_nothing(tmp_path, texts):
    store = await build_tome(tmp_path, texts)
    answer, model = await ask(store, QUESTION, play(explore), mode="drift")
    assert not answer.resolved
    assert answer.missing
    assert not model.calls
    guess, model = await ask(store, FORCED, play(explore), mode="drift")
    assert guess.resolved
    assert list_roles(model) == ["answer"]
    store.close()


async def test_bad_replies_are_skipped_unless_all_are_bad(store):
    asked = []

    def fail_first(given):
        asked.append(given.query)
        return raise_bad(given) if len(asked) < 3 else {"answer": "In place3", "score": 50, "follow_ups": []}

    answer, _ = await ask(store, QUESTION, {"hypothesise": raise_bad, "explore": fail_first}, mode="drift")
    assert answer.resolved
    assert sum(event.name == "skipped" for event in answer.events) == 3
    with pytest.raises(BadReply):
        await ask(store, QUESTION, {"hypothesise": raise_bad, "explore": raise_bad}, mode="drift")


# ---------------------------------------------------------------- what a loop finds


@pytest.mark.parametrize("context", [1200, 6000])
@pytest.mark.parametrize("mode", ["global", "dynamic", "drift"])
async def test_each_point_is_in_the_last_prompt_or_counts_as_cut(store, mode, context):
    def lengthen(reply, key):
        return {**reply, key: f"{reply[key]} {' '.join(['long'] * 90)}"}

    def find_points(given):
        points = [lengthen(point, "description") for point in map_all(given)["points"]]
        return {"points": [{**point, "score": 1 + place} for place, point in enumerate(points)]}

    plays = {
        **play(lambda given: lengthen(explore(given), "answer")),
        "map_reports": find_points,
        "rate_report": lambda _: {"rating": 5},
    }
    answer, model = await ask(store, QUESTION, plays, mode=mode, context=context)
    found = {note for event in answer.events if event.name != "retrieved" for note in event.detail.get("notes", [])}
    (given,) = list_inputs(model, "answer")
    shown = set(given.notes)
    assert shown <= found
    used = sum(COUNT(given.notes)) + FENCE * len(shown)
    least = min(COUNT([*found - shown]), default=context)
    assert used <= context / 2 < used + least + FENCE, "no other point has room in the half that points have"
    retrieved = find_event(answer, "retrieved")
    assert retrieved["cut"] == answer.coverage.dropped >= len(found - shown)
    assert retrieved["found"] == len(shown) + len(answer.evidence) + retrieved["cut"]


@pytest.mark.parametrize("context", [300, 1200, 6000])
async def test_what_a_local_search_finds_is_shown_or_counts_as_cut(store, context):
    whole, _ = await ask(store, NEAR, {}, context=100_000)
    assert not whole.coverage.dropped
    answer, _ = await ask(store, NEAR, {}, context=context)
    assert len(answer.evidence) + answer.coverage.dropped <= len(whole.evidence)
    assert find_event(answer, "retrieved")["cut"] == answer.coverage.dropped
    assert answer.coverage.dropped or len(answer.evidence) == len(whole.evidence)
