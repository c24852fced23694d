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
from typing import Any, Literal, Self, TypeAlias, dataclass_transform

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
    """A piece of evidence in an event."""

    node: NodeId
    """Its id."""
    layer: str = ""
    """The node layer that holds it, such as `passages` or `facts:…`."""
    score: float = 0.0
    """Compares the pieces of one search; higher is better."""
    title: str = ""
    """The title of its document."""
    place: Place = field(default_factory=Place)
    """Where it stands in its document."""
    text: str = ""
    """Its words."""
    rewrite: Rewrite | None = None
    """The rewritten question that found it; none where the question itself did."""


def as_pieces(evidence: Iterable[Evidence]) -> tuple[Piece, ...]:
    """Evidence as events hold it."""
    return tuple(Piece(**{each.name: getattr(piece, each.name) for each in fields(Piece)}) for piece in evidence)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True, kw_only=True)
class TypedEvent(Event):
    """An event of a class of its own, which says its `name`. Each such class is a frozen dataclass.

    `detail` leaves out a field that has its default None, and a field that is not compared: only the summary says it.
    """

    name: str = field(init=False, repr=False)
    summary: str = field(init=False, repr=False)
    detail: Mapping[str, Any] = field(init=False, repr=False)

    def __init_subclass__(cls, name: str = "") -> None:
        dataclass(frozen=True, kw_only=True)(cls)
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


class LookedUp(Retrieved, name="looked up"):
    """Pages that were looked up, with their passages."""

    pages: Sequence[NodeId]
    """The ids of the pages that were looked up."""
    gists: int
    """How many pages the model could choose from."""
    reasoning: str
    """Why the model chose these, in its own words."""
    all_pages: int | None = field(default=None, compare=False)  # is not stored

    def summarize(self) -> str:
        return list_facts(pages=len(self.pages), of=self.all_pages, reasoning=self.reasoning)


class Collected(TypedEvent, name="recalled"):
    """What is new of what a search found."""

    query: str
    """What was searched with."""
    evidence: Sequence[Piece] = ()
    """What is new."""
    collected: int
    """How many pieces all searches found so far."""

    def summarize(self) -> str:
        return list_facts(query=self.query, new=len(self.evidence), collected=self.collected)


class Recalled(TypedEvent, name="recalled"):
    """What is new of what a probe found in one layer."""

    probe: str
    """The probe that was searched with."""
    layer: str
    """The layer that was searched, by the name that the system has for it."""
    evidence: Sequence[Piece]
    """What is new."""

    def summarize(self) -> str:
        return list_facts(probe=self.probe, in_=name_layers(self.layer)) + ("" if self.evidence else ", nothing new")


class Explored(TypedEvent, name="explored"):
    """What was found for one concern."""

    subquery: str
    """What was searched with."""
    place: str
    """`local`: around some points; `global`: beyond all; `everywhere`: the question itself."""
    points: Sequence[str]
    """The ids of the points around which was searched."""
    narrowed_to: int | None = None
    """How many entities a local search was narrowed to."""
    left_out: int | None = None
    """How many entities a global search left out."""
    entities: Sequence[str]
    """The names of the entities from which the search went out."""
    evidence: Sequence[Piece] = ()
    """What was found: relations, then passages."""
    relations: int | None = field(default=None, compare=False)  # among the evidence; is not stored

    def summarize(self) -> str:
        return list_facts(
            subquery=self.subquery,
            place=self.place,
            entities="; ".join(self.entities),
            relations=self.relations,
            passages=len(self.evidence) - (self.relations or 0),
        )


class ReportsChosen(TypedEvent, name="reports chosen"):
    """The reports about communities that are read."""

    reports: Sequence[str]
    """The titles of the reports."""
    batches: int
    """In how many calls they are read."""
    rated: int = 0
    """How many reports were rated to choose these; 0 where none were."""

    def summarize(self) -> str:
        return list_facts(reports=len(self.reports), batches=self.batches, rated=self.rated or None)


class PointsFound(TypedEvent, name="points found"):
    """What a batch of reports says on the question."""

    reports: Sequence[str]
    """The titles of the reports in the batch."""
    notes: Sequence[str]
    """The points, each a text."""

    def summarize(self) -> str:
        return list_facts(reports=len(self.reports), points=len(self.notes))


