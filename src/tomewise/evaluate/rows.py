"""Rows of results: the outcome of one question to one system, with all that scoring and reading it again needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter

from tomewise.evaluate.items import Item, Judgement, Outcome, Prediction, RankedPassage
from tomewise.run import Meter
from tomewise.types import Answer, Claim, Cost, Event, Evidence, Support, write_plain

JsonObject = Mapping[str, Any]
RankedBy = Literal["retriever", "shown"]
_ANSWERED = "resolved forced claimed support missing dropped_quotes derived_quotes".split()  # as in answers
_COUNTED = "calls reused input_tokens output_tokens cached_tokens reasoning_tokens".split()
_TIMED = ("model_seconds", "own_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The outcome of one question to one system. For a question that failed, `error` says why.

    Rows of equal questions to equal systems have the same `key`. `evidence` and `events` name texts by id; `texts`
    holds each text once. `ranked_by` says what the ranking of the prediction is: what the system's retriever found, or,
    for a system without one retriever of its own, what the answering call was shown. `characters` is the length of the
    documents the question is asked over. `cost` is as `tome ask --json` prints it: its seconds are wall time of
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
    claimed: Claim = "none"
    support: Support = "none"
    missing: str = ""
    dropped_quotes: int = 0
    derived_quotes: int = 0
    quotes: tuple[JsonObject, ...] = ()
    evidence: tuple[JsonObject, ...] = ()
    events: tuple[JsonObject, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    cost: JsonObject = field(default_factory=lambda: Cost().to_dict())
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


_ROW = TypeAdapter(Row)
_JUDGEMENT = TypeAdapter(Judgement)


def read_answer_fields(answer: Answer) -> dict[str, Any]:
    """The fields of a row that an answer fills. The prediction has no ranking and no shown passages yet."""
    texts: dict[str, str] = {}
    cited = tuple(
        RankedPassage(id=quoted.passage, document=quoted.document, start=quoted.start, end=quoted.end)
        for quoted in answer.quotes
    )
    return {
        "prediction": Prediction(answer=answer.words if answer.resolved else "", choice=answer.choice, cited=cited),
        **{name: getattr(answer, name) for name in _ANSWERED},
        "quotes": tuple(quote.to_dict() for quote in answer.quotes),
        "evidence": tuple(_make_evidence_record(piece, texts) for piece in answer.evidence),
        "events": tuple(_make_event_record(event, texts) for event in answer.events),
        "texts": texts,
    }


def make_row_record(row: Row) -> dict[str, Any]:
    """The row as one JSON object. Judgements are separate records, see `make_judgement_record`."""
    return {"kind": "row", **_ROW.dump_python(row, mode="json", exclude={"judgements"})}


def make_judgement_record(key: str, judge: str, model: str, judgement: Judgement, cost: Cost) -> dict[str, Any]:
    """A judgement of the row with that key as one JSON object."""
    made_by = {"kind": "judgement", "key": key, "judge": judge, "model": model}
    return {**made_by, **asdict(judgement), "cost": cost.to_dict()}


def read_latest_rows(records: Iterable[JsonObject], judge_model: str) -> tuple[Row, ...]:
    """The last row of each system and question, with the judgements that one judging model has made of it."""
    judgements: dict[str, dict[str, Judgement]] = {}
    rows: dict[tuple[str, str], JsonObject] = {}
    for record in records:
        if record["kind"] == "judgement" and record["model"] == judge_model:
            judgements.setdefault(record["key"], {})[record["judge"]] = _JUDGEMENT.validate_python(record)
        elif record["kind"] == "row":
            rows[record["system"], record["item"]["id"]] = record
            judgements.pop(record["key"], None)  # they judge an answer or a reference that has changed
    return tuple(
        _ROW.validate_python({**record, "judgements": judgements.get(record["key"], {})}) for record in rows.values()
    )


def make_cost_record(used: Meter) -> dict[str, Any]:
    """What a meter counted, as JSON, and how many of its calls a stored reply answered."""
    record = used.measure_cost().to_dict()
    del record["kept"]  # it depends on what ran before
    return {**record, "reused": used.reused}


def sum_costs(costs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add costs. The sum has no dollars (None) where a part has none; a missing entry counts 0."""
    parts = list(costs)
    counted = {name: sum(part.get(name, 0) for part in parts) for name in _COUNTED}
    timed = {name: sum(part.get(name, 0.0) for part in parts) for name in _TIMED}
    dollars = [part.get("dollars", 0.0) for part in parts]
    return {**counted, **timed, "dollars": None if None in dollars else sum(dollars)}


def _make_evidence_record(piece: Evidence, texts: dict[str, str]) -> dict[str, Any]:
    texts[piece.id] = piece.text
    record = {name: getattr(piece, name) for name in ("id", "layer", "score", "title")}
    return {**record, "sources": list(piece.sources)}


def _make_event_record(event: Event, texts: dict[str, str]) -> dict[str, Any]:
    """The event; the texts of the evidence in its detail move to `texts`, which all events of a row share."""
    detail = write_plain(event.detail)
    if isinstance(pieces := detail.get("evidence"), list):
        detail["evidence"] = [_move_text(piece, texts) for piece in pieces]
    return {"name": event.name, "step": event.step, "summary": event.summary, "detail": detail}


def _move_text(piece: Any, texts: dict[str, str]) -> Any:
    if not isinstance(piece, dict) or not isinstance(piece.get("id"), str) or "text" not in piece:
        return piece
    texts[piece["id"]] = piece["text"]
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
