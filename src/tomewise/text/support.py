"""Judge without a model how far texts support a statement: by its words, its values and its negations."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import log
from operator import itemgetter
from typing import Literal

from tomewise.text.alignment import count_denials, find_quotation
from tomewise.text.quotable import find_sentences
from tomewise.text.stop_words import STOP
from tomewise.text.values import Key, PlainText, Value, find_values
from tomewise.text.words import ASKING_STEMS, WORD, list_terms

Support = Literal["quoted", "inferred", "contradicted", "none"]
Verdict = Literal["stands", "missing", "differs"]
Place = tuple[int, int, int]
"""The number of a text, and the offsets in it where the place begins and ends."""

_SPELLED = re.compile(r"(?<![^\W_])[A-Z](?:[._ ]{1,2}[A-Z](?![^\W_])){1,6}")
_CLAUSE = re.compile(r"[^,;:.!?\n]+")
# Behind these words another number may mean the same.
_HEDGE = re.compile(
    r"\b(?:about|almost|around|approximately|roughly|nearly|some|over|under|more than|less than|fewer than|at least"
    r"|at most|up to|only)\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"\s*(?:who|which|that|whom)\b")
_DEMONYMS = ("ians", "ian", "eans", "ean", "ans", "an", "ese", "ish", "ism", "ic", "n", "s")
_STEM = 4  # letters that a name and a word derived from it must share
_ENGLISH_SHARE, _FEW_WORDS = 0.2, 8  # of stop words, in a text of no fewer words
_ARTICLE = re.compile(r"\A\W*(?:an?|the)\s+", re.IGNORECASE)
# Words that deny what stands near them, or something like it.
_CUES = frozenset(
    """not never no none nobody nothing nor neither without cannot nowhere refuse refused refuses refusing fail failed
    fails failing failure deny denied denies denying hardly scarcely barely rarely seldom till until unless lack lacked
    lacks lacking only little few absent avoid avoided instead except but far too forbid forbade prevent prevented
    stop stopped unable impossible lost gone missing empty wrong false mistaken""".split()
)
# Labels and numbers of notes that others write; no values of a statement. "(1912)" is a year.
_NOTE = re.compile(r"\[\^?E?\d{1,4}(?:[,;\s]{1,3}E?\d{1,4}){0,20}\]|【\^?E?\d{1,4}】|\(E?\d{1,2}\)|\bE\d{1,4}\b")
_MOST = 3  # sentences that are joined
# Shares of the weight of a statement's words, chosen on the even lines of WiCE and of the story: what must stand in
# the sentences together, what in one whose value or negation differs, and what in the clause that denies.
_COVERED, _SAME, _DENIED = 0.35, 0.4, 0.5
_RARE = 20  # sentences that count at least where a word is weighed by how many have it
_MORE = 0.1  # what a sentence must add to be shown


@dataclass(frozen=True, slots=True)
class Finding:
    """What the texts have in the place of a value of a statement.

    The value `stands` in the texts in whatever spelling, is `missing`, or `differs` from its `counterpart`: a value of
    its kind in the sentence that is most like the statement. A negation `differs` if that sentence affirms what it
    denies; of one that the statement leaves out, `value` is that of the texts. Values of the texts have their places in
    the text of the best sentence.
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


@dataclass(frozen=True, eq=False)
class _Text:
    """What is read of one text, once: its sentences with their stems and values, and all its words."""

    text: str
    spans: Sequence[tuple[int, int]]
    bags: Sequence[frozenset[str]]
    values: Sequence[Sequence[Value]]
    """Of each sentence."""
    keys: frozenset[Key]
    """What its values give."""
    words: frozenset[str]
    stems: frozenset[str]
    acronyms: frozenset[str]
    initials: frozenset[str]
    """First letters of words, and all of acronyms."""
    counts: tuple[int, int, int]


