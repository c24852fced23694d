"""Answers as they go out, with their events, their cost, their traces and their sessions."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from tomewise.outgoing.form import DocumentName, Outgoing, Place, Sorted, read_fields, sort_set
from tomewise.outgoing.passage_models import Passage
from tomewise.place import name_document

_NAMED = 3  # documents in a sentence

_EXTRACTIVE = "extractive"  # the name of the model that only quotes


def write_plain(detail: Any) -> dict[str, Any]:
    """The detail of an event as plain data, whatever a loop from outside put into it.

    What JSON has no form for becomes its `repr`. Keys that are no text are left out, as is a detail that holds itself.
    """
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(detail), default=repr, skipkeys=True))
    except (ValueError, RecursionError):
        return {}
    return plain


class Event(Outgoing):
    """One thing that happened while a question was answered; `types.Event` says what its `detail` may hold."""

    name: str
    step: int = 0
    summary: str = ""
    detail: Annotated[dict[str, Any], BeforeValidator(write_plain)] = {}


class Spent(Outgoing):
    """What model calls used. `cost` is in dollars, null where a price is unknown."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = 0.0
    model_seconds: float = Field(0.0, validation_alias=AliasChoices("model_seconds", "seconds"))


class Usage(Spent):
    """The cost of an answer or a build, whole and by role; `depth` is the longest chain of calls that waited."""

    own_seconds: float = 0.0
    depth: int = 0
    kept: int = Field(0, description="Asks that a reply answered which was kept from an earlier call.")
    roles: dict[str, Spent] = {}

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, used: Any) -> Any:
        values = read_fields(used)
        total, roles = values.pop("total", {}), values.pop("roles", {})
        return {**read_fields(total), **values, "roles": dict(sorted(roles.items()))}


class Citation(Outgoing):
    """A verified quotation: characters `start` to `end` of the document, inside the passage."""

    document: DocumentName
    passage: str
    position: int = Field(description="The number of the passage in its document, from 0.")
    start: int
    end: int
    quote: str
    title: str = ""
    place: Annotated[Place, Field(description="Where the quotation begins.")] = {}


class Quotation(Outgoing):
    """A whole sentence in place of an answer, with its neighbours."""

    citation: Citation
    before: str = Field("", description="The sentence before it; empty where a heading is between them.")
    after: str = Field("", description="The sentence after it.")
    option: str | None = Field(None, description="The letter of the option that rests on it.")


class Condition(Outgoing):
    """A test of one field of metadata."""

    field: str
    operator: str
    value: Any


class Scope(Outgoing):
    """What a question was narrowed to."""

    documents: Annotated[list[DocumentName], BeforeValidator(sort_set)] | None = None
    where: list[Condition] = []
    entities: Sorted | None = None
    without_entities: Sorted = []


class FromSession(Outgoing):
    """What an answer took from its session."""

    name: str
    number: int
    question: str
    notes: list[str] = []
    passages: list[str] = []
    dropped: list[str] = []


class Lagging(Outgoing):
    """How far the memory that answered lagged behind the documents, and what a build would use."""

    layers: list[str] = Field([], description="The layers that are not up to date.")
    documents: list[DocumentName] = Field([], description="Those they have yet to take in; the first 20.")
    count: int = Field(0, description="How many documents these are.")
    passages: int = Field(0, description="How many passages of them the layers do not know.")
    nearer: bool = Field(False, description="Whether one of these passages is among the three nearest to the question.")
    removed: bool = Field(False, description="Whether what was made from removed documents was not made again.")
    system: str = Field("", description="The system whose build brings the layers up to date.")
    calls: int = Field(0, description="The calls of that build, without those of the layers `unpriced`.")
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = Field(0.0, description="In dollars; null where a price is unknown.")
    unpriced: list[str] = Field([], description="Layers whose calls only an estimate of the build counts.")

    def summarize(self, *, names: bool = True) -> str:
        """What is missing, in a sentence or three, with the `names` of the first documents or without."""
        sentences = []
        if self.count:
            named = ", ".join(map(name_document, self.documents[:_NAMED]))
            named += ", …" if self.count > _NAMED else ""
            which = "1 document" if self.count == 1 else f"{self.count:,} documents"
            sentences.append(f"What was built does not know {which} yet{f': {named}' if names else ''}.")
        if self.nearer:
            sentences.append("One of the passages nearest to the question is there.")
        if self.removed:
            sentences.append("What was made with removed documents is gone and was not made again.")
        return " ".join(sentences)

    def describe_build(self) -> str:
        """What a build would use."""
        cost = "" if self.cost is None else f" (${self.cost:.4f})" if self.cost else ""
        parts = (
            [f"about {self.calls:,} call{'' if self.calls == 1 else 's'}{cost}"]
            if self.calls or not self.unpriced
            else []
        )
        parts += [f"what `--estimate` says for {', '.join(self.unpriced)}"] if self.unpriced else []
        return " and ".join(parts)


