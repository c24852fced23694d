"""Read a text in order: plan questions, note sentences of each part, join facts, drop questions that are answered."""

from __future__ import annotations

from collections.abc import Iterable

from tomewise.language.extractive.question_words import list_focus_words, read_question
from tomewise.language.extractive.relevance import Ranked, choose_varied, compare, join_lines, rank, read_lines
from tomewise.language.extractive.salience import coverage, rarity, weigh
from tomewise.language.extractive.steering import split_nested
from tomewise.language.roles import (
    CarryIn,
    CarryOut,
    DrawnInference,
    Entry,
    InferIn,
    InferOut,
    NotedFact,
    NotesIn,
    NotesOut,
    PlanReadingIn,
    PlanReadingOut,
    RefineIn,
    RefineOut,
    Shown,
)
from tomewise.text.names import list_names
from tomewise.text.words import flatten, list_question_terms, list_terms, make_bag
from tomewise.types import Embedder

_READ = 4_000  # characters of a question or an entry
_MOST_ASKED = 12  # open questions that sentences are chosen for
_FOR_QUESTION, _FOR_EACH = 3, 10  # the parts of the wanted facts that are for the question, and for each open question
_LEAST, _LEAST_EACH = 0.15, 0.35  # the least score of such a sentence
_SETTLED = 0.9  # the share of an open question's words in one fact from which on it counts as answered
_MOST_ENTRIES, _MOST_JOINED = 200, 2
_WORDS_PER_TOKEN = 0.7


def plan_reading(given: PlanReadingIn) -> PlanReadingOut:
    """The smaller questions in a question, else the question itself; wide questions about its names and words."""
    text = flatten(given.question[:_READ])
    question = read_question(text)
    questions = list(dict.fromkeys(split_nested(text) or ([text] if list_terms(text) else [])))[: given.limit]
    things = [*question.names, *([" ".join(list_focus_words(question)[:6])] if list_focus_words(question) else [])]
    nets = [f"What does the text say of {thing}?" for thing in dict.fromkeys(things)]
    return PlanReadingOut(questions=questions, nets=nets[: given.nets])


def extract_notes(given: NotesIn, embedder: Embedder) -> NotesOut:
    """The sentences nearest to the question, and those that share most words with each open question."""
    lines = read_lines(given.evidence)
    question = read_question(given.question[:_READ])
    ranked = rank(question.terms, lines, question.names)
    compare(question.text, ranked, embedder)
    for_each = max(1, given.limit // _FOR_EACH)
    chosen = dict.fromkeys(_choose(ranked, max(1, given.limit // _FOR_QUESTION), _LEAST))
    for asked in (*given.questions, *given.nets)[:_MOST_ASKED]:
        found = _choose(rank(list_question_terms(asked[:_READ]), lines), for_each, _LEAST_EACH)
        chosen.update(dict.fromkeys(found))
    in_order = sorted(
        list(chosen)[: given.limit], key=lambda i: (_read_number(lines[i].label), lines[i].sentence.start)
    )
    texts = [(lines[i].label, lines[i].sentence.text) for i in in_order]
    return NotesOut(facts=[NotedFact(label=label, quote=text, fact=text) for label, text in texts])


def _choose(ranked: Ranked, count: int, least: float) -> list[int]:
    candidates = [i for i in ranked.order[:40] if ranked.scores[i] >= least and ranked.lines[i].bag]
    return choose_varied(ranked, candidates, count)


def _read_number(label: str) -> int:
    digits = "".join(sign for sign in label if "0" <= sign <= "9")[:8]
    return int(digits or 0)


def infer_notes(given: InferIn) -> InferOut:
    """Pairs of facts that share a name, side by side, if they hold more of the question's words together."""
    entries = [entry for entry in given.facts[-_MOST_ENTRIES:] if entry.text.strip()]
    known = {flatten(entry.text) for entry in given.inferences}
    bags = [make_bag(entry.text[:_READ]) for entry in entries]
    weights = weigh(list_question_terms(given.question[:_READ]), rarity(bags), 1.0)
    names = [_list_names(entry) for entry in entries]
    gains: list[tuple[float, int, int]] = []
    for later in range(len(entries)):
        for earlier in range(later):
            if names[earlier] & names[later]:
                alone = max(coverage(weights, bags[earlier]), coverage(weights, bags[later]))
                gains.append((coverage(weights, bags[earlier] | bags[later]) - alone, earlier, later))
    gains = sorted((gain for gain in gains if gain[0] > 0), key=lambda gain: (-gain[0], gain[1], gain[2]))
    joined = [_join(entries[earlier], entries[later]) for _, earlier, later in gains[: 4 * _MOST_JOINED]]
    return InferOut(inferences=[each for each in joined if each.inference not in known][:_MOST_JOINED])


def _list_names(entry: Entry) -> frozenset[str]:
    return frozenset(map(flatten, list_names(entry.text[:_READ])))


def _join(earlier: Entry, later: Entry) -> DrawnInference:
    return DrawnInference(rests_on=[earlier.label, later.label], inference=flatten(f"{earlier.text} {later.text}"))


def refine_questions(given: RefineIn) -> RefineOut:
    """An open question is answered if one entry has almost all of its words; the nearest entry may give a new name."""
    entries = [entry for entry in (*given.facts, *given.inferences)[-_MOST_ENTRIES:] if entry.text.strip()]
    bags = [make_bag(entry.text[:_READ]) for entry in entries]
    idf = rarity(bags)
    answered = [
        number
        for number, open_question in enumerate((*given.questions, *given.nets), start=1)
        if any(coverage(weigh(list_question_terms(open_question[:_READ]), idf, 1.0), bag) >= _SETTLED for bag in bags)
    ]
    still_open = len(given.questions) - sum(number <= len(given.questions) for number in answered)
    asked_terms = {make_bag(each[:_READ]) for each in (*given.questions, *given.nets)}
    weights = weigh(list_question_terms(given.question[:_READ]), idf, 1.0)
    best = max(range(len(entries)), key=lambda i: (coverage(weights, bags[i]), -i), default=None)
    new = [] if best is None else _ask_for_names(entries[best], given.question, asked_terms)
    return RefineOut(answered=answered, new=new[: 1 if given.limit is None or still_open < given.limit else 0])


def _ask_for_names(entry: Entry, question: str, asked: Iterable[frozenset[str]]) -> list[str]:
    """Questions about the names of an entry that neither the question nor an open question has."""
    known = set(list_terms(question[:_READ])).union(*asked)
    names = [name for name in sorted(_list_names(entry)) if list_terms(name) and not set(list_terms(name)) <= known]
    return [f"Who or what is {name}?" for name in names]


def carry_note(given: CarryIn) -> CarryOut:
    """The sentences of the note and of the passages that are nearest to the question, as many as have room."""
    pieces = [Shown(label="", text=given.note, kind="note")] if given.note.strip() else []
    lines = read_lines([*pieces, *given.evidence])
    ranked = rank(read_question(given.question[:_READ]).terms, lines)
    candidates = [i for i in ranked.order[:80] if ranked.scores[i] > 0 and lines[i].bag]
    chosen = choose_varied(ranked, candidates, 40, room=round(given.words / _WORDS_PER_TOKEN))
    # Those of the note come first, then those of the passages, both in the order of the text.
    ordered = sorted((lines[i] for i in chosen), key=lambda line: (_read_number(line.label), line.sentence.start))
    return CarryOut(note=join_lines(ordered))
