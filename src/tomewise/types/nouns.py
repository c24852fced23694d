"""The nouns that all parts share: what is read, remembered, asked, answered and proved.

Nouns are frozen dataclasses, and their ids derive from their content. Character offsets are Python string indices:
`document.text[start:end]`. A noun is declared here once, and its JSON derives from it (see `plain.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf
from typing import Any, ClassVar, Literal, TypeAlias

from tomewise.errors import count_noun
from tomewise.types.place import Place, name_document
from tomewise.types.plain import Noun, describe_object

DocumentId: TypeAlias = str
"""The name of a document for people and for `tome remove`."""
NodeId: TypeAlias = str
"""The id of a node: it derives from the content of the node."""
PassageId: TypeAlias = NodeId
"""The id of a passage."""
Support: TypeAlias = Literal["quoted", "inferred", "contradicted", "none"]
"""How far quotations prove a statement, from its words standing in them to nothing that proves it."""
Claim: TypeAlias = Literal["full", "partly", "none"]
"""How far the evidence holds an answer, in the word of the model that answered."""
Reach: TypeAlias = Literal["part", "whole", "list", "count"]
"""What a question asks about: something in the text, the whole of it, all of some things, how often words stand."""
Form: TypeAlias = Literal["short", "list", "table", "account", "summary"]
"""What an answer looks like: a word to a sentence or two, an item or a row for each thing, paragraphs, or a summary."""
ColumnKind: TypeAlias = Literal["text", "number", "date"]
"""What the cells of a column are read as."""
FindKind: TypeAlias = Literal["words", "name", "value", "pattern"]
"""How texts are looked for, see `Tome.find`."""
Scalar: TypeAlias = str | int | float | bool
"""A value of metadata."""
Metadata: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]]
"""Fields of a document by name; a field has one value or several."""

_NO_PLACE = Place()
_NAMED = 3  # documents in a sentence
_WHOLE = r"(?:[0-9]{1,15}|[0-9]{1,3}(?:,[0-9]{3}){1,4})"
_PART = rf"{_WHOLE}(?:\.[0-9]{{1,6}})?"
_LIMIT = re.compile(
    rf"(?P<calls>{_WHOLE}) calls?|(?P<tokens>{_WHOLE}) tokens?|\$(?P<dollars>{_PART})|(?P<minutes>{_PART}) minutes?"
)


def content_id(kind: str, *parts: object) -> str:
    """A stable id: `kind-` and 16 hex digits of the SHA-256 of the parts. Equal content has equal ids."""
    joined = "\x1f".join(str(part) for part in parts)
    return f"{kind}-{sha256(joined.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Noun):
    """One text that was read."""

    kept_back: ClassVar[tuple[str, ...]] = ("body",)
    id: DocumentId
    """Its name for people and for `tome remove`: the absolute path of a file, or the id of a row in a corpus."""
    text: str
    """All of it. Quotes count its characters."""
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
class Passage(Noun):
    """A piece of one document: `document.text[start:end] == text`."""

    kept_back: ClassVar[tuple[str, ...]] = ("marks",)
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
class Rewrite(Noun):
    """A question that recall asked besides the one it was given. What is not known is empty."""

    text: str
    """The question as it was searched with."""
    name: str = ""
    """What was put in place of the words that described it; of a part of a comparison, what it asks about."""
    source: PassageId = ""
    """The id of the passage that gave the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Noun):
    """A passage by its document."""

    document: DocumentId
    """The id of the document."""
    passage: PassageId
    """The id of the passage."""
    position: int
    """The number of the passage in its document, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(Noun):
    """One text that recall found for a question. Only passages may be quoted."""

    id: NodeId
    """Stable, derived from content, so equal evidence has equal ids everywhere."""
    layer: str
    """The node layer that holds it: `passages`, `tree`, `episodes`, `schemata`, `gists`, `facts:…`."""
    text: str
    """Its words."""
    score: float
    """Compares the evidence of one search, and not that of two; higher is better."""
    sources: tuple[PassageId, ...] = ()
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
    origins: tuple[Source, ...] = ()
    """Its `sources` by their documents, as `Tome.search` and `Tome.ask` fill them in."""

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
class Failure(Noun):
    """A node that a layer failed to take in."""

    node: int
    """Its key in the store."""
    reason: str
    """Why."""
    sources: tuple[Source, ...] = ()
    """The passages that it concerns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport(Noun):
    """The result of an update of one layer."""

    kept_back: ClassVar[tuple[str, ...]] = ("failed",)
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
    failures: tuple[Failure, ...] = ()
    """What `failed`, with the passages that it concerns, as `Tome.build` fills it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(Noun):
    """What model calls used. A reply that was kept of an earlier call is not a call."""

    calls: int = 0
    """Requests that were sent, retries and refusals too."""
    input_tokens: int = 0
    """Tokens of the prompts."""
    output_tokens: int = 0
    """Tokens of the replies."""
    cached_tokens: int = 0
    """The input tokens that the provider read from its cache."""
    reasoning_tokens: int = 0
    """The output tokens spent on reasoning that is not part of the reply."""
    dollars: float | None = 0.0
    """None if a price is unknown."""
    model_seconds: float = 0.0
    """The wall time during which at least one call was running; in a sum and in a role, the seconds of all calls."""
    own_seconds: float = 0.0
    """The rest of the wall time."""
    depth: int = 0
    """The longest chain of calls in which each waited for the one before; a sum has none."""
    kept: int = 0
    """How many asks a reply answered which the tome keeps of an earlier call."""
    roles: Mapping[str, Cost] = field(default_factory=dict)
    """What the calls of each role used, by the name of the role; a sum has none."""

    @property
    def tokens(self) -> int:
        """Of prompts and replies."""
        return self.input_tokens + self.output_tokens

    def __add__(self, more: Cost) -> Cost:
        names = ("calls", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "kept")
        seconds = ("model_seconds", "own_seconds")
        sums = {name: getattr(self, name) + getattr(more, name) for name in (*names, *seconds)}
        known = self.dollars is not None and more.dollars is not None
        return Cost(**sums, dollars=(self.dollars or 0.0) + (more.dollars or 0.0) if known else None)

    def __str__(self) -> str:
        calls = count_noun(self.calls, "call")
        kept = f" and {count_noun(self.kept, 'kept reply', 'kept replies')}" if self.kept else ""
        dollars = "price unknown" if self.dollars is None else f"${self.dollars:.4f}"
        cached = f" ({self.cached_tokens:,} from a cache)" if self.cached_tokens else ""
        tokens = f"{self.input_tokens:,} tokens in{cached}, {self.output_tokens:,} out"
        seconds = f"{self.model_seconds:.2f} s model, {self.own_seconds:.2f} s own"
        return f"{calls}{kept} · {tokens} · {dollars} · {seconds}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(Noun):
    """The most that something may cost; None sets no limit. Everywhere outside it is written as a text.

    `Limit.parse("20 calls, 90,000 tokens, $0.50, 5 minutes")`
    """

    calls: int | None = None
    """Requests that are sent, retries and refusals too."""
    tokens: int | None = None
    """Those of the prompts and of the replies."""
    dollars: float | None = None
    """By the price list, or as the provider says."""
    minutes: float | None = None
    """In which at least one call is running."""

    @classmethod
    def parse(cls, *texts: str | None) -> Limit:
        """The limit that texts write together: the lower one of each; None sets none. Raises ValueError."""
        values: dict[str, float] = {}
        given = [text for text in texts if text is not None]
        for part in re.split(r",\s+", ", ".join(given).strip()) if given else ():
            found = _LIMIT.fullmatch(part)
            name = found.lastgroup if found else None
            if not found or not name:
                raise ValueError(
                    "a limit should be such as '20 calls', '90,000 tokens', '$0.50' or '5 minutes', or several of them "
                    "with commas between"
                )
            number = found[name].replace(",", "")
            values[name] = min(values.get(name, inf), float(number) if "." in number else int(number))
        return cls(**values)  # type: ignore[arg-type]  # calls and tokens have no point

    def __str__(self) -> str:
        calls, tokens, dollars, minutes = (
            "" if most is None else f"{most:,.6f}".rstrip("0").rstrip(".")
            for most in (self.calls, self.tokens, self.dollars, self.minutes)
        )
        counts = (("call", calls), ("token", tokens), ("$", dollars), ("minute", minutes))
        return ", ".join(
            f"${most}" if noun == "$" else f"{most} {noun}{'' if most == '1' else 's'}" for noun, most in counts if most
        )

    def holds(self, cost: Cost) -> bool:
        """Whether a cost is within it; an unknown price is beyond any number of dollars."""
        spent = (cost.calls, cost.tokens, inf if cost.dollars is None else cost.dollars, cost.model_seconds / 60)
        limits = (self.calls, self.tokens, self.dollars, self.minutes)
        return all(most is None or each <= most for most, each in zip(limits, spent, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Noun):
    """What an update of a layer would use, computed before anything is spent."""

    layer: str
    """The name of the layer."""
    model: str = ""
    """The models that would be called, separated by commas."""
    cost: Cost = Cost()
    """Calls without repairs of replies and requests that are tried again, and replies as long as they usually are."""


# ---------------------------------------------------------------- questions and answers


@dataclass(frozen=True, slots=True)
class Condition(Noun):
    """A test of one field of a document's metadata, such as `year >= 1911`.

    A document without the field fails every test. A field with several values passes if one of them does.
    """

    field: str
    """The name of the field; `title` is one too."""
    operator: Literal["=", "!=", "<", "<=", ">", ">="]
    """Numbers compare as numbers, texts as texts."""
    value: Scalar
    """What the field is compared with."""

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{str(self.value).lower() if isinstance(self.value, bool) else self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope(Noun):
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

    def __str__(self) -> str:
        facts = []
        if self.documents is not None:
            names = [name_document(each) for each in sorted(self.documents)]
            more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
            facts.append(" and ".join([", ".join(names[:_NAMED]), *more]))
        facts += map(str, self.where)
        if self.entities is not None:
            facts.append(f"entities seen: {len(self.entities)}")
        if self.without_entities:
            facts.append(f"entities left out: {len(self.without_entities)}")
        return ", ".join(facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Noun):
    """A question, free or multiple-choice."""

    text: str
    """The question itself."""
    options: tuple[str, ...] = ()
    """The choices, in the order of their letters. Only the answering role sees them."""
    instructions: str = ""
    """How to answer, such as `in one word`; only the answering role sees them."""
    form: Form | None = None
    """What the answer shall look like; None leaves it to the model. An option has its own form."""
    force: bool = False
    """Whether to ask for a guess if the evidence does not hold the answer; without it a loop may decline."""
    within: Scope | None = None
    """Where every search for the question stays; None for the whole tome."""
    current: bool = False
    """Whether memory that lags behind the documents is refused."""
    only_supported: bool = False
    """Whether statements that the evidence does not support, or contradicts, leave the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Noun):
    """One thing that happened while a question was answered.

    The events of our loops are in the table of `tomewise.events`; a loop from outside may yield others. A reader needs
    to know no names of events. These fields of `detail` mean the same in every event: `evidence` (pieces with `id`,
    `layer`, `score`, `title`, `place`, `text`), `notes` (texts), `pool` (what a working memory holds, as rows of plain
    values), `found` and `cut` (how many passages were retrieved, and how many of them did not fit).
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
class FromSession(Noun):
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
class Lagging(Noun):
    """How far memory lags behind the documents, and what would bring it up to date."""

    layers: tuple[str, ...]
    """The layers that are not up to date."""
    documents: tuple[DocumentId, ...] = ()
    """The documents that they have yet to take in; the first 20."""
    count: int = 0
    """How many documents these are."""
    passages: int = 0
    """How many passages of them the layers do not know."""
    nearer: bool = False
    """Whether one of these passages is among the three nearest to the question."""
    removed: bool = False
    """Whether documents were removed since the last build: what was made with them is gone and was not made again."""
    system: str = ""
    """The system whose build brings the layers up to date."""
    cost: Cost = Cost()
    """What that build takes, without the calls of the layers `unpriced`."""
    unpriced: tuple[str, ...] = ()
    """Layers that are made anew from many passages: only an estimate of the build counts their calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(Noun):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Noun):
    """A column of a table."""

    name: str
    """Its heading."""
    kind: ColumnKind = "text"
    """What its cells are read as: a number may have a unit."""
    about: str = ""
    """What a cell says."""
