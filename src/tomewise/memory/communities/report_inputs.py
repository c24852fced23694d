"""What a report about a community is written from: its relations, and reports where these do not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tomewise.language.roles import EntityRow, RelationRow, ReportIn
from tomewise.language.usage import estimate_tokens
from tomewise.types import NodeId

_FORM = 20  # tokens of the form in which a row is shown


@dataclass(frozen=True, slots=True)
class ReportEntity:
    """An entity as reports show it; `mentions` are the ids of what describes it."""

    name: str
    description: str
    mentions: tuple[NodeId, ...] = ()

    @property
    def tokens(self) -> int:
        return _FORM + estimate_tokens(f"{self.name}{self.description}")


@dataclass(frozen=True, slots=True)
class Relation:
    """Two entities, given by their vertices, and what facts say of them, by the keys of these."""

    ends: tuple[int, int]
    facts: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Part:
    """A community of the next level with the key, or the stand-in for one, and the text of its report."""

    number: int
    members: Collection[int]
    report: str

    @property
    def tokens(self) -> int:
        return _FORM + estimate_tokens(self.report)


@dataclass(frozen=True)
class ReportSource:
    """What one report is written from. `facts` are the keys in the order of the labels R1, R2, ...

    `entities` are the vertices of the entities that are shown, `parts` the numbers of the communities whose reports
    stand in place of their relations. `is_whole` says that all relations fit without such reports.
    """

    given: ReportIn
    facts: tuple[int, ...]
    entities: tuple[int, ...]
    parts: tuple[int, ...]
    is_whole: bool


def make_source(
    entities: Mapping[int, ReportEntity], relations: Sequence[Relation], parts: Sequence[Part], words: int, room: int
) -> ReportSource:
    """What fits into so many tokens of a community with these inner relations (GraphRAG, section 3.1.5).

    Relations stand by the sum of the degrees of their ends inside of the community, each after its ends. Where they do
    not fit, the parts with most tokens give way to their reports, until all fits; what then does not fit is left out.
    One relation is always shown. The degrees that are shown count the relations that are shown, which the sources of
    the report cover.
    """
    degrees = _count_degrees(relations)
    ranked = sorted(relations, key=lambda relation: (-sum(degrees[end] for end in relation.ends), relation.ends))
    replaced: list[Part] = []
    is_whole = _measure(ranked, entities) <= room
    parts = () if is_whole else parts
    sizes = {part.number: _measure([each for each in ranked if _is_inside(each, part)], entities) for part in parts}
    for part in sorted(parts, key=lambda part: (-sizes[part.number], part.number)):
        if _measure(ranked, entities) <= room:
            break
        if part.tokens < sizes[part.number]:
            replaced.append(part)
            room -= part.tokens
            ranked = [each for each in ranked if not _is_inside(each, part)]
    rows, shown, facts = _take_rows(ranked, entities, room, at_least=not replaced)
    reports = [part.report for part in replaced]
    known = set(facts)
    degrees = _count_degrees([relation for relation in ranked if not known.isdisjoint(relation.facts)])
    described = [
        EntityRow(name=each.name, description=each.description or each.name, degree=degrees[vertex])
        for vertex, each in zip(shown, map(entities.__getitem__, shown), strict=True)
    ]
    given = ReportIn(entities=described, relations=rows, reports=reports, words=words)
    return ReportSource(given, tuple(facts), tuple(shown), tuple(part.number for part in replaced), is_whole)


def _count_degrees(relations: Sequence[Relation]) -> Counter[int]:
    """How many others each vertex is related with."""
    return Counter(chain.from_iterable(relation.ends for relation in relations))


def _is_inside(relation: Relation, part: Part) -> bool:
    return relation.ends[0] in part.members and relation.ends[1] in part.members


def _measure(relations: Sequence[Relation], entities: Mapping[int, ReportEntity]) -> int:
    """The tokens of these relations with their ends."""
    ends = set(chain.from_iterable(relation.ends for relation in relations))
    facts = sum(_measure_fact(relation, text, entities) for relation in relations for text in relation.facts.values())
    return facts + sum(entities[vertex].tokens for vertex in ends)


def _measure_fact(relation: Relation, text: str, entities: Mapping[int, ReportEntity]) -> int:
    a, b = relation.ends
    return _FORM + estimate_tokens(f"{entities[a].name}{entities[b].name}{text}")


def _take_rows(
    relations: Sequence[Relation], entities: Mapping[int, ReportEntity], room: int, *, at_least: bool
) -> tuple[list[RelationRow], list[int], list[int]]:
    """The first facts that fit, the entities that they join, in the order of the relations, and the keys."""
    rows: list[RelationRow] = []
    shown: dict[int, None] = {}
    facts: list[int] = []
    for relation in relations:
        for key, text in relation.facts.items():
            new_ends = [vertex for vertex in relation.ends if vertex not in shown]
            room -= _measure_fact(relation, text, entities) + sum(entities[vertex].tokens for vertex in new_ends)
            if room < 0 and not (at_least and not rows):
                return rows, list(shown), facts
            shown |= dict.fromkeys(relation.ends)
            a, b = (entities[vertex].name for vertex in relation.ends)
            rows.append(RelationRow(label=f"R{len(rows) + 1}", source=a, target=b, description=text))
            facts.append(key)
    return rows, list(shown), facts
