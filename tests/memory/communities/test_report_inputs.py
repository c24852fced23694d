"""What fits into the prompt of a report: all relations, else reports of the largest parts in their place."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tomewise.language.usage import estimate_tokens
from tomewise.memory.communities.report_inputs import Part, Relation, ReportEntity, make_source

FORM = 20
ENTITIES = {vertex: ReportEntity(f"n{vertex}", f"said of {vertex}") for vertex in range(9)}


def count_degrees(relations: list[Relation]) -> Counter[int]:
    return Counter(end for relation in relations for end in relation.ends)


def make_relations(*pairs: tuple[int, int], length: int = 1) -> list[Relation]:
    return [Relation(pair, {10 * place: "x" * 4 * length}) for place, pair in enumerate(pairs, start=1)]


def test_relations_stand_by_degree_each_after_its_ends_and_one_is_always_shown() -> None:
    found = make_source(ENTITIES, make_relations((0, 1), (2, 4), (1, 2)), [], 400, 8000)
    # Inside of the community, 1 and 2 are related with two others, 0 and 4 with one.
    rows = [("R1", "n1", "n2"), ("R2", "n0", "n1"), ("R3", "n2", "n4")]
    assert [(row.label, row.source, row.target) for row in found.given.relations] == rows
    assert found.facts == (30, 10, 20)
    assert found.entities == (1, 2, 0, 4)
    assert [(row.name, row.degree) for row in found.given.entities] == [("n1", 2), ("n2", 2), ("n0", 1), ("n4", 1)]
    assert make_source(ENTITIES, make_relations((0, 1), (2, 4)), [], 400, 0).facts == (10,)


def measure(relations: list[Relation], parts: list[Part]) -> int:
    """All rows of relations, of their ends, and of reports."""
    size = sum(FORM + estimate_tokens(part.report) for part in parts)
    for relation in relations:
        a, b = (ENTITIES[end].name for end in relation.ends)
        size += sum(FORM + estimate_tokens(f"{a}{b}{text}") for text in relation.facts.values())
    for vertex in {end for relation in relations for end in relation.ends}:
        size += FORM + estimate_tokens(f"{ENTITIES[vertex].name}{ENTITIES[vertex].description}")
    return size


def pack_slowly(relations: list[Relation], parts: list[Part], room: int) -> tuple[list[int], list[int]]:
    """The page, step by step: the facts that are shown, and the parts whose reports are."""

    def inside(part: Part) -> list[Relation]:
        return [relation for relation in relations if set(relation.ends) <= set(part.members)]

    replaced: list[Part] = []
    sizes = {part.number: measure(inside(part), []) for part in parts}
    for part in sorted(parts, key=lambda part: (-sizes[part.number], part.number)):
        left = [each for each in relations if not any(each in inside(done) for done in replaced)]
        if measure(left, replaced) > room and FORM + estimate_tokens(part.report) < sizes[part.number]:
            replaced.append(part)
    left = [each for each in relations if not any(each in inside(done) for done in replaced)]
    degrees = count_degrees(relations)
    left.sort(key=lambda each: (-sum(degrees[end] for end in each.ends), each.ends))
    shown: list[Relation] = []
    for relation in left:
        if measure([*shown, relation], replaced) > room and (shown or replaced):
            break
        shown.append(relation)
    return [key for relation in shown for key in relation.facts], [part.number for part in replaced]


@given(
    pairs=st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] < pair[1]), min_size=1),
    lengths=st.lists(st.integers(1, 60), min_size=40, max_size=40),
    reports=st.lists(st.integers(1, 200), min_size=3, max_size=3),
    room=st.integers(50, 2500),
)
@settings(max_examples=120)
def test_packing_is_that_of_the_page(
    pairs: set[tuple[int, int]], lengths: list[int], reports: list[int], room: int
) -> None:
    relations = [
        Relation(pair, {place: "y" * 4 * length})
        for place, (pair, length) in enumerate(zip(sorted(pairs), lengths, strict=False))
    ]
    parts = [
        Part(number, set(range(3 * number, 3 * number + 3)), "z" * 4 * size) for number, size in enumerate(reports)
    ]
    found = make_source(ENTITIES, relations, parts, 400, room)
    assert (list(found.facts), list(found.parts)) == pack_slowly(relations, parts, room)
    assert found.is_whole == (measure(relations, []) <= room)
    shown = count_degrees([each for each in relations if set(each.facts) & set(found.facts)])
    assert [row.degree for row in found.given.entities] == [shown[vertex] for vertex in found.entities]
    assert found.given.reports == [parts[number].report for number in found.parts]
    if len(found.facts) > 1:
        assert measure([each for each in relations if set(each.facts) & set(found.facts)], []) <= room
