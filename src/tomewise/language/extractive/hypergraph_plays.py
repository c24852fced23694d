"""Play the roles of the loop over a hypergraph: plan searches, make points of sentences, join points that overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tomewise.language.extractive.question_words import read_question
from tomewise.language.extractive.relevance import RELEVANT, Line, choose_varied, compare, is_known, rank, read_lines
from tomewise.language.extractive.salience import find_best, likeness
from tomewise.language.extractive.steering import probe
from tomewise.language.roles import (
    ConcernOut,
    EvolveIn,
    EvolveOut,
    InsertionOut,
    MergeOut,
    MergePointsIn,
    MergePointsOut,
    PlanIn,
    PlanOut,
    PointShown,
    ProbeIn,
    Shown,
    UpdateOut,
)
from tomewise.text.names import list_names
from tomewise.text.sentences import split_sentences
from tomewise.text.words import flatten, list_terms, make_bag
from tomewise.types import Embedder

_READ_POINTS, _READ = 60, 4_000  # points, and characters of a text, that are read
_SENTENCES, _SHORTLIST = 4, 16  # sentences that become points, and those that are compared by meaning
_SAME_MATTER = 0.5  # the least overlap of the entities of points that are merged
_LONGEST = 1_200  # characters of a description
_ENTITIES = 8  # names of one point
_ENTITY = "entity"  # the kind of evidence that says what an entity is


def plan(given: PlanIn) -> PlanOut:
    """New queries, every second one about what no point says; the memory suffices when no new query is left.

    Nothing but the queries is judged: sentences that share words with a question do not show that they answer it.
    """
    cues = [point.description for point in given.points[-_READ_POINTS:]]
    probe_input = ProbeIn(question=given.question, past_probes=given.searched, cues=cues, limit=given.limit)
    concerns = []
    for number, query in enumerate(probe(probe_input).probes):
        nearest = _find_nearest(query, given.points) if given.place != "global" and number % 2 == 0 else []
        concerns.append(
            ConcernOut(
                concern=query,
                points=nearest,
                place="local" if nearest or given.place == "local" else "global",
                subqueries=[query],
            )
        )
    return PlanOut(sufficient=not concerns, concerns=concerns)


def _find_nearest(query: str, points: Sequence[PointShown]) -> list[str]:
    """The id of the point that shares most words with the query, in a list; an empty list if none shares a word."""
    bag = _bag(query)
    read = points[-_READ_POINTS:]
    scores = [likeness(bag, _bag(f"{point.description} {' '.join(point.entities)}")) for point in read]
    return [read[i].id for i in find_best(scores, 1) if scores[i] > 0]


def _bag(text: str) -> frozenset[str]:
    return make_bag(text[:_READ])


def evolve(given: EvolveIn, embedder: Embedder) -> EvolveOut:
    """The sentences nearest to question and queries that no point says yet, each as a point over the names in it.

    A sentence whose names are all in a point is added to that point, while it has room.
    """
    question = " ".join([given.question, *given.subqueries])[:_READ]
    ranked = rank(read_question(question).terms, read_lines([item for item in given.evidence if item.kind != _ENTITY]))
    compare(question, ranked, embedder, shortlist=_SHORTLIST)
    known = [
        _bag(sentence.text)
        for point in given.points[-_READ_POINTS:]
        for sentence in split_sentences(point.description[:_READ])
    ]
    top = [i for i in ranked.order[:_SHORTLIST] if not is_known(ranked.lines[i].bag, known)]
    least = max(RELEVANT, 0.5 * ranked.scores[top[0]]) if top else 0.0
    top = [i for i in top if ranked.scores[i] >= least]
    return _write_points(given, [ranked.lines[i] for i in choose_varied(ranked, top, _SENTENCES)])


def _write_points(given: EvolveIn, lines: Sequence[Line]) -> EvolveOut:
    entities = [item for item in given.evidence if item.kind == _ENTITY]
    updates: dict[str, UpdateOut] = {}
    insertions = []
    for line in lines:
        text, names = flatten(line.sentence.text), _find_names(line, entities)
        point = _find_host(text, names, given.points) if given.may_update else None
        if point is not None and point.id not in updates:
            description = f"{point.description} {text}"
            updates[point.id] = UpdateOut(
                point=point.id,
                description=description,
                entities=point.entities if given.replaces_entities else [],
                evidence=[line.label],
            )
        elif names:
            insertions.append(InsertionOut(description=text[:_LONGEST], entities=names, evidence=[line.label]))
    return EvolveOut(updates=list(updates.values()), insertions=insertions)


def _find_names(line: Line, entities: Iterable[Shown]) -> list[str]:
    """The names of known entities in a sentence, and those found by their form; of two that overlap the longer one."""
    text = flatten(line.sentence.text)
    sentence = _bag(text)
    known = [item.title for item in entities if _bag(item.title) <= sentence]
    found: dict[frozenset[str], str] = {}
    for name in sorted((*known, *list_names(text)), key=lambda name: -len(list_terms(name))):
        bag = _bag(name)
        if bag and not any(bag <= longer for longer in found):
            found[bag] = name
    return list(found.values())[:_ENTITIES]


def _find_host(text: str, names: Sequence[str], points: Sequence[PointShown]) -> PointShown | None:
    """The newest point that joins two or more entities, all names of the sentence among them, and has room for it."""
    wanted = {_bag(name) for name in names}
    for point in reversed(points[-_READ_POINTS:]):
        joined = {_bag(name) for name in point.entities}
        if len(wanted) > 1 and wanted <= joined and len(point.description) + len(text) < _LONGEST:
            return point
    return None


def merge_points(given: MergePointsIn) -> MergePointsOut:
    """Pairs of points that share half of their entities or more, two at least; no point is in two pairs."""
    points = given.points[-_READ_POINTS:]
    bags = [{_bag(name) for name in point.entities} for point in points]
    merged: set[int] = set()
    merges = []
    for left in range(len(points)):
        for right in range(left + 1, len(points)):
            shared = len(bags[left] & bags[right])
            description = _join(points[left].description, points[right].description)
            fits = shared > 1 and shared >= _SAME_MATTER * len(bags[left] | bags[right])
            if fits and len(description) <= _LONGEST and not {left, right} & merged:
                merged |= {left, right}
                merges.append(MergeOut(points=[points[left].id, points[right].id], description=description))
    return MergePointsOut(merges=merges)


def _join(left: str, right: str) -> str:
    """Both descriptions, without sentences of the second that the first has."""
    known = {flatten(sentence.text) for sentence in split_sentences(left[:_READ])}
    added = [text for sentence in split_sentences(right[:_READ]) if (text := flatten(sentence.text)) not in known]
    return " ".join([left, *added])
