"""Metrics by the names the command line gives them, each a function of one outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Literal, TypeAlias

from tomewise.errors import UnknownName
from tomewise.evaluate.items import Dataset, Item, Outcome
from tomewise.evaluate.metrics import answers, passage_ranks, seen_passages, span_overlap
from tomewise.evaluate.metrics.choices import choice_accuracy, chosen
from tomewise.evaluate.metrics.claim_verdicts import class_f1, pair_accuracy
from tomewise.evaluate.metrics.rouge import rouge
from tomewise.names import suggest

Need: TypeAlias = Literal["answers", "correct", "claims", "pairs", "supporting", "spans", "evidence"]
Score: TypeAlias = Callable[[Outcome], float]
Overall: TypeAlias = Callable[[Sequence[Outcome]], "float | None"]

_LONG_ANSWER = 15  # words: references longer than this on average are summaries, for which EM says nothing


@dataclass(frozen=True, slots=True)
class Metric:
    """A named number. `score` is that of one outcome, between 0 and 1; `needs` is the gold it takes.

    `overall` is set for numbers that are no mean over outcomes (class F1, pair accuracy); `score` then says whether
    that one outcome was right.
    """

    name: str
    needs: Need
    score: Score
    overall: Overall | None = None

    @property
    def of_answer(self) -> bool:
        """Whether it scores what was answered; metrics of retrieval and of what an answer rests on do not."""
        return self.needs in ("answers", "correct", "claims", "pairs")

    @property
    def of_ranking(self) -> bool:
        """Whether it scores the ranking alone, for which nothing need be answered."""
        return self.needs in ("supporting", "spans")

    def applies(self, item: Item) -> bool:
        """Whether the item has the gold this metric takes."""
        return _HAS[self.needs](item)

    def total(self, outcomes: Sequence[Outcome]) -> float | None:
        """The number of a whole run: over every outcome whose item has the gold, failed ones included.

        None when no item has it.
        """
        scored = [outcome for outcome in outcomes if self.applies(outcome.item)]
        if self.overall is not None:
            return self.overall(scored) if scored else None
        return fmean(map(self.score, scored)) if scored else None


def metric_named(name: str) -> Metric:
    """The metric of that name; those of retrieval take a depth, as in `recall@5`, and without one the whole ranking.

    Raises UnknownName with the nearest name.
    """
    stem, at, depth = name.partition("@")
    if not at and stem in _PLAIN:
        needs, score, overall = _PLAIN[stem]
        return Metric(name, needs, score, overall)
    if stem in _RANKED and (not at or re.fullmatch(r"[1-9]\d*", depth)):
        needs, ranked = _RANKED[stem]
        return Metric(name, needs, partial(ranked, k=int(depth) if at else None))
    raise UnknownName(_unknown(name, stem))


def metric_names() -> tuple[str, ...]:
    """Every name, those that take a depth as `recall@K`."""
    return (*_PLAIN, *(f"{name}@K" for name in _RANKED))


def default_metrics(dataset: Dataset) -> tuple[Metric, ...]:
    """The metrics that the gold of a dataset allows and its field reports; none for a dataset without gold."""
    return tuple(map(metric_named, [*_answer_names(dataset.items), *_evidence_names(dataset.items)]))


# ---------------------------------------------------------------- what gold an item has

_HAS: dict[Need, Callable[[Item], bool]] = {
    "answers": lambda item: bool(item.answers),
    "correct": lambda item: item.correct is not None,
    "claims": lambda item: item.correct is not None and len(item.question.options) == 2,
    "pairs": lambda item: item.correct is not None and "pair" in item.slices,
    "supporting": lambda item: bool(item.supporting),
    "spans": lambda item: bool(item.spans),
    "evidence": lambda item: bool(item.supporting or item.spans),
}


def _answer_names(items: Sequence[Item]) -> list[str]:
    judged = [item for item in items if item.correct is not None]
    if judged:
        # Claims all offer the same two labels; other questions with two options are still multiple choice.
        claims = len({item.question.options for item in judged}) == 1 and len(judged[0].question.options) == 2
        paired = any("pair" in item.slices for item in judged)
        return ["accuracy", *["f1-positive", "f1-negative"] * claims, *["pair-accuracy"] * paired]
    references = [reference for item in items for reference in item.answers]
    if not references:
        return []
    long = fmean(len(reference.split()) for reference in references) > _LONG_ANSWER
    return ["rouge-1", "rouge-2", "rouge-l"] if long else ["em", "f1"]


def _evidence_names(items: Sequence[Item]) -> list[str]:
    names: list[str] = []
    if any(item.supporting for item in items):
        names += ["recall@2", "recall@5", "recall@10", "recall@20", "all@5", "mrr", "ndcg@10"]
    if any(item.spans for item in items):
        names += ["span-recall@5", "span-recall@10", "span-coverage@10"]
    return [*names, *_GROUNDS] if names else []


# ---------------------------------------------------------------- from outcomes to the pure functions


def _answered(function: Callable[[str, Sequence[str]], float], outcome: Outcome) -> float:
    # A reference of articles alone normalises to nothing, and so does a question that failed.
    return function(outcome.prediction.answer, outcome.item.answers) if outcome.prediction.answer.strip() else 0.0


def _rouge(kind: str, outcome: Outcome) -> float:
    return rouge(outcome.prediction.answer, outcome.item.answers, kind)


def _letter(outcome: Outcome) -> str | None:
    return chosen(outcome.prediction.choice, outcome.prediction.answer, outcome.item.question.options)


def _right(outcome: Outcome) -> float:
    options, correct = outcome.item.question.options, outcome.item.correct
    return choice_accuracy(outcome.prediction.choice, outcome.prediction.answer, options, correct) if correct else 0.0


def _class_f1(label: str, outcomes: Sequence[Outcome]) -> float:
    return class_f1([_letter(outcome) for outcome in outcomes], [str(o.item.correct) for o in outcomes], label)


def _pair_accuracy(outcomes: Sequence[Outcome]) -> float | None:
    return pair_accuracy([o.item.slices["pair"] for o in outcomes], [bool(_right(o)) for o in outcomes])


def _by_id(
    function: Callable[[Sequence[str], Sequence[str], int | None], float], outcome: Outcome, *, k: int | None
) -> float:
    return function([passage.document for passage in outcome.prediction.ranked], outcome.item.supporting, k)


def _by_span(function: Callable[..., float], outcome: Outcome, *, k: int | None) -> float:
    return function(outcome.prediction.ranked, outcome.item.spans, k)


def _seen(outcome: Outcome) -> float:
    return seen_passages.found_share(outcome.prediction.shown, outcome.item)


def _citation_precision(outcome: Outcome) -> float:
    return seen_passages.gold_share(outcome.prediction.cited, outcome.item)


def _citation_recall(outcome: Outcome) -> float:
    return seen_passages.found_share(outcome.prediction.cited, outcome.item)


def _unknown(name: str, stem: str) -> str:
    if stem in _PLAIN:
        return f"the metric {name!r} takes no depth: write {stem!r}"
    if stem in _RANKED:
        return f"the depth of {name!r} is no whole number above 0: write for example '{stem}@5'"
    hint = suggest(stem, [*_PLAIN, *_RANKED])
    return f"there is no metric {name!r}: {hint}The metrics are {', '.join(metric_names())}"


_GROUNDS: dict[str, Score] = {
    "seen": _seen,  # the share of the gold that the answering call saw
    "citation-precision": _citation_precision,
    "citation-recall": _citation_recall,
}

_PLAIN: dict[str, tuple[Need, Score, Overall | None]] = {
    "em": ("answers", partial(_answered, answers.exact_match), None),
    "f1": ("answers", partial(_answered, answers.token_f1), None),
    "substring-em": ("answers", partial(_answered, answers.substring_match), None),
    "helmet-f1": ("answers", partial(_answered, answers.helmet_f1), None),
    "rouge-1": ("answers", partial(_rouge, "rouge1"), None),
    "rouge-2": ("answers", partial(_rouge, "rouge2"), None),
    "rouge-l": ("answers", partial(_rouge, "rougeL"), None),
    "accuracy": ("correct", _right, None),
    "f1-positive": ("claims", _right, partial(_class_f1, "A")),  # claims offer the positive label first
    "f1-negative": ("claims", _right, partial(_class_f1, "B")),
    "pair-accuracy": ("pairs", _right, _pair_accuracy),
    **{name: ("evidence", score, None) for name, score in _GROUNDS.items()},
}

_RANKED: dict[str, tuple[Need, Callable[..., float]]] = {
    "recall": ("supporting", partial(_by_id, passage_ranks.recall_at)),
    "all": ("supporting", partial(_by_id, passage_ranks.all_at)),
    "mrr": ("supporting", partial(_by_id, passage_ranks.reciprocal_rank)),
    "ndcg": ("supporting", partial(_by_id, passage_ranks.ndcg_at)),
    "span-recall": ("spans", partial(_by_span, span_overlap.span_recall_at)),
    "span-all": ("spans", partial(_by_span, span_overlap.span_all_at)),
    "span-mrr": ("spans", partial(_by_span, span_overlap.span_reciprocal_rank)),
    "span-ndcg": ("spans", partial(_by_span, span_overlap.span_ndcg_at)),
    "span-coverage": ("spans", partial(_by_span, span_overlap.span_coverage_at)),
}
