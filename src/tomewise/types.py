"""The nouns and the verbs that every part shares. Read this page first.

Nouns are frozen dataclasses whose ids derive from content; verbs are protocols of at most three methods.
Character offsets are Python string indices: `document.text[start:end]`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

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

In = TypeVar("In", bound="BaseModel")
Out = TypeVar("Out", bound="BaseModel")


def content_id(kind: str, *parts: object) -> str:
    """A stable id: `kind-` and 16 hex digits of the SHA-256 of the parts, so that equal content has one id."""
    joined = "\x1f".join(str(part) for part in parts)
    return f"{kind}-{sha256(joined.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


# ---------------------------------------------------------------- what is read


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text that was read.

    `id` names it for people and for `tome remove`: the absolute path of a file, or the id of a row of a corpus.
    `title` is empty unless the source states one; a stated title is embedded and indexed with every passage.
    `source` is where it came from (absolute path, `stdin`, `memory`).
    """

    id: DocumentId
    text: str
    title: str = ""
    source: str = "memory"

    @property
    def name(self) -> str:
        """What to show a person: the title, or the last part of the id."""
        return self.title or self.id.rstrip("/").rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of one document: `document.text[start:end] == text`. `position` counts from 0 within the document."""

    id: PassageId
    document: DocumentId
    position: int
    start: int
    end: int
    text: str
    title: str = ""

    @property
    def content(self) -> str:
        """What is embedded and shown to a model: the stated title, then the text."""
        return f"{self.title}\n{self.text}" if self.title else self.text


# ---------------------------------------------------------------- what is remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One text of a memory layer other than passages: a gist, a summary, a window of a story.

    `sources` are the nodes it was made from (its derivations), in document order. `level` is 0 at the leaves.
    `position` orders the nodes of one layer and level for display. `data` holds what only the layer understands.
    """

    id: NodeId
    layer: str
    text: str
    sources: tuple[NodeId, ...]
    level: int = 0
    position: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What recall hands to a loop."""

    node: NodeId  # stable, derived from content, so equal evidence is equal everywhere
    layer: str  # "passages", "tree", "episodes", "schemata", "gists", "facts"
    text: str
    score: float
    sources: tuple[PassageId, ...]  # the passages it rests on, in document order
    title: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """What happened below a layer since it was last updated.

    `added` are the store's keys of the nodes that the layer has not taken in, in document order, those that failed
    last time among them. What was removed below is gone from the layer already, with all that rested on it (see
    `store.write.Write.remove_nodes`); `removed` says that this happened.
    """

    added: tuple[int, ...] = ()
    removed: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport:
    """What an update of one layer did. `failed` maps the key of a node whose call failed to the reason."""

    layer: str
    added: int = 0
    removed: int = 0
    failed: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What an update would ask of the model: calls and tokens, before anything is spent."""

    layer: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


# ---------------------------------------------------------------- what is asked and answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, free or multiple-choice. Only the answering role ever sees `options`.

    `force` asks for a guess where the evidence does not hold the answer; without it a loop may decline.
    """

    text: str
    options: tuple[str, ...] = ()
    instructions: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A verified quotation: `document.text[start:end] == quote`, inside the passage named.

    `position` is the passage's place in its document, counted from 0.
    """

    document: DocumentId
    passage: PassageId
    position: int
    start: int
    end: int
    quote: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened while a question was answered. `detail` is plain JSON data."""

    name: str
    step: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What was asked of models: calls made (replies from a cache are none), tokens, money in dollars, seconds.

    `cost` is None when a price is not known. Of the tokens in, `cached_tokens` were read from the provider's cache;
    of the tokens out, `reasoning_tokens` went into reasoning that is not part of the reply.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        known = self.cost is not None and other.cost is not None
        return Spent(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
            seconds=self.seconds + other.seconds,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The cost of one answer or build.

    `model_seconds` is the wall time during which at least one model call was under way, `own_seconds` the rest;
    `depth` is the longest chain of model calls that waited for one another.
    """

    total: Spent = Spent()
    roles: Mapping[str, Spent] = field(default_factory=dict)
    model_seconds: float = 0.0
    own_seconds: float = 0.0
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a loop ends with.

    `choice` is the letter of the chosen option (A, B, ...) of a multiple-choice question, `text` then its wording.
    `resolved` is False when the loop could not answer; `forced` is True when it was made to answer all the same.
    `supported` says how far the evidence holds the answer; `missing` says what it lacks, where it does not hold
    the answer in full.
    `dropped_quotes` counts quotations of the model that stand in no passage and so were not shown.
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
    system: str = ""
    model: str = ""
    events: tuple[Event, ...] = ()
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a longer piece of work has got. `total` is 0 while it is not known."""

    label: str
    done: int
    total: int = 0


Report: TypeAlias = Callable[[Progress], None]


# ---------------------------------------------------------------- what is asked of a model


@dataclass(frozen=True, slots=True)
class Role(Generic[In, Out]):
    """One kind of question to a model.

    `name` is also the name of its prompt, `prompts/<name>.md`; `output_tokens` bounds the reply and is what an
    estimate reckons with. `find_fault` says what is wrong with an output that fits its type, or None: of roles whose
    outputs become memory, which one bad reply would spoil for good.
    """

    name: str
    input: type[In]
    output: type[Out]
    output_tokens: int = 1024
    find_fault: Callable[[In, Out], str | None] | None = None

    def accept(self, given: In, output: Out) -> Out:
        """The output as it is. Raises `BadReply` where something is wrong with it."""
        if self.find_fault is not None and (fault := self.find_fault(given, output)) is not None:
            raise BadReply(f"the reply for {self.name!r} cannot be remembered: {fault}")
        return output


# ---------------------------------------------------------------- the verbs


@runtime_checkable
class Embedder(Protocol):
    """Text to vectors.

    `max_tokens` counts the special tokens that `tokenizer` adds; `tokenizer` itself neither cuts nor pads.
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
    """A model asked in typed roles. What a call cost goes to the meters around it (`language.usage`)."""

    @property
    def name(self) -> str: ...
    @property
    def window(self) -> int:
        """How many tokens the model takes in, reply included."""
        ...

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """Play `role` on `given`. Raises a `ModelError`; an error never becomes text."""
        ...

    def reckon(self, role: Role[In, Out], given: In) -> int:
        """How many input tokens that call would take, in the tokens that the model reports. Asks nothing."""
        ...


@runtime_checkable
class Rehearsing(Protocol):
    """A language model that can say how long a reply will be. Optional; only models that cost nothing can."""

    async def rehearse(self, role: Role[In, Out], given: In) -> int | None:
        """Output tokens of the reply, or None where a wrapper's inner model cannot say. Reported to no meter."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A language model that holds connections. Optional."""

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """Finds evidence: best first, at most `limit`, ties broken by node id."""

    async def retrieve(self, query: str, limit: int) -> list[Evidence]: ...


@runtime_checkable
class Loop(Protocol):
    """A way of reasoning: yields what happens, ends with the Answer."""

    def run(self, question: Question) -> AsyncIterator[Event | Answer]: ...


@runtime_checkable
class Layer(Protocol):
    """A kind of long-term memory, made with the store, model and embedder it uses.

    `name` tells instances apart ("graph:gists-triples"); `needs` names the layers it is derived from.
    """

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> tuple[str, ...]: ...

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Bring the layer up to date; its rows and its build record are committed together."""
        ...

    async def estimate(self, change: Change) -> Estimate:
        """What `update` would ask of the model. Asks nothing and writes nothing."""
        ...
