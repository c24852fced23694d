"""What the endpoints reply where it is more than one noun: lists in pages, jobs, the server itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from tomewise.pictures import PicturePassage
from tomewise.store.records import DocumentRecord
from tomewise.tome.holdings import Contents, LayerCounts
from tomewise.tome.reports import AddReport, BuildReport, Price
from tomewise.tome.suggestions import SuggestedQuestion
from tomewise.tome.traces import Trace
from tomewise.types import Cost, Coverage, DocumentId, Evidence, Lagging, Noun, Passage

# The documentation of fields goes into /openapi.json and into what MCP says of the tools.
Noun.__pydantic_config__ = ConfigDict(use_attribute_docstrings=True)  # type: ignore[attr-defined]

State: TypeAlias = Literal["queued", "waiting", "running", "done", "failed", "cancelled", "interrupted"]
Kind: TypeAlias = Literal["add", "build"]


class Reply(BaseModel):
    """What all replies share. Unknown keys are ignored."""

    model_config = ConfigDict(use_attribute_docstrings=True, defer_build=True, ser_json_inf_nan="constants")


def make_page(name: str, rows: Sequence[Any], key: str, after: str, limit: int) -> dict[str, Any]:
    """The rows, sorted by `key`, that come after a value of it. `next` is the `after` of the following page."""
    rest = sorted((row for row in rows if row[key] > after), key=lambda row: row[key])
    return {
        name: rest[:limit],
        "total": len(rows),
        "next": rest[limit - 1][key] if len(rest) > limit else None,
    }


class TomeList(Reply):
    """Tomes by name; `next` is the `after` of the following page."""

    tomes: list[str]
    sizes: dict[str, int]
    """By tome, its bytes on the disk."""
    total: int
    next: str | None


class DocumentsInFolders(Reply):
    """Documents by id, with the folders and the fields of metadata of all that were looked for."""

    documents: list[DocumentRecord]
    total: int
    next: str | None
    folders: dict[str, int]
    """By folder, how many documents are in it; `` for none."""
    fields: list[str]


class TomeReply(Reply):
    """What a tome holds, with its first documents, the systems that are ready, and the layers that lag."""

    contents: Contents
    total: int
    """How many documents it has."""
    next: str | None
    is_owned: bool
    """Whether it may be renamed and deleted here."""
    ready: list[str]
    """The systems that can answer now."""
    lagging: list[str]
    """Those of them whose memory has yet to take in passages."""
    lag: dict[str, int]
    """By built layer, how many nodes it has yet to take in."""


class Overview(Reply):
    """What a tome holds."""

    tome: str
    embedder: str
    passage_tokens: int
    documents: int
    passages: int
    characters: int
    fields: list[str]
    """The fields of metadata that `where` can test."""
    layers: dict[str, LayerCounts]


class DocumentReply(Reply):
    """A document with a part of its passages; `next` is the `start` of the following page."""

    document: DocumentRecord
    passages: list[Passage]
    total: int
    next: int | None


class SuggestedQuestions(Reply):
    """Questions to begin with."""

    questions: list[SuggestedQuestion]


class RemovalReply(Reply):
    """What would go with a document, answers of sessions too."""

    document: DocumentId
    passages: int
    layers: dict[str, int]
    """Derived memories by layer."""
    paid: dict[str, int]
    """Those of them that a model was asked for, by its name."""
    session_answers: int


class ScopeReply(Reply):
    """A part of a tome that a client has opened, and how much of it was read since."""

    id: str
    within: str
    """What it is narrowed to, in words; empty for the whole tome."""
    documents: int
    coverage: Coverage


class SearchReply(Reply):
    """The evidence that a system finds, best first."""

    evidence: list[Evidence]
    lagging: Lagging | None = None
    """What the memory has yet to take in; null if it is up to date."""


class TraceList(Reply):
    """Traces without their events, newest first; `next` is the `before` of the following page."""

    traces: list[Trace]
    next: int | None


class EvidenceTexts(Reply):
    """The texts of evidence by its id."""

    evidence: dict[str, PicturePassage]


class Copies(Reply):
    """An answer as it is pasted elsewhere."""

    text: str
    """What `print(answer)` gives."""
    markdown: str
    """With a footnote for each quote, which leads to the page, and a bibliography."""


class SessionRow(Reply):
    """A session in a list."""

    name: str
    system: str
    count: int


class SessionList(Reply):
    """Sessions by name; `next` is the `after` of the following page."""

    sessions: list[SessionRow]
    total: int
    next: str | None


class Deleted(Reply):
    """What was deleted."""

    deleted: int | str


class LayerList(Reply):
    """The layers that can be drawn."""

    layers: list[str]


class JobProgress(Reply):
    """How much of a task is done; `total` is 0 while it is unknown."""

    label: str
    done: int
    total: int


class JobReply(Reply):
    """A job: an addition or a build that goes on after its request."""

    id: str
    tome: str
    kind: Kind
    state: State
    progress: list[JobProgress]
    """The step that was reported last comes last."""
    doing: JobProgress | None
    """The step that goes on; null for what cannot be counted."""
    failed: int
    """How many nodes or sources of the report failed."""
    reason: str | None
    """Why it failed, or the most frequent reason of what failed."""
    note: str | None
    """Why it waits, while it does."""
    cost: Cost | None
    report: BuildReport | AddReport | None
    error: dict[str, Any] | None
    created: str
    started: str | None
    ended: str | None
    system: str | None
    files: int


class JobReplies(Reply):
    """Jobs, the newest first."""

    jobs: list[JobReply]
    total: int


class EvaluationList(Reply):
    """Experiments, the latest first."""

    evaluations: list[dict[str, Any]]
    total: int


class EvaluationReply(Reply):
    """The table of an experiment, a page of its rows, and the names of its slices."""

    table: dict[str, Any]
    rows: list[dict[str, Any]]
    total: int
    slices: list[str]


class AskedQuestion(Reply):
    """A question of an experiment, with the score of every system."""

    id: str
    question: str
    scores: dict[str, float | None]


class QuestionList(Reply):
    """The questions of an experiment by id, scored in its first metric."""

    metric: str | None
    systems: list[str]
    questions: list[AskedQuestion]
    total: int


class ComparedAnswers(Reply):
    """A question with its gold, and the answers of two systems."""

    id: str
    question: str
    options: list[str]
    answers: list[str]
    correct: str | None
    systems: list[dict[str, Any]]


class SampleQuestion(Reply):
    """A question about the sample."""

    question: str
    options: list[str]


class Sample(Reply):
    """The bundled story as a document to add, and questions about it."""

    id: str
    text: str
    questions: list[SampleQuestion]


class Limits(Reply):
    """The limits of the server; null for what it does not limit."""

    budget: str | None
    """Of a question, a build."""
    ask_above: str
    """What a person is asked about before it begins."""
    questions: int
    waiting: int
    seconds: float
    upload_bytes: int
    body_bytes: int


class Info(Reply):
    """The version, the model, the systems with their settings, the limits, and what was spent since the start."""

    version: str
    model: str
    systems: list[dict[str, Any]] = []
    """What each needs, costs and can be set to."""
    limits: Limits
    read_only: bool
    makes_tomes: bool
    spent: Cost


class Health(Reply):
    """Whether the server answers."""

    ok: bool


class ModelReply(Reply):
    """A model: the tokens that it is known to accept, and dollars for a million tokens; null for what is unknown."""

    name: str
    is_default: bool
    window: int | None
    input_price: float | None
    output_price: float | None


class ModelList(Reply):
    """The models that a request may name, the default first."""

    models: list[ModelReply]


class ModelTrial(Reply):
    """What came of one small question: what the model can do, or the `reason` why it failed."""

    ok: bool
    reason: str
    window: int
    """The tokens that it accepts, as its server states; 0 if that is not known."""
    structured: str
    """How its reply fitted its form: yes, after a repair, or no."""
    streams: bool
    seconds: float
    spent: Cost


class ErrorReason(Reply):
    """Why a request was refused: a code for programs, and a sentence."""

    code: str
    message: str


class ErrorReply(Reply):
    """The reply to a request that is refused. Where a build is missing or too dear, it has the estimate."""

    error: ErrorReason
    estimate: Price | None = None


class OpenAIErrorReason(ErrorReason):
    """The same in OpenAI's protocol."""

    type: str
    param: str | None


class OpenAIErrorReply(Reply):
    """The reply to a request that is refused, in OpenAI's protocol."""

    error: OpenAIErrorReason
