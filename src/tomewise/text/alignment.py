"""Find a quotation in a text by its letters and figures, and where in the text it stands.

A quotation that was copied in good faith differs in marks, case, line ends and ligatures, and lacks what a reader put
between the words. So both sides are read as words (`fold`), each with its place. Signs count only where they belong to
a number. Both are read once, and lines of words are searched as texts: the time is linear in their length.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain, pairwise, repeat
from typing import Literal

# Characters without a shape of their own: controls, direction marks, fillers, variation selectors, Unicode tags.
INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_KEPT = 20_000  # characters of a text whose words are kept for a while
_LEAST = 3  # letters and figures: fewer are found anywhere
_PARTS = 8  # at most, of a quotation that leaves words out
_LEFT_OUT_AT_MOST = 1000  # characters between two parts
_AROUND = 32  # characters on either side of a quotation, whose signs may belong to it

Difference = Literal["blanks", "signs", "case", "letters", "notes"]


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]` has the words of a quotation. `differs` names what the quotation writes in another way.

    Signs before the first word and behind the last are no difference: models begin and end quotations with their own.
    "letters" are accents, ligatures, wide forms and hyphens at a line's end; "notes" are marks of notes, addresses of
    links, tags and page numbers that the quotation leaves out.
    """

    start: int
    end: int
    differs: frozenset[Difference] = frozenset()


def find_quotation(quotation: str, text: str) -> list[Span]:
    """Where a quotation stands in a text: one span if it has all words, else one for each part around its ellipses.

    Parts stand in this order, at most 1,000 characters apart, and what is left out between them denies nothing. Of
    several places the one counts that is most like the quotation. Fewer than three letters and figures stand nowhere.
    Empty if the text does not have the quotation.
    """
    if whole := list(find_places(quotation, text)):
        return [min(whole, key=lambda span: len(span.differs))]
    parts = [part for part in _ELLIPSIS.split(quotation) if any(map(str.isalnum, part))]
    chains: list[list[Span]] = []
    for number, part in enumerate(parts if 1 < len(parts) <= _PARTS else ()):
        ends = [chained[-1].end for chained in chains]
        longer: list[list[Span]] = []
        for span in find_places(part, text):
            before = bisect_right(ends, span.start) - 1
            if not number:
                longer.append([span])
            elif before >= 0 and _may_leave_out(text, ends[before], span.start):
                longer.append([*chains[before], span])
        chains = longer
    return chains[0] if chains else []


# ---------------------------------------------------------------- signs

_STAND_INS = {
    sign: stand_in
    for stand_in, signs in {
        '"': "“”„‟«»「」『』",
        "'": "‘’‚‛‹›´ʹʻʼʽˈ′",
        "\n": "\x85\u2028\u2029",
        "-": "‐‑‒–−",
        "--": "—―",
        ".": "٫。।",
        ",": "٬،、",
        "?": "؟",
        "/": "⁄∕÷",
        "*": "×",
        "<=": "≤",
        ">=": "≥",
        "=~": "≈",
        "=!": "≠",
        "%": "٪",
        " ": "™℠",
        **{sign: sign for sign in "\u00ad‰±⁰¹²³⁴⁵⁶⁷⁸⁹⁻"},
    }.items()
    for sign in signs
}
_SUPERSCRIPTS = "⁰¹²³⁴-⁹⁻"
_CURRENCIES = "$¢-¥\u20a0-\u20cf"
_KEPT_SIGN = re.compile(f"[{_CURRENCIES}]")
_INVISIBLE_SIGN = re.compile(f"[{INVISIBLE}]")


@lru_cache(maxsize=1 << 14)
def _fold_sign(sign: str) -> str:
    """The sign in small plain letters with its accents behind it, in our figures, or in signs of ASCII.

    Empty for what nobody sees; a blank for other signs.
    """
    if sign in _STAND_INS:
        return _STAND_INS[sign]
    if _INVISIBLE_SIGN.match(sign):
        return ""
    plain = unicodedata.normalize("NFKD", sign).casefold()
    if "⁄" in plain:
        return f" {plain.replace('⁄', '/')}"  # 3½ is not 31/2
    if not plain.isascii() and unicodedata.category(sign)[0] in "PSZ" and not _KEPT_SIGN.match(plain):
        return " "
    return "".join(str(unicodedata.decimal(each, each)) for each in plain)


# Where the letters of Latin and the figures stand again: with accents, wide, in circles, as ligatures, for mathematics.
_LATIN = ((0xA0, 0x250), (0x1D00, 0x1F00), (0x2000, 0x2C00), (0x3200, 0x3400), (0xA720, 0xA800), (0xFB00, 0xFB07))
_WIDE = ((0xFF00, 0xFFF0), (0x1D400, 0x1D800), (0x1F100, 0x1F300))


