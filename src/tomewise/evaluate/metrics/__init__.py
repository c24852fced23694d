"""Metrics by the names that the command line takes. Each scores one outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import nan
from numbers import Real
from statistics import fmean
from typing import TYPE_CHECKING, Literal, TypeAlias

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.evaluate.items import Dataset, Item, Outcome
from tomewise.evaluate.metrics import answers, rankings
from tomewise.evaluate.metrics.answers import class_f1, pair_accuracy, pick_letter
from tomewise.plugins import find_plugin, list_names, refuse_hidden, register

if TYPE_CHECKING:
    from tomewise.evaluate.rows import Row

Need: TypeAlias = Literal["answers", "correct", "claims", "pairs", "supporting", "spans", "evidence"]
Score: TypeAlias = Callable[[Outcome], float]
Overall: TypeAlias = Callable[[Sequence[Outcome]], "float | None"]
_Measure: TypeAlias = Callable[[rankings.Places, "int | None"], float]

_LONG_ANSWER = 15  # words: references that are longer on average are summaries, for which EM is useless


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. `score` scores one outcome from 0 to 1; `needs` is the gold it takes.

    Metrics that are not a mean over outcomes (class F1, pair accuracy) have `overall`; their `score` says whether one
    outcome is right.
    """

    name: str
    """The name in tables."""
    needs: Need
    score: Score
    overall: Overall | None = None

    @property
    def of_answer(self) -> bool:
        """Whether it scores the answer, and neither the ranking nor the evidence of the answer."""
        return self.needs in ("answers", "correct", "claims", "pairs")

    @property
    def of_ranking(self) -> bool:
        """Whether it scores the ranking alone, which needs no answer."""
        return self.needs in ("supporting", "spans")

    def applies(self, item: Item) -> bool:
        """Whether the item has the gold that this metric needs."""
        return _HAS[self.needs](item)

    def score_row(self, row: Row) -> float:
        """The score of a row; NaN where its item lacks the gold."""
        return self.score(row.outcome) if self.applies(row.item) else nan

    def try_on(self, outcome: Outcome) -> None:
        """Raise UsageError if the metric cannot score this outcome, so that a run stops before it has spent more."""
        if not self.applies(outcome.item):
            return
        try:
            score: object = self.score(outcome)
        except Exception as error:  # a metric from outside may raise anything
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(f"the metric {self.name!r} failed on {outcome.item.id!r} ({reason}): mend it") from error
        if not isinstance(score, Real):
            raise UsageError(f"the metric {self.name!r} returned {score!r}: return a number from 0 to 1")

    def total(self, outcomes: Sequence[Outcome]) -> float | None:
        """The score of a run: over all outcomes whose item has the gold, also failed ones.

        None when no item has it.
        """
        scored = [outcome for outcome in outcomes if self.applies(outcome.item)]
        if self.overall is not None:
            return self.overall(scored) if scored else None
        return fmean(map(self.score, scored)) if scored else None


def find_metric(name: str) -> Metric:
    """The metric of that name. Metrics of retrieval take a depth (`recall@5`), or else score the whole ranking.

    Raises UnknownName with the nearest name.
    """
    stem, at, depth = name.partition("@")
    if stem in _PLAIN or stem in _RANKED:
        refuse_hidden("metrics", name)
    if not at and stem in _PLAIN:
        return _PLAIN[stem]
    if stem in _RANKED and (not at or re.fullmatch(r"[1-9]\d*", depth)):
        return _make_ranking_metric(name, stem, int(depth) if at else None)
    if stem not in _PLAIN and stem not in _RANKED and (plugin := find_plugin("metrics", name)) is not None:
        if not isinstance(plugin, Metric) or plugin.needs not in _HAS:
            raise UsageError(
                f"the plugin {name!r} is not a Metric that needs one of {', '.join(_HAS)}: it is {plugin!r}"
            )
        return replace(plugin, name=name)
    raise UnknownName(_explain_unknown(name, stem))


@cache  # two that were made apart would not be equal
def _make_ranking_metric(name: str, stem: str, k: int | None) -> Metric:
    needs, function = _RANKED[stem]
    return Metric(name, needs, partial(function, k=k))


def _explain_unknown(name: str, stem: str) -> str:
    if stem in _PLAIN:
        return f"the metric {name!r} takes no depth: write {stem!r}"
    if stem in _RANKED:
        return f"the depth of {name!r} is not a whole number above 0: write for example '{stem}@5'"
    hint = suggest(stem, [*_PLAIN, *_RANKED, *list_names("metrics")])
    return f"unknown metric {name!r}: {hint}The metrics are {', '.join(list_metrics())}"


def remember_metric(metric: Metric) -> None:
    """Let the tables of this process find a metric by its name.

    Raises UsageError for a metric with the name of one of Tomewise's that scores differently, and for one that needs
    what no question has.
    """
    if metric.needs not in _HAS:
        raise UsageError(f"the metric {metric.name!r} needs {metric.needs!r}: name one of {', '.join(_HAS)}")
    stem = metric.name.partition("@")[0]
    if stem not in _PLAIN and stem not in _RANKED:
        register("metrics", metric.name, metric)
    elif metric.score != find_metric(metric.name).score:
        raise UsageError(f"a metric named {metric.name!r} exists already: give yours another name")


