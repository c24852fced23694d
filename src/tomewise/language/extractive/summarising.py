"""Summaries made of the most central sentences."""

from __future__ import annotations

from tomewise.language.extractive.salience import centrality, rarity, vary
from tomewise.language.roles import ShortenIn, ShortenOut, SummaryIn, SummaryOut
from tomewise.text.sentences import Sentence, split_texts
from tomewise.text.words import flatten, list_terms

CHARACTERS_PER_TOKEN = 4  # the usual estimate for English
_TOKENS_PER_WORD = 1.25
_MOST = 40  # sentences of one summary


def count_tokens(text: str) -> int:
    """Roughly how many tokens a text has."""
    return (len(text) + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN


def summarise(given: SummaryIn) -> SummaryOut:
    """The sentences that are central to all the texts."""
    return _summarise(given.texts, given.max_tokens, opening=0.15)


def _summarise(texts: list[str], max_tokens: int, *, opening: float) -> SummaryOut:
    room = max(max_tokens, 1)
    whole = [flatten(text) for text in texts if text.strip()]
    if sum(count_tokens(text) + 1 for text in whole) <= room:
        return SummaryOut(summary="\n".join(dict.fromkeys(whole)) or "(empty)")
    chosen = _choose(split_texts(texts), room, opening=opening)
    summary = " ".join(dict.fromkeys(flatten(sentence.text) for sentence in chosen))
    # If not even one sentence fits, take the beginning of the first.
    return SummaryOut(summary=summary or " ".join(whole)[: room * CHARACTERS_PER_TOKEN].strip() or "(empty)")


def _choose(sentences: list[Sentence], room: int, *, opening: float) -> list[Sentence]:
    """The sentences of a summary in document order. A larger `opening` favours the first sentences of every text."""
    bags = [list_terms(sentence.text) for sentence in sentences]
    idf = rarity(bags)
    scores = [
        (value + opening / (1 + sentence.position)) / (1 + opening) if len(bag) > 2 or value > 0 else 0.0
        for value, bag, sentence in zip(centrality(bags, idf), bags, sentences, strict=True)
    ]
    lengths = [count_tokens(flatten(sentence.text)) + 1 for sentence in sentences]
    return [sentences[i] for i in sorted(vary(scores, bags, lengths=lengths, room=room, count=_MOST))]


def narrate(given: SummaryIn) -> SummaryOut:
    """The course of a story: sentences from all parts of it, in order."""
    if len(given.texts) < 2:
        return _summarise(given.texts, given.max_tokens, opening=0.0)
    share = max(given.max_tokens // len(given.texts), 1)
    # Each text gets an equal share, so that no part of the story is left out.
    parts = [_summarise([text], share, opening=0.0).summary for text in given.texts if text.strip()]
    return SummaryOut(summary="\n".join(parts) or "(empty)")


def shorten(given: ShortenIn) -> ShortenOut:
    """The central sentences of a page, in order."""
    return ShortenOut(gist=_summarise([given.text], round(given.words * _TOKENS_PER_WORD), opening=0.15).summary)
