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
NodeId: TypeAlias = str
PassageId: TypeAlias = NodeId
Support: TypeAlias = Literal["full", "partly", "none"]
Scalar: TypeAlias = str | int | float | bool
Metadata: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]]

_NO_PLACE = Place()
_AROUND = 120  # characters that a notebook shows on either side of a quotation


def content_id(kind: str, *parts: object) -> str:
    """A stable id: `kind-` and 16 hex digits of the SHA-256 of the parts. Equal content has equal ids."""
    joined = "\x1f".join(str(part) for part in parts)
    return f"{kind}-{sha256(joined.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text that was read.

    `id` is its name for people and for `tome remove`: the absolute path of a file, or the id of a row in a corpus.
    `title` is empty unless the source states one; a stated title is embedded and indexed with every passage.
    `source` is the place it came from (absolute path, `stdin`, `memory`).
    `metadata` are further fields that the source states, such as an author or a date; no model sees them. A tome cuts
    title, metadata and marks to the lengths of `reading.lengths`.
    `marks` are offsets in the text, ascending, each with the place that begins there. `body` is where the text begins
    that becomes passages; before it stands what is metadata, such as front matter. A store keeps neither but in the
    passages, so they do not count when documents are compared.
    """

    id: DocumentId
    text: str
    title: str = ""
    source: str = "memory"
    metadata: Metadata = field(default_factory=dict, hash=False)
    marks: tuple[tuple[int, Place], ...] = field(default=(), compare=False)
    body: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        """The name to show to a person: the title, or the last part of the id."""
        return self.title or self.id.rstrip("/").rsplit("/", 1)[-1]

    def __repr__(self) -> str:
        return describe_object(self, self.id, title=self.title, characters=len(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of one document: `document.text[start:end] == text`. `position` counts from 0 within the document.

    `place` is the place where it begins. `marks` says more of a passage in which several places begin: offsets in
    `text`, ascending, each with the place from there on. The first may be negative, as its place may begin before the
    passage.
    """

    id: PassageId
    document: DocumentId
    position: int
    start: int
    end: int
    text: str
    title: str = ""
    place: Place = _NO_PLACE
    marks: tuple[tuple[int, Place], ...] = ()

    @property
    def content(self) -> str:
        """The text that is embedded and shown to a model: the stated title, then the text."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    def __repr__(self) -> str:
        return describe_object(self, self.text, document=self.document, position=self.position)


# ---------------------------------------------------------------- memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One text of a memory layer other than passages: a gist, a summary, a window of a story.

    `sources` are the nodes from which it was derived, in document order. `level` is 0 at the leaves.
    `position` orders the nodes of one layer and level for display. `data` holds values that only the layer reads.
    """

    id: NodeId
    layer: str
    text: str
    sources: tuple[NodeId, ...]
    level: int = 0
    position: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A question that recall asked besides the one it was given.

    `text` is that question. `name` stands in it in place of the words that described the thing, and comes from the
    passage `source`. Of one part of a comparison, `name` is the thing that it asks about. What is not known is empty.
    """

    text: str
    name: str = ""
    source: PassageId = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One text that recall found for a question.

    `kind` says in a word what it is, as its layer declares ("summary", "fact"); without one a passage is a "passage",
    and any other text is of the kind of its layer's name. Only passages may be quoted. `rewrite` is the rewritten
    question that brought it to its place; None where the question itself did. `metadata` is that of the document that
    it rests on, as `Tome.search` and `Tome.ask` fill it in; empty for evidence made from several documents.
    """

    node: NodeId  # stable, derived from content, so equal evidence is equal everywhere
    layer: str  # "passages", "tree", "episodes", "schemata", "gists", "facts"
    text: str
    score: float
    sources: tuple[PassageId, ...]  # the passages it rests on, in document order
    title: str = ""
    place: Place = _NO_PLACE  # of a passage; empty for evidence made from several
    rewrite: Rewrite | None = None
    kind: str = ""
    metadata: Metadata = field(default_factory=dict, hash=False)

    def __repr__(self) -> str:
        return describe_object(self, self.text, layer=self.layer, score=round(self.score, 4), sources=len(self.sources))