@cache
def list_variants() -> Mapping[str, str]:
    """By the letters and figures of ASCII that are read in a sign beyond ASCII, all such signs: "ff" gives "ﬀ"."""
    figures = (code for code in range(0x80, 0x20000) if unicodedata.category(chr(code)) == "Nd")
    variants: dict[str, str] = {}
    for sign in map(chr, chain(figures, *(range(*each) for each in (*_LATIN, *_WIDE)))):
        letters = "".join(each for each in _fold_sign(sign) if each.isascii() and each.isalnum())
        if letters and sign not in variants.get(letters, ""):
            variants[letters] = variants.get(letters, "") + sign
    return variants


def _fold_signs(text: str) -> tuple[str, Sequence[int]]:
    """The folded signs, and for each the number of the character that it comes from."""
    if text.isascii() and not _INVISIBLE_SIGN.search(text):
        return text.lower(), range(len(text))
    folded = list(map(_fold_sign, text))
    return "".join(folded), array("L", chain.from_iterable(map(repeat, range(len(text)), map(len, folded))))


# ---------------------------------------------------------------- words

# Scripts that put no blanks between words: each letter is a word, with the marks on it.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u3190-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = "".join(
    chr(code)
    for code in chain(range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800), (0x3099, 0x309A))
    if unicodedata.category(chr(code))[0] == "M"
)
# What is not of ASCII is a letter or a part of one: `_fold_sign` leaves no other signs.
_OTHERS = rf"{{-\x7f{_UNSPACED}{_SUPERSCRIPTS}{_CURRENCIES}‰±"
_SIGN, _LETTER = rf"[^\x00-/:-`{_OTHERS}]", rf"[^\x00-`{_OTHERS}]"
_LINE_END = r"[^\S\n]*+\n[^\S\n]*+"
_JOINED = rf"(?:(?<=[0-9])(?:[.,:/'*^]|--?|-{_LINE_END})(?=[0-9]){_SIGN}++)*+"
_TAIL = rf"(?:(?<!{_LETTER}{{4}})[{_SUPERSCRIPTS}]++|(?<!{_SIGN}{_SIGN})[+#]{{1,2}}(?!{_SIGN}))?"  # m², C++
# With a blank behind it, a sign that opens a line is one of Markdown.
_RELATION = r"(?:(?:(?:[<>]|&[lg]t;)=?|(?<![~=+])(?:=[~!]|[~=+±]))(?:(?<=[^\n].) )?)?"
_MINUS = rf"(?:(?<!{_SIGN})(?<![)\]\"'.-])-)?"
_AMOUNT = rf"[0-9]{_SIGN}*+{_JOINED}{_TAIL}(?: ?[%‰]| ?[{_CURRENCIES}](?! ?[0-9]))?"
_NUMBER = rf"{_RELATION}{_MINUS}(?:[{_CURRENCIES}] ?)?{_AMOUNT}"
_WORD = rf"(?![0-9]){_SIGN}++{_JOINED}{_TAIL}|[{_UNSPACED}][{_MARKS}]*+"
# What a quotation may leave out, though the text has words there.
_NOTE = r"\[(?:\^?[0-9]{1,3}(?:[,-] ?[0-9]{1,3}){0,9}|[a-z]|\^[\w-]{1,20})\]"
_NOTE_NUMBER = rf"(?:(?<={_LETTER}{{4}})|(?<=[.,;:!?)\]\"']))[{_SUPERSCRIPTS}]++"
_ADDRESS = r"\]\([^()\s]{1,500}+(?: \"[^\"\n]{0,200}+\")?\)"
_TAG = (
    r"</?(?:a|b|br|cite|code|div|em|h[1-6]|i|img|li|mark|ol|p|q|s|small|span|strong|sub|sup|table|td|th|tr|u|ul)"
    r"(?:\s[^<>]{0,300}+)?/?>"
)
_PAGE = r"[^\S\n]*+(?:[0-9]{1,4}+|- ?[0-9]{1,4}+ ?-)[^\S\n]*+"
_LEFT_OUT = rf"{_NOTE}|{_NOTE_NUMBER}|{_ADDRESS}|{_TAG}|(?<=\n\n){_PAGE}(?=\n)|(?<=\n){_PAGE}(?=\n\n)"
# A hyphen at the end of a line may belong to the word or not.
_JOINT = rf"(?:(?<={_SIGN})-|(?<=\u00ad)){_LINE_END}(?:\s*+{_PAGE}\n)?\s*+(?={_SIGN})"
_WORDS = re.compile(rf"{_WORD}|{_NUMBER}|[{_SUPERSCRIPTS}]++")
_TOKEN = re.compile(
    rf"{_WORD}|(?P<joint>{_JOINT})|(?P<notes>{_LEFT_OUT})"
    rf"|{_NUMBER}|[{_SUPERSCRIPTS}]++|(?P<sign>&(?:[lg]t|amp|quot|nbsp);)"
)
# Accents of Latin and Greek letters, vowel signs of Hebrew and Arabic, soft hyphens, and blanks in numbers.
_SILENT = re.compile(
    "(?<=[a-zα-ω])[\u0300-\u036f]+|[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u00ad\\s]+"
)
_POWER = re.compile(f"[{_SUPERSCRIPTS}]+")


