"""HGMem over random graphs and replies, against a slow reading of equations 6 to 8 and section 3.6."""

from __future__ import annotations

import random
from itertools import pairwise, zip_longest

import pytest
from tests.recall.relation_tomes import EMBEDDER, build_store

from tomewise.loops.evidence import make_token_counter, measure_texts
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.testing import ScriptedModel
from tomewise.types import Question

PEOPLE = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hal", "Ida", "Jon")
OUTSIDE = ("Honour", "Disgrace")  # no text names them
QUESTION = "Who met whom on which day?"


def join_in_order(*lists):
    return tuple(dict.fromkeys(text for texts in lists for text in texts))


class SlowMemory:
    """Points as the paper has them: a description and entities each, and here what they name as evidence."""

    def __init__(self, texts) -> None:
        self.texts = texts
        self.points: dict = {}
        self.issued = 0

    def put(self, description, entities, named):
        self.issued += 1
        self.points[f"M{self.issued}"] = (description, frozenset(entities), tuple(named))

    def list_related(self, name):
        """Neighbours of an entity in the graph."""
        pairs = [text.split(" ~ ")[:2] for text in self.texts]
        return {end for pair in pairs if name in pair for end in pair} - {name}

    def find_around(self, points):
        """Equation 6."""
        anchors = set().union(*(self.points[point][1] for point in points))
        found = set()
        for anchor in anchors:
            found |= self.list_related(anchor)
            for _, entities, _ in self.points.values():
                if anchor in entities:
                    found |= entities - {anchor}
        return found & self.known

    @property
    def known(self):
        """The entities of the graph."""
        return {name for text in self.texts for name in text.split(" ~ ")[:2]}

    @property
    def entities(self):
        """The vertices of the memory."""
        return set().union(*(entities for _, entities, _ in self.points.values()))

    def list_passages(self, points):
        """Section 3.6: those of all vertices, and what points name."""
        entities = set().union(*(point[1] for point in points))
        return {text for text in self.texts if entities & set(text.split(" ~ ")[:2])}.union(
            *(point[2] for point in points)
        )


def fit(texts, room, count):
    """The first texts that have room, each with its fence."""
    fitting = []
    for text, size in zip(texts, measure_texts(texts, count), strict=True):
        if size <= room:
            fitting.append(text)
            room -= size
    return fitting


def rank_slowly(slow, points, ids):
    """What the nearest point names; then all by rank, as named by each point and as near to the question.

    The searches of points together count as three questions at most.
    """
    wanted = slow.list_passages(points)
    near = dict(zip(wanted, measure(QUESTION, wanted), strict=True))
    nearest = sorted(wanted, key=lambda text: (-near[text], ids[text]))
    named = [point[2] for point in points if point[2]]
    scores = {text: 1 / (2 + rank) for rank, text in enumerate(nearest)}
    for texts in named:
        for rank, text in enumerate(texts):
            scores[text] += min(1, 3 / len(named)) / (2 + rank)
    places = {
        text: place
        for place, text in enumerate(dict.fromkeys([*(text for texts in named for text in texts), *nearest]))
    }
    first = points[0][2]
    return sorted(wanted, key=lambda text: (text not in first, -round(scores[text], 6), places[text]))


def measure(query, texts):
    """The cosines of texts with a query."""
    return (EMBEDDER.embed([*texts]) @ EMBEDDER.embed([query])[0]).round(5).tolist() if texts else []


def measure_best(query, texts, most):
    """The greatest cosines, by which a ranking is compared: of texts that tie, any may come first."""
    return sorted(measure(query, texts), reverse=True)[:most]


class Player:
    """Random replies, which the slow memory follows."""

    def __init__(self, seed, texts) -> None:
        self.dice = random.Random(seed)
        self.slow = SlowMemory(texts)
        self.expected: list = []  # for each search, where it goes and what it may find
        self.rounds = 0

    def evolve(self, given):
        passages = {item.label: item.text for item in given.evidence if item.kind == "passage"}
        updates, insertions = [], []
        if self.slow.points and self.dice.random() < 0.5:
            point, text = self.dice.choice([*self.slow.points]), f"Changed {self.dice.random()}."
            labels = self.dice.sample([*passages], min(1, len(passages)))
            updates.append({"point": point, "description": text, "entities": ["Zoe"], "evidence": labels})
            _, entities, named = self.slow.points[point]
            self.slow.points[point] = (text, entities, join_in_order([passages[label] for label in labels], named))
        for _ in range(2):
            names = self.dice.sample([*PEOPLE[:8], *OUTSIDE], self.dice.randint(1, 3))
            labels = self.dice.sample([*passages], self.dice.randint(0, min(2, len(passages))))
            text = f"Point {self.dice.random()}."
            insertions.append({"description": text, "entities": names, "evidence": labels})
            self.slow.put(text, names, [passages[label] for label in labels])
        return {"updates": updates, "insertions": insertions}

    def merge(self, given):
        """Equation 8: the union of the entities; the parts leave."""
        first, second = self.dice.sample([*self.slow.points], 2)
        text = f"Merged {self.dice.random()}."
        (_, left, named), (_, right, more) = self.slow.points.pop(first), self.slow.points.pop(second)
        in_turn = (text for pair in zip_longest(named, more) for text in pair if text)
        self.slow.put(text, left | right, join_in_order(in_turn))
        return {"merges": [{"points": [first, second], "description": text}]}

    def plan(self, given):
        point = self.dice.choice([*self.slow.points])
        around = self.slow.find_around([point])
        beyond = self.slow.known - self.slow.entities
        self.rounds += 1
        queries = [f"Near {self.dice.choice(PEOPLE)} {self.rounds}", f"Beyond {self.dice.choice(PEOPLE)} {self.rounds}"]
        self.expected += [("local", around) if around else ("global", beyond), ("global", beyond)]
        return {
            "reasoning": "",
            "sufficient": False,
            "concerns": [
                {"concern": queries[0], "place": "local", "points": [point], "subqueries": [queries[0]]},
                {"concern": queries[1], "place": "global", "points": [], "subqueries": [queries[1]]},
            ],
        }


