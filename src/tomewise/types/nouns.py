"""The nouns that all parts share: what is read, remembered, asked and answered.

Nouns are frozen dataclasses, and their ids derive from their content. Character offsets are Python string indices:
`document.text[start:end]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from typing import Any, Literal, TypeAlias

from tomewise.brief import describe_object
from tomewise.place import Place, describe_source

DocumentId: TypeAlias = str
"""The name of a document for people and for `tome remove`."""
NodeId: TypeAlias = str
"""The id of a node: it derives from the content of the node."""
PassageId: TypeAlias = NodeId
"""The id of a passage."""
Support: TypeAlias = Literal["full", "partly", "none"]
"""How far the evidence holds an answer."""
Scalar: TypeAlias = str | int | float | bool
"""A value of metadata."""
Metadata: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]]
"""Fields of a document by name; a field has one value or several."""

_NO_PLACE = Place()
_AROUND = 120  # characters that a notebook shows on either side of a quotation


def content_id(kind: str, *parts: object) -> str:
    """A stable id: `kind-` and 16 hex digits of the SHA-256 of the parts. Equal content has equal ids."""
    joined = "\x1f".join(str(part) for part in parts)
    return f"{kind}-{sha256(joined.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text that was read."""

    id: DocumentId
    """Its name for people and for `tome remove`: the absolute path of a file, or the id of a row in a corpus."""
    text: str
    """All of it. Citations count its characters."""
    title: str = ""
    """Empty unless the source states one; a stated title is embedded and indexed with every passage."""
    source: str = "memory"
    """The place it came from: an absolute path, `stdin`, or `memory`."""
    metadata: Metadata = field(default_factory=dict, hash=False)
    """Further fields that the source states, such as an author or a date; no model sees them. A tome cuts long ones."""
    marks: tuple[tuple[int, Place], ...] = field(default=(), compare=False)
    """Offsets in the text, ascending, each with the place that begins there. Only passages keep them."""
    body: int = field(default=0, compare=False)
    """The offset at which the passages begin; before it stands what is metadata, such as front matter."""

    @property
    def name(self) -> str:
        """The name to show to a person: the title, or the last part of the id."""
        return self.title or self.id.rstrip("/").rsplit("/", 1)[-1]

    def __repr__(self) -> str:
        return describe_object(self, self.id, title=self.title, characters=len(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of one document: `document.text[start:end] == text`."""

    id: PassageId
    """Stable: it derives from the text and its document."""
    document: DocumentId
    """The id of the document."""
    position: int
    """Its number within the document, from 0."""
    start: int
    """The offset of its first character in the document."""
    end: int
    """The offset behind its last character."""
    text: str
    """Its words, without the title."""
    title: str = ""
    """The title that the document states; empty without one."""
    place: Place = _NO_PLACE
    """The place where it begins."""
    marks: tuple[tuple[int, Place], ...] = ()
    """Offsets in `text`, each with the place from there on. The first may be negative: its place may begin before."""

    @property
    def content(self) -> str:
        """The text that is embedded and shown to a model: the stated title, then the text."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    def __repr__(self) -> str:
        return describe_object(self, self.text, document=self.document, position=self.position)


# ---------------------------------------------------------------- memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One text of a memory layer other than passages: a gist, a summary, a window of a story."""

    id: NodeId
    """Stable: it derives from the layer, the text and the sources."""
    layer: str
    """The name of the node layer that holds it, such as `gists`."""
    text: str
    """What a search finds and a prompt shows."""
    sources: tuple[NodeId, ...]
    """The nodes from which it was derived, in document order."""
    level: int = 0
    """0 at the leaves."""
    position: int = 0
    """Its place among the nodes of one layer and level, for display."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Values that only the layer reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A question that recall asked besides the one it was given. What is not known is empty."""

    text: str
    """The question as it was searched with."""
    name: str = ""
    """What was put in place of the words that described it; of a part of a comparison, what it asks about."""
    source: PassageId = ""
    """The id of the passage that gave the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One text that recall found for a question. Only passages may be quoted."""

    node: NodeId
    """Stable, derived from content, so equal evidence has equal ids everywhere."""
    layer: str
    """The node layer that holds it: `passages`, `tree`, `episodes`, `schemata`, `gists`, `facts:…`."""
    text: str
    """Its words."""
    score: float
    """Compares the evidence of one search, and not that of two; higher is better."""
    sources: tuple[PassageId, ...]
    """The ids of the passages it rests on, in document order."""
    title: str = ""
    """The title of its document; empty for evidence made from several."""
    place: Place = _NO_PLACE
    """The place of a passage; empty for evidence made from several."""
    rewrite: Rewrite | None = None
    """The rewritten question that brought it to its place; None where the question itself did."""
    kind: str = ""
    """What it is in a word, as its layer declares (`summary`, `fact`); empty for the name of its layer."""
    metadata: Metadata = field(default_factory=dict, hash=False)
    """That of its document, as `Tome.search` and `Tome.ask` fill it in; empty for evidence made from several."""

    def __repr__(self) -> str:
        return describe_object(self, self.text, layer=self.layer, score=round(self.score, 4), sources=len(self.sources))


@dataclass(frozen=True, slots=True)
class Change:
    """What changed in the layers that a layer needs since its last update.

    `added` are the store's keys of the nodes that the layer has not processed yet, in document order, including those
    that failed last time. `removed` are the ids, sorted, of the nodes that the layer had taken in and that were removed
    since; the store has already removed what was made from them, also from this layer, as far as its lifetime says.
    A node that was removed and made again, or whose text was replaced, is in both.
    """

    added: tuple[int, ...] = ()
    removed: tuple[NodeId, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport:
    """The result of an update of one layer."""

    layer: str
    """The name of the layer."""
    added: int = 0
    """How many nodes were made."""
    removed: int = 0
    """How many nodes went."""
    failed: Mapping[int, str] = field(default_factory=dict)
    """The key of each node whose call failed, with the reason."""
    notes: tuple[str, ...] = ()
    """What took the place of a step that failed, and how often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The calls and tokens that an update would use, computed before anything is spent."""

    layer: str
    """The name of the layer."""
    model: str = ""
    """The models that would be called, separated by commas."""
    calls: int = 0
    """Calls, without repairs of replies and requests that are tried again."""
    input_tokens: int = 0
    """Tokens of all prompts."""
    output_tokens: int = 0
    """Tokens of all replies, as long as such replies usually are."""


# ---------------------------------------------------------------- questions and answers


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of one field of a document's metadata, such as `year >= 1911`.

    A document without the field fails every test. A field with several values passes if one of them does.
    """

    field: str
    """The name of the field; `title` is one too."""
    operator: Literal["=", "!=", "<", "<=", ">", ">="]
    """Numbers compare as numbers, texts as texts."""
    value: Scalar
    """What the field is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The part of a tome in which recall may look. Each member narrows it; an empty scope is the whole tome.

    Evidence made from several passages is within the scope if all of them are.
    """

    documents: frozenset[DocumentId] | None = None
    """Only passages of the documents with these ids; None for all."""
    where: tuple[Condition, ...] = ()
    """Only of documents that pass all these tests."""
    entities: frozenset[NodeId] | None = None
    """Only passages in which one of these entities is seen; None for all."""
    without_entities: frozenset[NodeId] = frozenset()
    """No passage that sees these entities and no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, free or multiple-choice."""

    text: str
    """The question itself."""
    options: tuple[str, ...] = ()
    """The choices, in the order of their letters. Only the answering role sees them."""
    instructions: str = ""
    """How to answer, such as `in one word`; only the answering role sees them."""
    force: bool = False
    """Whether to ask for a guess if the evidence does not hold the answer; without it a loop may decline."""
    within: Scope | None = None
    """Where every search for the question stays; None for the whole tome."""
    current: bool = False
    """Whether memory that lags behind the documents is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A verified quotation: `document.text[start:end] == quote`."""

    document: DocumentId
    """The id of the document."""
    passage: PassageId
    """The id of the passage that holds it."""
    position: int
    """The number of that passage in its document, from 0."""
    start: int
    """The offset of the first quoted character in the document."""
    end: int
    """The offset behind the last one."""
    quote: str
    """The words of the document, not of the model."""
    title: str = ""
    """The title of the document; empty without one."""
    place: Place = _NO_PLACE
    """Where the quotation begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotation:
    """A whole sentence that is shown in place of an answer."""

    citation: Citation
    """The sentence, and where it stands."""
    before: str = ""
    """The sentence before it; empty at the beginning of a passage."""
    after: str = ""
    """The sentence after it; empty at the end of a passage."""
    option: str | None = None
    """The letter of the option that rests on it; None for all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened while a question was answered.

    Our loops yield events of classes of their own, see `tomewise.events`; a loop from outside may yield this one. A
    reader needs to know no names of events. These fields of `detail` mean the same in every event: `evidence` (pieces
    with `layer`, `score`, `title`, `place`, `text`), `notes` (texts), `pool` (what a working memory holds, as rows of
    plain values), `found` and `cut` (how many passages were retrieved, and how many of them did not fit).
    """

    name: str
    """What happened, in a word or two."""
    step: int = 0
    """The round of the loop, from 0."""
    summary: str = ""
    """One line of plain text for people, made by the loop that emits the event."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What model calls used. A reply from our cache is not a call."""

    calls: int = 0
    """Requests that were sent, retries and refusals too."""
    input_tokens: int = 0
    """Tokens of the prompts."""
    output_tokens: int = 0
    """Tokens of the replies."""
    cost: float | None = 0.0
    """Dollars; None if a price is unknown."""
    seconds: float = 0.0
    """The sum of the seconds of all calls, also of those that ran side by side."""
    cached_tokens: int = 0
    """The input tokens that the provider read from its cache."""
    reasoning_tokens: int = 0
    """The output tokens spent on reasoning that is not part of the reply."""

    def __add__(self, more: Spent) -> Spent:
        known = self.cost is not None and more.cost is not None
        return Spent(
            calls=self.calls + more.calls,
            input_tokens=self.input_tokens + more.input_tokens,
            output_tokens=self.output_tokens + more.output_tokens,
            cost=(self.cost or 0.0) + (more.cost or 0.0) if known else None,
            seconds=self.seconds + more.seconds,
            cached_tokens=self.cached_tokens + more.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + more.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The cost of one answer or build."""

    total: Spent = Spent()
    """What all calls used together."""
    roles: Mapping[str, Spent] = field(default_factory=dict)
    """What the calls of each role used, by the name of the role."""
    model_seconds: float = 0.0
    """The wall time during which at least one model call was running."""
    own_seconds: float = 0.0
    """The rest of the wall time."""
    depth: int = 0
    """The longest chain of model calls in which each waited for the one before."""
    kept: int = 0
    """How many asks a reply answered which the tome keeps of an earlier call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromSession:
    """What an answer took from the session in which its question was asked."""

    name: str
    """The name of the session."""
    number: int
    """The number of the question in the session, from 1."""
    question: str
    """The question as it was answered, standing alone."""
    notes: tuple[str, ...] = ()
    """Entries of the working memory from earlier questions that the answering call saw."""
    passages: tuple[PassageId, ...] = ()
    """The passages that earlier entries rest on and that the answering call saw."""
    dropped: tuple[str, ...] = ()
    """Entries and questions that the session lost, as what they rest on was removed or there were too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lagging:
    """How far memory lags behind the documents, and what would bring it up to date.

    `layers` have not taken in `passages` passages of `count` documents, of which `documents` are the first. `nearer` is
    set if one of these passages is among the three nearest to the question. `removed` is set if documents were removed
    since the last build: what was made from them is gone, and summaries of what stays may be gone with it.

    A build of `system` takes `calls` calls of `input_tokens` and `output_tokens` in all, for `cost` dollars (None if a
    price is unknown), beside those of the layers `unpriced`: they are made anew from many passages, and only an
    estimate of the build counts their calls.
    """

    layers: tuple[str, ...]
    documents: tuple[DocumentId, ...] = ()
    count: int = 0
    passages: int = 0
    nearer: bool = False
    removed: bool = False
    system: str = ""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    unpriced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a question: the answer, or what the evidence lacks."""

    text: str
    """The answer, or the wording of the chosen option; empty if the question was declined."""
    choice: str | None = None
    """The letter of the chosen option (A, B, ...); None without options."""
    citations: tuple[Citation, ...] = ()
    """The quotations that were found in a passage. They are what the answer rests on."""
    quotations: tuple[Quotation, ...] = ()
    """Without a model: the sentences that are nearest to an answer, best first, also where the question was declined.

    Then `text` holds them, unless it was declined, and `choice` the option that rests on the first one."""
    evidence: tuple[Evidence, ...] = ()
    """What the answering call was shown, the best first; the prompt has it in the order of the text."""
    resolved: bool = True
    """False if the question was declined."""
    forced: bool = False
    """True if the model had declined and then had to guess."""
    supported: Support = "full"
    """How far the evidence holds the answer, as the model says: `full`, `partly` or `none`."""
    missing: str = ""
    """What the evidence lacks, if the question was declined or is answered only partly, and what was not read."""
    dropped_quotes: int = 0
    """How many quotations of the model were found nowhere, so that they are not cited."""
    derived_quotes: int = 0
    """How many stand only in what was made from passages, such as a summary, and are not cited."""
    system: str = ""
    """The system that answered, with its settings."""
    model: str = ""
    """The model that answered."""
    events: tuple[Event, ...] = ()
    """What happened on the way, in order."""
    usage: Usage = Usage()
    """What it cost."""
    session: FromSession | None = None
    """What it took from its session; None without one."""
    lagging: Lagging | None = None
    """What the memory that answered had yet to take in; None if it was up to date."""
    trace: int | None = field(default=None, compare=False)
    """The number of its trace, if the tome keeps one."""
    kept: bool = field(default=True, compare=False)
    """False if a reply, the trace or the turn of the session could not be written, such as on a full disk.

    True in a tome that is only read, where none is written."""

    def __repr__(self) -> str:
        counts = {"citations": len(self.citations), "evidence": len(self.evidence), "events": len(self.events)}
        outcome = {"supported": self.supported} if self.resolved else {"resolved": False, "missing": self.missing}
        return describe_object(self, self.text, **outcome, **counts, system=self.system, model=self.model)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data: what `tome ask --json` prints of it, without `within` and `nearest`."""
        from tomewise.outgoing.answer_models import Answer as AnswerModel  # late, since it takes a while

        return AnswerModel.of(self).write()

    def _repr_html_(self) -> str:
        return _write_answer(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How much of a longer task is done."""

    label: str
    """What is done, in a few words."""
    done: int
    """How much of `total`."""
    total: int = 0
    """0 while it is unknown."""
    note: str = ""
    """If it is not empty, the task only waits; it says why."""


Report: TypeAlias = Callable[[Progress], None]
"""A function that gets the progress of a task."""

# ---------------------------------------------------------------- an answer in a notebook


def _write_answer(answer: Answer) -> str:
    """The answer as HTML, with each quotation marked in the text around it. All texts are escaped."""
    from tomewise.outgoing.answer_models import Answer as AnswerModel  # late, since it takes a while

    if answer.quotations:
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in AnswerModel.of(answer).list_remarks())
        return (
            f"<div>{remarks}<ol>{''.join(map(_write_quotation, answer.quotations))}</ol>{_write_origin(answer)}</div>"
        )
    if not answer.resolved:
        missing = answer.missing or "the evidence does not say"
        return f"<div><p><b>Not answered:</b> {escape(missing)}</p>{_write_origin(answer)}</div>"
    choice = f"{escape(answer.choice)}. " if answer.choice else ""
    notes = [f"Missing: {answer.missing}" if answer.missing else "", *AnswerModel.of(answer).list_remarks()]
    lines = "".join(f"<p>{escape(note)}</p>" for note in notes if note)
    quotations = "".join(f"<li>{_write_citation(citation, answer)}</li>" for citation in answer.citations)
    listed = f"<ol>{quotations}</ol>" if quotations else ""
    return f"<div><p><b>{choice}{escape(answer.text)}</b></p>{lines}{listed}{_write_origin(answer)}</div>"


def _write_citation(citation: Citation, answer: Answer) -> str:
    where = escape(describe_source(citation))
    before, after = _find_surroundings(citation, answer)
    return f"{escape(before)}<mark>{escape(citation.quote)}</mark>{escape(after)} <small>{where}</small>"


def _write_quotation(quotation: Quotation) -> str:
    citation = quotation.citation
    before, after = (f"<small>{escape(text)}</small>" if text else "" for text in (quotation.before, quotation.after))
    option = f" → {escape(quotation.option)}" if quotation.option else ""
    where = f"<small>{escape(describe_source(citation))}</small>"
    return f"<li>{before} <mark>{escape(citation.quote)}</mark>{option} {after} {where}</li>"


def _find_surroundings(citation: Citation, answer: Answer) -> tuple[str, str]:
    """What stands before and after the quotation in the passage that it is from, if the answer holds its text."""
    for piece in answer.evidence:
        if piece.node == citation.passage and citation.quote in piece.text:
            before, _, after = piece.text.partition(citation.quote)
            start = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
            end = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
            return start, end
    return "", ""


def _write_origin(answer: Answer) -> str:
    total = answer.usage.total
    calls = f"{total.calls} call{'' if total.calls == 1 else 's'}"
    origin = f"<p><small>{escape(' · '.join(filter(None, (answer.system, answer.model, calls))))}</small></p>"
    if answer.lagging is None:
        return origin
    from tomewise.outgoing.answer_models import Lagging as LaggingModel  # late, since it takes a while

    return f"<p>{escape(LaggingModel.of(answer.lagging).summarize())}</p>{origin}"
