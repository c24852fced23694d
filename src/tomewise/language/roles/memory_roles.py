"""The roles that turn passages into memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, Field, SerializeAsAny, WithJsonSchema, computed_field

from tomewise.language.memory_faults import find_fault, find_fault_in_names, list_strings
from tomewise.language.roles.fields import FACT, Prose, Text, TextOrNull, describe
from tomewise.language.usage import estimate_tokens
from tomewise.types import Role

_WORDS_PER_TOKEN = 0.7
_LEAST_WORDS = 30  # of a bound: less says nothing
_BYTES = 20  # most bytes for a token of a summary: several times the usual, since models exceed their bound
_STRINGS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
Names = Annotated[list[object], WithJsonSchema(_STRINGS), FACT]
Triples = Annotated[list[object], WithJsonSchema({"type": "array", "items": _STRINGS}), FACT]
Name = Annotated[Text, FACT]


def estimate_words(text: str) -> int:
    """Roughly how many words a text has; in scripts without spaces, how many words of English would say as much."""
    return round(_WORDS_PER_TOKEN * estimate_tokens(text))


def bound_words(text: str, share: float) -> int:
    """The most words of a text that says what `text` says in this share of its words."""
    return max(_LEAST_WORDS, round(share * estimate_words(text)))


class PassageIn(BaseModel):
    """`before` is the end of the text before the passage: it shows who is meant, and nothing is taken from it."""

    text: str
    title: str = ""
    before: str = ""

    @property
    def grounds(self) -> tuple[str, ...]:
        """The texts that a reply may take its words from."""
        return (self.title, self.before, self.text)


class Batch(BaseModel):
    """Inputs of one role for neighbouring passages. `together` is how many a call may hold."""

    together: int
    passages: list[SerializeAsAny[PassageIn]]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def leads(self) -> list[str]:
        """What is shown before each passage: of `before` only what the passage in front of it does not show."""
        pairs = pairwise([PassageIn(text=""), *self.passages])
        return [_leave_out_shown(each.before, previous) for previous, each in pairs]


def _leave_out_shown(before: str, previous: PassageIn) -> str:
    """`before` without the sentences that end the previous passage, and without a heading that it has too."""
    heading, _, last = before.partition("\n\n")
    if before in previous.text:
        return ""
    if not last or last not in previous.text:
        return before
    return "" if heading == previous.before.partition("\n\n")[0] or heading in previous.text else heading


class BatchOut(BaseModel):
    """Items as the model wrote them: one that is malformed does not spoil the others."""

    passages: list[object]


class GistIn(PassageIn):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def words(self) -> int:
        """The most words of the gist: one and a half times those of the passage, as full names need room."""
        return bound_words(self.text, 1.5)


class GistOut(BaseModel):
    notes: Text = describe("how references, aliases and implied relations were resolved")
    memory: Prose = Field(min_length=1, description="the passage restated with every reference and relation explicit")


class ExtractIn(PassageIn):
    entities: list[str] = []


class EntitiesOut(BaseModel):
    entities: Names = describe("names of the people, places, things, dates named", [])


class TriplesOut(EntitiesOut):
    """Lenient on purpose: real replies have triples of two or five parts. The graph layer counts and drops these.

    The schema asks for strings all the same, so that a model knows what is wanted.
    """

    triples: Triples = describe("facts of three strings each: subject, relation, object", [])


class TypedEntity(BaseModel):
    name: Name
    type: Text = ""
    description: Prose = ""


class Relationship(BaseModel):
    source: Name
    target: Name
    description: Prose = ""
    keywords: list[str] = []
    strength: float = Field(default=1.0, ge=0, le=10)


class RelationsOut(BaseModel):
    entities: list[TypedEntity] = []
    relationships: list[Relationship] = []


class GleanIn(ExtractIn):
    """What earlier calls read of the passage: the names of its entities, and the pairs that are related."""

    pairs: list[str] = []


class SummaryIn(BaseModel):
    """Texts to be summarised together, in document order."""

    texts: list[str]
    max_tokens: int = 200

    @property
    def grounds(self) -> tuple[str, ...]:
        """The texts that a summary may take its words from."""
        return tuple(self.texts)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def words(self) -> int:
        """The most words of the summary: those of `max_tokens`, or half of those of the texts if these are fewer."""
        half = sum(map(estimate_words, self.texts)) // 2
        return max(_LEAST_WORDS, min(half, round(_WORDS_PER_TOKEN * self.max_tokens)))


class AggregateIn(SummaryIn):
    """New texts for a node of a tree. With `has_text`, the first is what the node says so far."""

    has_text: bool
    children: int


class SummaryOut(BaseModel):
    summary: Prose = Field(min_length=1)


class RestateIn(BaseModel):
    """Sentences about `texts`, and the `names` and values in them that the texts do not have."""

    texts: list[str]
    sentences: list[str]
    names: list[str]


class RestateOut(BaseModel):
    sentences: list[TextOrNull] = describe(
        "each sentence again, in the same order; empty where nothing is left of it", []
    )


def _find_gist_fault(given: GistIn, output: GistOut) -> str | None:
    return find_fault(output.memory, given.grounds)


def _find_summary_fault(given: SummaryIn, output: SummaryOut) -> str | None:
    return find_fault(output.summary, given.grounds, _BYTES * given.max_tokens)


def _find_restated_fault(given: RestateIn, output: RestateOut) -> str | None:
    text = "\n".join(output.sentences)
    return find_fault(text, given.texts) if text.strip() else None


def _find_names_fault(given: PassageIn, output: BaseModel) -> str | None:
    known = (*given.grounds, *getattr(given, "entities", ()))
    return find_fault_in_names(list_strings(output.model_dump()), known)


GIST = Role("gist", GistIn, GistOut, output_tokens=1024, find_fault=_find_gist_fault)
EXTRACT_TRIPLES = Role("extract_triples", ExtractIn, TriplesOut, output_tokens=1024, find_fault=_find_names_fault)
EXTRACT_ENTITIES = Role("extract_entities", PassageIn, EntitiesOut, output_tokens=256, find_fault=_find_names_fault)
EXTRACT_FACTS = Role("extract_facts", ExtractIn, TriplesOut, output_tokens=1024, find_fault=_find_names_fault)
EXTRACT_RELATIONS = Role("extract_relations", PassageIn, RelationsOut, output_tokens=1536, find_fault=_find_names_fault)
GLEAN_RELATIONS = Role("glean_relations", GleanIn, RelationsOut, output_tokens=1024, find_fault=_find_names_fault)
SUMMARISE = Role("summarise", SummaryIn, SummaryOut, output_tokens=300, find_fault=_find_summary_fault)
AGGREGATE = Role("aggregate", AggregateIn, SummaryOut, output_tokens=300, find_fault=_find_summary_fault)
NARRATE = Role("narrate", SummaryIn, SummaryOut, output_tokens=500, find_fault=_find_summary_fault)
RESTATE = Role("restate", RestateIn, RestateOut, output_tokens=1024, find_fault=_find_restated_fault)