def _show_signs(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">")


def _fold_power(power: re.Match[str]) -> str:
    return "^" + unicodedata.normalize("NFKC", power[0]).replace("−", "-")


@dataclass(frozen=True, eq=False)
class Folded:
    """The words of a text as they are compared: word `n` is `text[starts[n]:ends[n]]`.

    `loose` are places where a quotation may differ: the words from the first number to before the second may be left
    out, and with True the words around them may be one word, cut by a hyphen at the end of a line.
    """

    words: list[str]
    starts: array[int]
    ends: array[int]
    loose: list[tuple[int, int, bool]]

    @cached_property
    def line(self) -> str:
        return f" {' '.join(self.words)} "

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(self.words)

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        return frozenset(pairwise(self.words))

    @cached_property
    def denials(self) -> list[int]:
        """Where the words begin that deny something."""
        return [
            self.starts[number]
            for number, (before, word) in enumerate(pairwise(["", *self.words]))
            if word in _DENIALS
            or word.startswith(_DENYING)
            or (before, word) in _DENYING_PAIRS
            or (word == "t" and before[-1:] == "n")
        ]

    def read_like(self, quotation: Folded) -> Folded:
        """The same words; where they are loose, as the quotation has them."""
        read = Folded([], array("L"), array("L"), [])
        loose = [each for each in self.loose if 0 < each[0] <= each[1] < len(self.words)]
        joints = {
            first: self.words[after]
            for first, after, is_joint in loose
            if is_joint and self.words[first - 1] + self.words[after] in quotation.known
        }
        at = 0
        for first, after, _ in loose:
            before = read.words[-1] if 0 < at == first else self.words[first - 1]
            following = self.words[after] + joints.get(after + 1, "")
            if first not in joints and (first == after or (before, following) not in quotation.pairs):
                continue
            read._add(self, at, first)
            at = after
            if first in joints:
                read.words[-1] += self.words[after]
                read.ends[-1] = self.ends[after]
                at += 1
        if not at:
            return self
        read._add(self, at, len(self.words))
        return read

    def _add(self, source: Folded, first: int, after: int) -> None:
        self.words.extend(source.words[first:after])
        self.starts.extend(source.starts[first:after])
        self.ends.extend(source.ends[first:after])


@lru_cache(maxsize=512)
def fold(text: str) -> Folded:
    """The words of a text. Kept for a while, since each quotation is looked for in the same passages."""
    plain, places = _fold_signs(text)
    folded = Folded([], array("L"), array("L"), [])
    for token in _TOKEN.finditer(plain):
        first, kind = len(folded.words), token.lastgroup
        if kind == "sign":
            continue
        for found in _WORDS.finditer(plain, *token.span()) if kind else [token]:
            word = found[0]
            if not word.isascii() or not word.isalnum():
                word = _POWER.sub(_fold_power, _SILENT.sub("", _show_signs(word))).replace("--", "-")
            if word:
                folded.words.append(word)
                folded.starts.append(places[found.start()])
                folded.ends.append(places[found.end() - 1] + 1)
        if kind:
            _add_loose(folded.loose, first, len(folded.words), is_joint=kind == "joint")
    return folded


def _add_loose(loose: list[tuple[int, int, bool]], first: int, after: int, *, is_joint: bool) -> None:
    if loose and loose[-1][1] == first:
        first, _, was_joint = loose.pop()
        is_joint |= was_joint
    loose.append((first, after, is_joint))


# ---------------------------------------------------------------- quotations

