"""Judge without a model how far texts support a statement: by its words, its values and its negations."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

from tomewise.text.quotable import find_sentences
from tomewise.text.stop_words import STOP
from tomewise.text.values import DENYING, FoldedText, Key, Value
from tomewise.text.words import ASKING_STEMS, WORD, list_terms, list_words

Support = Literal["quoted", "inferred", "contradicted", "none"]
Verdict = Literal["stands", "missing", "differs"]
Place = tuple[int, int, int]
"""The number of a text, and the offsets in it where the place begins and ends."""

_SPELLED = re.compile(r"(?<![^\W_])[A-Z](?:[._ ]{1,2}[A-Z](?![^\W_])){1,6}")
_CLAUSE = re.compile(r"[^,;:.!?\n]+")
_TITLES = """doctor=dr mister=mr missus=mrs saint=st mount=mt professor=prof captain=capt colonel=col general=gen
    lieutenant=lt sergeant=sgt senator=sen reverend=rev governor=gov junior=jr senior=sr company=co corporation=corp"""
_SHORT_FORMS = dict(pair.split("=") for pair in _TITLES.split())
_DEMONYMS = ("ians", "ian", "eans", "ean", "ans", "an", "ese", "ish", "ism", "ic", "n", "s")
_STEM = 4  # letters that a name and a word derived from it must share
_ENGLISH_SHARE, _FEW_WORDS = 0.2, 8  # of stop words, in a text of no fewer words
_NEAR_DAY = 60  # characters between the day and the month of one date
_ARTICLES = frozenset({"a", "an", "the"})
# Words that deny what stands near them, or something like it.
_CUES = frozenset(
    """not never no none nobody nothing nor neither without cannot nowhere refuse refused refuses refusing fail failed
    fails failing failure deny denied denies denying hardly scarcely barely rarely seldom till until unless lack lacked
    lacks lacking only little few absent avoid avoided instead except but far too forbid forbade prevent prevented
    stop stopped unable impossible lost gone missing empty wrong false mistaken""".split()
)
_MOST = 3  # sentences that are joined
# Shares of the weight of a statement's words, chosen on the even lines of WiCE and of the story: what must stand in
# the sentences together, what in one whose value or negation differs, and what in the clause that denies.
_COVERED, _SAME, _DENIED = 0.35, 0.4, 0.5


@dataclass(frozen=True, slots=True)
class Finding:
    """What the texts have in the place of a value of a statement.

    The value `stands` in the texts in whatever spelling, is `missing`, or `differs` from its `counterpart`: a value of
    its kind in the sentence that is most like the statement. A negation `differs` if that sentence affirms what it
    denies; of one that the statement leaves out, `value` is that of the texts. Values of the texts have their places in
    the texts joined by empty lines.
    """

    value: Value
    verdict: Verdict
    counterpart: Value | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """How far texts support a statement, and the sentences that show it, best first."""

    support: Support
    covered: float
    """The share of the weight of its words that stands in these sentences, from 0 to 1."""
    sentences: tuple[Place, ...] = ()
    findings: tuple[Finding, ...] = ()


class Grounds:
    """Texts that may support statements, read once: their sentences, words and values."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._text = text = "\n\n".join(texts)
        self._offsets = [0]
        for each in texts:
            self._offsets.append(self._offsets[-1] + len(each) + 2)
        self._spans = list(find_sentences(text, with_headings=True))
        self._starts = [start for start, _ in self._spans]
        self._bags = [frozenset(list_terms(text[start:end])) for start, end in self._spans]
        self._places: dict[str, list[int]] = defaultdict(list)  # the sentences of each stem
        for number, bag in enumerate(self._bags):
            for term in bag:
                self._places[term].append(number)
        folded = FoldedText(text)
        self._key_starts: dict[Key, list[int]] = defaultdict(list)  # of the values that give a key
        self._values: dict[int, list[Value]] = defaultdict(list)  # of each sentence
        for value in folded.find_values():
            for key in value.gives:
                self._key_starts[key].append(value.start)
            restored = folded.restore(value)
            self._values[bisect_right(self._starts, restored.start) - 1].append(restored)
        words = [word.lower().removesuffix("'s") for word in WORD.findall(folded.text)]
        self._words = frozenset(words)
        self._stems = frozenset(each for word in self._words for each in _list_stems(word))
        capitals = {word for word in WORD.findall(folded.text) if len(word) > 1 and word.isupper()}
        spelled = {re.sub(r"[._ ]", "", m[0]) for m in _SPELLED.finditer(folded.text)}
        self._acronyms = frozenset(word.lower() for word in capitals | spelled)
        self._initials = frozenset("".join(self._acronyms)).union(word[0] for word in self._words)
        self._is_english = _may_be_english(words)

    def judge(self, statement: str, about: str = "", hints: Iterable[Place] = ()) -> Judgement:
        """How far the texts support a statement.

        It is "quoted" if its words stand in this order in a sentence or in two neighbours, and "inferred" if its values
        stand and enough of its words. It is "contradicted" if a value or a negation differs in the sentence that is
        most like it, and has no support, "none", if a value is missing or too few words stand.

        `about` is the question that a short answer belongs to: where its words are the answer is looked for. `hints`
        are places where support is said to be; they come first among equals.
        """
        folded = FoldedText(statement)
        values = [folded.restore(value) for value in folded.find_values()]
        terms = frozenset(list_terms(statement))
        asked = frozenset(list_terms(about)) - terms - ASKING_STEMS
        weights = {term: self._weigh(term) for term in (*terms, *asked)}
        places = [(self._offsets[text] + start, self._offsets[text] + end) for text, start, end in hints]
        hinted = {number for place in places for number in self._list_touched(*place)}
        chosen = self._choose(weights, hinted)
        total = sum(weights.values())
        found = frozenset().union(*(self._bags[number] for number in chosen))
        covered = sum(weight for term, weight in weights.items() if term in found) / total if total else 0.0
        best = next(iter(chosen), None)
        findings = [
            *self._compare(values, statement, weights, chosen),
            *self._find_denials(values, statement, weights, best),
        ]
        verdicts = {finding.verdict for finding in findings}
        support: Support = "inferred"
        if "differs" in verdicts:
            support = "contradicted"
        elif "missing" in verdicts or covered < _COVERED:
            support = "none"
        elif self._quotes(statement, weights, asked, {*chosen, *hinted}):
            support = "quoted"
        return Judgement(support, covered, tuple(map(self._locate, chosen)), tuple(findings))

    def find_missing(self, statement: str) -> list[str]:
        """The values of a text that these texts have in no spelling, each once, in order."""
        folded = FoldedText(statement)
        values = self._list_compared(folded.find_values(), statement)
        return list(dict.fromkeys(folded.restore(value).text for value in values if not self.has(value)))

    def has(self, value: Value) -> bool:
        """Whether the texts have a value, in any spelling."""
        return any(all(map(self._has_key, reading)) for reading in value.readings)

    # Sentences

    def _weigh(self, term: str) -> float:
        """The weight of a stem: the fewer sentences have it, the more."""
        return max(0.3, log((len(self._spans) + 1) / (len(self._places.get(term, ())) + 0.5)))

    def _choose(self, weights: Mapping[str, float], hinted: Collection[int]) -> list[int]:
        """The sentences that have most of the words together, the best first."""
        left, chosen = dict(weights), []
        for _ in range(_MOST):
            shares: dict[int, float] = defaultdict(float)
            for term, weight in left.items():
                for number in self._places.get(term, ()):
                    shares[number] += weight
            if not shares:
                break
            best = max(shares, key=lambda each: (shares[each] * (1 + (each in hinted)), -len(self._bags[each]), -each))
            chosen.append(best)
            left = {term: weight for term, weight in left.items() if term not in self._bags[best]}
        return chosen

    def _list_touched(self, start: int, end: int) -> range:
        """The sentences that a span touches."""
        return range(max(0, bisect_right(self._starts, start) - 1), bisect_left(self._starts, end))

    def _locate(self, number: int) -> Place:
        start, end = self._spans[number]
        text = bisect_right(self._offsets, start) - 1
        return text, start - self._offsets[text], end - self._offsets[text]

    def _quotes(
        self, statement: str, weights: Mapping[str, float], asked: Collection[str], candidates: Collection[int]
    ) -> bool:
        """Whether one of these sentences, or it and a neighbour, has the words of a statement in this order.

        It must have enough of the words of the question too: an answer of one word stands in many sentences.
        """
        wanted = [word for word in list_words(statement) if word not in _ARTICLES]
        for number in candidates:
            for first, last in ((number, number), (number - 1, number), (number, number + 1)):
                if first < 0 or last >= len(self._spans):
                    continue
                if _measure(weights, asked or weights.keys(), self._bags[first] | self._bags[last]) < _COVERED:
                    continue
                if _has_in_order(list_words(self._text[self._spans[first][0] : self._spans[last][1]]), wanted):
                    return True
        return False

    # Values

    def _list_compared(self, values: Sequence[Value], statement: str) -> list[Value]:
        """The values that are compared: where a text is not English, those with figures."""
        if self._is_english and _may_be_english([word.lower() for word in WORD.findall(statement)]):
            return [value for value in values if value.kind != "negation"]
        return [value for value in values if any(map(str.isdigit, value.text))]

    def _compare(
        self, values: Sequence[Value], statement: str, weights: Mapping[str, float], chosen: Sequence[int]
    ) -> Iterator[Finding]:
        own = frozenset().union(*(reading for value in values for reading in value.readings))
        rest = weights.keys() - {term for value in values for term in list_terms(value.text)}
        # A sentence that shares nothing but the value speaks of something else.
        near = [number for number in chosen if number == chosen[0] or not rest.isdisjoint(self._bags[number])]
        groups = [self._values[each] for number in near for each in (number - 1, number, number + 1)]
        here = frozenset().union(*(value.gives for group in groups for value in group))
        is_same = bool(chosen) and _measure(weights, rest, self._bags[chosen[0]]) >= _SAME
        for value in self._list_compared(values, statement):
            is_here = value.kind == "name" or any(reading <= here for reading in value.readings)
            others = (
                other
                for other in (self._values[chosen[0]] if is_same and not is_here else ())
                if other.kind == value.kind and _list_units(other) & _list_units(value) and other.gives.isdisjoint(own)
            )
            if other := next(others, None):
                yield Finding(value, "differs", other)
            else:
                yield Finding(value, "stands" if self.has(value) else "missing")

    def _find_denials(
        self, values: Sequence[Value], statement: str, weights: Mapping[str, float], best: int | None
    ) -> Iterator[Finding]:
        """What the statement denies and the best sentence affirms, or the other way round."""
        if best is None or not self._is_english:
            return
        start, end = self._spans[best]
        sentence, bag = self._text[start:end], self._bags[best]
        if _measure(weights, weights.keys(), bag) < _DENIED:
            return
        if not _has_cue(sentence):
            for value in values:
                if value.kind == "negation" and not bag.isdisjoint(_list_denied(value)[:1]):
                    yield Finding(value, "differs")
        if not _has_cue(statement):
            for other in self._values[best]:
                denied = _list_denied(other)
                clause = next(c[0] for c in _CLAUSE.finditer(self._text, start) if c.end() >= other.end)
                if denied and denied[0] in weights and _measure(weights, weights.keys(), list_terms(clause)) >= _DENIED:
                    yield Finding(other, "differs")

    def _has_key(self, key: Key) -> bool:
        sort, *rest = key
        if key in self._key_starts:
            return True
        if sort == "name":
            return self._has_name(str(rest[0]))
        if sort == "acronym":
            return rest[0] in self._acronyms
        if sort == "loose":  # a number without its unit, unless it has another
            return ("bare", rest[0]) in self._key_starts and ("measured", rest[0]) not in self._key_starts
        if sort == "day":
            days, months = self._key_starts.get(("bare", rest[1]), []), self._key_starts.get(("month", rest[0]), [])
            return any(bisect_left(days, at - _NEAR_DAY) < bisect_right(days, at + _NEAR_DAY) for at in months)
        return False

    def _has_name(self, word: str) -> bool:
        if word in self._words or _SHORT_FORMS.get(word) in self._words or word in self._acronyms:
            return True
        if len(word) == 1:
            return word in self._initials
        return not self._stems.isdisjoint(_list_stems(word))


