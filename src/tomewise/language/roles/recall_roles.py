"""The roles that steer recall, those of the metacognitive loop (ComoRAG), and those of loops that go step by step."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tomewise.language.labels import Labels, Numbers
from tomewise.language.roles.fields import OptionalRecords, Records, Shown, Text, TextOrNull, Texts, describe
from tomewise.types import Role


class FilterIn(BaseModel):
    question: str
    facts: list[str]


class FilterOut(BaseModel):
    """The numbers of the prompt, counted from 1. The caller drops numbers that the prompt did not show."""

    keep: Numbers = describe("numbers of the facts that help, the most useful first", [])


class DecomposeIn(BaseModel):
    question: str
    limit: int = 2


class DecomposeOut(BaseModel):
    subqueries: Records[Text] = describe("self-contained questions; empty when one lookup suffices", [])


class KeywordsIn(BaseModel):
    question: str


class KeywordsOut(BaseModel):
    themes: Texts = describe("what the question is about at large: topics, kinds of relations", [])
    details: Texts = describe("what it names: people, places, things, dates, terms", [])


class SelectIn(BaseModel):
    question: str
    nodes: list[Shown]


class SelectOut(BaseModel):
    """The numbers of the prompt, counted from 1. The caller drops numbers that the prompt did not show."""

    reasoning: Text = describe("what is known and what is still to be found, in one sentence")
    keep: Numbers = describe("numbers of the texts that help, the most useful first", [])


class ProbeIn(BaseModel):
    """`missing` is what the last attempt to answer reported as missing."""

    question: str
    past_probes: list[str] = []
    cues: list[str] = []
    missing: str = ""
    limit: int = 3


class ProbeOut(BaseModel):
    probes: Records[Text] = describe("new search queries for what is still missing", [])


class EncodeIn(BaseModel):
    """`known` are the cues of earlier searches: only what they do not say is worth a new one."""

    question: str
    probe: str
    layer: str
    evidence: list[Shown]
    known: list[str] = []


class CueOut(BaseModel):
    cue: TextOrNull = Field(description="what this evidence contributes to the question; empty when nothing")


class EncodeOut(CueOut):
    """Labels that were not shown are for the caller to drop."""

    labels: Labels = describe("labels of the evidence that the cue rests on", [])


class FuseIn(BaseModel):
    question: str
    cues: list[str]


class ThinkIn(BaseModel):
    """`thoughts` are the sentences of reasoning so far, in order."""

    question: str
    evidence: list[Shown] = []
    thoughts: list[str] = []


class ThinkOut(BaseModel):
    """The thought comes first: a model decides whether it concludes only after it has written it."""

    thought: Text = Field(min_length=1, description="the next sentence of the reasoning, one alone")
    concludes: bool = describe("whether this thought gives the answer to the question", False)


class StepIn(BaseModel):
    """`asked` are the smaller questions so far, `findings` each of them with its answer, in the same order."""

    question: str
    asked: list[str] = []
    findings: list[str] = []


class StepOut(BaseModel):
    """The reasoning comes first, then what to do next."""

    reasoning: Text = describe("what is known and what is needed next, in at most 2 sentences")
    finished: bool = describe("whether the findings suffice to answer the question", False)
    subquestion: Text = describe("the next smaller question; empty if finished")
    search: bool = describe("whether the texts are searched for it", True)
    answer: Text = describe("the answer from general knowledge; empty where a search is needed")


class LookOut(BaseModel):
    """One look at documents. The caller refuses what no tool takes."""

    tool: Text = Field(description="the tool: one of those named at the end of the prompt")
    what: TextOrNull = describe("what to find or to search for; of `read` the part")
    document: TextOrNull = describe("label or name of the one document to look at; empty: all")
    kind: TextOrNull = describe("of `find`: words, name, value or pattern")


class Looked(LookOut):
    """A look that was taken or refused, and what came of it."""

    result: str


class LooksIn(BaseModel):
    """`results` are those of the last looks, with their `evidence`; `tried` are the looks before, a line each.

    `documents` are a line each, and `more_documents` are not among them; `cut` pieces of evidence had no room. After
    this reply `left` more follow.
    """

    question: str
    documents: list[str] = []
    more_documents: int = 0
    tools: list[str] = []
    tried: list[Looked] = []
    results: list[Looked] = []
    notes: list[str] = []
    evidence: list[Shown] = []
    cut: int = 0
    left: int = 0
    limit: int = 3


class LooksOut(BaseModel):
    """What was learnt comes first, then what to look at next. Labels that were not shown are for the caller to drop."""

    note: TextOrNull = describe("what the last looks add to the answer, in at most 3 sentences; empty if nothing")
    keep: Labels = describe("labels of the evidence that the answer rests on, the most useful first", [])
    finished: bool = describe("whether the question can be answered, or no look would help", False)
    looks: OptionalRecords[LookOut] = describe("the next looks; empty if finished", [])


FILTER_FACTS = Role("filter_facts", FilterIn, FilterOut, output_tokens=128)
DECOMPOSE = Role("decompose", DecomposeIn, DecomposeOut, output_tokens=256)
KEYWORDS = Role("keywords", KeywordsIn, KeywordsOut, output_tokens=128)
SELECT_NODES = Role("select_nodes", SelectIn, SelectOut, output_tokens=256)
PROBE = Role("probe", ProbeIn, ProbeOut, output_tokens=256)
ENCODE = Role("encode", EncodeIn, EncodeOut, output_tokens=400)
FUSE = Role("fuse", FuseIn, CueOut, output_tokens=500)
THINK = Role("think", ThinkIn, ThinkOut, output_tokens=200)
STEP = Role("step", StepIn, StepOut, output_tokens=300)
CHOOSE_LOOKS = Role("choose_looks", LooksIn, LooksOut, output_tokens=500)
