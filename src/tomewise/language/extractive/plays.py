"""What the extractive model plays in each role. Whatever its name, a role is of one of these kinds:

- quote: the sentences nearest to an answer (`quoting`), or a name cut out of them (`short_answers`);
- extract: the entities of a passage and what relates them (`extracting`); full names for pronouns (`pronouns`);
- summarise: the most central sentences (`summarising`);
- choose: the pieces that have the sentences nearest to a question;
- note: these sentences themselves, under their labels, without what is known already (`near_sentences`);
- join: pairs of texts that share names;
- ask next: the parts of a question, then its names beside words that nothing known has (`question_words`);
- judge: by the words that two texts share (`judging`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from pydantic import BaseModel

from tomewise.errors import ModelError
from tomewise.language.extractive.extracting import extract_entities, extract_relations, extract_triples
from tomewise.language.extractive.judging import judge_correct, judge_entailed, judge_level, judge_statements
from tomewise.language.extractive.near_sentences import join, list_candidates, pick
from tomewise.language.extractive.pronouns import rephrase, write_gist
from tomewise.language.extractive.question_words import (
    ask_next,
    list_focus_words,
    read_question,
    split_pair,
    split_question,
)
from tomewise.language.extractive.quoting import has_all_words, quote
from tomewise.language.extractive.salience import coverage, likeness
from tomewise.language.extractive.short_answers import answer
from tomewise.language.extractive.summarising import summarise
from tomewise.language.roles import (
    Batch,
    CarryIn,
    CarryOut,
    CollectOut,
    ConcernOut,
    CueOut,
    DecomposeOut,
    DrawnInference,
    EncodeIn,
    EncodeOut,
    EvolveIn,
    EvolveOut,
    ExploreIn,
    ExploreOut,
    FilterOut,
    FindingOut,
    HypothesisOut,
    InferIn,
    InferOut,
    InsertionOut,
    KeywordsOut,
    LedgerOut,
    LookOut,
    LooksIn,
    LooksOut,
    LookUpIn,
    LookUpOut,
    MapIn,
    MapOut,
    MarkedFact,
    MarkIn,
    MarkOut,
    MergeOut,
    MergePointsIn,
    MergePointsOut,
    NewInference,
    NotedFact,
    NotesIn,
    NotesOut,
    PlanIn,
    PlanOut,
    PlanReadingIn,
    PlanReadingOut,
    PlanTableOut,
    PointOut,
    ProbeOut,
    RateOut,
    RefineIn,
    RefineOut,
    RelationsOut,
    ReportIn,
    ReportOut,
    RestateOut,
    SameRowsOut,
    SelectOut,
    ShortenOut,
    Shown,
    StepIn,
    StepOut,
    SummaryIn,
    SummaryOut,
    ThinkIn,
    ThinkOut,
    VerifyOut,
)
from tomewise.language.together import write_items
from tomewise.text.names import list_names
from tomewise.text.words import flatten, list_terms, make_bag
from tomewise.types import Embedder, In, Out, Role

Play = Callable[[Any], BaseModel]
EmbeddingPlay = Callable[[Any, Embedder], BaseModel]

_READ = 4_000  # characters of a text whose words are compared
_KEPT = 4  # facts and texts, as many as the filter of HippoRAG 2 leaves
_CUE, _FUSED, _POINTS, _NOTE = 3, 8, 6, 40  # sentences
_FUSED_TOKENS, _TOKENS_PER_WORD = 400, 1.4
_FOR_QUESTION, _FOR_EACH, _OPEN = 3, 10, 12  # parts of the wanted facts, and open questions that have such a part
_SETTLED = 0.9  # the share of an open question's words in one entry from which on it counts as answered
_JOINED, _LONGEST_JOINED, _COMPARED = 2, 1_200, 200  # pairs, characters of one, and texts that are compared
_SAME_MATTER = 0.5  # the least overlap of the entities of points that are merged
_NAMED = 3  # entities in the title of a report
_BEST = 5  # of a rating


# ---------------------------------------------------------------- choose


def _choose(question: str, pieces: Sequence[Shown], count: int, embedder: Embedder) -> list[int]:
    """The numbers of the pieces with the nearest sentences, from 1, best first."""
    picked = pick(question, list_candidates(pieces), 3 * count, embedder)
    return list(dict.fromkeys(each.candidate.rank + 1 for each in picked))[: max(count, 0)]


def look_up(given: LookUpIn, embedder: Embedder) -> LookUpOut:
    """Pages that were not read, by their gists."""
    unread = [page for page in given.evidence if page.label not in given.read]
    return LookUpOut(
        labels=[unread[number - 1].label for number in _choose(given.question, unread, given.limit, embedder)]
    )


def _show(texts: Sequence[str]) -> list[Shown]:
    return [Shown(label="", text=text) for text in texts]


# ---------------------------------------------------------------- note


def encode(given: EncodeIn, embedder: Embedder) -> EncodeOut:
    """A cue of up to three sentences that no known cue says."""
    asked = f"{given.question} {given.probe}"
    picked = pick(asked, list_candidates(given.evidence), _CUE, embedder, known=given.known)
    return EncodeOut(cue=join(picked), labels=list(dict.fromkeys(each.candidate.label for each in picked)))


def choose_looks(given: LooksIn, embedder: Embedder) -> LooksOut:
    """It keeps the nearest sentences, finds names of the question, else its words, and searches, all in one reply."""
    picked = pick(given.question, list_candidates(given.evidence), _CUE, embedder, known=given.notes)
    question = read_question(flatten(given.question))
    wanted = [LookOut(tool="find", what=name) for name in question.names or list_focus_words(question)]
    wanted += [LookOut(tool="search", what=query) for query in ask_next(given.question, 1, known=given.notes)]
    done = {look.what for look in (*given.tried, *given.results)}
    looks = [look for look in wanted if look.tool in given.tools and look.what not in done][-given.limit :]
    return LooksOut(
        note=join(picked),
        keep=list(dict.fromkeys(each.candidate.label for each in picked)),
        finished=not looks or any(look.tool == "find" for look in given.results),
        looks=looks,
    )


def think(given: ThinkIn, embedder: Embedder) -> ThinkOut:
    """The nearest sentence that no thought has yet; it concludes where it has all words of the question."""
    picked = pick(given.question, list_candidates(given.evidence), 1, embedder, known=given.thoughts)
    if not picked:
        return ThinkOut(thought="The evidence says nothing more.", concludes=True)
    return ThinkOut(thought=join(picked), concludes=has_all_words(read_question(given.question), picked[0].candidate))


def extract_notes(given: NotesIn, embedder: Embedder) -> NotesOut:
    """Sentences for the question, and for each open question, in their order.

    They are the best of all that stand there, one fewer than a reply may have: none is left to go on with.
    """
    candidates = list_candidates(given.evidence)
    known = [entry.text for entry in given.known] if isinstance(given, MarkIn) else []
    picked = pick(given.question, candidates, max(1, given.limit // _FOR_QUESTION), embedder, known=known)
    for asked in (*given.questions, *given.nets)[:_OPEN]:
        picked += pick(asked, candidates, max(1, given.limit // _FOR_EACH), known=known)
    first = {each.place: each.candidate for each in picked}
    in_order = [each for _, each in sorted(list(first.items())[: given.limit - 1])]
    return NotesOut(facts=[NotedFact(label=each.label, quote=each.text, fact=each.text) for each in in_order])


def mark_facts(given: MarkIn, embedder: Embedder) -> MarkOut:
    """The same sentences, without those that are known."""
    facts = extract_notes(given, embedder).facts
    return MarkOut(facts=[MarkedFact(label=fact.label, quote=fact.quote) for fact in facts])


def carry_note(given: CarryIn) -> CarryOut:
    """Sentences of the note, then of the passages, as many as have room."""
    candidates = list_candidates([*_show([given.note]), *given.evidence])
    return CarryOut(note=join(pick(given.question, candidates, _NOTE, room=round(_TOKENS_PER_WORD * given.words))))


def map_reports(given: MapIn, embedder: Embedder) -> MapOut:
    """Each sentence is a point."""
    picked = pick(given.question, list_candidates(given.evidence), _POINTS, embedder)
    points = [
        PointOut(description=flatten(each.candidate.text), labels=[each.candidate.label], score=round(100 * each.score))
        for each in picked
    ]
    return MapOut(points=points)


def explore(given: ExploreIn, embedder: Embedder) -> ExploreOut:
    """Sentences for the query, and what to ask next for the question."""
    picked = pick(given.query, list_candidates(given.evidence), _CUE, embedder)
    text = join(picked)
    return ExploreOut(
        answer=text,
        score=round(100 * picked[0].score) if picked else 0,
        follow_ups=ask_next(given.question, given.limit, known=[text], asked=[given.query]),
    )


def evolve(given: EvolveIn, embedder: Embedder) -> EvolveOut:
    """Each sentence that no point has is a new point over the names in it."""
    asked = " ".join([given.question, *given.subqueries])
    known = [point.description for point in given.points]
    titles = [item.title for item in given.evidence if item.kind == "entity"]
    candidates = list_candidates([item for item in given.evidence if item.kind != "entity"])
    insertions = []
    for each in pick(asked, candidates, _CUE, embedder, known=known):
        text = flatten(each.candidate.text)
        names = [title for title in titles if title and make_bag(title) <= each.candidate.bag]
        if names := list(dict.fromkeys([*names, *list_names(text)])):
            insertions.append(InsertionOut(description=text, entities=names, evidence=[each.candidate.label]))
    return EvolveOut(insertions=insertions)


def write_report(given: ReportIn) -> ReportOut:
    """The names with most links, the central sentences, and the first relations as findings."""
    names = [row.name for row in sorted(given.entities, key=lambda row: -row.degree)[:_NAMED]]
    title = ", ".join(filter(None, map(str.strip, names))) or "A community"
    texts = [row.description for row in given.relations] + given.reports
    findings: dict[str, FindingOut] = {}
    for row in given.relations:
        ends = flatten(f"{row.source} and {row.target}")
        text = flatten(row.description) or ends
        finding = findings.setdefault(text, FindingOut(headline=ends, explanation=text))
        finding.records = list(dict.fromkeys([*finding.records, row.label]))
    return ReportOut(
        title=title,
        summary=summarise(texts or [title], round(_TOKENS_PER_WORD * given.words / 2)),
        importance=min(10, len(given.relations)),
        reason=f"It joins {len(given.entities)} entities by {len(given.relations)} relations.",
        findings=list(findings.values())[: given.findings],
    )


# ---------------------------------------------------------------- join


def update_ledger(given: RefineIn) -> LedgerOut:
    """Infer, then refine with what was inferred. It replaces and settles nothing."""
    drawn, refined = infer_notes(given).inferences, refine_questions(given)
    inferences = [NewInference(rests_on=each.rests_on, inference=each.inference) for each in drawn]
    return LedgerOut(inferences=inferences, answered=refined.answered, new=refined.new)


def infer_notes(given: InferIn) -> InferOut:
    """Facts that share a name, side by side; those with most of the question's words."""
    facts = given.facts[-_COMPARED:]
    bags = [make_bag(fact.text[:_READ]) for fact in facts]
    names = [set(list_names(fact.text[:_READ])) for fact in facts]
    terms = set(read_question(given.question).terms)
    pairs = [(left, right) for left, right in combinations(range(len(facts)), 2) if names[left] & names[right]]
    pairs.sort(key=lambda pair: -len(terms & (bags[pair[0]] | bags[pair[1]])))
    known = {each.text for each in given.inferences}
    drawn = [
        DrawnInference.model_validate({"rests_on": [facts[left].label, facts[right].label], "inference": text})
        for left, right in pairs
        if (text := flatten(f"{facts[left].text} {facts[right].text}")) not in known
    ]
    return InferOut(inferences=drawn[:_JOINED])


