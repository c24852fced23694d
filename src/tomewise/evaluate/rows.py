"""Rows of results: the outcome of one question to one system, with all that scoring and reading it again needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, field
from typing import Any, Literal

from tomewise.evaluate.items import Item, Outcome, Prediction, RankedPassage, Span
from tomewise.evaluate.judges import Judgement
from tomewise.outgoing import answer_models
from tomewise.run import Meter
from tomewise.types import Answer, Event, Evidence, Question, Support, Usage

JsonObject = Mapping[str, Any]
RankedBy = Literal["retriever", "shown"]
_ANSWERED = (
    "resolved",
    "forced",
    "supported",
    "missing",
    "dropped_quotes",
    "derived_quotes",
)  # as in answers
_LISTS = ("citations", "evidence", "events")
_STORED = (
    "key", "system", *_ANSWERED, "texts", "usage", "fallbacks", "error", "asked", "characters", "ranked_by", *_LISTS,
    "versions",
)  # fmt: skip
_RANKINGS = ("ranked", "shown", "cited")
_COUNTED = ("calls", "reused", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
_TIMED = ("model_seconds", "own_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The outcome of one question to one system. For a question that failed, `error` says why.

    Rows of equal questions to equal systems have the same `key`. `evidence` and `events` name texts by node; `texts`
    holds each text once. `ranked_by` says what the ranking of the prediction is: what the system's retriever found, or,
    for a system without one retriever of its own, what the answering call was shown. `characters` is the length of the
    documents the question is asked over. `usage` is as `tome ask --json` prints it: its seconds are wall time of
    questions asked side by side, and stored replies answered `reused` of its calls. `fallbacks` counts by kind the
    steps that failed and fell back on something else (see `tomewise.run`). `judgements` are by the name of the
    judge.
    """

    key: str
    system: str
    item: Item
    prediction: Prediction = field(default_factory=Prediction)
    resolved: bool = False
    forced: bool = False
    supported: Support = "full"
    missing: str = ""
    dropped_quotes: int = 0
    derived_quotes: int = 0
    citations: tuple[JsonObject, ...] = ()
    evidence: tuple[JsonObject, ...] = ()
    events: tuple[JsonObject, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    usage: JsonObject = field(default_factory=lambda: answer_models.Usage.of(Usage()).write())
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    asked: str = ""
    characters: int = 0
    ranked_by: RankedBy = "retriever"
    versions: JsonObject = field(default_factory=dict)
    judgements: Mapping[str, Judgement] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """The row as metrics take it: a question that failed has an empty prediction."""
        return Outcome(self.item, Prediction() if self.error else self.prediction)

    @property
    def cycles(self) -> int:
        """How many cycles the loop ran; 0 when it stopped after its first attempt."""
        return max((int(event["step"]) for event in self.events), default=0)


def read_answer_fields(answer: Answer) -> dict[str, Any]:
    """The fields of a row that an answer fills. The prediction has no ranking and no shown passages yet."""
    texts: dict[str, str] = {}
    cited = tuple(
        RankedPassage(id=quoted.passage, document=quoted.document, start=quoted.start, end=quoted.end)
        for quoted in answer.citations
    )
    return {
        "prediction": Prediction(answer=answer.text, choice=answer.choice, cited=cited),
        **{name: getattr(answer, name) for name in _ANSWERED},
        "citations": tuple(asdict(citation) for citation in answer.citations),
        "evidence": tuple(_make_evidence_record(piece, texts) for piece in answer.evidence),
        "events": tuple(_make_event_record(event, texts) for event in answer.events),
        "texts": texts,
    }


def make_row_record(row: Row) -> dict[str, Any]:
    """The row as one JSON object. Judgements are separate records, see `make_judgement_record`."""
    return {
        "kind": "row",
        **{name: getattr(row, name) for name in _STORED},
        "item": _make_item_record(row.item),
        "answer": row.prediction.answer,
        "choice": row.prediction.choice,
        **{name: list(map(astuple, getattr(row.prediction, name))) for name in _RANKINGS},
    }


def read_row(record: JsonObject, judgements: Mapping[str, Judgement]) -> Row:
    """The row of a record."""
    fields = {**{name: record[name] for name in _STORED}, **{name: tuple(record[name]) for name in _LISTS}}
    rankings = {
        name: tuple(RankedPassage(id=id, document=of, start=start, end=end) for id, of, start, end in record[name])
        for name in _RANKINGS
    }
    prediction = Prediction(answer=record["answer"], choice=record["choice"], **rankings)
    return Row(**fields, item=_read_item(record["item"]), prediction=prediction, judgements=judgements)


def make_judgement_record(key: str, judge: str, model: str, judgement: Judgement, usage: Usage) -> dict[str, Any]:
    """A judgement of the row with that key as one JSON object."""
    made_by = {"kind": "judgement", "key": key, "judge": judge, "model": model}
    return {**made_by, **asdict(judgement), "usage": answer_models.Usage.of(usage).write()}


def read_latest_rows(records: Iterable[JsonObject], judge_model: str) -> tuple[Row, ...]:
    """The last row of each system and question, with the judgements that one judging model has made of it."""
    judgements: dict[str, dict[str, Judgement]] = {}
    rows: dict[tuple[str, str], JsonObject] = {}
    for record in records:
        if record["kind"] == "judgement" and record["model"] == judge_model:
            judgement = Judgement(score=record["score"], detail=record["detail"], error=record["error"])
            judgements.setdefault(record["key"], {})[record["judge"]] = judgement
        elif record["kind"] == "row":
            rows[record["system"], record["item"]["id"]] = record
            judgements.pop(record["key"], None)  # they judge an answer or a reference that has changed
    return tuple(read_row(record, judgements.get(record["key"], {})) for record in rows.values())


def make_usage_record(used: Meter) -> dict[str, Any]:
    """What a meter counted, as JSON, and how many of its calls a stored reply answered."""
    record = answer_models.Usage.of(used.usage()).write()
    del record["kept"]  # it depends on what ran before
    return {**record, "reused": used.reused}


def sum_usages(usages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add usages. The sum has no cost (None) where a part has none; a missing entry counts 0."""
    parts = list(usages)
    counted = {name: sum(part.get(name, 0) for part in parts) for name in _COUNTED}
    timed = {name: sum(part.get(name, 0.0) for part in parts) for name in _TIMED}
    costs = [part.get("cost", 0.0) for part in parts]
    return {**counted, **timed, "cost": None if None in costs else sum(costs)}


def _make_evidence_record(piece: Evidence, texts: dict[str, str]) -> dict[str, Any]:
    texts[piece.node] = piece.text
    record = {"node": piece.node, "layer": piece.layer, "score": piece.score, "title": piece.title}
    return {**record, "sources": list(piece.sources)}


def _make_event_record(event: Event, texts: dict[str, str]) -> dict[str, Any]:
    """The event; the texts of the evidence in its detail move to `texts`, which all events of a row share."""
    detail = answer_models.write_plain(event.detail)
    if isinstance(pieces := detail.get("evidence"), list):
        detail["evidence"] = [_move_text(piece, texts) for piece in pieces]
    return {"name": event.name, "step": event.step, "summary": event.summary, "detail": detail}


def _move_text(piece: Any, texts: dict[str, str]) -> Any:
    if not isinstance(piece, dict) or not isinstance(piece.get("node"), str) or "text" not in piece:
        return piece
    texts[piece["node"]] = piece["text"]
    return {name: value for name, value in piece.items() if name != "text"}


def make_question_record(item: Item) -> dict[str, Any]:
    """A question with its reference answers, as programs read it."""
    return {
        "id": item.id,
        "question": item.question.text,
        "options": list(item.question.options),
        "answers": list(item.answers),
        "correct": item.correct,
    }


def _make_item_record(item: Item) -> dict[str, Any]:
    return {
        **make_question_record(item),
        "instructions": item.question.instructions,
        "supporting": list(item.supporting),
        "spans": list(map(astuple, item.spans)),
        "documents": list(item.documents),
        "slices": dict(item.slices),
    }


def _read_item(record: JsonObject) -> Item:
    text, options, instructions = record["question"], tuple(record["options"]), record["instructions"]
    lists: dict[str, Any] = {name: tuple(record[name]) for name in ("answers", "supporting", "documents")}
    return Item(
        id=record["id"],
        question=Question(text=text, options=options, instructions=instructions),
        correct=record["correct"],
        spans=tuple(Span(document=of, start=start, end=end) for of, start, end in record["spans"]),
        slices=record["slices"],
        **lists,
    )
