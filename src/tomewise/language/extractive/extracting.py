"""Read a passage into memory: the entities that it names, and the facts and relations between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

from tomewise.language.roles import (
    EntitiesOut,
    ExtractIn,
    GleanIn,
    PassageIn,
    Relationship,
    RelationsOut,
    TriplesOut,
    TypedEntity,
)
from tomewise.text.lexicon import HONORIFICS, SAYING
from tomewise.text.names import (
    Mention,
    drop_overlaps,
    find_gender,
    find_mentions,
    find_sort,
    find_word_before,
)
from tomewise.text.sentences import Sentence, split_sentences
from tomewise.text.stop_words import STOP
from tomewise.text.words import WORD, flatten, list_terms

_READ = 24_000  # characters of one passage that are read for names
_MOST = 60  # entities of one passage
_PRONOUN_START = re.compile(r"(?:he|she|it|they|his|her|its|their|this|the)\b", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[,;:()\[\]—]| (?:and|but|which|who|that|where|when|while|because|although) ")
_PREPOSITIONS = frozenset("in on at by to of from with for as".split())
_EDGE = " \t\n,;:.!?\"'“”‘’()[]—-*_"


Fact: TypeAlias = tuple[str, str, str]
"""A subject, the words that relate it, and an object."""


def extract_entities(given: PassageIn) -> EntitiesOut:
    """The names, titles and dates of a passage, and its title, in order of mention."""
    found = [m.text for m in find_mentions(given.text[:_READ]) if m.kind != "number"]
    names = ([given.title.strip()] if given.title.strip() else []) + found
    distinct: list[object] = [*_drop_repeats(names)]
    return EntitiesOut(entities=distinct[:_MOST])


def _drop_repeats(names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name.casefold() not in seen:
            seen.add(name.casefold())
            yield name


def extract_triples(given: ExtractIn) -> TriplesOut:
    """Facts within sentences: two names and the words between them, or a name, its verb and the words after it."""
    found = find_facts(given.text[:_READ], title=given.title, entities=given.entities)
    names = _drop_repeats([*given.entities, *(name for head, _, tail in found for name in (head, tail))])
    distinct: list[object] = [name for name in names if name.strip()]
    return TriplesOut(
        entities=distinct[:_MOST],
        triples=[list(fact) for fact in found],
    )


def find_facts(text: str, *, title: str = "", entities: Iterable[str] = ()) -> list[Fact]:
    """The facts of a text, each once, in order.

    A sentence that opens with a pronoun or an article and does not name a subject counts as about the title.
    """
    found: dict[tuple[str, ...], Fact] = {}
    known = sorted(_locate(entities, text), key=lambda m: (m.start, -m.end))
    named = drop_overlaps(known + find_mentions(text), len(text))
    at = 0
    for sentence in split_sentences(text):
        while at < len(named) and named[at].start < sentence.start:
            at += 1
        inside = []
        while at < len(named) and named[at].end <= sentence.end:
            inside.append(named[at])
            at += 1
        for fact in _find_in_sentence(text, sentence, inside, title.strip()):
            found.setdefault(tuple(part.casefold() for part in fact), fact)
    return list(found.values())[: 2 * _MOST]


def _locate(entities: Iterable[str], text: str) -> list[Mention]:
    """The mentions of known entities in the text."""
    found = []
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters change their length with case, so offsets would be wrong
        lowered = text
    for entity in sorted({flatten(name) for name in entities if name.strip()}, key=lambda name: (-len(name), name))[
        :_MOST
    ]:
        pattern = rf"(?<!\w){re.escape(entity.lower())}(?!\w)"
        found += [Mention(entity, m.start(), m.end(), "name") for m in re.finditer(pattern, lowered)]
    return found


def _find_in_sentence(text: str, sentence: Sentence, inside: list[Mention], title: str) -> Iterator[Fact]:
    subject = next((m for m in inside if m.kind in ("name", "title")), None)
    opening = _PRONOUN_START.match(sentence.text)
    if title and opening and (subject is None or subject.start - sentence.start > len(opening[0]) + 1):
        first = inside[0] if inside else None
        end = first.start if first else sentence.end
        yield from _make_fact(title, text[sentence.start + opening.end() : end], first.text if first else "")
    for left, right in pairwise(inside):
        if left.kind != "number":
            yield from _make_fact(left.text, text[left.end : right.start], right.text)
    if subject is not None and (len(inside) < 2 or inside[-1] is subject):
        yield from _make_fact(subject.text, text[subject.end : sentence.end], "")
    elif subject is not None and len(inside) > 2:
        # The last part of a sentence is about its subject too ("X was born in A in 1820").
        for tail in inside[2:5]:
            verb = _find_verb(text[subject.end : inside[1].start])
            if verb and tail.kind != "number":
                yield (subject.text, _add_preposition(verb, text[: tail.start]), tail.text)


def _make_fact(head: str, between: str, tail: str) -> Iterator[Fact]:
    """A fact from the text between head and tail. Without a tail, the words after the verb of the clause are it."""
    between = flatten(between)
    if between.startswith(("'s ", "’s ")):
        between = f"has {between[3:]}"
    words = WORD.findall(between)
    if tail and 0 < len(words) <= 9:
        relation = between.strip(_EDGE)
        if relation:
            yield (head, relation, tail)
    elif not tail and len(words) >= 2:
        clause = _CLAUSE_END.split(between.strip(_EDGE))[0]
        words = clause.split()
        verb = next((i for i, word in enumerate(words[:4]) if word.lower() not in STOP), min(1, len(words) - 1))
        verb = 0 if words and words[0].lower() in {"is", "was", "are", "were", "has", "had", "became"} else verb
        relation, rest = " ".join(words[: verb + 1]).strip(_EDGE), " ".join(words[verb + 1 : verb + 9]).strip(_EDGE)
        if relation and rest and list_terms(rest):
            yield (head, relation, rest)


def _find_verb(between: str) -> str:
    words = WORD.findall(_CLAUSE_END.split(between.strip())[0] if between.strip() else "")
    return " ".join(words[:5])


def _add_preposition(verb: str, before: str) -> str:
    """The verb of the sentence with the preposition before the object."""
    last = WORD.findall(before[-24:])[-1:]
    words = verb.split()
    if words and words[-1] in _PREPOSITIONS:
        words = words[:-1]
    return " ".join(words + [word for word in last if word in _PREPOSITIONS])


def extract_relations(given: PassageIn) -> RelationsOut:
    """Typed entities, each described by the first sentence that names it, and pairs of entities in one sentence."""
    text = given.text[:_READ]
    named = find_mentions(text)
    described: dict[str, TypedEntity] = {}
    pairs: dict[tuple[str, str], Relationship] = {}
    at = 0
    for sentence in split_sentences(text):
        description = flatten(sentence.text)
        inside = []
        while at < len(named) and named[at].start < sentence.end:
            if named[at].kind != "number" and named[at].start >= sentence.start:
                inside.append(named[at])
            at += 1
        for mention in inside:
            entity = TypedEntity(name=mention.text, type=_find_type(text, mention), description=description)
            described.setdefault(mention.text.casefold(), entity)
        _relate([m.text for m in inside], description, pairs)
    return RelationsOut(entities=list(described.values())[:_MOST], relationships=list(pairs.values())[:_MOST])


def glean_relations(given: GleanIn) -> RelationsOut:
    """Nothing: patterns that are applied again find nothing new."""
    return RelationsOut()


def _find_type(text: str, mention: Mention) -> str:
    if mention.kind == "date":
        return "event"
    if mention.kind == "title":
        return "concept"
    before = find_word_before(text, mention)
    sort = find_sort(mention.text, before)
    if not sort:
        after = WORD.findall(text[mention.end : mention.end + 24])[:1]
        if (after and after[0] in SAYING) or before.lower() in SAYING | HONORIFICS or find_gender(mention.text):
            sort = "person"
    return {"place": "geo", "": "concept"}.get(sort, sort)


def _relate(names: list[str], description: str, pairs: dict[tuple[str, str], Relationship]) -> None:
    unique = list(_drop_repeats(names))[:5]
    for i, left in enumerate(unique):
        for right in unique[i + 1 :]:
            ends = sorted([left.casefold(), right.casefold()])
            known = pairs.get((ends[0], ends[1]))
            if known is None:
                outside = set(list_terms(left)) | set(list_terms(right))
                keywords = list(dict.fromkeys(term for term in list_terms(description) if term not in outside))[:5]
                pairs[ends[0], ends[1]] = Relationship(
                    source=left, target=right, description=description, keywords=keywords, strength=1.0
                )
            else:
                known.strength = min(known.strength + 1.0, 10.0)
