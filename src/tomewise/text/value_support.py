"""Compare the values of a statement with those of the texts that are to support it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

from tomewise.text.stop_words import STOP
from tomewise.text.values import FoldedText, Key, Value
from tomewise.text.words import ASKING_STEMS, stem

Verdict = Literal["stands", "missing", "differs", "misplaced"]

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_SPELLED = re.compile(r"(?<![^\W_])[A-Z](?:[._ ]{1,2}[A-Z](?![^\W_])){1,6}")
_TITLES = """doctor=dr mister=mr missus=mrs saint=st mount=mt professor=prof captain=capt colonel=col general=gen
    lieutenant=lt sergeant=sgt senator=sen reverend=rev governor=gov junior=jr senior=sr company=co corporation=corp"""
_SHORT_FORMS = dict(pair.split("=") for pair in _TITLES.split())
_DEMONYMS = ("ians", "ian", "eans", "ean", "ans", "an", "ese", "ish", "ism", "ic", "n", "s")
_STEM = 4  # letters that a name and a word derived from it must share
_ENGLISH_SHARE, _FEW_WORDS = 0.2, 8  # of stop words, in a text of no fewer words
_NEAR_DAY = 60  # characters between the day and the month of one date

# Words that deny what stands near them, or something like it.
_CUES = frozenset(
    """not never no none nobody nothing nor neither without cannot nowhere refuse refused refuses refusing fail failed
    fails failing failure deny denied denies denying hardly scarcely barely rarely seldom till until unless lack lacked
    lacks lacking only little few absent avoid avoided instead except but far too forbid forbade prevent prevented
    stop stopped unable impossible lost gone missing empty wrong false mistaken""".split()
)
# "Not until eight", "no nearer than" and "not only" only set bounds.
_BOUNDS = frozenset("till until unless but except than".split())
_DEGREES = frozenset("more less only just sooner longer nearer later above even so necessarily quite as matter".split())
_REACH = 7  # words on both sides of what is denied, where its negation stands
_AROUND, _CONTEXT = 8, 9  # words of the statement around a negation, and how far they reach in the texts
# The share of these words that must stand around what is denied, and how much more than where it is affirmed.
_ADDED, _LEFT_OUT, _ALONE, _MARGIN = 0.3, 0.5, 0.7, 0.25
_DENIED = 0.6  # the share of the words that the texts deny which the statement must have

# A value is misplaced if of the nearest words of the statement only a share stands around it that is so small beside
# the best place, so much less than there, and if the best place has such a share of all.
_NEAREST, _WINDOW = 9, 25
_SMALL_SHARE, _LESS, _BEST = 0.25, 0.3, 0.4
_SLOT = 4  # words around a value that show in whose place it stands


@dataclass(frozen=True, slots=True)
class Finding:
    """What the texts have in the place of a value of a statement.

    `verdict`: the value `stands` there, in whatever spelling; is `missing`; `differs` from its `counterpart`, a value
    of its kind among the same words; or is `misplaced`: it stands there, but where the texts speak of something else.
    A negation `differs` if the texts affirm what it denies; of one that the statement leaves out, `value` is that of
    the texts. The places of a `counterpart`, and of such a negation, are those in the texts joined by empty lines.
    """

    value: Value
    verdict: Verdict
    counterpart: Value | None = None

    @property
    def is_absent(self) -> bool:
        """Whether the texts have no such value anywhere; `misplaced` and negations are only suspected."""
        return self.verdict in ("missing", "differs") and self.value.kind != "negation"


def find_unsupported(text: str, source: str) -> list[str]:
    """Find the values of `text` that `source` has in no spelling, each once, in order."""
    return list(dict.fromkeys(each.value.text for each in Values([source]).compare(text) if each.is_absent))


class _Words:
    """The words of a folded text, with where they begin. `stems` are empty for stop words."""

    def __init__(self, text: str) -> None:
        found = [(m.start(), m[0].lower().removesuffix("'s")) for m in _WORD.finditer(text)]
        self.starts = [start for start, _ in found]
        self.plain = [plain for _, plain in found]
        self.stems = ["" if plain in STOP or len(plain) < 2 else stem(plain) for plain in self.plain]

    def has_cue(self, first: int, after: int) -> bool:
        return any(word in _CUES or word.endswith("n't") for word in self.plain[max(first, 0) : after])

    def may_be_english(self) -> bool:
        if len(self.plain) < _FEW_WORDS:
            return True
        return sum(word in STOP for word in self.plain) >= _ENGLISH_SHARE * len(self.plain)

    def list_near(self, value: Value, count: int) -> list[str]:
        """The stems of the nearest content words before and behind a value, each once."""
        first, after = bisect_left(self.starts, value.start), bisect_left(self.starts, value.end)
        before = [(first - at, self.stems[at]) for at in range(max(first - 2 * count, 0), first)]
        behind = [(at - after + 1, self.stems[at]) for at in range(after, min(after + 2 * count, len(self.stems)))]
        return list(dict.fromkeys(word for _, word in sorted(before + behind) if word))[:count]

    def is_bound(self, negation: Value) -> bool:
        """Whether a negation only sets bounds."""
        following = self.plain[bisect_left(self.starts, negation.end) :][: _REACH + 1]
        return not _DEGREES.isdisjoint(following[:1]) or not _BOUNDS.isdisjoint(following)


class Values:
    """The values of the texts that are to support statements: sentences, passages or whole documents."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._folded = FoldedText("\n\n".join(texts))
        text = self._folded.text
        self._values = self._folded.find_values()
        self._words = _Words(text)
        self._plain = frozenset(self._words.plain)
        self._stems = frozenset(each for word in self._plain for each in _list_stems(word))
        self._starts: dict[Key, list[int]] = defaultdict(list)  # of the values that give a key
        for value in self._values:
            for key in value.gives:
                self._starts[key].append(value.start)
        self._places: dict[str, list[int]] = defaultdict(list)  # of each stem, counted in words
        for at, word in enumerate(self._words.stems):
            self._places[word].append(at)
        capitals = {m[0] for m in _WORD.finditer(text) if len(m[0]) > 1 and m[0].isupper()}
        spelled = {re.sub(r"[._ ]", "", m[0]) for m in _SPELLED.finditer(text)}
        self._acronyms = frozenset(word.lower() for word in capitals | spelled)
        self._initials = frozenset("".join(self._acronyms)).union(word[0] for word in self._plain)

    def supports(self, value: Value) -> bool:
        """Whether the texts have a value, in any spelling."""
        return any(all(map(self._has, reading)) for reading in value.readings)

    def compare(self, statement: str) -> list[Finding]:
        """Compare the values of a statement with those of the texts, in order; what it leaves out comes last.

        Where most words of either are not English, only digits are compared.
        """
        folded = FoldedText(statement)
        words, values = _Words(folded.text), folded.find_values()
        if not (words.may_be_english() and self._words.may_be_english()):
            digits = [value for value in values if any(map(str.isdigit, value.text))]
            return [Finding(folded.restore(value), "stands" if self.supports(value) else "missing") for value in digits]
        judged = (Finding(folded.restore(value), *self._judge(value, words)) for value in values)
        return [*judged, *self._find_left_out(words)]

    def _has(self, key: Key) -> bool:
        sort, *rest = key
        if key in self._starts:
            return True
        if sort == "name":
            return self._has_name(str(rest[0]))
        if sort == "acronym":
            return rest[0] in self._acronyms
        if sort == "loose":  # a number without its unit, unless it has another
            return ("bare", rest[0]) in self._starts and ("measured", rest[0]) not in self._starts
        if sort == "day":
            days, months = self._starts.get(("bare", rest[1]), []), self._starts.get(("month", rest[0]), [])
            return any(_is_between(days, at - _NEAR_DAY, at + _NEAR_DAY) for at in months)
        return False

    def _has_name(self, word: str) -> bool:
        if word in self._plain or _SHORT_FORMS.get(word) in self._plain or word in self._acronyms:
            return True
        if len(word) == 1:
            return word in self._initials
        return not self._stems.isdisjoint(_list_stems(word))

    def _judge(self, value: Value, words: _Words) -> tuple[Verdict, Value | None]:
        if value.kind == "negation":
            return "differs" if self._is_added(value, words) else "stands", None
        if not self.supports(value):
            counterpart = self._find_counterpart(value, words)
            return ("differs", self._folded.restore(counterpart)) if counterpart else ("missing", None)
        may_move = value.kind in ("date", "weekday", "time", "number") and all(value.readings)
        return "misplaced" if may_move and self._is_misplaced(value, words) else "stands", None

    # Places: how well the texts around a word fit the statement. A rare word weighs more.

    def _weigh(self, word: str) -> float:
        """The weight of a word; 1 where the texts lack it."""
        return 1 / (1 + log(len(self._places[word]))) if word in self._places else 1.0

    def _weigh_near(self, near: Iterable[str], at: int, reach: int) -> float:
        """The weight of those words that stand near a place."""
        return sum(
            self._weigh(word) for word in near if _is_between(self._places.get(word, ()), at - reach, at + reach)
        )

    def _is_misplaced(self, value: Value, words: _Words) -> bool:
        near = words.list_near(value, _NEAREST)
        keys = {key for reading in value.readings if all(map(self._has, reading)) for key in reading}
        own = {bisect_left(self._words.starts, start) for key in keys for start in self._starts.get(key, ())}
        if not own:
            return False
        here = max(self._weigh_near(near, at, _WINDOW) for at in own)
        total = sum(map(self._weigh, near))
        if here > total - _LESS:
            return False
        places = [at for word in near for at in self._places.get(word, ())]
        best = max((self._weigh_near(near, at, _WINDOW) for at in places), default=0.0)
        return here < _SMALL_SHARE * best and here <= best - _LESS and best >= _BEST * total

    def _find_counterpart(self, value: Value, words: _Words) -> Value | None:
        """The value of the texts of the same kind, and of a unit of the same kind, with most of the words around it."""
        if value.kind == "name":
            return None
        near, units = frozenset(words.list_near(value, _SLOT)), _list_units(value)
        best, most = None, 0.0
        for candidate in self._values:
            if candidate.kind != value.kind or not all(candidate.readings) or _list_units(candidate).isdisjoint(units):
                continue
            shared = sum(map(self._weigh, near.intersection(self._words.list_near(candidate, _SLOT))))
            if shared > most:
                best, most = candidate, shared
        return best

    # Negations

    def _is_added(self, negation: Value, words: _Words) -> bool:
        """Whether the texts say without a negation what the statement denies."""
        if negation.text.lower() in ("without", "neither", "nor") or words.is_bound(negation):
            return False
        affirmed, denied = self._weigh_sides(_list_denied(negation)[:2], words.list_near(negation, _AROUND))
        return affirmed >= _ADDED and affirmed >= denied + _MARGIN

    def _find_left_out(self, words: _Words) -> Iterator[Finding]:
        """What the texts deny, and the statement says without a negation nearby; once for each word that is denied."""
        own = {word: at for at, word in enumerate(words.stems) if word}
        affirmed: dict[str, float] = {}
        for negation in self._values:
            denied = _list_denied(negation)
            first = denied[0] if denied else ""
            if first not in own or first in ASKING_STEMS or affirmed.get(first) == 1 or self._words.is_bound(negation):
                continue
            at = own[first]
            if words.has_cue(at - 10, at + 12) or sum(word in own for word in denied) < _DENIED * len(denied):
                continue
            near = list(filter(None, words.stems[max(at - _AROUND, 0) : at + _AROUND + 1]))
            if first not in affirmed:
                affirmed[first] = self._weigh_sides([first], near)[0]
            share = self._weigh_share(near, bisect_left(self._words.starts, negation.start))
            if share >= (_LEFT_OUT if len(denied) > 1 else _ALONE) and share >= affirmed[first] + _MARGIN:
                affirmed[first] = 1
                yield Finding(self._folded.restore(negation), "differs")

    def _weigh_sides(self, denied: Iterable[str], near: Sequence[str]) -> tuple[float, float]:
        """The largest shares of some words that stand around others, first without a negation, then with one."""
        sides: Mapping[bool, list[float]] = {False: [0.0], True: [0.0]}
        for at in (at for word in denied for at in self._places.get(word, ())):
            sides[self._words.has_cue(at - _REACH, at + _REACH + 1)].append(self._weigh_share(near, at))
        return max(sides[False]), max(sides[True])

    def _weigh_share(self, near: Sequence[str], at: int) -> float:
        return self._weigh_near(near, at, _CONTEXT) / sum(map(self._weigh, near))


def _is_between(places: Sequence[int], first: int, last: int) -> bool:
    return bisect_left(places, first) < bisect_right(places, last)


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
