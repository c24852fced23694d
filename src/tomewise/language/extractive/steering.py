"""Steering recall: which facts help, which smaller questions to ask, what to look for next, what was found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tomewise.language.extractive.names import mentions
from tomewise.language.extractive.question_words import ParsedQuestion, focus, read_question
from tomewise.language.extractive.relevance import Ranked, compare, in_telling_order, lines_of, rank
from tomewise.language.extractive.salience import best, coverage, rarity, vary, weigh
from tomewise.language.extractive.summarising import tokens
from tomewise.language.extractive.words import ASKING_STEMS, WORD, flat, terms
from tomewise.language.roles import (
    CueOut,
    DecomposeIn,
    DecomposeOut,
    EncodeIn,
    FilterIn,
    FilterOut,
    FuseIn,
    ProbeIn,
    ProbeOut,
    Shown,
)
from tomewise.language.sentences import split_sentences
from tomewise.language.stop_words import STOP
from tomewise.types import Embedder

_KEPT_FACTS = 4  # as many as HippoRAG 2's recognition keeps
_COMPARED_FACTS = 12
_CUE_SENTENCES, _CUE_SHORTLIST = 3, 8
_RELEVANT = 0.15  # the least score of a sentence that contributes to a question
_FUSED_TOKENS, _FUSED_SENTENCES = 400, 8
_CUE_READ = 60  # lines that a cue is chosen from
# What a remark on evidence says whatever is missing.
_REMARKS = ASKING_STEMS | frozenset(
    terms("evidence passage text note source document answer question give ask state provide contain specify lack")
)
_LACKING = 8  # words of what was missing that make a query
_REPEATED = 0.8  # the share of a sentence's words from which on another sentence says the same
_READ = 4_000

_RELATIVE = re.compile(
    r"\b(?P<head>(?:the|an?|that)\s+(?:[\w'’-]+\s+){1,4}?)"
    r"(?P<link>who|that|which|where|whose|in which|on which)\s+(?P<clause>[^?,]{8,})",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"\b(?P<left>[A-Z][^?,]{1,80}?)\s+(?:and|or)\s+(?P<right>(?:the\s+)?[A-Z\"“][^?,]{1,80}?)"
    r"(?=[?,]|\s+(?:both|the same|share|have|were|are|born|from|in)\b|\Z)"
)
_OF = re.compile(
    r"\bthe\s+(?P<outer>[\w' ’-]{2,40}?)\s+of\s+(?P<inner>the\s+[\w'’ -]{2,60}?\s+of\s+[^?,]{2,120})", re.IGNORECASE
)
_OWNER = re.compile(
    r"(?P<owner>(?:[A-Z][\w.-]*\s+){0,4}[A-Z][\w.-]*)['’]s?\s+(?P<thing>[\w-]+(?:\s+(?:of|in)\s+[\w-]+)?)"
)


def filter_facts(given: FilterIn, embedder: Embedder) -> FilterOut:
    """The numbers, from 1, of up to four facts that share words with the question or are close to it, best first."""
    question = read_question(given.question)
    # Read in an order of their own, so that the order in which they are shown decides nothing.
    numbers = sorted(range(len(given.facts)), key=lambda i: (given.facts[i], i))
    facts = [given.facts[i] for i in numbers]
    bags = [frozenset(terms(fact[:_READ])) for fact in facts]
    weights = weigh(question.terms, rarity(bags), 1.0)
    scores = [coverage(weights, bag) for bag in bags]
    compared = best(scores, _COMPARED_FACTS)
    if compared and question.text.strip():
        vectors = embedder.embed([question.text[:400], *(facts[i][:200] for i in compared)])
        for i, cosine in zip(compared, vectors[1:] @ vectors[0], strict=True):
            scores[i] += float(cosine)
    kept = [i for i in best(scores, _KEPT_FACTS) if scores[i] >= 0.45 and bags[i]]
    return FilterOut(keep=[numbers[i] + 1 for i in kept])


def decompose(given: DecomposeIn) -> DecomposeOut:
    """The questions that a pair of names makes of one; where one thing leads to the next it stays whole."""
    parts = list(dict.fromkeys(part for part in _pair(flat(given.question[:_READ])) if terms(part)))
    return DecomposeOut(subqueries=parts[: max(given.limit, 0)] if len(parts) > 1 else [])


def _seams(question: str) -> list[str]:
    """Smaller questions inside of one: of a relative clause, a pair, a nested "of", an owner."""
    parts = _relative(question) or _pair(question) or _nested(question) or _owned(question)
    return [part for part in parts if terms(part)]


def _relative(question: str) -> list[str]:
    match = _RELATIVE.search(question)
    if match is None or match.start() == 0:
        return []
    clause = match["clause"].strip(" ?.")
    head = match["head"].strip()
    inner = f"Which {re.sub(r'^(?:the|an?|that) ', '', head, flags=re.IGNORECASE)} {clause}?"
    if re.search(r"\b(?:person|man|woman|someone)\Z", head):
        inner = f"Who {clause}?"
    outer = f"{question[: match.start()]}{head}{question[match.end() :]}".strip(" ?.") + "?"
    return [inner, outer]


def _opening(question: str) -> int:
    """Where a question begins after its question word, whose capital names nothing."""
    first = WORD.match(question)
    return first.end() if first and first[0].lower() in STOP else 0


def _pair(question: str) -> list[str]:
    match = _BOTH.search(question, _opening(question))
    if match is None or not mentions(match["left"]) or not mentions(match["right"]):
        return []
    before, after = question[: match.start()], question[match.end() :]
    return [flat(f"{before}{match[side]}{after}") for side in ("left", "right")]


def _nested(question: str) -> list[str]:
    match = _OF.search(question)
    if match is None:
        return []
    inner = match["inner"].strip(" ?.")
    return [f"What is {inner}?", f"What is the {match['outer']} of {inner.split(' of ')[0]}?"]


def _owned(question: str) -> list[str]:
    match = _OWNER.search(question, _opening(question))
    if match is None or not mentions(question[: match.end()]):
        return []
    inner = f"What is {match['owner']}'s {match['thing']}?"
    return [inner, f"{question[: match.start()]}the {match['thing']}{question[match.end() :]}"]


def probe(given: ProbeIn) -> ProbeOut:
    """New queries: what the last attempt lacked, names the cues brought up, then what no cue has covered yet."""
    question = read_question(given.question)
    said = Counter(term for cue in given.cues for term in set(terms(cue[:_READ])))
    words = focus(question)
    missing = [word for word in words if not any(term in said for term in terms(word))]
    known = set(question.terms)
    brought = Counter(
        m.text
        for cue in given.cues[:200]
        for m in mentions(cue[:_READ])
        if m.kind in ("name", "title") and not set(terms(m.text)) <= known
    )
    names = [name for name, _ in sorted(brought.items(), key=lambda item: -item[1])][:6]
    lacking = _lacking(given.missing[:_READ], question)
    ideas = [*lacking, *_ideas(list(question.names), names, words, missing)]
    ideas[len(lacking) + 1 : len(lacking) + 1] = _seams(flat(question.text[:_READ]))
    used: set[frozenset[str]] = {frozenset(terms(text[:_READ])) for text in [question.text, *given.past_probes]} | {
        frozenset()
    }
    return ProbeOut(probes=_fresh(ideas, used)[: max(given.limit, 0)])


def _lacking(missing: str, question: ParsedQuestion) -> list[str]:
    """A query of what an attempt said it lacked: its telling words, with the names of the question."""
    lacked = set(terms(missing))
    words = [word for word in WORD.findall(missing) if not set(terms(word)) <= _REMARKS]
    names = [name for name in question.names if not set(terms(name)) <= lacked]
    return [" ".join([*names[:2], *words[:_LACKING]])] if words else []


def _ideas(own: list[str], brought: list[str], words: list[str], missing: list[str]) -> Iterable[str]:
    key = " ".join((missing or words)[:5])
    if brought:
        yield f"{brought[0]} {key}"
    for name in own:
        yield f"{name} {key}"
    for name in brought[1:]:
        yield f"{name} {key}"
    for left, right in zip(own + brought, (own + brought)[1:], strict=False):
        yield f"{left} and {right}"
    yield " ".join(words)
    for name in brought + own:
        yield f"Who or what is {name}?"
    for word in missing or words:
        yield f"{word} {' '.join(own[:1])}".strip()


def _fresh(ideas: Iterable[str], used: set[frozenset[str]]) -> list[str]:
    fresh = []
    for idea in map(flat, ideas):
        bag = frozenset(terms(idea))
        if bag not in used:
            used.add(bag)
            fresh.append(idea)
    return fresh


def _quote_best(ranked: Ranked, among: Sequence[int], *, count: int, least: float) -> str:
    """The best lines, varied, all worth at least `least`, in the order in which they are told."""
    worth = [i for i in among if ranked.scores[i] >= least and ranked.lines[i].bag]
    chosen = vary(
        [min(ranked.scores[i], 1.0) for i in worth],
        [ranked.lines[i].bag for i in worth],
        lengths=[tokens(ranked.lines[i].sentence.text) for i in worth],
        room=_FUSED_TOKENS,
        count=count,
    )
    told = in_telling_order(ranked, [worth[i] for i in chosen])
    return " ".join(dict.fromkeys(flat(ranked.lines[i].sentence.text) for i in told))


def encode(given: EncodeIn, embedder: Embedder) -> CueOut:
    """The one to three sentences closest to question and probe that say what no known cue says; nothing without one."""
    question = f"{given.question[:_READ]} {given.probe[:_READ]}".strip()
    ranked = rank(read_question(question).terms, lines_of(given.evidence))
    compare(question, ranked, embedder, shortlist=_CUE_SHORTLIST)
    known = [frozenset(terms(sentence.text)) for cue in given.known for sentence in split_sentences(cue[:_READ])]
    fresh = [i for i in ranked.order[:_CUE_READ] if not _is_known(ranked.lines[i].bag, known)]
    top = ranked.scores[fresh[0]] if fresh else 0.0
    return CueOut(cue=_quote_best(ranked, fresh, count=_CUE_SENTENCES, least=max(_RELEVANT, 0.6 * top)))


def _is_known(bag: frozenset[str], known: Iterable[frozenset[str]]) -> bool:
    """Whether one known sentence has nearly all the words of this one."""
    return any(len(bag & other) >= _REPEATED * len(bag) for other in known)


def fuse(given: FuseIn) -> CueOut:
    """What the cues say to the question, each thing once."""
    cues = [Shown(label="", text=cue) for cue in given.cues]
    ranked = rank(read_question(given.question).terms, lines_of(cues))
    return CueOut(cue=_quote_best(ranked, ranked.order[:_CUE_READ], count=_FUSED_SENTENCES, least=0.05))
