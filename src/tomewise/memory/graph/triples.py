"""Extractions in the style of HippoRAG 2 and CogitoRAG: names, and subject-relation-object triples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tomewise.errors import ModelError
from tomewise.language.roles import (
    EXTRACT_ENTITIES,
    EXTRACT_FACTS,
    EXTRACT_TRIPLES,
    EntitiesOut,
    ExtractIn,
    PassageIn,
    TriplesOut,
)
from tomewise.language.together import ask_together
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.extraction import LONGEST_NAME, Extraction, Fact, ReplyCleaner, drop_repeats
from tomewise.types import LanguageModel

_ROLES = (("subject", "head"), ("relation", "predicate"), ("object", "tail"))
_MOST_NAMES = 10  # names that one end of a triple may list


async def read_in_one_call(
    model: LanguageModel, passages: Sequence[PassageIn], together: int
) -> list[Extraction | ModelError]:
    """Read entities and triples in one call."""
    inputs = [ExtractIn(**passage.model_dump()) for passage in passages]
    replies = await ask_together(model, EXTRACT_FACTS, inputs, together)
    return [reply if isinstance(reply, ModelError) else clean_triples(reply) for reply in replies]


async def read_in_two_calls(
    model: LanguageModel, passages: Sequence[PassageIn], together: int
) -> list[Extraction | ModelError]:
    """Read entities in one call, then their triples in a second, as HippoRAG 2 and CogitoRAG do."""
    replies = await ask_together(model, EXTRACT_ENTITIES, passages, together)
    inputs: list[ExtractIn] = []
    for passage, reply in zip(passages, replies, strict=True):
        if not isinstance(reply, ModelError):
            entities = [entity for entity in reply.entities if isinstance(entity, str) and entity.strip()]
            inputs.append(ExtractIn(**passage.model_dump(), entities=entities))
    found = iter(await ask_together(model, EXTRACT_TRIPLES, inputs, together))
    # The replies to the second call are those of the passages whose first call did not fail, in order.
    return [reply if isinstance(reply, ModelError) else _join_replies(reply, next(found)) for reply in replies]


def _join_replies(named: EntitiesOut, found: TriplesOut | ModelError) -> Extraction | ModelError:
    if isinstance(found, ModelError):
        return found
    return clean_triples(TriplesOut(entities=[*named.entities, *found.entities], triples=found.triples))


def clean_triples(raw: TriplesOut) -> Extraction:
    """Clean a reply: keep its usable entities and facts, and count the unusable parts.

    A triple without exactly three parts, or with an end that has no letter or digit, is left out, as in HippoRAG 2. An
    end that is a list stands for one triple per item. A triple with an empty relation is kept, because its ends still
    belong together.
    """
    cleaner = ReplyCleaner()
    listed = [name for entity in raw.entities for name in cleaner.read_names(entity)]
    facts: dict[tuple[str, ...], Fact] = {}
    for triple in raw.triples:
        facts.update((fact.key, fact) for fact in _read_facts(triple, cleaner))
    ends = [end for fact in facts.values() for end in (fact.head, fact.tail)]
    return Extraction(drop_repeats([*listed, *ends]), tuple(facts.values()), faults=dict(cleaner.faults))


def _read_facts(triple: object, cleaner: ReplyCleaner) -> Iterator[Fact]:
    if isinstance(triple, dict):
        cleaner.faults["objects in place of triples"] += 1
        triple = [next((triple[name] for name in names if name in triple), "") for names in _ROLES]
    if not isinstance(triple, list | tuple):
        cleaner.faults["triples that are no list"] += 1
        return
    if len(triple) != 3:
        cleaner.faults["triples not of three parts"] += 1
        return
    heads, tails = cleaner.read_names(triple[0])[:_MOST_NAMES], cleaner.read_names(triple[2])[:_MOST_NAMES]
    relation = normalise_name(" ".join(cleaner.read_texts(triple[1])))[:LONGEST_NAME].strip()
    for head in heads:
        for tail in tails:
            text = " ".join(part for part in (head, relation, tail) if part)
            data = {"head": head, "relation": relation, "tail": tail}
            yield Fact(head, tail, text, (head, relation, tail), data)