class FollowedUp(TypedEvent, name="followed up"):
    """What a smaller question brought, and what shall be asked next."""

    query: str
    """The smaller question."""
    score: int
    """How much the answer helps with the question, 0 to 100."""
    notes: Sequence[str]
    """The answer; none where the evidence says nothing."""
    evidence: Sequence[Piece] = ()
    """What was found for it."""
    follow_ups: Sequence[str] = ()
    """The questions that shall be asked next."""

    def summarize(self) -> str:
        return list_facts(query=self.query, score=self.score, follow_ups=len(self.follow_ups))


# ---------------------------------------------------------------- steps of loops


class Stopped(TypedEvent, name="stopped"):
    """Why a loop goes no further, and what its working memory holds then."""

    reason: str
    """Why, in words."""
    pool: Sequence[Row] | None = None
    """The rows of the working memory; left out by a loop without one."""

    def summarize(self) -> str:
        return list_facts(reason=self.reason)


class ReplySkipped(TypedEvent, name="skipped"):
    """A reply of a model, or a part of one, that could not be used."""

    reason: str
    """Why it could not be used."""


class Chosen(TypedEvent, name="chosen"):
    """The system that goes on, or "none". Names in `detail` have blanks: `passed over`."""

    chosen: str
    """The name of the system."""
    because: str
    """Why it was chosen."""
    passed_over: Mapping[str, str]
    """The systems that were not chosen, each with the reason."""
    build_would_help: Sequence[str]
    """The systems that a build would add to the choice."""

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


class Thought(TypedEvent, name="thought"):
    """One sentence of reasoning."""

    thought: str
    """The sentence."""
    concludes: bool
    """Whether it states the answer, so that the loop ends."""

    def summarize(self) -> str:
        return list_facts(thought=self.thought)


class Decided(TypedEvent, name="decided"):
    """The next smaller question, whether it is searched for, and its answer where it is not."""

    reasoning: str
    """Why, in the words of the model."""
    finished: bool
    """Whether the model knows enough to answer."""
    subquestion: str
    """The next smaller question."""
    search: bool
    """Whether it is searched for."""
    answer: str
    """Its answer where nothing is searched."""

    @property
    def needs_search(self) -> bool:
        return self.search or not self.answer

    def summarize(self) -> str:
        decision = "finished" if self.finished else "search" if self.needs_search else "from memory"
        return list_facts(decision=decision, subquestion=self.subquestion, answer=self.answer, reasoning=self.reasoning)


class Found(TypedEvent, name="found"):
    """The answer to a smaller question; empty if none was found."""

    answer: str
    """The answer."""
    asked: str
    """The smaller question."""

    def summarize(self) -> str:
        return list_facts(subquestion=self.asked, answer=self.answer or "not found")


# ---------------------------------------------------------------- attempts to answer


class Attempted(TypedEvent):
    """What an attempt to answer was shown, and what came of it."""

    answer: str
    """The answer; empty if the model declined."""
    choice: str | None
    """The letter of the chosen option; null without options."""
    failed: bool
    """Whether the model declined."""
    missing: str = ""
    """What the evidence lacks, in the words of the model."""
    shown: Sequence[NodeId]
    """The ids of the evidence that the model saw."""
    cut: int
    """How many pieces of evidence did not fit."""
    notes: Sequence[str]
    """The notes that the model saw."""
    kept: str = ""
    """Why the loop goes on although there is an answer; empty where it does not."""

    def summarize(self) -> str:
        return list_facts(
            answer="declined" if self.failed else self.answer,
            choice=self.choice,
            missing=self.missing,
            shown=len(self.shown),
            cut=self.cut,
            kept=self.kept,
        )


class Tried(Attempted, name="tried"):
    """An attempt after which the loop may go on."""


class Forced(Attempted, name="forced"):
    """The attempt of a model that may not decline any more."""


class AnsweredFromPoints(Attempted, name="answered"):
    """The attempt of a loop whose working memory is a hypergraph."""

    points: int
    """How many points the working memory holds."""
    vertices_per_point: float
    """The entities of a point, on average."""
    most_vertices: int
    """The entities of the largest point."""
    pool: Sequence[Row]
    """The points, as rows."""
    memory: Mapping[str, Any]
    """The whole hypergraph, from which its picture is drawn."""

    def summarize(self) -> str:
        sizes = {"points": self.points, "vertices_per_point": self.vertices_per_point}
        return f"{super().summarize()}, {list_facts(**sizes, most_vertices=self.most_vertices)}"