@pytest.mark.parametrize("context", [6000, 150])
@pytest.mark.parametrize("seed", range(8))
async def test_searches_points_and_the_last_prompt_are_those_of_the_slow_reading(tmp_path, seed, context):
    dice = random.Random(seed)
    texts = []
    for number in range(14):
        a, b = dice.sample(PEOPLE, 2)
        texts.append(f"{a} ~ {b} ~ {a} met {b} on day {number}")
    store, player = await build_store(tmp_path, *texts), Player(seed, texts)
    replies = {"evolve": player.evolve, "merge_points": player.merge, "plan": player.plan}
    model = ScriptedModel({**replies, "answer": lambda _: {"answer": "nobody"}}, window=32_000)
    loop = assemble("hgmem", Kit(store, model, EMBEDDER), limit=3, entities=2, rounds=3, context=context).loop
    *events, answer = [output async for output in loop.run(Question(text=QUESTION))]

    whole, *searches = [event.detail for event in events if event.name == "explored"]
    assert whole["place"] == "everywhere"
    assert [each["place"] for each in searches] == [place for place, _ in player.expected]
    for search, (place, candidates) in zip(searches, player.expected, strict=True):
        found = {name.capitalize() for name in search["entities"]}
        assert found <= candidates, "equations 6 and 7"
        assert len(found) == min(2, len(candidates)), "n_v"
        seen = [text for text in texts if found & set(text.split(" ~ ")[:2])]
        passages = [piece["text"] for piece in search["evidence"] if piece["layer"] == "passages"]
        assert {*passages} <= {*seen}, "passages of these entities"
        query = search["subquery"]
        assert measure(query, passages) == pytest.approx(measure_best(query, seen, 3), abs=2e-5), "n_d"
        if place == "local":
            assert search["narrowed_to"] == len(candidates)

    points, count = [*player.slow.points.values()], make_token_counter(EMBEDDER)
    rows = {row["point"]: {*row["entities"].split("; ")} for row in events[-1].detail["pool"]}
    assert rows == {point: {*entities} for point, (_, entities, _) in player.slow.points.items()}
    near = dict(zip(points, measure(QUESTION, [point[0] for point in points]), strict=True))
    ranked = sorted(points, key=lambda point: -near[point])
    notes = fit([point[0] for point in ranked], context // 2, count)
    shown_points = [point for point in ranked if point[0] in notes]
    (given,) = [call.given for call in model.calls if call.role == "answer"]
    assert given.notes == [point[0] for point in points if point[0] in notes], "all points that have room"
    passages = player.slow.list_passages(shown_points)
    assert context == 150 or len(notes) == len(points)
    ids = {passage.text: passage.id for passage in store.passages().values()}
    slow = rank_slowly(player.slow, shown_points, ids)
    expected = fit(slow, context - sum(measure_texts(notes, count)), count)
    shown = {piece.text for piece in answer.evidence}
    assert shown == {*expected}
    assert context == 150 or shown == passages
    assert {piece.text for piece in given.evidence} == shown
    assert answer.coverage.dropped == len(points) - len(notes) + len(passages) - len(shown)
    store.close()


async def test_without_a_point_the_answer_sees_what_the_question_finds(tmp_path):
    texts = [f"{name} ~ {met} ~ {name} met {met} on day {day}" for day, (name, met) in enumerate(pairwise(PEOPLE * 8))]
    store = await build_store(tmp_path, *texts)
    model = ScriptedModel({"evolve": lambda _: {}, "plan": lambda _: {}, "answer": lambda _: {"answer": "nobody"}})
    loop = assemble("hgmem", Kit(store, model, EMBEDDER), limit=3, entities=2, rounds=2, context=1200).loop
    *_, answer = [output async for output in loop.run(Question(text=QUESTION))]
    (given,) = [call.given for call in model.calls if call.role == "answer"]
    assert given.notes == []
    assert len(given.evidence) > 3
    assert answer.coverage.dropped > 0
    store.close()
