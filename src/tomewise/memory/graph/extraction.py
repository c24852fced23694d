"""What a model extracts from one text: entities, facts, and counts of unusable parts.

In the style of HippoRAG 2 and CogitoRAG these are names, and subject-relation-object triples; in that of HGMem typed
entities and relationships with descriptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tomewise.errors import ModelError
from tomewise.language.roles import (
    EXTRACT_ENTITIES,
    EXTRACT_FACTS,
    EXTRACT_RELATIONS,
    EXTRACT_TRIPLES,
    GLEAN_RELATIONS,
    EntitiesOut,
    ExtractIn,
    GleanIn,
    PassageIn,
    Relationship,
    RelationsOut,
    TriplesOut,
)
from tomewise.language.together import catch_failure
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.proving import ask_proved, ask_proved_together
from tomewise.run import REPLY_SKIPPED, record_fallback
from tomewise.types import LanguageModel

LONGEST_NAME = 200  # normalised characters; all but one of 52,306 parts of published triples have 135 or fewer
LONGEST_TEXT = 2000  # characters of a description
_ROLES = (("subject", "head"), ("relation", "predicate"), ("object", "tail"))
_MOST_NAMES = 10  # names that one end of a triple may list


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that links `head` to `tail`, both normalised names. Equal facts of several passages are one fact.

    `text` is what is embedded and shown. `data` is plain JSON with the further fields of a style. Two
    facts are equal when their `key` is equal.
    """

    head: str
    tail: str
    text: str
    key: tuple[str, ...]
    data: Mapping[str, Any] = field(hash=False, compare=False)


@dataclass(frozen=True, slots=True)
class Mention:
    """What one text says about an entity. `entity` is the normalised name, `name` the spelling in the text."""

    entity: str
    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """The content of one text: each entity, fact and mention once, in the order of the reply."""

    entities: tuple[str, ...]
    facts: tuple[Fact, ...]
    mentions: tuple[Mention, ...] = ()
    faults: Mapping[str, int] = field(default_factory=dict)  # parts that were left out or repaired, counted by kind


