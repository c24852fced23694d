"""The events of our loops, each a class of its own: what happened, in typed fields, and one line about it.

An event derives `detail`, its plain data, from its fields: a key for each. `restore_event` makes the event again from
the name and the detail that a trace stored. A loop from outside may yield a plain `Event` too. What readers know of any
event, whatever its class, are the fields that `Event` documents: `read_common` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from numbers import Real
from typing import Any, Literal, Self, TypeAlias

from pydantic import TypeAdapter, ValidationError

from tomewise.place import as_plain_data
from tomewise.types import Event, Evidence, NodeId, PassageId, Place, Rewrite

_LONGEST = 300  # characters of one value in a summary
_NOTHING = "nothing to note"
Row: TypeAlias = Mapping[str, Any]  # of a working memory, as plain values


def list_facts(**facts: object) -> str:
    """A summary line of named values, as "probe: who, layer: tree". Empty values are left out, long ones are cut."""
    shown = {name.replace("_", " ").strip(): value for name, value in facts.items() if value not in (None, "")}
    return ", ".join(f"{name}: {shorten(value)}" for name, value in shown.items())


def shorten(value: object, length: int = _LONGEST) -> str:
    """The value as one line of at most `length` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= length else text[: length - 1] + "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of evidence in an event. Events of earlier versions have no place."""

    node: NodeId
    layer: str = ""
    score: float = 0.0
    title: str = ""
    place: Place = field(default_factory=Place)
    text: str = ""
    rewrite: Rewrite | None = None


def as_pieces(evidence: Iterable[Evidence]) -> tuple[Piece, ...]:
    """Evidence as events hold it."""
    return tuple(Piece(**{each.name: getattr(piece, each.name) for each in fields(Piece)}) for piece in evidence)