def merge_points(given: MergePointsIn) -> MergePointsOut:
    """Points that share half of their entities or more, two at least; no point is in two pairs."""
    merged: set[str] = set()
    merges = []
    for left, right in combinations(given.points[-_COMPARED:], 2):
        shared = {*left.entities} & {*right.entities}
        description = f"{left.description} {right.description}"
        alike = len(shared) >= max(2, _SAME_MATTER * len({*left.entities, *right.entities}))
        if alike and len(description) <= _LONGEST_JOINED and not {left.id, right.id} & merged:
            merged |= {left.id, right.id}
            merges.append(MergeOut(points=[left.id, right.id], description=description))
    return MergePointsOut(merges=merges)


# ---------------------------------------------------------------- ask next


def plan(given: PlanIn) -> PlanOut:
    """New queries, every second one around the point that shares most words with it, until all were asked."""
    known = [point.description for point in given.points]
    bags = {point.id: make_bag(point.description[:_READ]) for point in given.points[-_COMPARED:]}
    concerns = []
    for number, query in enumerate(ask_next(given.question, given.limit, known=known, asked=given.searched)):
        bag = make_bag(query)
        points = sorted(bags, key=lambda point: -likeness(bag, bags[point]))[:1]
        place = given.place
        if place == "either":
            place = "local" if points and number % 2 == 0 else "global"
        concerns.append(
            ConcernOut(concern=query, points=points if place == "local" else [], place=place, subqueries=[query])
        )
    return PlanOut(sufficient=not concerns, concerns=concerns)


