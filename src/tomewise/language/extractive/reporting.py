"""Write reports of central sentences, and choose from reports the sentences that share words with a question."""

from __future__ import annotations

from tomewise.language.extractive.question_words import read_question
from tomewise.language.extractive.relevance import RELEVANT, Ranked, choose_varied, compare, rank, read_lines
from tomewise.language.extractive.salience import coverage
from tomewise.language.extractive.steering import probe
from tomewise.language.extractive.summarising import summarise
from tomewise.language.roles import (
    ExploreIn,
    ExploreOut,
    FindingOut,
    HypothesisOut,
    MapIn,
    MapOut,
    PointOut,
    ProbeIn,
    RateIn,
    RateOut,
    ReportIn,
    ReportOut,
    Shown,
    SummaryIn,
)
from tomewise.text.words import flatten, make_bag
from tomewise.types import Embedder

_READ = 4_000  # characters of a question or a report
_TOKENS_PER_WORD = 1.3
_NAMES, _POINTS, _SENTENCES = 3, 6, 3
_BEST = 5  # of a rating


def write_report(given: ReportIn) -> ReportOut:
    """The names with most links as a title, the central sentences, and the first relations as findings."""
    names = [row.name for row in sorted(given.entities, key=lambda row: -row.degree)[:_NAMES]]
    texts = [row.description for row in given.relations] + given.reports
    described = list(dict.fromkeys(text for text in texts if text.strip())) or [", ".join(names)]
    summary = summarise(SummaryIn(texts=described, max_tokens=round(_TOKENS_PER_WORD * given.words / 2))).summary
    labels: dict[tuple[str, str], dict[str, None]] = {}
    for row in given.relations:
        ends = flatten(f"{row.source} and {row.target}")
        labels.setdefault((flatten(row.description) or ends, ends), {})[row.label] = None
    findings: dict[str, FindingOut] = {}
    for (text, ends), found in labels.items():
        findings.setdefault(text, FindingOut(headline=ends, explanation=text, records=list(found)))
    return ReportOut(
        title=", ".join(names) or "A community",
        summary=summary,
        importance=min(10, len(given.relations)),
        reason=f"It joins {len(given.entities)} entities by {len(given.relations)} relations.",
        findings=list(findings.values())[: given.findings],
    )


def rate_report(given: RateIn) -> RateOut:
    """The share of the question's words that the report has."""
    weights = dict.fromkeys(read_question(given.question[:_READ]).terms, 1.0)
    share = coverage(weights, make_bag(given.report[:_READ]))
    return RateOut(rating=round(_BEST * share))


def map_reports(given: MapIn, embedder: Embedder) -> MapOut:
    """The sentences nearest to the question, each as a point."""
    ranked, chosen = _choose(given.question, given.evidence, embedder, _POINTS)
    return MapOut(
        points=[
            PointOut(
                description=flatten(ranked.lines[i].sentence.text),
                labels=[ranked.lines[i].label],
                score=_write_score(ranked.scores[i]),
            )
            for i in chosen
        ]
    )


def hypothesise(given: RateIn) -> HypothesisOut:
    """The question: nothing is known that an answer could say."""
    return HypothesisOut(answer=given.question.strip() or "(empty)")


def explore(given: ExploreIn, embedder: Embedder) -> ExploreOut:
    """The sentences nearest to the query; what to ask next are queries for names and words that these lack."""
    ranked, chosen = _choose(given.query, given.evidence, embedder, _SENTENCES)
    answer = " ".join(flatten(ranked.lines[i].sentence.text) for i in chosen)
    cues = [answer] if answer else []
    probe_input = ProbeIn(question=given.question, past_probes=[given.query], cues=cues, limit=given.limit)
    score = max((_write_score(ranked.scores[i]) for i in chosen), default=0)
    return ExploreOut(answer=answer, score=score, follow_ups=probe(probe_input).probes)


def _choose(question: str, evidence: list[Shown], embedder: Embedder, count: int) -> tuple[Ranked, list[int]]:
    """The sentences with their scores, and up to `count` good ones that differ from one another."""
    found = read_question(question[:_READ])
    ranked = rank(found.terms, read_lines(evidence), found.names)
    compare(found.text, ranked, embedder)
    return ranked, choose_varied(ranked, [i for i in ranked.order[:40] if ranked.scores[i] >= RELEVANT], count)


def _write_score(score: float) -> int:
    return max(1, min(100, round(100 * score)))
