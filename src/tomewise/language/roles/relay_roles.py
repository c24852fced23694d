"""The roles that read a text in order, and those that read it by pages.

In order: planning, extracting, inferring, refining (COSMIR); marking facts, and bringing the ledger up to date (ours);
and the note handed on. By pages (ReadAgent): shorten a page to its gist, and look up pages by their gists.
"""

from __future__ import annotations

from pydantic import BaseModel, Field, computed_field
from pydantic.json_schema import SkipJsonSchema

from tomewise.language.labels import Label, Labels, Numbers
from tomewise.language.memory_faults import find_fault
from tomewise.language.roles.fields import Prose, Records, Shown, Text, describe
from tomewise.language.roles.memory_roles import PassageIn, bound_words
from tomewise.types import Role

_PAGE_SHARE = 0.2  # of the words of a page that its gist may have


class PlanReadingIn(BaseModel):
    """`limit` and `nets` are how many questions and wide questions there may be; None for no limit."""

    question: str
    limit: int | None = None
    nets: int | None = None


class PlanReadingOut(BaseModel):
    """`needs_all` is true where a model does not say it, since a reading that ends early cannot be taken back."""

    questions: Records[Text] = describe("smaller questions whose answers settle the question", [])
    nets: Records[Text] = describe("wide questions that collect facts which may matter later", [])
    needs_all: bool = describe("whether the answer needs every part of the text, as a list or a count does", True)


class Entry(BaseModel):
    """A fact or an inference of the ledger, under its label; of a fact where it stands, and whether it is new."""

    label: str
    text: str
    place: str = ""
    is_new: bool = False


class NotesIn(BaseModel):
    """`questions` and `nets` are still open; `evidence` are the passages of one chunk, `limit` facts are wanted.

    With `after`, the words of a fact in the first passage, only what comes behind these is wanted.
    """

    question: str
    questions: list[str] = []
    nets: list[str] = []
    evidence: list[Shown]
    limit: int = 20
    after: str = ""


class MarkIn(NotesIn):
    """`known` are facts of earlier parts, by their first words."""

    known: list[Entry] = []


class MarkedFact(BaseModel):
    label: Label = Field(description="label of the passage that states the fact")
    quote: Text = Field(description="the words that state it, copied word for word from that passage")


class NotedFact(MarkedFact):
    fact: Text = describe("the fact as a sentence that is understood alone")


class MarkOut(BaseModel):
    """No model sees `unfinished`."""

    facts: Records[MarkedFact] = describe("facts in the order of the text", [])
    unfinished: SkipJsonSchema[str] = ""


class NotesOut(BaseModel):
    """No model sees `unfinished`."""

    facts: Records[NotedFact] = describe("facts in the order of the text", [])
    unfinished: SkipJsonSchema[str] = ""


class InferIn(BaseModel):
    question: str
    questions: list[str] = []
    nets: list[str] = []
    facts: list[Entry] = []
    inferences: list[Entry] = []


class DrawnInference(BaseModel):
    """The grounds come first, since a model writes its fields in order. Labels are read as their numbers."""

    rests_on: Numbers = describe("labels of the facts that it rests on, such as F3", [])
    inference: Text = Field(description="what follows from these facts, as a sentence that is understood alone")


class NewInference(DrawnInference):
    replaces: Numbers = describe("labels of the facts and inferences that it overtakes, such as F1 or I2", [])


class InferOut(BaseModel):
    inferences: Records[DrawnInference] = describe("new inferences; empty when nothing new follows", [])


class RefineIn(InferIn):
    """`limit` is how many questions may be open afterwards, beside the nets; None for no limit."""

    limit: int | None = None


class RefineOut(BaseModel):
    """The numbers of the prompt, counted from 1, nets last. The caller drops numbers that the prompt did not show."""

    reasoning: Text = describe("what is settled by which entries, in at most 2 sentences")
    answered: Numbers = describe("numbers of the open questions that are settled", [])
    new: Records[Text] = describe("new questions that the entries raise", [])


class LedgerOut(BaseModel):
    """Inferring and refining in one reply. Numbers as in `RefineOut`."""

    inferences: Records[NewInference] = describe("new inferences; empty when nothing new follows", [])
    answered: Numbers = describe("numbers of the open questions that are settled", [])
    new: Records[Text] = describe("new questions that the entries raise", [])
    settled: bool = describe("whether the question itself is settled, whatever the rest of the text says", False)


class CarryIn(BaseModel):
    """`note` is what earlier readers hand on, `words` how long the new one may be."""

    question: str
    note: str = ""
    evidence: list[Shown]
    words: int = 400


class CarryOut(BaseModel):
    """No model sees `unfinished`."""

    note: Text = Field(description="the whole note for the next reader; what it leaves out is lost")
    unfinished: SkipJsonSchema[str] = ""


class ShortenIn(PassageIn):
    """A page, and the end of the text before it."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def words(self) -> int:
        """The most words of the gist: a fifth of those of the page."""
        return bound_words(self.text, _PAGE_SHARE)


class ShortenOut(BaseModel):
    gist: Prose = Field(min_length=1, description="the page, much shorter")


class LookUpIn(BaseModel):
    """`evidence` are all pages in order: the gist of each, or its text if its label is in `read`."""

    question: str
    evidence: list[Shown]
    read: list[str] = []
    limit: int = 5


class LookUpOut(BaseModel):
    """Labels that were not shown are for the caller to drop."""

    reasoning: Text = describe("what is still unknown and which pages may say it, in a sentence")
    labels: Labels = describe("labels of the pages to read in full, the most useful first", [])


def _find_page_fault(given: ShortenIn, output: ShortenOut) -> str | None:
    return find_fault(output.gist, given.grounds)


_LEDGER = ("open", "known", "after", "fact", "inference")

PLAN_READING = Role("plan_reading", PlanReadingIn, PlanReadingOut, output_tokens=512)
EXTRACT_NOTES = Role(
    "extract_notes", NotesIn, NotesOut, output_tokens=4096, short_tokens=2048, tags=_LEDGER, goes_on=True
)
MARK_FACTS = Role("mark_facts", MarkIn, MarkOut, output_tokens=3072, short_tokens=1536, tags=_LEDGER, goes_on=True)
INFER_NOTES = Role("infer_notes", InferIn, InferOut, output_tokens=1024, tags=_LEDGER)
REFINE_QUESTIONS = Role("refine_questions", RefineIn, RefineOut, output_tokens=512, tags=_LEDGER)
UPDATE_LEDGER = Role("update_ledger", RefineIn, LedgerOut, output_tokens=1536, tags=_LEDGER)
CARRY_NOTE = Role("carry_note", CarryIn, CarryOut, output_tokens=1536, goes_on=True)
SHORTEN = Role("shorten", ShortenIn, ShortenOut, output_tokens=1024, find_fault=_find_page_fault)
LOOK_UP = Role("look_up", LookUpIn, LookUpOut, output_tokens=256)