def list_metrics() -> tuple[str, ...]:
    """Every name; names that take a depth end in `@K`."""
    return (*_PLAIN, *(f"{name}@K" for name in _RANKED), *list_names("metrics"))


def choose_metrics(dataset: Dataset) -> tuple[Metric, ...]:
    """The metrics that the gold of a dataset allows and that papers report on such datasets."""
    return tuple(map(find_metric, [*_choose_answer_metrics(dataset.items), *_choose_evidence_metrics(dataset.items)]))


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


def _choose_answer_metrics(items: Sequence[Item]) -> list[str]:
    choices = [item for item in items if item.correct is not None]
    if choices:
        # All claims offer the same two labels; questions whose two options differ are multiple choice.
        claims = len({item.question.options for item in choices}) == 1 and len(choices[0].question.options) == 2
        paired = any("pair" in item.slices for item in choices)
        class_names = ["f1-positive", "f1-negative"] if claims else []
        return ["accuracy", *class_names, *(["pair-accuracy"] if paired else [])]
    references = [reference for item in items for reference in item.answers]
    if not references:
        return []
    long = fmean(len(reference.split()) for reference in references) > _LONG_ANSWER
    return ["rouge-1", "rouge-2", "rouge-l"] if long else ["em", "f1"]


def _choose_evidence_metrics(items: Sequence[Item]) -> list[str]:
    names: list[str] = []
    if any(item.supporting for item in items):
        names += "recall@2 recall@5 recall@10 recall@20 all@5 mrr ndcg@10".split()
    if any(item.spans for item in items):
        names += "span-recall@5 span-recall@10 span-coverage@10".split()
    return [*names, *_OF_EVIDENCE] if names else []


# ---------------------------------------------------------------- from outcomes to the pure functions


def _score_text(compare: Callable[[str, Sequence[str]], float], outcome: Outcome) -> float:
    # An empty answer scores 0, also where the reference (such as "the") normalises to nothing.
    return compare(outcome.prediction.answer, outcome.item.answers) if outcome.prediction.answer.strip() else 0.0


def _pick_letter(outcome: Outcome) -> str | None:
    return pick_letter(outcome.prediction.choice, outcome.prediction.answer, outcome.item.question.options)


def _score_choice(outcome: Outcome) -> float:
    correct = outcome.item.correct
    return float(correct is not None and _pick_letter(outcome) == correct)


def _score_class(label: str, outcomes: Sequence[Outcome]) -> float:
    return class_f1([_pick_letter(outcome) for outcome in outcomes], [str(o.item.correct) for o in outcomes], label)


def _score_pairs(outcomes: Sequence[Outcome]) -> float | None:
    return pair_accuracy([o.item.slices["pair"] for o in outcomes], [bool(_score_choice(o)) for o in outcomes])


def _score_documents(measure: _Measure, outcome: Outcome, *, k: int | None) -> float:
    return measure(rankings.find_documents(outcome.prediction.ranked, outcome.item.supporting, k), k)


def _score_spans(measure: _Measure, outcome: Outcome, *, k: int | None) -> float:
    return measure(rankings.find_spans(outcome.prediction.ranked, outcome.item.spans, k), k)


def _score_coverage(outcome: Outcome, *, k: int | None) -> float:
    return rankings.measure_coverage(outcome.prediction.ranked, outcome.item.spans, k)


_OF_EVIDENCE: dict[str, Score] = {
    # the share of the gold that the answering call saw
    "seen": lambda outcome: rankings.measure_gold_recall(outcome.prediction.shown, outcome.item),
    "citation-precision": lambda outcome: rankings.measure_gold_precision(outcome.prediction.cited, outcome.item),
    "citation-recall": lambda outcome: rankings.measure_gold_recall(outcome.prediction.cited, outcome.item),
}

_OF_TEXTS: dict[str, Callable[[str, Sequence[str]], float]] = {
    "em": answers.exact_match,
    "f1": answers.token_f1,
    "substring-em": answers.substring_match,
    "helmet-f1": answers.helmet_f1,
    **{f"rouge-{kind}": partial(answers.rouge, f"rouge{kind.upper()}") for kind in "12l"},
}

_PLAIN: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        *(Metric(name, "answers", partial(_score_text, function)) for name, function in _OF_TEXTS.items()),
        Metric("accuracy", "correct", _score_choice),
        # Claims offer the positive label first.
        Metric("f1-positive", "claims", _score_choice, partial(_score_class, "A")),
        Metric("f1-negative", "claims", _score_choice, partial(_score_class, "B")),
        Metric("pair-accuracy", "pairs", _score_choice, _score_pairs),
        *(Metric(name, "evidence", score) for name, score in _OF_EVIDENCE.items()),
    )
}

_MEASURES: dict[str, _Measure] = {
    "recall": rankings.recall,
    "all": rankings.all_found,
    "mrr": rankings.reciprocal_rank,
    "ndcg": rankings.ndcg,
}

_RANKED: dict[str, tuple[Need, Callable[..., float]]] = {
    **{name: ("supporting", partial(_score_documents, measure)) for name, measure in _MEASURES.items()},
    **{f"span-{name}": ("spans", partial(_score_spans, measure)) for name, measure in _MEASURES.items()},
    "span-coverage": ("spans", _score_coverage),
}