class AnsweredFromNotes(TypedEvent, name="answered"):
    """The answer from what a reader wrote down."""

    evidence: Sequence[Piece] = ()
    """The passages that the answering role saw."""
    shown: Sequence[PassageId]
    """The ids of the passages that these rest on."""
    notes: Sequence[str]
    """What the reader wrote down."""
    cut: int
    """How many notes and quotations did not fit."""
    answer: str
    """The answer; empty if the model declined."""
    ledger: Mapping[str, Any] | None = None
    """The whole ledger, from which its picture is drawn; left out by a loop that keeps a note."""
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


class AnswerPart(TypedEvent, name="answer_part"):
    """What is new of an answer while a model writes it. It is streamed, and no trace has it."""

    text: str
    """The new words."""
    replace: bool
    """Whether they take the place of all parts before."""

    def summarize(self) -> str:
        return shorten(self.text)


# ---------------------------------------------------------------- probing, with a pool


class Probed(TypedEvent, name="probed"):
    """The probes that a model thought of."""

    probes: Sequence[str]
    """The questions that memory is searched with next."""

    def summarize(self) -> str:
        return list_facts(probes="; ".join(self.probes) or "none")


class Encoded(TypedEvent, name="encoded"):
    """What the evidence of one probe means."""

    probe: str
    """The probe."""
    layer: str
    """The layers that its evidence came from, separated by commas."""
    cue: str
    """What the evidence says on the question; empty for nothing."""
    support: Sequence[NodeId]
    """The ids of the evidence that the cue rests on."""

    def summarize(self) -> str:
        rests_on = len(self.support) or ""
        return list_facts(probe=self.probe, in_=name_layers(self.layer), cue=self.cue or _NOTHING, rests_on=rests_on)


class Fused(TypedEvent, name="fused"):
    """What the cues of earlier steps say together."""

    cue: str
    """One text in place of the earlier cues; empty for nothing."""

    def summarize(self) -> str:
        return list_facts(cue=self.cue or _NOTHING)


class PoolUpdated(TypedEvent, name="updated"):
    """What the pool holds now."""

    units: int
    """How many searches the pool remembers, each with its cue."""
    nodes: int
    """How many pieces of evidence it holds."""

    def summarize(self) -> str:
        return list_facts(searches_remembered=self.units, passages_summaries_and_episodes=self.nodes)


# ---------------------------------------------------------------- the loop `evolve`, with a hypergraph


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSearch:
    """A concern, and how to search for it: around some points, or beyond all."""

    concern: str
    """What is not known yet."""
    subquery: str
    """What is searched with."""
    place: str
    """`local`: around some points; `global`: beyond all; `everywhere`: the question itself."""
    points: tuple[str, ...]
    """The ids of these points."""


class Planned(TypedEvent, name="planned"):
    """Whether the memory suffices, and which concerns are open."""

    sufficient: bool
    """Whether the points suffice for an answer."""
    reasoning: str
    """Why, in the words of the model."""
    concerns: Sequence[PlannedSearch]
    """What to search for."""

    def summarize(self) -> str:
        queries = "; ".join(f"{each.subquery} ({each.place})" for each in self.concerns)
        return list_facts(sufficient="yes" if self.sufficient else "no", subqueries=queries or "none")


class Evolved(TypedEvent, name="evolved"):
    """Points that changed."""

    inserted: Sequence[Row]
    """The new points."""
    updated: Sequence[Row]
    """The points with a new text."""
    overlay: Sequence[str]
    """The entities that only this memory knows, and no layer."""
    shown: Sequence[NodeId]
    """The ids of the evidence that the model saw."""
    notes: Sequence[str]
    """The texts of these points."""

    def summarize(self) -> str:
        return list_facts(inserted=len(self.inserted), updated=len(self.updated), says=" ".join(self.notes))


class Merged(TypedEvent, name="merged"):
    """Points that were made from others."""

    merged: Sequence[Row]
    """The new points."""
    parts: Mapping[str, Sequence[str]]
    """The ids of the points from which each new one was made."""
    notes: Sequence[str]
    """The texts of the new points."""

    def summarize(self) -> str:
        names = "; ".join(f"{', '.join(earlier)} into {point}" for point, earlier in self.parts.items())
        return list_facts(merged=names or "nothing", says=" ".join(self.notes))


# ---------------------------------------------------------------- reading, with a ledger or a note


class Divided(TypedEvent, name="divided"):
    """How much there is to read."""

    chunks: int
    """The chunks that are read, one after another."""
    tokens: int
    """The tokens of all of them."""