# What is left out is marked so, or by a paragraph's end.
_ELLIPSIS = re.compile(r"…|\.{3,}+|(?:\. ){2,}\.|\n[^\S\n]*+\n")
# Words, beginnings of words, and pairs of letters, of the languages that docs/explanations/citations.md names.
_DENIALS = fold(
    """no not never neither nor none nobody nothing nowhere without cannot hardly scarcely barely seldom rarely unless
    except aint nicht nichts kein keine keinen keiner keinem keines nie niemals nimmer niemand nirgends weder ohne kaum
    ne pas jamais aucun aucune rien personne sans non mai nessuno nessuna niente nulla senza nunca jamás tampoco nada
    nadie ni ningún ninguno ninguna sin não sem nem ninguém nenhum nenhuma niet niets niemand geen nooit zonder inte
    ingen aldrig utan ikke uden nie nikt nigdy bez не ни нет никто ничего никогда без немає değil hiç yok δεν μην لا لم
    لن ليس ليست غير بدون לא אין בלי नहीं मत न نہیں نه tidak bukan tak belum jangan tanpa không chẳng chưa đừng
    안 不 没 沒 無 无 未 非 勿 別 别"""
).known
_DENYING = tuple(fold("refus fail 않 못 없 아니").known)
_DENYING_PAIRS = frozenset(tuple(fold(pair).words) for pair in ("ない", "なく", "なか", "せん", "ずに", "せず", "ไม่"))
_GROUP = re.compile(r"(?<!\d{3})\d[ \xa0\u2009\u202f]\d{3}(?!\d)")  # of a number with blanks: 10 000


def count_denials(text: str) -> int:
    """How many words of a text deny, in the languages whose words are known."""
    return len(fold(text).denials)


def _may_leave_out(text: str, start: int, end: int) -> bool:
    denials = fold(text).denials
    return end - start <= _LEFT_OUT_AT_MOST and bisect_left(denials, start) == bisect_left(denials, end)


def find_places(quotation: str, text: str, *, least: int = _LEAST) -> Iterator[Span]:
    """Each place where the text has all words of the quotation, in order and without overlaps; no part of a number.

    None for a quotation with fewer letters and figures than `least`.
    """
    wanted = fold(quotation)
    if sum(map(len, wanted.words)) < least:
        return
    head, tail = quotation[: wanted.starts[0]].lstrip(), quotation[wanted.ends[-1] :].rstrip()
    read = (fold if len(text) <= _KEPT else fold.__wrapped__)(text).read_like(wanted)
    number = at = 0
    while (found := read.line.find(wanted.line, at)) >= 0:
        number += read.line.count(" ", at, found)
        after, at = number + len(wanted.words), found + len(wanted.line) - 1
        starts, ends = read.starts[number:after], read.ends[number:after]
        number = after
        if any(_GROUP.match(text, at) for at in (starts[0] - 2, ends[-1] - 1) if at >= 0):
            continue
        differs = frozenset(_list_differences(quotation, text, starts, ends))
        yield Span(*_add_signs(head, tail, text, starts[0], ends[-1]), differs)


def _list_differences(quotation: str, text: str, starts: Sequence[int], ends: Sequence[int]) -> Iterator[Difference]:
    wanted = fold(quotation)
    for start, end, begins, stops in zip(wanted.starts, wanted.ends, starts, ends, strict=True):
        if quotation[start:end] != (word := text[begins:stops]):
            yield "case" if quotation[start:end].lower() == word.lower() else "letters"
    for start, end, begins, stops in zip(wanted.ends, wanted.starts[1:], ends, starts[1:], strict=False):
        between, written = quotation[start:end], text[begins:stops]
        if between != written:
            is_same = between.split() == written.split()
            yield "blanks" if is_same else "notes" if any(map(str.isalnum, written)) else "signs"


def _add_signs(head: str, tail: str, text: str, start: int, end: int) -> tuple[int, int]:
    """The place of words with the signs around it that the quotation has too; with both of a pair of marks, or none."""
    if text.endswith(head, 0, start) and text.startswith(tail, end):
        return start - len(head), end + len(tail)
    before, after = _list_signs(head[-_AROUND:])[::-1], _list_signs(tail[:_AROUND])
    text_before, text_after = text[max(0, start - _AROUND) : start][::-1], text[end : end + _AROUND]
    left, has_all_before = _match_signs(before, text_before)
    right, has_all_after = _match_signs(after, text_after)
    if before[-1:] == after[-1:] in ("'", '"') and not (has_all_before and has_all_after):
        left, _ = _match_signs(before[:-1], text_before)
        right, _ = _match_signs(after[:-1], text_after)
    return start - left, end + right


def _list_signs(text: str) -> str:
    return "".join(sign for sign in _fold_signs(_show_signs(text))[0] if not sign.isspace() and sign not in "*_")


def _match_signs(signs: str, text: str) -> tuple[int, bool]:
    """How much of the text has the signs in order, with nothing but blanks between them, and whether it has all."""
    taken = number = 0
    for at, sign in enumerate(text, 1):
        plain = _fold_sign(sign).strip("*_ \n")
        if plain and not signs.startswith(plain, number):
            break
        if plain:
            taken, number = at, number + len(plain)
    return taken, number == len(signs)
