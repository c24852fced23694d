"""Extractions in the style of HippoRAG 2 and CogitoRAG: names, and subject-relation-object triples."""

from __future__ import annotations

from collections.abc import Iterator

from tomewise.language.roles import EXTRACT_ENTITIES, EXTRACT_FACTS, EXTRACT_TRIPLES, ExtractIn, PassageIn, TriplesOut
from tomewise.memory.graph.entities import normalise_name
from tomewise.memory.graph.extraction import LONGEST_NAME, Extraction, Fact, Sieve, drop_repeats
from tomewise.types import LanguageModel

_ROLES = (("subject", "head"), ("relation", "predicate"), ("object", "tail"))
_MOST = 10  # ends that one part of a triple may list


async def read_at_once(model: LanguageModel, given: PassageIn) -> Extraction:
    """Entities and triples in one call."""
    return clean_triples(await model.ask(EXTRACT_FACTS, ExtractIn(text=given.text, title=given.title)))


async def read_in_two(model: LanguageModel, given: PassageIn) -> Extraction:
    """Entities first, then the triples among them, as HippoRAG 2 and CogitoRAG do."""
    named = await model.ask(EXTRACT_ENTITIES, given)
    entities = [entity for entity in named.entities if isinstance(entity, str) and entity.strip()]
    found = await model.ask(EXTRACT_TRIPLES, ExtractIn(text=given.text, title=given.title, entities=entities))
    return clean_triples(TriplesOut(entities=[*named.entities, *found.entities], triples=found.triples))


def clean_triples(raw: TriplesOut) -> Extraction:
    """The entities and facts of a reply, whatever the reply looks like.

    Triples that have not three parts, or an end without a letter or digit, are left out, as HippoRAG 2 does; a part
    that is a list stands for one triple for each of its items. An empty relation is kept: the ends still belong
    together.
    """
    sieve = Sieve()
    listed = [name for entity in raw.entities for name in sieve.read_names(entity)]
    facts: dict[tuple[str, ...], Fact] = {}
    for triple in raw.triples:
        facts.update((fact.key, fact) for fact in _read_facts(triple, sieve))
    ends = [end for fact in facts.values() for end in (fact.head, fact.tail)]
    return Extraction(drop_repeats([*listed, *ends]), tuple(facts.values()), dirt=dict(sieve.dirt))


def _read_facts(triple: object, sieve: Sieve) -> Iterator[Fact]:
    if isinstance(triple, dict):
        sieve.dirt["objects in place of triples"] += 1
        triple = [next((triple[name] for name in names if name in triple), "") for names in _ROLES]
    if not isinstance(triple, list | tuple):
        sieve.dirt["triples that are no list"] += 1
        return
    if len(triple) != 3:
        sieve.dirt["triples not of three parts"] += 1
        return
    heads, tails = sieve.read_names(triple[0])[:_MOST], sieve.read_names(triple[2])[:_MOST]
    relation = normalise_name(" ".join(sieve.read_texts(triple[1])))[:LONGEST_NAME].strip()
    for head in heads:
        for tail in tails:
            text = " ".join(part for part in (head, relation, tail) if part)
            data = {"head": head, "relation": relation, "tail": tail}
            yield Fact(head, tail, text, (head, relation, tail), data)
