"""The nouns and the verbs that all parts share. Read this page first.

Nouns are frozen dataclasses, and their ids derive from their content. Verbs are protocols with at most three methods.
Character offsets are Python string indices: `document.text[start:end]`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from tomewise.brief import describe_object
from tomewise.errors import BadReply

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pydantic import BaseModel
    from tokenizers import Tokenizer


DocumentId: TypeAlias = str
NodeId: TypeAlias = str
PassageId: TypeAlias = NodeId
Support: TypeAlias = Literal["full", "partly", "none"]
Scalar: TypeAlias = str | int | float | bool
Metadata: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]]

In = TypeVar("In", bound="BaseModel")
Out = TypeVar("Out", bound="BaseModel")


def content_id(kind: str, *parts: object) -> str:
    """A stable id: `kind-` and 16 hex digits of the SHA-256 of the parts. Equal content has equal ids."""
    joined = "\x1f".join(str(part) for part in parts)
    return f"{kind}-{sha256(joined.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a text stands in its document, as far as the source says; `place.describe_place` writes it for people.

    `chapter` are the headings above it, from the outermost to the innermost. Pages, slides, rows and cells of a
    notebook count from 1; `last_page` and `last_row` are set only for a text that goes on after `page` or `row`. `time`
    is a time in a recording, as "12:04", or a date.
    """

    chapter: tuple[str, ...] = ()
    page: int | None = None
    last_page: int | None = None
    slide: int | None = None
    row: int | None = None
    last_row: int | None = None
    cell: int | None = None
    time: str = ""
    speaker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text that was read.

    `id` is its name for people and for `tome remove`: the absolute path of a file, or the id of a row in a corpus.
    `title` is empty unless the source states one; a stated title is embedded and indexed with every passage.
    `source` is the place it came from (absolute path, `stdin`, `memory`).
    `metadata` are further fields that the source states, such as an author or a date; no model sees them. A tome cuts
    title, metadata and marks to the lengths of `reading.lengths`.
    `marks` are offsets in the text, ascending, each with the place that begins there. A store keeps them only as the
    places of the passages, so they do not count when documents are compared.
    """

    id: DocumentId
    text: str
    title: str = ""
    source: str = "memory"
    metadata: Metadata = field(default_factory=dict, hash=False)
    marks: tuple[tuple[int, Place], ...] = field(default=(), compare=False)

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
    place: Place = Place()
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
    question that brought it to its place; None where the question itself did.
    """

    node: NodeId  # stable, derived from content, so equal evidence is equal everywhere
    layer: str  # "passages", "tree", "episodes", "schemata", "gists", "facts"
    text: str
    score: float
    sources: tuple[PassageId, ...]  # the passages it rests on, in document order
    title: str = ""
    place: Place = Place()  # of a passage; empty for evidence made from several
    rewrite: Rewrite | None = None
    kind: str = ""

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
    the question stays `within` the scope, if there is one.
    """

    text: str
    options: tuple[str, ...] = ()
    instructions: str = ""
    force: bool = False
    within: Scope | None = None


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
    place: Place = Place()


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
class Answer:
    """The result of a loop.

    For a multiple-choice question, `choice` is the letter of the chosen option (A, B, ...) and `text` its wording.
    `resolved` is False if the loop could not answer; `forced` is True if the model then had to guess.
    `supported` says how far the evidence holds the answer. `missing` says what the evidence lacks, if the question was
    declined or is answered only partly, and which parts of the text could not be read. Quotations of the model that
    were found in none of the passages are not among the citations: `derived_quotes` counts those of evidence that was
    made from passages, such as a summary, `dropped_quotes` those found nowhere.
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
        # By its name, since `notebook` imports this module; only a notebook asks for it.
        written: str = import_module("tomewise.notebook_display").write_answer(self)
        return written


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


# ---------------------------------------------------------------- roles of a model


