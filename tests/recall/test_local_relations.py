"""What is near in a graph of relations, against a slow reading of the page."""

from __future__ import annotations

import asyncio
import random
from itertools import combinations
from pathlib import Path

import pytest
from tests.recall.relation_tomes import EMBEDDER, NAMES, build_store

from tomewise.recall.local_relations import LocalGraph
from tomewise.store.lookups import read_places
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Scope

Pair = tuple[str, str]


def write_texts(seed: int) -> list[str]:
    dice = random.Random(seed)
    texts = []
    for number in range(6):
        pairs = {tuple(sorted(dice.sample(range(10), 2))) for _ in range(4)}
        lines = [f"Name{a} ~ Name{b} ~ text {number} on {a} and {b}" for a, b in sorted(pairs)]
        people = sorted({person for pair in pairs for person in pair})
        texts.append("\n".join([*lines, *(f"Name{person} = Somebody of text {number}" for person in people)]))
    return texts


def read_pairs(texts: list[str]) -> dict[Pair, set[int]]:
    """The pairs that are related, and the texts that say so."""
    found: dict[Pair, set[int]] = {}
    for number, text in enumerate(texts):
        for line in text.splitlines():
            if " ~ " in line:
                a, b = sorted(name.lower() for name in line.split(" ~ ")[:2])
                found.setdefault((a, b), set()).add(number)
    return found


def choose_slowly(entities: list[str], pairs: dict[Pair, set[int]], each: int) -> list[Pair]:
    """The page: inside by rank; then outside by how many of the set the outer end touches, then by rank."""
    degree = {name: sum(name in pair for pair in pairs) for pair in pairs for name in pair}

    def rank(pair: Pair) -> tuple[object, ...]:
        ids = sorted(NAMES.entity(name) for name in pair)
        return (-(degree[pair[0]] + degree[pair[1]]), *ids)

    inside = [pair for pair in pairs if set(pair) <= set(entities)]
    outside = [pair for pair in pairs if len(set(pair) & set(entities)) == 1]

    def count_touched(pair: Pair) -> int:
        (outer,) = set(pair) - set(entities)
        return sum(tuple(sorted((outer, name))) in pairs for name in entities)

    ranked = sorted(outside, key=lambda pair: (-count_touched(pair), *rank(pair)))
    return sorted(inside, key=rank) + ranked[: each * len(entities)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("each", [1, 10])
def test_relations_and_passages_stand_as_on_the_page(tmp_path: Path, seed: int, each: int) -> None:
    texts = write_texts(seed)
    store = asyncio.run(build_store(tmp_path, *texts))
    pairs = read_pairs(texts)
    found = LocalGraph(store, EMBEDDER, NAMES, entities=4, relations=each).find("Who is Name3?", None)
    names = [store.nodes_at([key])[key].text for key in found.keys]
    assert len(names) == 4
    assert [piece.node for piece in found.entities] == [NAMES.entity(name) for name in names]
    for count, relations in enumerate(found.relations, start=1):
        shown = [tuple(piece.title.split(", ")) for piece in relations]
        assert shown == choose_slowly(names[:count], pairs, each)
    for piece in found.relations[-1]:
        expected = {f"d{number}" for number in pairs[tuple(piece.title.split(", "))]}
        assert {document for document, _ in read_places(store, piece.sources).values()} <= expected
        assert piece.sources
    order = []
    for name in names:
        seen = [number for number, text in enumerate(texts) if f"Name{name[-1]} " in text]
        order += sorted(seen, key=lambda n: -sum(name in pair and n in of for pair, of in pairs.items()))
    documents = [document for piece in found.passages for document, _ in read_places(store, [piece.node]).values()]
    assert documents == [f"d{number}" for number in dict.fromkeys(order)]
    store.close()


def test_what_several_facts_say_of_a_pair_is_one_relation(tmp_path: Path) -> None:
    texts = [f"Ada ~ Tom ~ they did thing {number}\nAda = A keeper\nTom = A clerk" for number in range(5)]
    store = asyncio.run(build_store(tmp_path, *texts))
    (relation,) = LocalGraph(store, EMBEDDER, NAMES).find("Ada", None).relations[-1]
    assert len(relation.text.splitlines()) == len(relation.sources) == 3
    store.close()


@pytest.mark.parametrize("lines", ["Ada ~ Tom ~ they met", "Ada ~ Tom ~ they met\nAda = A keeper"])
def test_an_entity_leads_to_all_passages_in_which_it_is_seen(tmp_path: Path, lines: str) -> None:
    texts = [f"{lines}\nText {number}" for number in range(5)]
    store = asyncio.run(build_store(tmp_path, *texts))
    for documents in ({"d0"}, {"d1", "d3"}, {f"d{number}" for number in range(5)}):
        found = LocalGraph(store, EMBEDDER, NAMES).find("Ada", Scope(documents=frozenset(documents)))
        assert len(found.entities) == 2
        for entity in found.entities:
            assert {document for document, _ in read_places(store, entity.sources).values()} == documents
    store.close()


def test_nothing_outside_of_a_scope_is_found(tmp_path: Path) -> None:
    texts = write_texts(1)
    store: SqlStore = asyncio.run(build_store(tmp_path, *texts))
    for chosen in combinations(range(6), 2):
        within = Scope(documents=frozenset(f"d{number}" for number in chosen))
        found = LocalGraph(store, EMBEDDER, NAMES).find("Who is Name3?", within)
        pieces = [*found.entities, *(piece for step in found.relations for piece in step), *found.passages]
        documents = {
            document for document, _ in read_places(store, (s for piece in pieces for s in piece.sources)).values()
        }
        assert documents <= within.documents
        assert all(piece.sources for piece in pieces)
        relations = {tuple(piece.title.split(", ")) for piece in found.relations[-1]}
        assert relations <= read_pairs([texts[number] for number in chosen]).keys()
    store.close()
