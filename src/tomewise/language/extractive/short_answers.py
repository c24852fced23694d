"""Cut a name, a number or a choice out of the nearest sentences: often a wrong one, but what metrics can score."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tomewise.language.extractive.near_sentences import Candidate
from tomewise.language.extractive.question_words import ParsedQuestion, Want, read_question
from tomewise.language.extractive.quoting import find_nearest
from tomewise.language.fences import get_letter
from tomewise.language.roles import FAILURE, AnswerIn, AnswerOut, Quote
from tomewise.text.names import Mention, find_gender, find_mentions, find_sort, find_word_before
from tomewise.text.words import flatten, make_bag
from tomewise.types import Embedder

_SENTENCES = 12  # that are searched for answers
_SUMMARY = 60  # words of an answer to a question that wants a summary
_KINDS: dict[Want, tuple[str, ...]] = {
    "person": ("name",),
    "place": ("name",),
    "date": ("date",),
    "number": ("number",),
    "name": ("name", "title", "date"),
}
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|nowhere|neither|nor|without|refused|denied|failed)\b|n['’]t\b",
    re.IGNORECASE,
)


def answer(given: AnswerIn, embedder: Embedder) -> AnswerOut:
    """The likeliest option, yes or no, a name or number, or sentences; with the sentences on which it rests."""
    question = read_question(given.question, given.instructions)
    nearest = find_nearest(given.question, given.options, given.evidence, (), embedder)
    sentences = nearest.sentences[:_SENTENCES]
    if nearest.lack and (given.may_decline or not (sentences or given.options)):
        return AnswerOut(answer=FAILURE, supported="none", missing=nearest.lack)
    choice = None
    if given.options:
        choice, text, shown = get_letter(nearest.likeliest), given.options[nearest.likeliest], sentences[:1]
    elif question.want == "yes-no":
        denies = bool(_NEGATION.search(sentences[0].text)) != bool(_NEGATION.search(question.text))
        text, shown = "No" if denies else "Yes", sentences[:1]
    elif found := _cut(question, sentences):
        text, shown = found[0], [found[1]]
    else:
        room = _SUMMARY if question.want == "summary" else 0
        fitting = [
            each for each in sentences if (size := len(each.text.split())) <= room and (room := room - size) >= 0
        ]
        shown = fitting or sentences[:1]
        text = " ".join(flatten(each.text) for each in shown)
    return AnswerOut(
        answer=text,
        choice=choice,
        quotes=[Quote(label=each.label, quote=each.text) for each in shown if each.label],
        supported="none" if nearest.lack else "partly",
    )


def _cut(question: ParsedQuestion, sentences: Sequence[Candidate]) -> tuple[str, Candidate] | None:
    """The mention of the wanted kind with the highest score, and the best sentence that has it."""
    kinds = _KINDS.get(question.want, ())
    known = set(question.terms)
    scores: dict[str, float] = {}
    first: dict[str, Candidate] = {}
    for number, sentence in enumerate(sentences):
        for mention in find_mentions(sentence.text):
            if mention.kind in kinds and not make_bag(mention.text) <= known:
                first.setdefault(mention.text, sentence)
                scores[mention.text] = scores.get(mention.text, 0.0) + _rate(question, sentence.text, mention) / (
                    1 + number
                )
    best = max(scores, key=scores.__getitem__, default=None)
    return None if best is None else (best, first[best])


def _rate(question: ParsedQuestion, text: str, mention: Mention) -> float:
    """How well a mention fits the wanted kind, around 1."""
    sort = "person" if find_gender(mention.text) else find_sort(mention.text, find_word_before(text, mention))
    if question.want in ("person", "place"):
        return 1.5 if sort == question.want else 0.3 if sort else 0.9
    return 0.4 if sort == "person" else 1.0
