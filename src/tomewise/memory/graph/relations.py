"""Extractions in the style of HGMem: typed entities and relationships with descriptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tomewise.errors import ModelError
from tomewise.language.roles import (
    EXTRACT_RELATIONS,
    GLEAN_RELATIONS,
    GleanIn,
    PassageIn,
    Relationship,
    RelationsOut,
    TypedEntity,
)
from tomewise.language.together import ask_together, catch_failure
from tomewise.memory.graph.extraction import Extraction, Fact, Mention, ReplyCleaner, drop_repeats, make_storable
from tomewise.run import REPLY_SKIPPED, record_fallback
from tomewise.types import LanguageModel


async def glean_relations(
    model: LanguageModel, passages: Sequence[PassageIn], together: int, *, gleanings: int = 0
) -> list[Extraction | ModelError]:
    """Read entities and relationships, then ask up to `gleanings` times for what was missed, until nothing is new.

    A gleaning whose reply cannot be used ends them; what was read before is kept.
    """
    replies = await ask_together(model, EXTRACT_RELATIONS, passages, together)
    read = zip(passages, replies, strict=True)
    return [
        reply if isinstance(reply, ModelError) else clean_relations(await _glean(model, passage, reply, gleanings))
        for passage, reply in read
    ]


async def _glean(model: LanguageModel, passage: PassageIn, read: RelationsOut, gleanings: int) -> RelationsOut:
    for _ in range(gleanings):
        missed = await catch_failure(model.ask(GLEAN_RELATIONS, _make_gleaning(passage, read)))
        if isinstance(missed, ModelError):
            record_fallback(REPLY_SKIPPED)
            break
        if not (missed.entities or missed.relationships):
            break
        entities, pairs = [*read.entities, *missed.entities], [*read.relationships, *missed.relationships]
        read = RelationsOut(entities=entities, relationships=pairs)
    return read


def _make_gleaning(passage: PassageIn, read: RelationsOut) -> GleanIn:
    pairs = [f"{pair.source}, {pair.target}" for pair in read.relationships]
    names = [entity.name for entity in read.entities]
    return GleanIn(**passage.model_dump(), entities=names, pairs=pairs)


def clean_relations(raw: RelationsOut) -> Extraction:
    """Clean a reply: keep its usable entities, relationships and descriptions, and count the unusable parts.

    A relationship may name an entity that the reply does not list: it becomes an entity without a description, as in
    HGMem's graph. An entity that one reply describes several times keeps the first type and all descriptions.
    """
    cleaner = ReplyCleaner()
    mentions: dict[str, Mention] = {}
    for entity in raw.entities:
        mention = _make_mention(entity, cleaner)
        if mention is not None:
            mentions[mention.entity] = _join_mentions(mentions.get(mention.entity), mention)
    facts: dict[tuple[str, ...], Fact] = {}
    for relationship in raw.relationships:
        fact = _make_fact(relationship, cleaner)
        if fact is not None:
            facts.setdefault(fact.key, fact)
    ends = [end for fact in facts.values() for end in (fact.head, fact.tail)]
    return Extraction(
        drop_repeats([*mentions, *ends]), tuple(facts.values()), tuple(mentions.values()), faults=dict(cleaner.faults)
    )


def _make_mention(entity: TypedEntity, cleaner: ReplyCleaner) -> Mention | None:
    name = cleaner.read_name(entity.name)
    if not name:
        return None
    return Mention(
        name, make_storable(entity.name), make_storable(entity.type).lower(), make_storable(entity.description)
    )


def _join_mentions(first: Mention | None, second: Mention) -> Mention:
    if first is None:
        return second
    description = merge_descriptions([first.description, second.description])
    return Mention(first.entity, first.name, first.type or second.type, description)


def merge_descriptions(descriptions: Sequence[str]) -> str:
    """Merge descriptions into one text that does not depend on their order: each once, sorted, one per line."""
    return "\n".join(sorted({description for description in descriptions if description}))


def _make_fact(relationship: Relationship, cleaner: ReplyCleaner) -> Fact | None:
    # The ends are sorted, so that both directions are one undirected pair, as in HGMem.
    ends = sorted(name for end in (relationship.source, relationship.target) if (name := cleaner.read_name(end)))
    if len(ends) < 2:
        return None
    if ends[0] == ends[1]:
        cleaner.faults["relationships of a thing with itself"] += 1
        return None
    keywords = sorted({word for keyword in relationship.keywords if (word := make_storable(keyword))})
    description = make_storable(relationship.description)
    data: dict[str, Any] = {"head": ends[0], "tail": ends[1], "description": description}
    data |= {"keywords": keywords, "strength": relationship.strength}
    names = f"{', '.join(keywords)}: {ends[0]}, {ends[1]}" if keywords else ", ".join(ends)
    text = f"{names}. {description}" if description else names
    return Fact(ends[0], ends[1], text, (*ends, description, *keywords, f"{relationship.strength}"), data)
