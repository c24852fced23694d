"""Answers of several sentences: what a meeting, a report or a story says about a question."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tomewise.language.extractive.question_words import ParsedQuestion
from tomewise.language.extractive.relevance import Line, Ranked, drop_speaker, sort_as_told
from tomewise.language.extractive.salience import centrality, rarity, vary
from tomewise.text.words import flatten, list_terms

_TALK = frozenset({"reason", "clause", "name", "yes-no"})
_WORDS, _WORDS_WHOLE, _SENTENCES = 80, 150, 8
_SHORTEST = 4  # least number of different terms of a sentence that can be understood alone
_CENTRAL, _SPEAKER, _QUESTION = 0.3, 0.3, 0.4
_WISH = re.compile(r"\b(\d{1,4})\s+(words|sentences)\b", re.IGNORECASE)
_WHOLE = re.compile(r"\b(?:whole|entire|overall)\b", re.IGNORECASE)
# Marks of transcription and sounds of hesitation. Quotes keep them; answers are easier to read without them.
_NOISE = re.compile(r"\{\w{1,20}\}|\b(?:uh|um|uhm|mm|hmm|er)\b ?,?|(?<=\s)(?=[,.?!;])", re.IGNORECASE)
_STAMMER = re.compile(r"\b(\w+)(?: \1\b)+", re.IGNORECASE)
_LEFT_OVER = re.compile(r"(?<!\s)\s++(?=[,.?!;])|(?<=[,;])(?:\s*+[,;])+|(?<=[:,])\s*+,")


def is_transcript(ranked: Ranked) -> bool:
    """Whether most of the evidence is a transcript of a conversation."""
    return 2 * sum(bool(line.sentence.speaker) for line in ranked.lines) > len(ranked.lines)


def wants_outline(question: ParsedQuestion, ranked: Ranked) -> bool:
    """Whether the answer needs several sentences: a summary, or what people say in a conversation."""
    return question.want == "summary" or (question.want in _TALK and is_transcript(ranked))


def outline(question: ParsedQuestion, ranked: Ranked, instructions: str) -> tuple[str, list[int]]:
    """Sentences that are relevant to the question and central among the relevant ones, and their lines."""
    top = [i for i in ranked.order[:80] if len(ranked.lines[i].bag) >= _SHORTEST] or ranked.order[:1]
    texts = [flatten(drop_speaker(ranked.lines[i].sentence)) for i in top]
    bags = [list_terms(text) for text in texts]
    central = centrality(bags, rarity(bags))
    scores = [
        ranked.scores[i]
        + _CENTRAL * middle
        + _SPEAKER * (not question.speaker.isdisjoint(list_terms(ranked.lines[i].sentence.speaker)))
        - _QUESTION * text.endswith("?")
        for i, middle, text in zip(top, central, texts, strict=True)
    ]
    words, count = _find_room(question, instructions)
    lengths = [len(text.split()) for text in texts]
    highest = max(max(scores), 1e-9)
    chosen = vary([score / highest for score in scores], bags, lengths=lengths, room=words, count=count) or [0]
    lines = sort_as_told(ranked, [top[i] for i in chosen])
    return _write([ranked.lines[i] for i in lines]), lines


def _find_room(question: ParsedQuestion, instructions: str) -> tuple[int, int]:
    """The most words and sentences of the answer; the instructions may set one of them."""
    wish = _WISH.search(instructions)
    if wish is None:
        return (_WORDS_WHOLE if _WHOLE.search(question.text) else _WORDS), _SENTENCES
    number = max(int(wish[1]), 1)
    return (number, 60) if wish[2].lower() == "words" else (40 * number, number)


def _write(lines: Sequence[Line]) -> str:
    """The sentences one after the other, with the speaker's name whenever the speaker changes."""
    sentences: list[str] = []
    last = ""
    for line in lines:
        speaker, text = line.sentence.speaker, flatten(drop_speaker(line.sentence))
        clean = " ".join(_STAMMER.sub(r"\1", _LEFT_OVER.sub("", _NOISE.sub("", text))).split())
        sentences.append(f"{speaker}: {clean}" if speaker and speaker != last else clean)
        last = speaker
    return " ".join(sentences)