def plan_reading(given: PlanReadingIn) -> PlanReadingOut:
    """The parts of a question, else the question itself; wide questions about its names and words."""
    question = read_question(flatten(given.question))
    whole = [question.text] if list_terms(question.text) else []
    things = filter(None, [*question.names, " ".join(list_focus_words(question))])
    nets = [f"What does the text say of {thing}?" for thing in dict.fromkeys(things)]
    return PlanReadingOut(questions=(split_question(question.text) or whole)[: given.limit], nets=nets[: given.nets])


def refine_questions(given: RefineIn) -> RefineOut:
    """An open question is answered if one entry has almost all of its words. One more is asked."""
    entries = [entry.text[:_READ] for entry in (*given.facts, *given.inferences)[-_COMPARED:]]
    bags = list(map(make_bag, entries))
    asked = [*given.questions, *given.nets]
    answered = [number for number, each in enumerate(asked, start=1) if _measure_share(each, bags) >= _SETTLED]
    return RefineOut(answered=answered, new=ask_next(given.question, 1, known=entries, asked=asked))


def step(given: StepIn) -> StepOut:
    """The parts of a question in turn, else the question itself. A part that follows another has its answer."""
    parts = split_question(given.question) or [flatten(given.question)[:_READ]]
    number = len(given.asked)
    if number >= len(parts):
        return StepOut(finished=True)
    found = given.findings[-1].removeprefix(given.asked[-1]).strip() if number and given.findings else ""
    if found and not split_pair(given.question):
        return StepOut(subquestion=f"{parts[number]} ({found[:_READ]})")
    return StepOut(subquestion=parts[number])