class ReplyCleaner:
    """Reads names and texts from the values of a reply, and counts by kind the values that are unusable or repaired."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()

    def read_names(self, value: object) -> list[str]:
        """Read the usable names in `value`, normalised: one from a string or number, several from a list of these."""
        return [name for text in self.read_texts(value) if (name := self.read_name(text))]

    def read_name(self, text: str) -> str:
        """Normalise a name; the result is an empty string where the text is not a usable name."""
        name = normalise_name(text[: 8 * LONGEST_NAME])
        if not name:
            self.faults["empty names"] += 1
        elif len(name) > LONGEST_NAME:
            self.faults[f"names over {LONGEST_NAME} characters"] += 1
            return ""
        return name

    def read_texts(self, value: object) -> Iterator[str]:
        """Yield the strings in a value that should be one string."""
        if isinstance(value, str):
            yield value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.faults["numbers in place of strings"] += 1
            yield f"{value:g}" if isinstance(value, float) else str(value)
        elif isinstance(value, list | tuple):
            self.faults["lists in place of strings"] += 1
            yield from (str(item) for item in value if isinstance(item, str | int) and not isinstance(item, bool))
        elif isinstance(value, dict):
            self.faults["objects in place of strings"] += 1
            name_fields = (value.get(field) for field in ("name", "entity", "text"))
            yield from [text for text in name_fields if isinstance(text, str)][:1]
        else:
            self.faults["values that are no text"] += 1


def gather_extraction(
    names: Iterable[str], facts: Sequence[Fact], mentions: Iterable[Mention], faults: Mapping[str, int]
) -> Extraction:
    """The extraction of which these names, then the ends of the facts, are the entities, each once."""
    ends = (end for fact in facts for end in (fact.head, fact.tail))
    return Extraction(tuple(dict.fromkeys([*names, *ends])), tuple(facts), tuple(mentions), dict(faults))


def make_storable(text: str) -> str:
    """Put the text on one line, replace what databases reject (half surrogate pairs, NUL), cut it to `LONGEST_TEXT`."""
    plain = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    return " ".join(plain.split())[:LONGEST_TEXT]


async def read_in_one_call(
    model: LanguageModel, passages: Sequence[PassageIn], together: int
) -> list[Extraction | ModelError]:
    """Read entities and triples in one call."""
    inputs = [ExtractIn(**passage.model_dump()) for passage in passages]
    replies = await ask_proved_together(model, EXTRACT_FACTS, inputs, together)
    return [reply if isinstance(reply, ModelError) else clean_triples(reply) for reply in replies]


async def read_in_two_calls(
    model: LanguageModel, passages: Sequence[PassageIn], together: int
) -> list[Extraction | ModelError]:
    """Read entities in one call, then their triples in a second, as HippoRAG 2 and CogitoRAG do."""
    replies = await ask_proved_together(model, EXTRACT_ENTITIES, passages, together)
    inputs: list[ExtractIn] = []
    for passage, reply in zip(passages, replies, strict=True):
        if not isinstance(reply, ModelError):
            entities = [entity for entity in reply.entities if isinstance(entity, str) and entity.strip()]
            inputs.append(ExtractIn(**passage.model_dump(), entities=entities))
    found = iter(await ask_proved_together(model, EXTRACT_TRIPLES, inputs, together))
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
    return gather_extraction(listed, list(facts.values()), (), cleaner.faults)


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


async def glean_relations(
    model: LanguageModel, passages: Sequence[PassageIn], together: int, *, gleanings: int = 0
) -> list[Extraction | ModelError]:
    """Read entities and relationships, then ask up to `gleanings` times for what was missed, until nothing is new.

    A gleaning whose reply cannot be used ends them; what was read before is kept.
    """
    replies = await ask_proved_together(model, EXTRACT_RELATIONS, passages, together)
    read = zip(passages, replies, strict=True)
    return [
        reply if isinstance(reply, ModelError) else clean_relations(await _glean(model, passage, reply, gleanings))
        for passage, reply in read
    ]


async def _glean(model: LanguageModel, passage: PassageIn, read: RelationsOut, gleanings: int) -> RelationsOut:
    for _ in range(gleanings):
        pairs = [f"{pair.source}, {pair.target}" for pair in read.relationships]
        names = [entity.name for entity in read.entities]
        given = GleanIn(**passage.model_dump(), entities=names, pairs=pairs)
        missed = await catch_failure(ask_proved(model, GLEAN_RELATIONS, given))
        if isinstance(missed, ModelError):
            record_fallback(REPLY_SKIPPED)
            break
        if not (missed.entities or missed.relationships):
            break
        found = [*read.relationships, *missed.relationships]
        read = RelationsOut(entities=[*read.entities, *missed.entities], relationships=found)
    return read


def clean_relations(raw: RelationsOut) -> Extraction:
    """Clean a reply: keep its usable entities, relationships and descriptions, and count the unusable parts.

    A relationship may name an entity that the reply does not list: it becomes an entity without a description, as in
    HGMem's graph. An entity that one reply describes several times keeps the first type and all descriptions.
    """
    cleaner = ReplyCleaner()
    mentions: dict[str, Mention] = {}
    for entity in raw.entities:
        if name := cleaner.read_name(entity.name):
            spelt, kind = make_storable(entity.name), make_storable(entity.type).lower()
            mention = Mention(name, spelt, kind, make_storable(entity.description))
            mentions[name] = _join_mentions(mentions.get(name, mention), mention)
    facts: dict[tuple[str, ...], Fact] = {}
    for relationship in raw.relationships:
        fact = _make_fact(relationship, cleaner)
        if fact is not None:
            facts.setdefault(fact.key, fact)
    return gather_extraction(mentions, list(facts.values()), mentions.values(), cleaner.faults)


def _join_mentions(first: Mention, second: Mention) -> Mention:
    """The first with all descriptions, one per line: each once, sorted, so that their order makes no difference."""
    lines = {first.description, second.description} - {""}
    return replace(first, type=first.type or second.type, description="\n".join(sorted(lines)))


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