@dataclass(frozen=True, slots=True)
class Change:
    """What changed in the layers that a layer needs since its last update.

    `added` are the store's keys of the nodes that the layer has not processed yet, in document order, including those
    that failed last time. `removed` are the ids, sorted, of the nodes that the layer had taken in and that were removed
    since; the store has already removed what was made from them, also from this layer, as far as its lifetime says (see
    `store.write.Write.put_nodes`). A node that was removed and made again, or whose text was replaced, is in
    both. An empty id stands for nodes that an earlier version of Tomewise removed, which kept no ids.
    """

    added: tuple[int, ...] = ()
    removed: tuple[NodeId, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport:
    """The result of an update of one layer. `failed` maps the key of each node whose call failed to the reason."""

    layer: str
    added: int = 0
    removed: int = 0
    failed: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The calls and tokens that an update would use, computed before anything is spent.

    `model` names the models that would be called, separated by commas.
    """

    layer: str
    model: str = ""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


# ---------------------------------------------------------------- questions and answers


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of one field of a document's metadata, such as `year >= 1911`.

    A document without the field fails every test. A field with several values passes if one of them does.
    """

    field: str
    operator: Literal["=", "!=", "<", "<=", ">", ">="]
    value: Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The part of a tome in which recall may look. Each member narrows it; an empty scope is the whole tome.

    `documents`: only passages of these documents. `where`: only of documents that pass all these tests.
    `entities`: only passages in which one of these entities is seen. `without_entities`: no passage that sees these
    entities and no other. Evidence made from several passages is within the scope if all of them are.
    """

    documents: frozenset[DocumentId] | None = None
    where: tuple[Condition, ...] = ()
    entities: frozenset[NodeId] | None = None
    without_entities: frozenset[NodeId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, free or multiple-choice. Only the answering role sees `options`.

    `force` asks for a guess if the evidence does not hold the answer; without it a loop may decline. Every search for
    the question stays `within` the scope, if there is one. `strict` refuses memory that lags behind the documents.
    """

    text: str
    options: tuple[str, ...] = ()
    instructions: str = ""
    force: bool = False
    within: Scope | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A verified quotation: `document.text[start:end] == quote`, inside the passage `passage`.

    `position` is the number of that passage in its document, counted from 0. `place` is where the quotation begins; in
    passages that an earlier version cut, where the passage begins.
    """

    document: DocumentId
    passage: PassageId
    position: int
    start: int
    end: int
    quote: str
    title: str = ""
    place: Place = _NO_PLACE


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened while a question was answered.

    `summary` is one line of plain text for people, made by the loop that emits the event. `detail` is plain JSON data.
    Our loops yield events of classes of their own, see `tomewise.events`; a loop from outside may yield this one. A
    reader needs to know no names of events. These fields of `detail` mean the same in every event: `evidence` (pieces
    with `layer`, `score`, `title`, `place`, `text`), `notes` (texts), `pool` (what a working memory holds, as rows of
    plain values), `found` and `cut` (how many passages were retrieved, and how many of them did not fit).
    """

    name: str
    step: int = 0
    summary: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What model calls used: calls (a reply from our cache is not a call), tokens, dollars, seconds.

    `cost` is `None` if a price is unknown. `cached_tokens` are the input tokens that the provider read from its cache;
    `reasoning_tokens` are the output tokens spent on reasoning that is not part of the reply.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

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
    """The cost of one answer or build.

    `model_seconds` is the wall time during which at least one model call was running, `own_seconds` is the rest.
    `depth` is the longest chain of model calls in which each waited for the one before.
    """

    total: Spent = Spent()
    roles: Mapping[str, Spent] = field(default_factory=dict)
    model_seconds: float = 0.0
    own_seconds: float = 0.0
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FromSession:
    """What an answer took from the session in which its question was asked.

    The question was number `number` of the session `name`, and was answered as `question`. `notes` are entries of the
    working memory from earlier questions that the answering call saw, `passages` the passages that earlier entries rest
    on and that it saw. `dropped` are entries and questions that the session lost with this question, because
    what they rest on was removed, or because the session had too many.
    """

    name: str
    number: int
    question: str
    notes: tuple[str, ...] = ()
    passages: tuple[PassageId, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lagging:
    """How far memory lags behind the documents, and what would bring it up to date.

    `layers` have not taken in `passages` passages of `count` documents, of which `documents` are the first. `nearer` is
    set if one of these passages is among the three nearest to the question. `removed` is set if documents were removed
    since the last build: what was made from them is gone, and summaries of what stays may be gone with it.

    A build of `system` takes `calls` calls with these tokens, for `cost` dollars (None if a price is unknown), beside
    those of the layers `unpriced`: they are made anew from many passages, and only an estimate of the build counts
    their calls.
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
    """The result of a loop.

    For a multiple-choice question, `choice` is the letter of the chosen option (A, B, ...) and `text` its wording.
    `resolved` is False if the loop could not answer; `forced` is True if the model then had to guess.
    `supported` says how far the evidence holds the answer. `missing` says what the evidence lacks, if the question was
    declined or is answered only partly, and which parts of the text could not be read. Quotations of the model that
    were found in none of the passages are not among the citations: `derived_quotes` counts those of evidence that was
    made from passages, such as a summary, `dropped_quotes` those found nowhere. `lagging` says what the memory that
    answered had yet to take in, None if it was up to date.
    """

    text: str
    choice: str | None = None
    citations: tuple[Citation, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    resolved: bool = True
    forced: bool = False
    supported: Support = "full"
    missing: str = ""
    dropped_quotes: int = 0
    derived_quotes: int = 0
    system: str = ""
    model: str = ""
    events: tuple[Event, ...] = ()
    usage: Usage = Usage()
    session: FromSession | None = None
    lagging: Lagging | None = None
    trace: int | None = field(default=None, compare=False)  # number of its trace, if the tome keeps one

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
    """How much of a longer task is done. `total` is 0 while it is unknown.

    With a `note` it says only that the task waits, and why.
    """

    label: str
    done: int
    total: int = 0
    note: str = ""


Report: TypeAlias = Callable[[Progress], None]

# ---------------------------------------------------------------- an answer in a notebook


def _write_answer(answer: Answer) -> str:
    """The answer as HTML, with each quotation marked in the text around it. All texts are escaped."""
    from tomewise.outgoing.answer_models import Answer as AnswerModel  # late, since it takes a while

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
    return f"<p><small>{escape(' · '.join(filter(None, (answer.system, answer.model, calls))))}</small></p>"