@lru_cache(maxsize=256)
def _read(text: str) -> _Text:
    spans = list(find_sentences(text, with_headings=True))
    plain = PlainText(text)
    found = plain.find_values()
    values: list[list[Value]] = [[] for _ in spans]
    for value in found if spans else ():
        values[max(0, bisect_right(spans, value.start, key=itemgetter(0)) - 1)].append(value)
    written = WORD.findall(plain.text)
    words = [word.lower().removesuffix("'s") for word in written]
    spelled = {re.sub(r"[._ ]", "", m[0]) for m in _SPELLED.finditer(plain.text)}
    capitals = {word for word in written if len(word) > 1 and word.isupper()}
    return _Text(
        text,
        spans,
        [frozenset(list_terms(text[start:end])) for start, end in spans],
        values,
        frozenset[Key]().union(*(value.gives for value in found)),
        frozenset(words),
        frozenset(each for word in set(words) for each in _list_stems(word)),
        frozenset(word.lower() for word in capitals | spelled),
        frozenset("".join([*(word[0] for word in words), *map(str.lower, capitals | spelled)])),
        _count_english(written),
    )


class Grounds:
    """Texts that may support statements: their sentences, words and values."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = list(map(_read, texts))
        self._sentences = [(number, start, end) for number, text in enumerate(self._texts) for start, end in text.spans]
        self._bags = [bag for text in self._texts for bag in text.bags]
        self._values = [values for text in self._texts for values in text.values]
        self._firsts = list(accumulate((len(text.spans) for text in self._texts), initial=0))
        self._places: dict[str, list[int]] = defaultdict(list)  # the sentences of each stem
        for number, bag in enumerate(self._bags):
            for term in bag:
                self._places[term].append(number)

    def judge(self, statement: str, about: str = "", hints: Iterable[Place] = ()) -> Judgement:
        """How far the texts support a statement.

        It is "quoted" if its words stand one behind the other in a sentence or in two neighbours that deny nothing, and
        "inferred" if its values stand and enough of its words. It is "contradicted" if a value or a negation differs in
        the sentence that is most like it, and has no support, "none", if a value is missing or too few words stand.

        `about` is the question that a short answer belongs to: where its words are the answer is looked for. `hints`
        are places where support should be; they come first among equals.
        """
        statement = _NOTE.sub(lambda note: " " * len(note[0]), statement)
        values = find_values(statement)
        terms = frozenset(list_terms(statement))
        asked = frozenset(list_terms(about)) - terms - ASKING_STEMS
        weights = {term: self._weigh(term) for term in (*terms, *asked)}
        hinted = {number for hint in hints for number in self._list_touched(hint)}
        chosen = self._choose(weights, hinted)
        total = sum(weights.values())
        found = frozenset().union(*(self._bags[number] for number in chosen))
        covered = _measure(weights, weights, found)
        best = next(iter(chosen), None)
        shown = [number for number, weight in chosen.items() if number == best or weight >= _MORE * total]
        findings = [
            *self._compare(values, statement, weights, list(chosen)),
            *self._find_denials(values, statement, weights, best),
        ]
        verdicts = {finding.verdict for finding in findings}
        support: Support = "inferred"
        if self._quotes(statement, weights, asked, {*chosen, *hinted} if terms else range(len(self._sentences))):
            support = "quoted"
        elif "differs" in verdicts:
            support = "contradicted"
        elif "missing" in verdicts or covered < _COVERED or _measure(weights, terms, found) < _COVERED:
            support = "none"
        return Judgement(support, covered, tuple(self._sentences[number] for number in shown), tuple(findings))

    def find_missing(self, statement: str, *, names: bool = True) -> list[str]:
        """The values of a text that these texts have in no spelling, each once, in order; of `names` or not."""
        values = self._list_compared(find_values(statement), statement, None)
        wanted = (value for value in values if names or value.kind != "name")
        return list(dict.fromkeys(value.text for value in wanted if not self.has(value)))

    def has(self, value: Value, within: Collection[int] | None = None) -> bool:
        """Whether the texts, or some of them, have a value, in any spelling."""
        texts = self._texts if within is None else [self._texts[number] for number in within]
        return any(all(_has_key(key, texts) for key in reading) for reading in value.readings)

    # Sentences

    def _weigh(self, term: str) -> float:
        """The weight of a stem: the fewer sentences have it, the more. A few sentences tell little of what is rare."""
        return max(0.3, log((max(_RARE, len(self._bags)) + 1) / (len(self._places.get(term, ())) + 0.5)))

    def _choose(self, weights: Mapping[str, float], hinted: Collection[int]) -> dict[int, float]:
        """The sentences that have most of the words together, the best first, with the weight that each adds."""
        left, chosen = dict(weights), dict[int, float]()
        for _ in range(_MOST):
            shares: dict[int, float] = defaultdict(float)
            for term, weight in left.items():
                for number in self._places.get(term, ()):
                    shares[number] += weight
            if not shares:
                break
            best = max(shares, key=lambda each: (shares[each] * (1 + (each in hinted)), -len(self._bags[each]), -each))
            chosen[best] = shares[best]
            left = {term: weight for term, weight in left.items() if term not in self._bags[best]}
        return chosen

    def _list_touched(self, place: Place) -> range:
        """The sentences that a place touches."""
        text, start, end = place
        spans, first = self._texts[text].spans, self._firsts[text]
        before = bisect_right(spans, start, key=itemgetter(1))
        return range(first + before, first + bisect_left(spans, end, key=itemgetter(0)))

    def _list_neighbours(self, number: int) -> range:
        """A sentence, with those before and behind it in its text."""
        text = self._sentences[number][0]
        return range(max(number - 1, self._firsts[text]), min(number + 2, self._firsts[text + 1]))

    def _quotes(
        self, statement: str, weights: Mapping[str, float], asked: Collection[str], candidates: Collection[int]
    ) -> bool:
        """Whether one of these sentences, or it and a neighbour, has the words of a statement as they are.

        It must have enough of the words of the question too: an answer of one word stands in many sentences. And it
        denies no more than the statement does: "nobody believed that" stands before what is not so.
        """
        wanted = _ARTICLE.sub("", statement)
        denied = count_denials(statement)
        for number in candidates:
            near = self._list_neighbours(number)
            for first, last in ((number, number), (near[0], number), (number, near[-1])):
                bag = self._bags[first] | self._bags[last]
                if weights and _measure(weights, asked or weights, bag) < _COVERED:
                    continue
                text, start, _ = self._sentences[first]
                window = self._texts[text].text[start : self._sentences[last][2]]
                if find_quotation(wanted, window) and count_denials(window) <= denied:
                    return True
        return False

    # Values

    def _is_english(self, best: int | None) -> bool:
        """Whether the text of the best sentence is English; without one, all texts together."""
        texts = self._texts if best is None else [self._texts[self._sentences[best][0]]]
        return _may_be_english(*map(sum, zip((0, 0, 0), *(text.counts for text in texts), strict=True)))

    def _list_compared(self, values: Sequence[Value], statement: str, best: int | None) -> list[Value]:
        """The values that are compared: where a text is not English, those with figures."""
        if self._is_english(best) and _may_be_english(*_count_english(WORD.findall(statement))):
            return [value for value in values if value.kind != "negation"]
        return [value for value in values if any(map(str.isdigit, value.text))]

    def _compare(
        self, values: Sequence[Value], statement: str, weights: Mapping[str, float], chosen: Sequence[int]
    ) -> Iterator[Finding]:
        own = frozenset().union(*(reading for value in values for reading in value.readings))
        rest = weights.keys() - {term for value in values for term in list_terms(value.text)}
        # A sentence that shares nothing but the value speaks of something else.
        near = [number for number in chosen if number == chosen[0] or not rest.isdisjoint(self._bags[number])]
        groups = [self._values[each] for number in near for each in self._list_neighbours(number)]
        here = frozenset().union(*(value.gives for group in groups for value in group))
        # A value that stands in no passage of these, and beside no word of the statement, belongs to something else.
        texts = {self._sentences[number][0] for number in near}
        beside = frozenset().union(
            *(
                value.gives
                for values, bag in zip(self._values, self._bags, strict=True)
                if not rest.isdisjoint(bag)
                for value in values
            )
        )
        best = next(iter(chosen), None)
        may_differ = (
            best is not None
            and _measure(weights, rest, self._bags[best]) >= _SAME
            and self._is_english(best)
            and not _HEDGE.search(statement)
        )
        for value in self._list_compared(values, statement, best):
            is_here = value.kind == "name" or any(reading <= here for reading in value.readings)
            rivals = (
                rival
                for rival in (self._values[chosen[0]] if may_differ and not is_here else ())
                if rival.kind == value.kind and _list_units(rival) & _list_units(value) and rival.gives.isdisjoint(own)
            )
            if rival := next(rivals, None):
                yield Finding(value, "differs", rival)
            else:
                is_beside = value.kind == "name" or any(reading <= beside for reading in value.readings)
                yield Finding(value, "stands" if self.has(value, None if is_beside else texts) else "missing")

    def _find_denials(
        self, values: Sequence[Value], statement: str, weights: Mapping[str, float], best: int | None
    ) -> Iterator[Finding]:
        """What the statement denies and the best sentence affirms, or the other way round."""
        if best is None or not self._is_english(best):
            return
        number, start, end = self._sentences[best]
        text, bag = self._texts[number].text, self._bags[best]
        if _measure(weights, weights, bag) < _DENIED:
            return
        if not _has_cue(text[start:end]):
            for value in values:
                if _find_denied(value) in bag:
                    yield Finding(value, "differs")
        if not _has_cue(statement):
            for denial in (value for value in self._values[best] if _find_denied(value) in weights):
                clause = next(c for c in _CLAUSE.finditer(text, start) if c.end() >= denial.end)
                # "Tim, who did not die": the subject stands before the clause.
                begin = start if _RELATIVE.match(clause[0]) else clause.start()
                terms = list_terms(text[begin : clause.end()])
                if _measure(weights, weights, terms) >= _DENIED:
                    yield Finding(denial, "differs")


def _has_key(key: Key, texts: Sequence[_Text]) -> bool:
    sort, *rest = key
    if any(key in text.keys for text in texts):
        return True
    if sort == "name":
        return _has_name(str(rest[0]), texts)
    if sort == "acronym":
        return any(rest[0] in text.acronyms for text in texts)
    if sort == "loose":  # a number without its unit, unless it has another
        bare, measured = ("bare", rest[0]), ("measured", rest[0])
        return any(bare in text.keys for text in texts) and not any(measured in text.keys for text in texts)
    return False


def _has_name(word: str, texts: Sequence[_Text]) -> bool:
    if any(word in text.words or word in text.acronyms for text in texts):
        return True
    if len(word) == 1:
        return any(word in text.initials for text in texts)
    stems = list(_list_stems(word))
    return any(not text.stems.isdisjoint(stems) for text in texts)


def _measure(weights: Mapping[str, float], terms: Collection[str], bag: Collection[str]) -> float:
    """The share of the weight of some terms that a bag has."""
    total = sum(weights[term] for term in terms)
    return sum(weights[term] for term in terms if term in bag) / total if total else 0.0


def _has_cue(text: str) -> bool:
    return any(word in _CUES or word.endswith("n't") for word in WORD.findall(text.lower().replace("’", "'")))


def _count_english(words: Sequence[str]) -> tuple[int, int, int]:
    """The words of a text that are English stop words, those that show its language, as names do not, and all."""
    showing = sum(word[0].islower() or word[0] > "ɏ" for word in words)
    return sum(word.lower() in STOP for word in words), showing, len(words)


def _may_be_english(stop_words: int, showing: int, words: int) -> bool:
    """Whether a text has too few words to tell, as a list of names has, or enough that are English."""
    return words < _FEW_WORDS or showing < _FEW_WORDS / 2 or stop_words >= _ENGLISH_SHARE * words


def _find_denied(value: Value) -> str:
    """The stem that a value denies; empty for all but negations."""
    return next((str(key[1]) for key in value.gives if key[0] == "negation"), "")


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
