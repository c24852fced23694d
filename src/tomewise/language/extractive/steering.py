"""Steer recall: choose facts and pages, split questions, think of new searches, and say what a search has found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tomewise.language.extractive.confidence import judge_claim
from tomewise.language.extractive.question_words import ParsedQuestion, list_focus_words, read_question
from tomewise.language.extractive.relevance import (
    RELEVANT,
    Line,
    Ranked,
    choose_varied,
    compare,
    is_known,
    join_lines,
    rank,
    read_lines,
    sort_as_told,
)
from tomewise.language.extractive.salience import coverage, find_best, rarity, weigh
from tomewise.language.roles import (
    CueOut,
    DecomposeIn,
    DecomposeOut,
    EncodeIn,
    EncodeOut,
    FilterIn,
    FilterOut,
    FuseIn,
    KeywordsIn,
    KeywordsOut,
    LookUpIn,
    LookUpOut,
    ProbeIn,
    ProbeOut,
    SelectIn,
    SelectOut,
    Shown,
    StepIn,
    StepOut,
    ThinkIn,
    ThinkOut,
)
from tomewise.text.names import find_mentions, list_names
from tomewise.text.sentences import split_sentences
from tomewise.text.stop_words import STOP
from tomewise.text.words import ASKING_STEMS, WORD, flatten, list_terms, make_bag
from tomewise.types import Embedder

_MOST_FACTS = 4  # as many as the filter of HippoRAG 2 leaves
_COMPARED_FACTS = 12
_CUE_SENTENCES, _CUE_SHORTLIST = 3, 8
_MOST_NODES, _NODE_SENTENCES = 4, 24
_FUSED_TOKENS, _FUSED_SENTENCES = 400, 8
_CUE_READ = 60  # lines that a cue is chosen from
# Words of any remark about missing evidence; they do not show what is missing.
_REMARKS = ASKING_STEMS | frozenset(
    list_terms("evidence passage text note source document answer question give ask state provide contain specify lack")
)
_QUERY_WORDS = 8  # words of a remark about missing evidence that go into a query
_READ = 4_000
_BRIDGE_LINES = 3  # lines in which a name is looked for that leads on

# Questions are read on one line, with single blanks (`flatten`).
_RELATIVE = re.compile(
    r"\b(?P<head>(?:the|an?|that) (?:[\w'’-]+ ){1,4}?)"
    r"(?P<link>who|that|which|where|whose|in which|on which) (?P<clause>[^?,]{8,})",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"\b(?P<left>[A-Z][^?,]{1,80}?) (?:and|or) (?P<right>(?:the )?[A-Z\"“][^?,]{1,80}?)"
    r"(?=[?,]| (?:both|the same|share|have|were|are|born|from|in)\b|\Z)"
)
_OF = re.compile(r"\bthe (?P<outer>[\w' ’-]{2,40}?) of (?P<inner>the [\w'’ -]{2,60}? of [^?,]{2,120})", re.IGNORECASE)
_OWNER = re.compile(
    r"(?P<owner>(?:[A-Z][\w.-]{0,40} ){0,4}[A-Z][\w.-]{0,40})['’]s? (?P<thing>[\w-]+(?: (?:of|in) [\w-]+)?)"
)


def filter_facts(given: FilterIn, embedder: Embedder) -> FilterOut:
    """The numbers, from 1, of up to four facts that share words with the question or are similar to it, best first."""
    question = read_question(given.question)
    # Sorted, so that the order in which the facts come does not change the result.
    numbers = sorted(range(len(given.facts)), key=lambda i: (given.facts[i], i))
    facts = [given.facts[i] for i in numbers]
    bags = [make_bag(fact[:_READ]) for fact in facts]
    weights = weigh(question.terms, rarity(bags), 1.0)
    scores = [coverage(weights, bag) for bag in bags]
    compared = find_best(scores, _COMPARED_FACTS)
    if compared and question.text.strip():
        vectors = embedder.embed([question.text[:400], *(facts[i][:200] for i in compared)])
        for i, cosine in zip(compared, vectors[1:] @ vectors[0], strict=True):
            scores[i] += float(cosine)
    chosen = [i for i in find_best(scores, _MOST_FACTS) if scores[i] >= 0.45 and bags[i]]
    return FilterOut(keep=[numbers[i] + 1 for i in chosen])


def select_nodes(given: SelectIn, embedder: Embedder) -> SelectOut:
    """The numbers, from 1, of up to four texts with a sentence near to the question, the best sentence first."""
    question = given.question[:_READ]
    nodes = [node.model_copy(update={"label": str(number)}) for number, node in enumerate(given.nodes, start=1)]
    ranked = rank(read_question(question).terms, read_lines(nodes))
    compare(question, ranked, embedder, shortlist=_NODE_SENTENCES)
    least = max(RELEVANT, 0.6 * ranked.scores[ranked.order[0]]) if ranked.order else 0.0
    numbers = [int(ranked.lines[i].label) for i in ranked.order if ranked.scores[i] >= least and ranked.lines[i].bag]
    return SelectOut(keep=list(dict.fromkeys(numbers))[:_MOST_NODES])


def decompose(given: DecomposeIn) -> DecomposeOut:
    """One question for each of a pair of names. A question whose parts depend on each other is not split."""
    parts = list(dict.fromkeys(part for part in _split_pair(flatten(given.question[:_READ])) if list_terms(part)))
    return DecomposeOut(subqueries=parts[: max(given.limit, 0)] if len(parts) > 1 else [])


def _split_pair(question: str) -> list[str]:
    match = _BOTH.search(question, _skip_question_word(question))
    if match is None or not find_mentions(match["left"]) or not find_mentions(match["right"]):
        return []
    before, after = question[: match.start()], question[match.end() :]
    return [flatten(f"{before}{match[side]}{after}") for side in ("left", "right")]


def _skip_question_word(question: str) -> int:
    """The offset after the question word, whose capital does not make it a name."""
    first = WORD.match(question)
    return first.end() if first and first[0].lower() in STOP else 0


def find_keywords(given: KeywordsIn) -> KeywordsOut:
    """Names, dates and numbers are details, the other words that tell something are themes."""
    question = flatten(given.question[:_READ])
    start = _skip_question_word(question)
    details = list(dict.fromkeys(mention.text for mention in find_mentions(question) if mention.start >= start))
    named = {term for detail in details for term in list_terms(detail)}
    words = dict.fromkeys(match[0] for match in WORD.finditer(question, start))
    themes = [word for word in words if not named.union(ASKING_STEMS).issuperset(list_terms(word))]
    return KeywordsOut(themes=themes, details=details)


def split_nested(question: str) -> list[str]:
    """The smaller questions in a question: from a relative clause, a pair, a nested "of", or an owner."""
    parts = _split_relative(question) or _split_pair(question) or _split_of(question) or _split_owner(question)
    return [part for part in parts if list_terms(part)]


def _split_relative(question: str) -> list[str]:
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


def _split_of(question: str) -> list[str]:
    match = _OF.search(question)
    if match is None:
        return []
    inner = match["inner"].strip(" ?.")
    return [f"What is {inner}?", f"What is the {match['outer']} of {inner.split(' of ')[0]}?"]


def _split_owner(question: str) -> list[str]:
    match = _OWNER.search(question, _skip_question_word(question))
    if match is None or not find_mentions(question[: match.end()]):
        return []
    inner = f"What is {match['owner']}'s {match['thing']}?"
    return [inner, f"{question[: match.start()]}the {match['thing']}{question[match.end() :]}"]


def probe(given: ProbeIn) -> ProbeOut:
    """New queries: for what the last attempt lacked, for new names in the cues, then for words that no cue has."""
    question = read_question(given.question)
    cue_terms = {term for cue in given.cues for term in list_terms(cue[:_READ])}
    words = list_focus_words(question)
    missing = [word for word in words if not any(term in cue_terms for term in list_terms(word))]
    known = set(question.terms)
    new_names = Counter(
        name for cue in given.cues[:200] for name in list_names(cue[:_READ]) if not set(list_terms(name)) <= known
    )
    names = [name for name, _ in sorted(new_names.items(), key=lambda item: -item[1])][:6]
    first = _ask_for_missing(given.missing[:_READ], question)
    ideas = [*first, *_list_ideas(list(question.names), names, words, missing)]
    ideas[len(first) + 1 : len(first) + 1] = split_nested(flatten(question.text[:_READ]))
    used: set[frozenset[str]] = {make_bag(text[:_READ]) for text in [question.text, *given.past_probes]} | {frozenset()}
    return ProbeOut(probes=_drop_used(ideas, used)[: max(given.limit, 0)])


def _ask_for_missing(missing: str, question: ParsedQuestion) -> list[str]:
    """A query for what an attempt reported as missing: the words that say what it is, and the question's names."""
    missing_terms = set(list_terms(missing))
    words = [word for word in WORD.findall(missing) if not set(list_terms(word)) <= _REMARKS]
    names = [name for name in question.names if not set(list_terms(name)) <= missing_terms]
    return [" ".join([*names[:2], *words[:_QUERY_WORDS]])] if words else []


