"""Summaries made of the most central sentences."""

from __future__ import annotations

from tomewise.language.extractive.salience import centrality, rarity, vary
from tomewise.text.sentences import split_texts
from tomewise.text.words import flatten, list_terms

CHARACTERS_PER_TOKEN = 4  # the usual estimate for English
_MOST = 40  # sentences of one summary
_OPENING = 0.15  # how much the first sentence of a text counts beside its words


def count_tokens(text: str) -> int:
    """Roughly how many tokens a text has."""
    return (len(text) + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN


def summarise(texts: list[str], max_tokens: int) -> str:
    """The sentences that are central to all texts, in order; all of them where there is room. Never empty."""
    room = max(max_tokens, 1)
    whole = [flatten(text) for text in texts if text.strip()]
    if sum(count_tokens(text) + 1 for text in whole) <= room:
        return "\n".join(dict.fromkeys(whole)) or "(empty)"
    sentences = split_texts(texts)
    lines = [flatten(sentence.text) for sentence in sentences]
    bags = [list_terms(line) for line in lines]
    scores = [
        (value + _OPENING / (1 + sentence.position)) / (1 + _OPENING) if len(bag) > 2 or value > 0 else 0.0
        for value, bag, sentence in zip(centrality(bags, rarity(bags)), bags, sentences, strict=True)
    ]
    lengths = [count_tokens(line) + 1 for line in lines]
    chosen = sorted(vary(scores, bags, lengths=lengths, room=room, count=_MOST))
    # If not even one sentence fits, take the beginning of the first.
    beginning = " ".join(whole)[: room * CHARACTERS_PER_TOKEN].strip()
    return " ".join(dict.fromkeys(lines[i] for i in chosen)) or beginning or "(empty)"