@dataclass(frozen=True, kw_only=True)
class TypedEvent(Event):
    """An event of a class of its own, which says its `name`.

    `detail` leaves out a field that has its default None, and a field that is not compared: only the summary says it.
    """

    name: str = field(init=False, repr=False)
    summary: str = field(init=False, repr=False)
    detail: Mapping[str, Any] = field(init=False, repr=False)

    def __init_subclass__(cls, name: str = "") -> None:
        if name:
            cls.name = name
            CLASSES.setdefault(name, []).append(cls)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        object.__setattr__(self, "detail", self.write_detail())
        object.__setattr__(self, "summary", self.summarize())

    def write_detail(self) -> dict[str, Any]:
        """The fields as plain data."""
        return {name: value for name, value in _write_fields(self).items() if name not in Event.__slots__}

    @classmethod
    def read_detail(cls, detail: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields that `write_detail` wrote, by name."""
        return detail

    def summarize(self) -> str:
        """One line of plain text."""
        return list_facts(**self.detail)


CLASSES: dict[str, list[type[TypedEvent]]] = {}  # by name; of several, the first that a detail fits counts


def restore_event(event: Event) -> Event:
    """The event as its class, if its name is known and its detail fits; summary and detail stay as they are."""
    for made in CLASSES.get(event.name, ()):
        reader = _make_reader(made)  # type: ignore[arg-type]  # a class is hashable, though its objects are not
        try:
            restored = reader.validate_python({**made.read_detail(event.detail), "step": event.step})
        except ValidationError:
            continue
        object.__setattr__(restored, "summary", event.summary)
        object.__setattr__(restored, "detail", event.detail)
        return restored
    return event


@cache
def _make_reader(made: type[TypedEvent]) -> TypeAdapter[TypedEvent]:
    return TypeAdapter(made)


def _write_fields(thing: Any) -> dict[str, Any]:
    values = {each: getattr(thing, each.name, None) for each in fields(thing) if each.compare}
    return {each.name: _write(value) for each, value in values.items() if not (value is None and each.default is None)}


def _write(value: Any) -> Any:
    if isinstance(value, Place):
        return as_plain_data(value)
    if isinstance(value, tuple):
        return [_write(item) for item in value]
    return _write_fields(value) if is_dataclass(value) else value


# ---------------------------------------------------------------- what any event may say


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonFields:
    """The fields of `detail` that mean the same in every event (see `Event`), as far as an event has them."""

    evidence: tuple[Piece, ...] = ()
    notes: tuple[str, ...] = ()
    pool: tuple[Row, ...] = ()
    found: int | None = None
    cut: int | None = None


def read_common(event: Event) -> CommonFields:
    """What any event says. What has another shape, which is possible in an event from outside, is left out."""
    detail = event.detail
    return CommonFields(
        evidence=tuple(_read_piece(piece) for piece in _read_rows(detail.get("evidence"))),
        notes=tuple(map(str, _read_list(detail.get("notes")))),
        pool=tuple(_read_rows(detail.get("pool"))),
        found=_read_count(detail.get("found")),
        cut=_read_count(detail.get("cut")),
    )


def _read_list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _read_rows(value: object) -> list[dict[str, Any]]:
    return [row for row in _read_list(value) if isinstance(row, dict)]


def _read_count(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _read_piece(row: Row) -> Piece:
    node, rewrite = row.get("node"), row.get("rewrite")
    words = {name: str(row.get(name) or "") for name in ("layer", "title", "text")}
    return Piece(
        node=node if isinstance(node, str) else "",
        score=_read_score(row.get("score")),
        place=_read_place(row.get("place")),
        rewrite=Rewrite(text=str(rewrite["text"])) if isinstance(rewrite, dict) and rewrite.get("text") else None,
        **words,
    )


def _read_score(value: object) -> float:
    try:
        return float(value) if isinstance(value, Real) else 0.0
    except OverflowError:
        return 0.0


def _read_place(value: object) -> Place:
    try:
        return _PLACE.validate_python(value)
    except ValidationError:
        return Place()


_PLACE = TypeAdapter(Place)


# ---------------------------------------------------------------- searching

# The words of ComoRAG's paper for three kinds of memory, as settings and stored events have them.
_PLAIN_LAYERS = {"veridical": "passages", "semantic": "summaries", "episodic": "episodes"}


def name_layers(layers: str) -> str:
    """The names of layers, separated by commas, in plain words."""
    return ", ".join(_PLAIN_LAYERS.get(name, name) for name in layers.split(", "))


@dataclass(frozen=True, kw_only=True)
class Retrieved(TypedEvent, name="retrieved"):
    """Evidence that a model is shown, out of what was found; the rest was cut for want of room."""

    evidence: Sequence[Piece] = ()
    """What is shown, the best first."""
    found: int
    """How many pieces were found."""
    cut: int
    """How many of them did not fit."""

    @classmethod
    def of(cls, shown: Sequence[Evidence], found: Sequence[Evidence], step: int = 0, **more: Any) -> Self:
        """The event of the evidence that is shown out of all that was found."""
        return cls(step=step, evidence=as_pieces(shown), found=len(found), cut=len(found) - len(shown), **more)

    def summarize(self) -> str:
        return list_facts(found=self.found, cut=self.cut)


@dataclass(frozen=True, kw_only=True)
class LookedUp(Retrieved, name="looked up"):
    """Pages that were looked up, with their passages. `gists` is how many pages the model could choose from."""

    pages: Sequence[NodeId]
    gists: int
    reasoning: str
    all_pages: int | None = field(default=None, compare=False)  # is not stored

    def summarize(self) -> str:
        return list_facts(pages=len(self.pages), of=self.all_pages, reasoning=self.reasoning)


@dataclass(frozen=True, kw_only=True)
class Collected(TypedEvent, name="recalled"):
    """What is new of what a search found; `collected` counts all that was found so far."""

    query: str
    evidence: Sequence[Piece] = ()
    collected: int

    def summarize(self) -> str:
        return list_facts(query=self.query, new=len(self.evidence), collected=self.collected)


@dataclass(frozen=True, kw_only=True)
class Recalled(TypedEvent, name="recalled"):
    """What is new of what a probe found in one layer."""

    probe: str
    layer: str
    evidence: Sequence[Piece]

    def summarize(self) -> str:
        return list_facts(probe=self.probe, in_=name_layers(self.layer)) + ("" if self.evidence else ", nothing new")


@dataclass(frozen=True, kw_only=True)
class Explored(TypedEvent, name="explored"):
    """What was found for one concern: relations, then passages.

    `narrowed_to` is how many entities a local search was narrowed to, `left_out` how many a global one left out.
    """

    subquery: str
    place: str
    points: Sequence[str]
    narrowed_to: int | None = None
    left_out: int | None = None
    entities: Sequence[str]
    evidence: Sequence[Piece] = ()
    relations: int | None = field(default=None, compare=False)  # among the evidence; is not stored

    def summarize(self) -> str:
        return list_facts(
            subquery=self.subquery,
            place=self.place,
            entities="; ".join(self.entities),
            relations=self.relations,
            passages=len(self.evidence) - (self.relations or 0),
        )


@dataclass(frozen=True, kw_only=True)
class ReportsChosen(TypedEvent, name="reports chosen"):
    """The reports about communities that are read, by their titles. `rated` counts those that were rated for that."""

    reports: Sequence[str]
    batches: int
    """In how many calls they are read."""
    rated: int = 0

    def summarize(self) -> str:
        return list_facts(reports=len(self.reports), batches=self.batches, rated=self.rated or None)


@dataclass(frozen=True, kw_only=True)
class PointsFound(TypedEvent, name="points found"):
    """What a batch of reports says on the question."""

    reports: Sequence[str]
    notes: Sequence[str]

    def summarize(self) -> str:
        return list_facts(reports=len(self.reports), points=len(self.notes))


@dataclass(frozen=True, kw_only=True)
class FollowedUp(TypedEvent, name="followed up"):
    """What a smaller question brought, and what shall be asked next."""

    query: str
    score: int
    """How much the answer helps with the question, 0 to 100."""
    notes: Sequence[str]
    """The answer; none where the evidence says nothing."""
    evidence: Sequence[Piece] = ()
    follow_ups: Sequence[str] = ()

    def summarize(self) -> str:
        return list_facts(query=self.query, score=self.score, follow_ups=len(self.follow_ups))


# ---------------------------------------------------------------- steps of loops


@dataclass(frozen=True, kw_only=True)
class Stopped(TypedEvent, name="stopped"):
    """Why a loop goes no further, and what its working memory holds then."""

    reason: str
    """Why, in words."""
    pool: Sequence[Row] | None = None
    """The rows of the working memory; None for a loop without one."""

    def summarize(self) -> str:
        return list_facts(reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class ReplySkipped(TypedEvent, name="skipped"):
    """A reply of a model, or a part of one, that could not be used."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Chosen(TypedEvent, name="chosen"):
    """The system that goes on, or "none". `passed_over` maps names to reasons."""

    chosen: str
    because: str
    passed_over: Mapping[str, str]
    build_would_help: Sequence[str]

    def write_detail(self) -> dict[str, Any]:
        return {name.replace("_", " "): value for name, value in super().write_detail().items()}

    @classmethod
    def read_detail(cls, detail: Mapping[str, Any]) -> Mapping[str, Any]:
        return {str(name).replace(" ", "_"): value for name, value in detail.items()}

    def summarize(self) -> str:
        return list_facts(
            chosen=self.chosen,
            because=self.because,
            passed_over="; ".join(f"{way} ({why})" for way, why in self.passed_over.items()),
            build_would_help=", ".join(self.build_would_help),
        )


@dataclass(frozen=True, kw_only=True)
class Thought(TypedEvent, name="thought"):
    """One sentence of reasoning."""

    thought: str
    concludes: bool

    def summarize(self) -> str:
        return list_facts(thought=self.thought)


@dataclass(frozen=True, kw_only=True)
class Decided(TypedEvent, name="decided"):
    """The next smaller question, whether it is searched for, and its answer where it is not."""

    reasoning: str
    finished: bool
    subquestion: str
    search: bool
    answer: str

    @property
    def needs_search(self) -> bool:
        return self.search or not self.answer

    def summarize(self) -> str:
        decision = "finished" if self.finished else "search" if self.needs_search else "from memory"
        return list_facts(decision=decision, subquestion=self.subquestion, answer=self.answer, reasoning=self.reasoning)


@dataclass(frozen=True, kw_only=True)
class Found(TypedEvent, name="found"):
    """The answer to a smaller question; empty if none was found."""

    answer: str
    asked: str

    def summarize(self) -> str:
        return list_facts(subquestion=self.asked, answer=self.answer or "not found")


# ---------------------------------------------------------------- attempts to answer


@dataclass(frozen=True, kw_only=True)
class Attempted(TypedEvent):
    """What an attempt to answer was shown, and what came of it. `kept` says why the loop goes on all the same."""

    answer: str
    choice: str | None
    failed: bool
    missing: str = ""
    shown: Sequence[NodeId]
    cut: int
    notes: Sequence[str]
    kept: str = ""

    def summarize(self) -> str:
        return list_facts(
            answer="declined" if self.failed else self.answer,
            choice=self.choice,
            missing=self.missing,
            shown=len(self.shown),
            cut=self.cut,
            kept=self.kept,
        )


@dataclass(frozen=True, kw_only=True)
class Tried(Attempted, name="tried"):
    """An attempt after which the loop may go on."""


@dataclass(frozen=True, kw_only=True)
class Forced(Attempted, name="forced"):
    """The attempt of a model that may not decline any more."""


@dataclass(frozen=True, kw_only=True)
class AnsweredFromPoints(Attempted, name="answered"):
    """The attempt of a loop whose working memory is a hypergraph, with its size, its points, and all of it."""

    points: int
    vertices_per_point: float
    most_vertices: int
    pool: Sequence[Row]
    memory: Mapping[str, Any]

    def summarize(self) -> str:
        sizes = {"points": self.points, "vertices_per_point": self.vertices_per_point}
        return f"{super().summarize()}, {list_facts(**sizes, most_vertices=self.most_vertices)}"


@dataclass(frozen=True, kw_only=True)
class AnsweredFromNotes(TypedEvent, name="answered"):
    """The answer from what a reader wrote down. `shown` are the passages whose words the answering role saw."""

    evidence: Sequence[Piece] = ()
    shown: Sequence[PassageId]
    notes: Sequence[str]
    cut: int
    answer: str
    ledger: Mapping[str, Any] | None = None
    declined: bool | None = field(default=None, compare=False)  # is not stored
    missing: str | None = field(default=None, compare=False)  # is not stored

    def summarize(self) -> str:
        return list_facts(
            answer="declined" if self.declined else self.answer,
            missing=self.missing,
            shown=len(self.evidence),
            notes=len(self.notes),
            cut=self.cut,
        )


@dataclass(frozen=True, kw_only=True)
class AnswerPart(TypedEvent, name="answer_part"):
    """What is new of an answer while a model writes it."""

    text: str
    """The new words."""
    replace: bool
    """Whether they take the place of all parts before."""

    def summarize(self) -> str:
        return shorten(self.text)


# ---------------------------------------------------------------- probing, with a pool


@dataclass(frozen=True, kw_only=True)
class Probed(TypedEvent, name="probed"):
    """The probes that a model thought of."""

    probes: Sequence[str]

    def summarize(self) -> str:
        return list_facts(probes="; ".join(self.probes) or "none")


@dataclass(frozen=True, kw_only=True)
class Encoded(TypedEvent, name="encoded"):
    """What the evidence of one probe means; `layer` names all layers that it came from."""

    probe: str
    layer: str
    cue: str
    support: Sequence[NodeId]

    def summarize(self) -> str:
        rests_on = len(self.support) or ""
        return list_facts(probe=self.probe, in_=name_layers(self.layer), cue=self.cue or _NOTHING, rests_on=rests_on)


@dataclass(frozen=True, kw_only=True)
class Fused(TypedEvent, name="fused"):
    """What the cues of earlier steps say together."""

    cue: str

    def summarize(self) -> str:
        return list_facts(cue=self.cue or _NOTHING)


@dataclass(frozen=True, kw_only=True)
class PoolUpdated(TypedEvent, name="updated"):
    """How many units the pool holds, each what a search found and means, and how many pieces of evidence."""

    units: int
    nodes: int

    def summarize(self) -> str:
        return list_facts(searches_remembered=self.units, passages_summaries_and_episodes=self.nodes)


# ---------------------------------------------------------------- the loop `evolve`, with a hypergraph


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSearch:
    """A concern, and how to search for it: around some points, or beyond all."""

    concern: str
    subquery: str
    place: str
    points: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Planned(TypedEvent, name="planned"):
    """Whether the memory suffices, and which concerns are open."""

    sufficient: bool
    reasoning: str
    concerns: Sequence[PlannedSearch]

    def summarize(self) -> str:
        queries = "; ".join(f"{each.subquery} ({each.place})" for each in self.concerns)
        return list_facts(sufficient="yes" if self.sufficient else "no", subqueries=queries or "none")


@dataclass(frozen=True, kw_only=True)
class Evolved(TypedEvent, name="evolved"):
    """Points that changed. `overlay` are entities that only this memory knows, `shown` what the model saw."""

    inserted: Sequence[Row]
    updated: Sequence[Row]
    overlay: Sequence[str]
    shown: Sequence[NodeId]
    notes: Sequence[str]

    def summarize(self) -> str:
        return list_facts(inserted=len(self.inserted), updated=len(self.updated), says=" ".join(self.notes))


@dataclass(frozen=True, kw_only=True)
class Merged(TypedEvent, name="merged"):
    """Points that were made from others; `parts` maps each to those."""

    merged: Sequence[Row]
    parts: Mapping[str, Sequence[str]]
    notes: Sequence[str]

    def summarize(self) -> str:
        names = "; ".join(f"{', '.join(earlier)} into {point}" for point, earlier in self.parts.items())
        return list_facts(merged=names or "nothing", says=" ".join(self.notes))


# ---------------------------------------------------------------- reading, with a ledger or a note


@dataclass(frozen=True, kw_only=True)
class Divided(TypedEvent, name="divided"):
    """How much there is to read."""

    chunks: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class ReadingPlanned(TypedEvent, name="planned"):
    """What to look for while reading."""

    questions: Sequence[str]
    nets: Sequence[str]

    def summarize(self) -> str:
        return list_facts(questions="; ".join(self.questions), nets="; ".join(self.nets)) or "no questions"


@dataclass(frozen=True, kw_only=True)
class Extracted(TypedEvent, name="extracted"):
    """The facts of a chunk; the quotations of `not_found` of them are not in it."""

    chunk: str
    notes: Sequence[str]
    not_found: int

    def summarize(self) -> str:
        return list_facts(chunk=self.chunk, facts=len(self.notes), not_found=self.not_found or "")


@dataclass(frozen=True, kw_only=True)
class ChunkRead(TypedEvent, name="read"):
    """The note after a chunk."""

    chunk: str
    notes: Sequence[str] | None = None

    def summarize(self) -> str:
        return list_facts(chunk=self.chunk, note=" ".join(self.notes or ()))


@dataclass(frozen=True, kw_only=True)
class ChunkUnread(ChunkRead, name="unread"):
    """A chunk without a usable reply, and the note as it was before, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """An entry of a ledger: a "question", or a "fact" or an "inference" with its label."""

    kind: Literal["question", "fact", "inference"]
    label: str | None = None
    text: str


@dataclass(frozen=True, kw_only=True)
class LedgerUpdated(TypedEvent, name="updated"):
    """What the ledger holds."""

    pool: Sequence[LedgerRow]

    def summarize(self) -> str:
        kinds = [row.kind for row in self.pool]
        return list_facts(
            questions=kinds.count("question"), facts=kinds.count("fact"), inferences=kinds.count("inference")
        )


@dataclass(frozen=True, kw_only=True)
class Recovered(TypedEvent, name="recovered"):
    """How many questions are open after the text was read, and how many tokens are read again for them."""

    open: int
    tokens: int


# ---------------------------------------------------------------- around a loop


@dataclass(frozen=True, kw_only=True)
class Rephrased(TypedEvent, name="rephrased"):
    """A follow-up question, and how it stands alone."""

    asked: str
    question: str

    def summarize(self) -> str:
        return list_facts(asked=self.asked, question="unchanged" if self.question == self.asked else self.question)


@dataclass(frozen=True, kw_only=True)
class Resumed(TypedEvent, name="resumed"):
    """What a session brings to its question number `question`: the notes that it knows, without those that it lost."""

    session: str
    question: int
    memory: str
    known: Sequence[str]
    forgotten: Sequence[str]

    def summarize(self) -> str:
        return list_facts(
            session=self.session,
            question=self.question,
            known=len(self.known),
            forgotten=len(self.forgotten) or "",
        )


@dataclass(frozen=True, kw_only=True)
class SessionUsed(TypedEvent, name="session"):
    """What an answer took from its session, and what the session dropped after it."""

    notes: Sequence[str]
    passages: Sequence[PassageId]
    dropped: Sequence[str]

    def summarize(self) -> str:
        return list_facts(
            notes_taken=len(self.notes), passages_taken=len(self.passages), dropped="; ".join(self.dropped)
        )


@dataclass(frozen=True, kw_only=True)
class Waiting(TypedEvent, name="waiting"):
    """A wait before a request is tried again, in seconds. `asked` is how long the server asks to wait."""

    seconds: float
    asked: float
    reason: str

    def summarize(self) -> str:
        return f"waiting {self.seconds:.0f} s, since the server asks for {self.asked:.0f} s: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Fallbacks(TypedEvent, name="fallbacks"):
    """How many steps fell back on a simpler one, by kind (see `tomewise.fallbacks`)."""

    counts: Mapping[str, int]

    def write_detail(self) -> dict[str, Any]:
        return dict(self.counts)

    @classmethod
    def read_detail(cls, detail: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"counts": detail}