def _list_ideas(names: list[str], new: list[str], words: list[str], missing: list[str]) -> Iterable[str]:
    """Queries from the question's names, the new names of the cues, the words, and those that are missing."""
    key = " ".join((missing or words)[:5])
    if new:
        yield f"{new[0]} {key}"
    for name in names:
        yield f"{name} {key}"
    for name in new[1:]:
        yield f"{name} {key}"
    for left, right in zip(names + new, (names + new)[1:], strict=False):
        yield f"{left} and {right}"
    yield " ".join(words)
    for name in new + names:
        yield f"Who or what is {name}?"
    for word in missing or words:
        yield f"{word} {' '.join(names[:1])}".strip()


def _drop_used(ideas: Iterable[str], used: set[frozenset[str]]) -> list[str]:
    fresh = []
    for idea in map(flatten, ideas):
        bag = make_bag(idea)
        if bag not in used:
            used.add(bag)
            fresh.append(idea)
    return fresh


def encode(given: EncodeIn, embedder: Embedder) -> EncodeOut:
    """The one to three sentences closest to question and probe that say what no known cue says; nothing without one.

    The labels are those of the evidence that the sentences are taken from.
    """
    question = f"{given.question[:_READ]} {given.probe[:_READ]}".strip()
    ranked = rank(read_question(question).terms, read_lines(given.evidence))
    compare(question, ranked, embedder, shortlist=_CUE_SHORTLIST)
    known = [make_bag(sentence.text) for cue in given.known for sentence in split_sentences(cue[:_READ])]
    fresh = [i for i in ranked.order[:_CUE_READ] if not is_known(ranked.lines[i].bag, known)]
    top = ranked.scores[fresh[0]] if fresh else 0.0
    lines = _choose_best(ranked, fresh, count=_CUE_SENTENCES, least=max(RELEVANT, 0.6 * top))
    return EncodeOut(cue=join_lines(lines), labels=list(dict.fromkeys(line.label for line in lines)))


