"""Read a passage into memory: the entities that it names, and the facts and relations between them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any, TypeAlias

from tomewise.language.roles import (
    EntitiesOut,
    ExtractIn,
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
_RELATED, _KEYWORDS = 5, 5  # entities of one sentence that are related, and keywords of a relation
_PRONOUN_START = re.compile(r"(?:he|she|it|they|his|her|its|their|this|the)\b", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[,;:()\[\]—]| (?:and|but|which|who|that|where|when|while|because|although) ")
_PREPOSITIONS = frozenset("in on at by to of from with for as".split())
_EDGE = " \t\n,;:.!?\"'“”‘’()[]—-*_"


_Fact: TypeAlias = tuple[str, str, str]  # a subject, the words that relate it, and an object


def extract_entities(given: PassageIn) -> EntitiesOut:
    """The names, titles and dates of a passage, and its title, in order of mention."""
    found = [mention.text for mention in find_mentions(given.text[:_READ]) if mention.kind != "number"]
    return EntitiesOut(entities=_drop_repeats([given.title, *found]))


def _drop_repeats(names: Iterable[str]) -> list[Any]:
    """The first names that differ in more than case."""
    first: dict[str, str] = {}
    for name in map(str.strip, names):
        first.setdefault(name.casefold(), name)
    return [name for name in first.values() if name][:_MOST]


def extract_triples(given: ExtractIn) -> TriplesOut:
    """Facts within sentences, each once: two names and the words between them, or a name, its verb and words after it.

    A sentence that opens with a pronoun or an article and does not name a subject counts as about the title.
    """
    text = given.text[:_READ]
    facts: dict[tuple[str, ...], _Fact] = {}
    known = sorted(_locate(given.entities, text), key=lambda mention: (mention.start, -mention.end))
    for sentence, inside in _split(text, drop_overlaps([*known, *find_mentions(text)], len(text))):
        whole = [mention for mention in inside if mention.end <= sentence.end]
        for fact in _find_in_sentence(text, sentence, whole, given.title.strip()):
            facts.setdefault(tuple(map(str.casefold, fact)), fact)
    found = list(facts.values())[: 2 * _MOST]
    names = [name for head, _, tail in found for name in (head, tail)]
    return TriplesOut(entities=_drop_repeats([*given.entities, *names]), triples=list(map(list, found)))


def _split(text: str, mentions: Sequence[Mention]) -> Iterator[tuple[Sentence, list[Mention]]]:
    """The sentences of a text, each with the mentions that begin in it."""
    at = 0
    for sentence in split_sentences(text):
        end = bisect_left(mentions, sentence.end, lo=at, key=lambda mention: mention.start)
        yield sentence, [mention for mention in mentions[at:end] if mention.start >= sentence.start]
        at = end


def _locate(entities: Iterable[str], text: str) -> list[Mention]:
    """The mentions of known entities in the text, in any case."""
    names = sorted({flatten(name) for name in entities if name.strip()}, key=lambda name: (-len(name), name))
    return [
        Mention(name, found.start(), found.end(), "name")
        for name in names[:_MOST]
        for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    ]


def _find_in_sentence(text: str, sentence: Sentence, inside: list[Mention], title: str) -> Iterator[_Fact]:
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


def _make_fact(head: str, between: str, tail: str) -> Iterator[_Fact]:
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
    return " ".join(WORD.findall(_CLAUSE_END.split(between.strip())[0])[:5])


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
    described: dict[str, TypedEntity] = {}
    pairs: dict[frozenset[str], Relationship] = {}
    for sentence, mentions in _split(text, find_mentions(text)):
        description = flatten(sentence.text)
        inside = [mention for mention in mentions if mention.kind != "number"]
        for mention in inside:
            entity = TypedEntity(name=mention.text, type=_find_type(text, mention), description=description)
            described.setdefault(mention.text.casefold(), entity)
        for left, right in combinations(_drop_repeats(mention.text for mention in inside)[:_RELATED], 2):
            ends = frozenset(map(str.casefold, (left, right)))
            if known := pairs.get(ends):
                known.strength = min(known.strength + 1.0, 10.0)
                continue
            outside = {*list_terms(left), *list_terms(right)}
            keywords = list(dict.fromkeys(term for term in list_terms(description) if term not in outside))
            pairs[ends] = Relationship(
                source=left, target=right, description=description, keywords=keywords[:_KEYWORDS]
            )
    return RelationsOut(entities=list(described.values())[:_MOST], relationships=list(pairs.values())[:_MOST])


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
