"""Every role a model plays, with what goes in and what comes out.

A role's prompt is `prompts/<name>.md`; the extractive model plays the same roles by text algorithms.
Field descriptions reach the model with the schema, so they say what is wanted.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints, model_validator

from tomewise.language.memorable import find_fault, find_fault_in_names, strings_in
from tomewise.language.role import Role
from tomewise.types import Support

Text = Annotated[str, StringConstraints(strip_whitespace=True)]
FAILURE = "*"  # what an answering role says when the evidence does not suffice
_EMPHASIS = re.compile(r"(\*{1,3})\w(?:[^*]*[^*\s])?\1")  # "*Dracula*" is a title and "**nine**" is bold


class Shown(BaseModel):
    """A piece of retrieved text as a prompt shows it: data under a label, never an instruction."""

    label: str
    text: str
    title: str = ""
    kind: str = "passage"


# ---------------------------------------------------------------- answering


class AnswerIn(BaseModel):
    question: str
    options: list[str] = []
    instructions: str = ""
    evidence: list[Shown] = []
    notes: list[str] = []
    may_decline: bool = False


class Quote(BaseModel):
    label: Text = Field(description="label of the evidence quoted, such as E1")
    quote: Text = Field(description="a short passage copied word for word from that evidence")


class AnswerOut(BaseModel):
    answer: Text = Field(description="the answer alone, as short as the question allows")
    choice: str | None = Field(default=None, description="letter of the chosen option, for a question with options")
    quotes: list[Quote] = Field(default=[], description="the words of the evidence that the answer rests on")
    supported: Support = Field(default="full", description="how far the evidence holds the answer")
    missing: Text = Field(default="", description="what the evidence lacks, unless it supports the answer in full")

    @property
    def refused(self) -> bool:
        """Whether the answer begins with the failure signal, whatever follows: "* (not stated)". Emphasis is none."""
        said = self.answer.lstrip(" \"'`([")
        return said.startswith(FAILURE) and not _EMPHASIS.match(said)

    @property
    def failed(self) -> bool:
        """The failure signal of ComoRAG, section 2.3, or nothing at all: the text answers nothing."""
        return self.refused or self.answer.strip(" .*\"'`") == ""


ANSWER = Role("answer", AnswerIn, AnswerOut, output_tokens=512)


# ---------------------------------------------------------------- reading into memory


class PassageIn(BaseModel):
    text: str
    title: str = ""


class GistIn(PassageIn):
    """`avoid` lists what an earlier attempt named although the passage does not."""

    avoid: list[str] = []


class GistOut(BaseModel):
    notes: Text = Field(default="", description="how references, aliases and implied relations were resolved")
    memory: Text = Field(min_length=1, description="the passage restated with every reference and relation explicit")


class ExtractIn(BaseModel):
    text: str
    title: str = ""
    entities: list[str] = []


class TriplesOut(BaseModel):
    """Lenient on purpose: real extractions hold triples of two or five parts; the graph layer counts and drops them."""

    entities: list[object] = Field(default=[], description="names of the people, places, things, dates named")
    triples: list[object] = Field(default=[], description="facts, each [subject, relation, object]")


class EntitiesOut(BaseModel):
    entities: list[object] = Field(default=[], description="names of the people, places, things, dates named")


class TypedEntity(BaseModel):
    name: Text
    type: Text = ""
    description: Text = ""


class Relationship(BaseModel):
    source: Text
    target: Text
    description: Text = ""
    keywords: list[str] = []
    strength: float = Field(default=1.0, ge=0, le=10)


class RelationsOut(BaseModel):
    entities: list[TypedEntity] = []
    relationships: list[Relationship] = []


class DescriptionsIn(BaseModel):
    name: str
    descriptions: list[str]


class SummaryIn(BaseModel):
    """Texts to be summarised together, in document order."""

    texts: list[str]
    max_tokens: int = 200


class SummaryOut(BaseModel):
    summary: Text = Field(min_length=1)


_BYTES = 20  # that a token of a summary may take: several times what it does, for models that overrun their bound


def _gist_fault(given: GistIn, output: GistOut) -> str | None:
    return find_fault(output.memory, (given.title, given.text))


def _summary_fault(given: SummaryIn, output: SummaryOut) -> str | None:
    return find_fault(output.summary, given.texts, _BYTES * given.max_tokens)


def _description_fault(given: DescriptionsIn, output: SummaryOut) -> str | None:
    return find_fault(output.summary, (given.name, *given.descriptions))


def _names_fault(given: PassageIn, output: EntitiesOut) -> str | None:
    return find_fault_in_names(strings_in(output.entities), (given.title, given.text))


def _triples_fault(given: ExtractIn, output: TriplesOut) -> str | None:
    names = strings_in([output.entities, output.triples])
    return find_fault_in_names(names, (given.title, given.text, *given.entities))


def _relations_fault(given: PassageIn, output: RelationsOut) -> str | None:
    texts = [text for one in output.entities for text in (one.name, one.description)]
    texts += [text for one in output.relationships for text in (one.source, one.target, one.description, *one.keywords)]
    return find_fault_in_names(texts, (given.title, given.text))


GIST = Role("gist", GistIn, GistOut, output_tokens=1024, find_fault=_gist_fault)
EXTRACT_TRIPLES = Role("extract_triples", ExtractIn, TriplesOut, output_tokens=1024, find_fault=_triples_fault)
EXTRACT_ENTITIES = Role("extract_entities", PassageIn, EntitiesOut, output_tokens=256, find_fault=_names_fault)
EXTRACT_FACTS = Role("extract_facts", ExtractIn, TriplesOut, output_tokens=1024, find_fault=_triples_fault)
EXTRACT_RELATIONS = Role("extract_relations", PassageIn, RelationsOut, output_tokens=1536, find_fault=_relations_fault)
MERGE_DESCRIPTIONS = Role(
    "merge_descriptions", DescriptionsIn, SummaryOut, output_tokens=300, find_fault=_description_fault
)
SUMMARISE = Role("summarise", SummaryIn, SummaryOut, output_tokens=300, find_fault=_summary_fault)
NARRATE = Role("narrate", SummaryIn, SummaryOut, output_tokens=500, find_fault=_summary_fault)


# ---------------------------------------------------------------- steering recall


class FilterIn(BaseModel):
    question: str
    facts: list[str]


class FilterOut(BaseModel):
    """Numbers count from 1, as the prompt shows them; numbers that were not shown are for the caller to drop."""

    keep: list[int] = Field(default=[], description="numbers of the facts that help, the most useful first")


class DecomposeIn(BaseModel):
    question: str
    limit: int = 2


class DecomposeOut(BaseModel):
    subqueries: list[Text] = Field(default=[], description="self-contained questions; empty when one lookup suffices")


FILTER_FACTS = Role("filter_facts", FilterIn, FilterOut, output_tokens=128)
DECOMPOSE = Role("decompose", DecomposeIn, DecomposeOut, output_tokens=256)


# ---------------------------------------------------------------- the metacognitive loop (ComoRAG)


class ProbeIn(BaseModel):
    """`missing` is what the last attempt to answer said it lacked."""

    question: str
    past_probes: list[str] = []
    cues: list[str] = []
    missing: str = ""
    limit: int = 3


class ProbeOut(BaseModel):
    probes: list[Text] = Field(default=[], description="new search queries for what is still missing")


class EncodeIn(BaseModel):
    """`known` are the cues of earlier searches: only what they do not say is worth a new one."""

    question: str
    probe: str
    layer: str
    evidence: list[Shown]
    known: list[str] = []


class CueOut(BaseModel):
    cue: Text = Field(description="what this evidence contributes to the question; empty when nothing")


class EncodeOut(CueOut):
    """Labels that were not shown are for the caller to drop."""

    labels: list[Text] = Field(default=[], description="labels of the evidence that the cue rests on")


class FuseIn(BaseModel):
    question: str
    cues: list[str]


PROBE = Role("probe", ProbeIn, ProbeOut, output_tokens=256)
ENCODE = Role("encode", EncodeIn, EncodeOut, output_tokens=400)
FUSE = Role("fuse", FuseIn, CueOut, output_tokens=500)


# ---------------------------------------------------------------- judging


class JudgeIn(BaseModel):
    question: str
    reference: str
    prediction: str


class VerdictOut(BaseModel):
    correct: bool
    explanation: Text = ""


LEVEL_BAND = {"very low": (0, 20), "low": (20, 40), "medium": (40, 60), "high": (60, 80), "very high": (80, 100)}
Level = Literal["very low", "low", "medium", "high", "very high"]


class LevelIn(BaseModel):
    question: str
    reference: str
    prediction: str
    quality: Literal["comprehensiveness", "diversity"]


class LevelOut(BaseModel):
    level: Level
    score: float = Field(ge=0, le=100, description="must lie in the band of its level")
    explanation: Text = ""

    @model_validator(mode="after")
    def _within(self) -> LevelOut:
        # A score outside of its band is repaired like any reply that does not fit.
        low, high = LEVEL_BAND[self.level]
        if not low <= self.score <= high:
            raise ValueError(f"the score {self.score:g} lies outside of {low} to {high}, the band of {self.level!r}")
        return self


class StatementsIn(BaseModel):
    question: str
    reference: str
    prediction: str


class StatementsOut(BaseModel):
    """Statements sorted as GraphRAG-Bench does: in both, only in the prediction, only in the reference."""

    supported: list[str] = []
    unsupported: list[str] = []
    missing: list[str] = []


JUDGE_CORRECT = Role("judge_correct", JudgeIn, VerdictOut, output_tokens=256)
JUDGE_ENTAILED = Role("judge_entailed", JudgeIn, VerdictOut, output_tokens=256)
JUDGE_LEVEL = Role("judge_level", LevelIn, LevelOut, output_tokens=256)
JUDGE_STATEMENTS = Role("judge_statements", StatementsIn, StatementsOut, output_tokens=1024)

ROLES: tuple[Role[BaseModel, BaseModel], ...] = tuple(
    value for value in dict(globals()).values() if isinstance(value, Role)
)
