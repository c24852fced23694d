"""The roles of reports about communities of a graph: write one, and answer from many (GraphRAG)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from tomewise.language.labels import Labels
from tomewise.language.memory_faults import find_fault
from tomewise.language.roles.fields import OptionalRecords, Prose, Records, Shown, Text, Texts, describe, read_number
from tomewise.types import Role

REPORT_WORDS = 2000
_BYTES = 20  # most bytes for a word of a report: several times the usual, since models exceed their bound
_FEWEST_TOKENS = 800  # of the bound on a report, whose form takes some
_USUAL_SCORE = 50  # of what a model wrote without a score
Score = Annotated[int, read_number(0, 100, otherwise=_USUAL_SCORE)]


class EntityRow(BaseModel):
    """An entity of a community; `degree` is how many others the relations that are shown join it with."""

    name: str
    description: str
    degree: int


class RelationRow(BaseModel):
    """A relation of two entities under its label, such as R3."""

    label: str
    source: str
    target: str
    description: str


class ReportIn(BaseModel):
    """A community: its entities, the relations between them, and reports in place of those of its parts."""

    entities: list[EntityRow]
    relations: list[RelationRow]
    reports: list[str] = []
    words: int = REPORT_WORDS
    findings: int = 10

    @property
    def grounds(self) -> tuple[str, ...]:
        """The texts that a report may take its words from."""
        rows = [f"{row.name}: {row.description} ({row.degree} links)" for row in self.entities]
        rows += [f"{row.source}, {row.target}: {row.description}" for row in self.relations]
        return (*rows, *self.reports)


class FindingOut(BaseModel):
    headline: Prose = describe("the finding in a few words")
    explanation: Prose = Field(min_length=1, description="what it is, in one or more paragraphs")
    records: Labels = describe("labels of the relations that it rests on", [])


class ReportOut(BaseModel):
    title: Prose = Field(min_length=1, description="what the community is, by its main names")
    summary: Prose = Field(min_length=1, description="who belongs together, how, and what comes of it")
    importance: Annotated[int, read_number(0, 10, otherwise=0)] = describe(
        "how much the whole text turns on it, 0 to 10", 0, ge=0, le=10
    )
    reason: Text = describe("why it is so important, in one sentence")
    findings: OptionalRecords[FindingOut] = describe("what is worth knowing of it, most important first", [])


class RateIn(BaseModel):
    question: str
    report: str


class RateOut(BaseModel):
    reason: Text = ""
    rating: Annotated[int, read_number(0, 5)] = Field(
        ge=0, le=5, description="0 for a report of no use, 5 for one that holds the answer"
    )


class MapIn(BaseModel):
    """`evidence` are reports."""

    question: str
    evidence: list[Shown]
    words: int = 1000


class PointOut(BaseModel):
    description: Text = Field(min_length=1, description="what the reports say on the question, in a few sentences")
    labels: Labels = describe("labels of the reports that say so", [])
    score: Score = describe("how much it helps to answer, 0 to 100", _USUAL_SCORE, ge=0, le=100)


class MapOut(BaseModel):
    points: Records[PointOut] = describe("the most helpful first; empty where none helps", [])


class HypothesisOut(BaseModel):
    answer: Text = Field(min_length=1, description="a text in the form of the report that would answer the question")


class ExploreIn(BaseModel):
    """`query` is a smaller question on the way to `question`, or the question itself."""

    question: str
    query: str
    evidence: list[Shown]
    limit: int = 5
    words: int = 300


def _score_answer(reply: dict[str, Any]) -> int:
    return _USUAL_SCORE if reply.get("answer") else 0


class ExploreOut(BaseModel):
    answer: Text = describe("what the evidence says on the query; empty where it says nothing")
    score: Score = Field(
        default_factory=_score_answer, ge=0, le=100, description="how much that helps with the question, 0 to 100"
    )
    follow_ups: Texts = describe("questions to ask next, the most promising first", [])


def _find_report_fault(given: ReportIn, output: ReportOut) -> str | None:
    findings = [f"{each.headline}. {each.explanation}" for each in output.findings]
    return find_fault("\n".join([output.title, output.summary, *findings]), given.grounds, _BYTES * given.words)


def make_report_role(words: int) -> Role[ReportIn, ReportOut]:
    """The role that writes reports of so many words."""
    return Role(
        "write_report",
        ReportIn,
        ReportOut,
        output_tokens=max(_FEWEST_TOKENS, 2 * words),
        find_fault=_find_report_fault,
    )


WRITE_REPORT = make_report_role(REPORT_WORDS)
RATE_REPORT = Role("rate_report", RateIn, RateOut, output_tokens=128)
MAP_REPORTS = Role("map_reports", MapIn, MapOut, output_tokens=2048)
HYPOTHESISE = Role("hypothesise", RateIn, HypothesisOut, output_tokens=512)
EXPLORE = Role("explore", ExploreIn, ExploreOut, output_tokens=800)