def _measure(weights: Mapping[str, float], terms: Collection[str], bag: Collection[str]) -> float:
    """The share of the weight of some terms that a bag has."""
    total = sum(weights[term] for term in terms)
    return sum(weights[term] for term in terms if term in bag) / total if total else 0.0


def _list_plain(text: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def _has_cue(text: str) -> bool:
    return any(word in _CUES or word.endswith("n't") for word in _list_plain(text))


def _has_in_order(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether all wanted words stand in this order, and none between them that denies."""
    at, between = 0, []
    for word in words:
        if at < len(wanted) and word == wanted[at]:
            at += 1
        elif 0 < at < len(wanted):
            between.append(word)
    return 0 < at == len(wanted) and not any(word in DENYING or word.endswith("n't") for word in between)


def _may_be_english(words: Sequence[str]) -> bool:
    return len(words) < _FEW_WORDS or sum(word in STOP for word in words) >= _ENGLISH_SHARE * len(words)


def _list_denied(value: Value) -> list[str]:
    return [str(word) for key in value.gives if key[0] == "negation" for word in key[1:]]


def _list_units(value: Value) -> frozenset[object]:
    """The base units of a quantity; `None` of all other values."""
    if value.kind != "quantity":
        return frozenset([None])
    return frozenset(key[2] for key in value.gives if key[0] == "quantity")


def _list_stems(word: str) -> Iterator[str]:
    """A name without the ending of an adjective or a plural, and without its last vowels if enough is left."""
    for end in ("", *_DEMONYMS):
        base = word.removesuffix(end)
        stemmed = base.rstrip("aeiouy")
        if word.endswith(end) and len(base) >= _STEM:
            yield stemmed if len(stemmed) >= _STEM else base