class Answer(Outgoing):
    """An answer with its citations and its cost."""

    text: str = Field(description="Empty if it was declined.")
    choice: str | None = Field(None, description="The letter of the chosen option.")
    resolved: bool = Field(True, description="False if the memory does not hold the answer.")
    forced: bool = Field(False, description="Whether the model had to guess.")
    supported: Literal["full", "partly", "none"] = Field("full", description="How far the evidence holds the answer.")
    missing: str = Field("", description="What the evidence lacks.")
    system: str = ""
    model: str = ""
    citations: list[Citation] = []
    quotations: list[Quotation] = Field(
        [], description="Without a model, the sentences that are nearest to an answer; `text` then holds these."
    )
    dropped_quotes: int = Field(0, description="Quotations that were found nowhere.")
    derived_quotes: int = Field(0, description="Quotations of what was made from passages, such as a summary.")
    usage: Usage
    session: FromSession | None = None
    lagging: Lagging | None = Field(None, description="What the memory has yet to take in; null if it is up to date.")
    kept: bool = Field(True, description="False if replies, trace or session could not be written: a full disk.")

    def list_remarks(self) -> list[str]:
        """What a reader must know of the answer besides its text, in sentences."""
        # Where models are set for other roles, the name holds these.
        no_model = "No model is set" if self.model in ("", _EXTRACTIVE) else "No model answers"
        if self.quotations:
            missing = f" ({self.missing})" if self.missing else ""
            nothing = f"{no_model}, and nothing here seems to answer this{missing}."
            return [f"{no_model}: these sentences are nearest to an answer." if self.resolved else nothing]
        if not self.resolved and self.model == _EXTRACTIVE:
            return [f"{no_model}: `tome models` lists those that can answer."]
        remarks = {
            "The evidence supports only a part of this answer.": self.resolved and self.supported == "partly",
            "A guess: no evidence supports it.": self.resolved and self.supported == "none",
            "The model would have declined; it was forced to answer.": self.resolved and self.forced,
            "The model was asked for a guess too, and gave none.": not self.resolved and self.forced,
            f"{self.dropped_quotes} quotation(s) of the model are in no passage and were dropped.": self.dropped_quotes,
            f"{self.derived_quotes} quotation(s) are from summaries and in no passage: not cited.": self.derived_quotes,
        }
        return [remark for remark, holds in remarks.items() if holds]


class Asked(Answer):
    """An answer as it is replied: what `tome ask --json` prints."""

    within: Scope | None = None
    nearest: list[Passage] = Field([], description="Where the question was declined, the passages nearest to it.")


class TracedAnswer(Asked):
    """An answer with what happened on the way: what `tome ask --trace --json` prints."""

    events: list[Event]


class NumberedAnswer(Asked):
    """An answer, and the number of the trace that the tome keeps of it."""

    trace: int | None = None


class TraceRow(Answer):
    """A question that was asked at a time (ISO 8601, UTC), with its answer."""

    id: int = Field(validation_alias=AliasChoices("id", "number"))
    asked: str
    question: str
    options: list[str] = []
    instructions: str = ""
    force: bool = False
    within: Scope | None = None
    cut: list[str] = Field([], description="What was left out to keep the trace small.")


class Trace(TraceRow):
    """A trace, whole: what `tome log N --json` prints."""

    events: list[Event]


class Turn(Outgoing):
    """A question of a session: as it was asked, as it was answered, and the answer."""

    asked: str
    question: str
    answer: str
    passages: list[str] = []


class Session(Outgoing):
    """A session, whole: what `tome sessions NAME --json` prints."""

    name: str
    system: str
    within: Scope | None = None
    count: int
    turns: list[Turn]
    memory_kind: str = Field("", validation_alias=AliasChoices("memory_kind", "kind"))
    memory: Any = None
    notes: list[str] = []
