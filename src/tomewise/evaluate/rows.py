"""One row of results: what one system made of one question, with all that is needed to score and to read it again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tomewise.evaluate.items import Item, Outcome, Prediction, RankedPassage, Span
from tomewise.evaluate.judges import Judgement
from tomewise.tome.reports import usage_json
from tomewise.types import Answer, Citation, Event, Evidence, Question, Support, Usage

JsonObject = Mapping[str, Any]
_PLAIN = (
    "key", "system", "resolved", "forced", "supported", "missing", "dropped_quotes", "texts", "usage", "fallbacks",
    "error", "asked", "characters",
)  # fmt: skip
_LISTS = ("citations", "evidence", "events")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The outcome of one question, failed ones included: `error` then says why.

    `key` tells rows of equal questions to equal systems. `evidence` and `events` name texts by node; `texts` holds each
    once. `characters` is the length of the documents asked over. `usage` is as `tome ask --json` prints it; its seconds
    are wall time among questions asked side by side, and `reused` of its calls were replies kept from an earlier run.
    `fallbacks` counts by kind what took the place of a step that failed (see `tomewise.fallbacks`). `judgements`
    are by the name of the judge.
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
    citations: tuple[JsonObject, ...] = ()
    evidence: tuple[JsonObject, ...] = ()
    events: tuple[JsonObject, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    usage: JsonObject = field(default_factory=lambda: usage_json(Usage()))
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    asked: str = ""
    characters: int = 0
    versions: JsonObject = field(default_factory=dict)
    judgements: Mapping[str, Judgement] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """The row as metrics take it: a question that failed predicted nothing."""
        return Outcome(self.item, Prediction() if self.error else self.prediction)

    @property
    def cycles(self) -> int:
        """How many cycles the loop went through; 0 when its first attempt was its last."""
        return max((int(event["step"]) for event in self.events), default=0)


def told(answer: Answer) -> dict[str, Any]:
    """The fields of a row that an answer fills; its prediction has no ranking yet, nor what was shown."""
    texts: dict[str, str] = {}
    return {
        "prediction": Prediction(answer=answer.text, choice=answer.choice, cited=tuple(map(_cited, answer.citations))),
        "resolved": answer.resolved,
        "forced": answer.forced,
        "supported": answer.supported,
        "missing": answer.missing,
        "dropped_quotes": answer.dropped_quotes,
        "citations": tuple(asdict(citation) for citation in answer.citations),
        "evidence": tuple(_piece(piece, texts) for piece in answer.evidence),
        "events": tuple(_event(event, texts) for event in answer.events),
        "texts": texts,
    }


def as_record(row: Row) -> dict[str, Any]:
    """The row as one JSON object. Judgements are records of their own, see `judged`."""
    return {
        "kind": "row",
        **{name: getattr(row, name) for name in _PLAIN},
        **{name: list(getattr(row, name)) for name in _LISTS},
        "versions": dict(row.versions),
        "item": _item_record(row.item),
        "answer": row.prediction.answer,
        "choice": row.prediction.choice,
        "ranked": _places(row.prediction.ranked),
        "shown": _places(row.prediction.shown),
        "cited": _places(row.prediction.cited),
    }


def row_of(record: JsonObject, judgements: Mapping[str, Judgement]) -> Row:
    """The row of a record."""
    fields: dict[str, Any] = {name: record[name] for name in _PLAIN if name in record}
    fields |= {name: tuple(record[name]) for name in _LISTS}
    places = {name: _ranked(record.get(name, ())) for name in ("ranked", "shown", "cited")}
    return Row(
        **fields,
        item=_item(record["item"]),
        prediction=Prediction(answer=record["answer"], choice=record["choice"], **places),
        versions=record["versions"],
        judgements=judgements,
    )


def judged(key: str, judge: str, model: str, judgement: Judgement, usage: Usage) -> dict[str, Any]:
    """A judgement of the row with that key as one JSON object."""
    said = asdict(judgement)
    return {"kind": "judgement", "key": key, "judge": judge, "model": model, **said, "usage": usage_json(usage)}


def judgement_of(record: JsonObject) -> Judgement:
    """The judgement of a record."""
    return Judgement(score=record["score"], detail=record["detail"], error=record["error"])


def latest(records: Iterable[JsonObject], judge_model: str) -> tuple[Row, ...]:
    """One row for each system and question, the last one recorded, with the judgements of one judging model since."""
    judgements: dict[str, dict[str, Judgement]] = {}
    rows: dict[tuple[str, str], JsonObject] = {}
    for record in records:
        if record["kind"] == "judgement" and record["model"] == judge_model:
            judgements.setdefault(record["key"], {})[record["judge"]] = judgement_of(record)
        elif record["kind"] == "row":
            rows[record["system"], record["item"]["id"]] = record
            judgements.pop(record["key"], None)  # of an answer or a reference that is no more
    return tuple(row_of(record, judgements.get(record["key"], {})) for record in rows.values())


def _piece(piece: Evidence, texts: dict[str, str]) -> dict[str, Any]:
    texts[piece.node] = piece.text
    kept = {"node": piece.node, "layer": piece.layer, "score": piece.score, "title": piece.title}
    return {**kept, "sources": list(piece.sources)}


def _cited(citation: Citation) -> RankedPassage:
    document, start, end = citation.document, citation.start, citation.end
    return RankedPassage(id=citation.passage, document=document, start=start, end=end)


def _places(places: Sequence[RankedPassage]) -> list[list[Any]]:
    return [[one.id, one.document, one.start, one.end] for one in places]


def _ranked(places: Iterable[Sequence[Any]]) -> tuple[RankedPassage, ...]:
    return tuple(RankedPassage(id=id, document=of, start=start, end=end) for id, of, start, end in places)


def _event(event: Event, texts: dict[str, str]) -> dict[str, Any]:
    """The event; evidence shown in its detail gives its text to `texts`, where many events share it."""
    detail = dict(event.detail)
    if isinstance(pieces := detail.get("evidence"), Sequence):
        detail["evidence"] = [_lifted(piece, texts) for piece in pieces]
    return {"name": event.name, "step": event.step, "detail": detail}


def _lifted(piece: Any, texts: dict[str, str]) -> Any:
    if not isinstance(piece, Mapping) or "node" not in piece or "text" not in piece:
        return piece
    texts[piece["node"]] = piece["text"]
    return {name: value for name, value in piece.items() if name != "text"}


def _item_record(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "question": item.question.text,
        "options": list(item.question.options),
        "instructions": item.question.instructions,
        "answers": list(item.answers),
        "correct": item.correct,
        "supporting": list(item.supporting),
        "spans": [[span.document, span.start, span.end] for span in item.spans],
        "documents": list(item.documents),
        "slices": dict(item.slices),
    }


def _item(record: JsonObject) -> Item:
    return Item(
        id=record["id"],
        question=Question(
            text=record["question"], options=tuple(record["options"]), instructions=record["instructions"]
        ),
        answers=tuple(record["answers"]),
        correct=record["correct"],
        supporting=tuple(record["supporting"]),
        spans=tuple(Span(document=of, start=start, end=end) for of, start, end in record["spans"]),
        documents=tuple(record["documents"]),
        slices=record["slices"],
    )