class ReadingPlanned(TypedEvent, name="planned"):
    """What to look for while reading."""

    questions: Sequence[str]
    """The questions that the text has to answer."""
    nets: Sequence[str]
    """Wide questions, for facts of which nobody can know yet that they matter."""

    def summarize(self) -> str:
        return list_facts(questions="; ".join(self.questions), nets="; ".join(self.nets)) or "no questions"


class Extracted(TypedEvent, name="extracted"):
    """The facts of a chunk."""

    chunk: str
    """Where it stands, as "story.md, parts 12 to 30 of 59"."""
    notes: Sequence[str]
    """The facts."""
    not_found: int
    """How many facts quote words that the chunk does not have."""

    def summarize(self) -> str:
        return list_facts(chunk=self.chunk, facts=len(self.notes), not_found=self.not_found or "")


class ChunkRead(TypedEvent, name="read"):
    """The note after a chunk."""

    chunk: str
    """Where it stands, as "story.md, parts 12 to 30 of 59"."""
    notes: Sequence[str] | None = None
    """The note, as a list of one text; left out by a loop that keeps no note."""

    def summarize(self) -> str:
        return list_facts(chunk=self.chunk, note=" ".join(self.notes or ()))


class ChunkUnread(ChunkRead, name="unread"):
    """A chunk without a usable reply, and the note as it was before, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """An entry of a ledger: a "question", or a "fact" or an "inference" with its label."""

    kind: Literal["question", "fact", "inference"]
    """What it is."""
    label: str | None = None
    """The label by which others cite it; none for a question."""
    text: str
    """Its words."""


class LedgerUpdated(TypedEvent, name="updated"):
    """What the ledger holds."""

    pool: Sequence[LedgerRow]
    """All entries."""

    def summarize(self) -> str:
        kinds = [row.kind for row in self.pool]
        return list_facts(
            questions=kinds.count("question"), facts=kinds.count("fact"), inferences=kinds.count("inference")
        )


class Recovered(TypedEvent, name="recovered"):
    """What is read again for questions that are open after the whole text was read."""

    open: int
    """How many questions are open."""
    tokens: int
    """How many tokens are read again."""


# ---------------------------------------------------------------- around a loop


class Rephrased(TypedEvent, name="rephrased"):
    """A follow-up question, and how it stands alone."""

    asked: str
    """The question as it was asked."""
    question: str
    """The question as it is answered."""

    def summarize(self) -> str:
        return list_facts(asked=self.asked, question="unchanged" if self.question == self.asked else self.question)


class Resumed(TypedEvent, name="resumed"):
    """What a session brings to its next question."""

    session: str
    """The name of the session."""
    question: int
    """The number of the question in it, from 1."""
    memory: str
    """The kind of its working memory; empty without one."""
    known: Sequence[str]
    """The notes that it brings."""
    forgotten: Sequence[str]
    """The notes that went with their sources."""

    def summarize(self) -> str:
        return list_facts(
            session=self.session,
            question=self.question,
            known=len(self.known),
            forgotten=len(self.forgotten) or "",
        )


class SessionUsed(TypedEvent, name="session"):
    """What an answer took from its session, and what the session dropped after it."""

    notes: Sequence[str]
    """The notes of earlier questions that the answering call saw."""
    passages: Sequence[PassageId]
    """The ids of passages of earlier questions that it saw."""
    dropped: Sequence[str]
    """The notes and questions for which the session had no room, or whose sources are gone."""

    def summarize(self) -> str:
        return list_facts(
            notes_taken=len(self.notes), passages_taken=len(self.passages), dropped="; ".join(self.dropped)
        )


class Waiting(TypedEvent, name="waiting"):
    """A wait before a request is tried again, in seconds."""

    seconds: float
    """How long."""
    asked: float
    """How long the server asks to wait."""
    reason: str
    """What the server replied."""

    def summarize(self) -> str:
        return f"waiting {self.seconds:.0f} s, since the server asks for {self.asked:.0f} s: {self.reason}"


class Fallbacks(TypedEvent, name="fallbacks"):
    """How many steps fell back on a simpler one. `detail` has the kinds themselves as names."""

    counts: Mapping[str, int]
    """How often, by kind (see `tomewise.run`)."""

    def write_detail(self) -> dict[str, Any]:
        return dict(self.counts)

    @classmethod
    def read_detail(cls, detail: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"counts": detail}