def _choose_best(ranked: Ranked, among: Sequence[int], *, count: int, least: float) -> list[Line]:
    """The best lines that differ from one another, each with a score of at least `least`, in the order of the text."""
    candidates = [i for i in among if ranked.scores[i] >= least and ranked.lines[i].bag]
    chosen = choose_varied(ranked, candidates, count, room=_FUSED_TOKENS)
    return [ranked.lines[i] for i in sort_as_told(ranked, chosen)]


def fuse(given: FuseIn) -> CueOut:
    """The sentences of the cues that are relevant to the question, without repeats."""
    cues = [Shown(label="", text=cue) for cue in given.cues]
    ranked = rank(read_question(given.question).terms, read_lines(cues))
    return CueOut(cue=join_lines(_choose_best(ranked, ranked.order[:_CUE_READ], count=_FUSED_SENTENCES, least=0.05)))


def think(given: ThinkIn, embedder: Embedder) -> ThinkOut:
    """The best sentence of the evidence that no earlier thought holds. It concludes where the evidence is sufficient.

    Without a new sentence the thought says so, and concludes.
    """
    question = read_question(given.question)
    ranked = rank(question.terms, read_lines(given.evidence), question.names)
    compare(question.text, ranked, embedder, shortlist=_CUE_SHORTLIST)
    known = [make_bag(thought[:_READ]) for thought in given.thoughts]
    fresh = [i for i in ranked.order[:_CUE_READ] if ranked.lines[i].bag and not is_known(ranked.lines[i].bag, known)]
    if not fresh:
        return ThinkOut(thought="The evidence says nothing more.", concludes=True)
    concludes = judge_claim(question, ranked, has_options=False) == "full"
    return ThinkOut(thought=flatten(ranked.lines[fresh[0]].sentence.text), concludes=concludes)


def step(given: StepIn) -> StepOut:
    """The smaller questions inside the question, one after another, each searched for; else the question itself.

    Where one question leads to the next, the answer to the last one is added to the words that are searched for.
    """
    question = flatten(given.question[:_READ])
    parts = split_nested(question) or [question]
    number = len(given.asked)
    if number >= len(parts):
        return StepOut(finished=True)
    answer = given.findings[-1].removeprefix(given.asked[-1]).strip() if number and given.findings else ""
    leads_on = bool(answer) and not _split_pair(question)
    return StepOut(subquestion=f"{parts[number]} ({answer[:_READ]})" if leads_on else parts[number])


def look_up(given: LookUpIn, embedder: Embedder) -> LookUpOut:
    """The pages whose gists have the sentences closest to the question, of those that were not read."""
    gists = [page for page in given.evidence if page.label not in given.read]
    ranked = rank(read_question(given.question).terms, read_lines(gists))
    compare(given.question[:_READ], ranked, embedder)
    labels = dict.fromkeys(ranked.lines[i].label for i in ranked.order if ranked.scores[i] >= RELEVANT)
    return LookUpOut(labels=list(labels)[: max(given.limit, 0)])