@dataclass(frozen=True, slots=True)
class Role(Generic[In, Out]):
    """One kind of task for a model.

    `prompt` is the template of its prompt; without it the prompt is the packaged file `prompts/<name>.md`. A file of
    that name in the user's folder of prompts replaces either. `tags` are the tags between which this prompt puts texts,
    in addition to those of all prompts. `play` is a text algorithm with which the extractive model plays the role; a
    role from outside without one needs a real model.

    `output_tokens` is the limit on the reply; estimates count this many. `find_fault` returns what is wrong with an
    output of the right type, or None. Roles whose outputs become memory have one, because one bad reply would damage
    the memory for good.
    """

    name: str
    input: type[In]
    output: type[Out]
    output_tokens: int = 1024
    find_fault: Callable[[In, Out], str | None] | None = None
    prompt: str = ""
    tags: tuple[str, ...] = ()
    play: Callable[[In], Out] | None = None

    def accept(self, given: In, output: Out) -> Out:
        """The output, unchanged. Raises `BadReply` if `find_fault` finds something wrong with it."""
        if self.find_fault is not None and (fault := self.find_fault(given, output)) is not None:
            raise BadReply(f"the reply for {self.name!r} cannot be remembered: {fault}")
        return output


# ---------------------------------------------------------------- verbs


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    `max_tokens` includes the special tokens that `tokenizer` adds; `tokenizer` itself neither truncates nor pads.
    """

    @property
    def name(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def tokenizer(self) -> Tokenizer: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (len(texts), dimensions). Empty texts are allowed; equal texts give equal rows."""
        ...


@runtime_checkable
class LanguageModel(Protocol):
    """A model that plays typed roles. The meters around a call (`run.meter`) record its cost."""

    @property
    def name(self) -> str: ...
    @property
    def window(self) -> int:
        """How many tokens the model accepts, reply included."""
        ...

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """Play `role` on `given`. Raises a `ModelError`; an error never becomes text."""
        ...

    def reckon(self, role: Role[In, Out], given: In) -> int:
        """How many input tokens that call would use, as the model counts them. Calls nothing."""
        ...


@runtime_checkable
class Rehearsing(Protocol):
    """A language model that can say how long a reply will be. Optional; only models that cost nothing can."""

    async def rehearse(self, role: Role[In, Out], given: In) -> int | None:
        """Output tokens of the reply, or None where a wrapper's inner model cannot say. Reported to no meter."""
        ...


@runtime_checkable
class PerRole(Protocol):
    """A language model with other models behind it for some roles. Optional; see `language.per_role`."""

    def name_for(self, role: Role[In, Out]) -> str:
        """The name of the model that plays `role`."""
        ...

    def window_for(self, role: Role[In, Out]) -> int:
        """How many tokens that model accepts, reply included."""
        ...


@runtime_checkable
class Sampling(Protocol):
    """A language model that may reply differently to equal asks on purpose. Optional."""

    def samples(self, role: Role[In, Out]) -> bool:
        """Whether it draws its replies for `role` at random: then no reply is used twice."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A language model that holds connections. Optional."""

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """Finds evidence: best first, at most `limit`; ties are ordered by node id. All of it is within the scope."""

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]: ...


@runtime_checkable
class Loop(Protocol):
    """A way of reasoning: yields events, and the Answer at the end."""

    def run(self, question: Question) -> AsyncIterator[Event | Answer]: ...


@runtime_checkable
class Layer(Protocol):
    """A kind of long-term memory, created with the store, model and embedder that it uses.

    `name` is different for each instance ("graph:gists-triples"). `writes` names the node layers that hold its nodes
    (`Node.layer`), usually its own name alone. `needs` names what it is derived from: layers, each of which stands for
    all that it writes, or single node layers. It may also declare the `kind` of its nodes as evidence ("summary"),
    which prompts show in place of its name, and its `calls`.

    Most layers are a pure function of what they need (`testing.check_layer`). A layer may also be a state that takes in
    batches and depends on their order (`testing.check_state_layer`): it commits once a batch, what the batch changed
    together with its intake.
    """

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> tuple[str, ...]: ...
    @property
    def writes(self) -> tuple[str, ...]: ...

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Bring the layer up to date. Its rows and its build record are committed in one transaction."""
        ...

    async def estimate(self, change: Change) -> Estimate:
        """The calls and tokens that `update` would use. Calls no model and writes nothing."""
        ...