# ---------------------------------------------------------------- which role takes which play


def _measure_share(question: str, bags: Sequence[Collection[str]]) -> float:
    """The largest share of a question's words that one bag has."""
    weights = dict.fromkeys(read_question(question).terms, 1.0)
    return max((coverage(weights, bag) for bag in bags), default=0.0)


def _summarise(given: SummaryIn) -> SummaryOut:
    return SummaryOut(summary=summarise(given.texts, given.max_tokens))


PLAYS: Mapping[str, Play] = {
    "gist": write_gist,
    "extract_triples": extract_triples,
    "extract_facts": extract_triples,
    "extract_entities": extract_entities,
    "extract_relations": extract_relations,
    "glean_relations": lambda _: RelationsOut(),  # patterns that are applied again find nothing new
    "summarise": _summarise,
    "aggregate": _summarise,
    "narrate": _summarise,
    "restate": lambda _: RestateOut(),  # it says nothing that its texts do not say
    "shorten": lambda given: ShortenOut(gist=summarise([given.text], round(_TOKENS_PER_WORD * given.words))),
    "write_report": write_report,
    "carry_note": carry_note,
    "fuse": lambda given: CueOut(
        cue=join(pick(given.question, list_candidates(_show(given.cues)), _FUSED, room=_FUSED_TOKENS))
    ),
    "infer_notes": infer_notes,
    "merge_points": merge_points,
    "decompose": lambda given: DecomposeOut(subqueries=split_pair(given.question)[: max(given.limit, 0)]),
    "keywords": lambda given: KeywordsOut(  # names, dates and numbers are details
        themes=list_focus_words(question := read_question(flatten(given.question))), details=list(question.names)
    ),
    "probe": lambda given: ProbeOut(
        probes=ask_next(given.question, given.limit, known=given.cues, asked=given.past_probes, missing=given.missing)
    ),
    "plan": plan,
    "plan_reading": plan_reading,
    "refine_questions": refine_questions,
    "update_ledger": update_ledger,
    "step": step,
    "rephrase": rephrase,
    "hypothesise": lambda given: HypothesisOut(answer=given.question.strip() or "(empty)"),
    "rate_report": lambda given: RateOut(
        rating=round(_BEST * _measure_share(given.question, [make_bag(given.report[:_READ])]))
    ),
    "judge_correct": judge_correct,
    "judge_entailed": judge_entailed,
    "judge_level": judge_level,
    "judge_statements": judge_statements,
    "verify": lambda _: VerifyOut(),  # our own check has gone as far as it can
    "plan_table": lambda given: PlanTableOut(item=given.question),
    "collect": lambda _: CollectOut(),  # `Tome.collect` wants a model that reads
    "same_rows": lambda _: SameRowsOut(),
}
# These compare meanings. That takes so long that they run in a thread, beside the event loop.
EMBEDDING_PLAYS: Mapping[str, EmbeddingPlay] = {
    "answer": quote,
    "filter_facts": lambda given, embedder: FilterOut(
        keep=_choose(given.question, _show(given.facts), _KEPT, embedder)
    ),
    "select_nodes": lambda given, embedder: SelectOut(keep=_choose(given.question, given.nodes, _KEPT, embedder)),
    "look_up": look_up,
    "encode": encode,
    "think": think,
    "choose_looks": choose_looks,
    "extract_notes": extract_notes,
    "mark_facts": mark_facts,
    "map_reports": map_reports,
    "explore": explore,
    "evolve": evolve,
}


def find_embedding_play(role: Role[In, Out], *, short_answers: bool) -> EmbeddingPlay | None:
    """The play of a role that compares meanings, if its algorithm does."""
    if role.play is not None:
        return None
    return answer if short_answers and role.name == "answer" else EMBEDDING_PLAYS.get(role.name)


def find_play(role: Role[In, Out], given: In) -> Play:
    """The play of any other role. Raises ModelError for a role without one."""
    play = role.play or PLAYS.get(role.name)
    if play is None:
        known = ", ".join(sorted([*PLAYS, *EMBEDDING_PLAYS]))
        raise ModelError(
            f"the extractive model cannot play the role {role.name!r}: use one of {known}, give the role a `play`, "
            "or use a real model"
        )
    return partial(_play_each, play, role.output) if isinstance(given, Batch) else play


def _play_each(play: Play, output: type[BaseModel], given: Batch) -> BaseModel:
    """Play each passage of a batch alone: no algorithm gains from its neighbours."""
    return output.model_validate({"passages": write_items([play(each) for each in given.passages])})
