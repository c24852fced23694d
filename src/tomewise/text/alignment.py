"""Find a quotation in a text by its letters and figures alone, and where in the text it stands.

A quotation that was copied in good faith differs in marks, case, line ends and ligatures. So both sides are read as
words (`fold`), each with its place in the text; signs count only where they belong to a number. What was found is a
span of the text itself, which begins and ends with whole words.

Words are found in the outline of a text: of the same length, with one sign for all signs that mean the same to a word.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from string import punctuation

from tomewise.text.sentences import split_sentences

Span = tuple[int, int]
# Characters without a shape of their own: controls, direction marks, fillers, variation selectors, Unicode tags.
INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_LEAST = 3  # letters and figures: fewer are found anywhere
_LEFT_OUT = 1000  # characters at most between two parts of a quotation
_OCCURRENCES = 1000  # of one part that are looked at
_PIECE = 64  # characters of a word that are normalised at once: it takes time that grows with the square
_AROUND = 32  # characters on either side of a quotation, whose signs may belong to it
_CONTEXT = 24  # characters by which the end of a sentence is known

# ---------------------------------------------------------------- the outline

_MARK, _LINK, _ALONE, _SUPERSCRIPT, _HIDDEN = "\u0301", "\u1039", "\u4e00", "\u00b9", "\0"
_STAND_INS = {
    sign: stand_in
    for stand_in, signs in {
        '"': "“”„‟«»〝〞〟「」『』",
        "'": "‘’‚‛‹›´ʹʻʼʽˈ′",
        "\n": "\x85\u2028\u2029",
        "-": "−",
        "—": "―⸺⸻",
        ".": "·٫。।",
        "?": "¿؟",
        "!": "¡",
        ",": "٬،、",
        "/": "⁄∕÷",
        "*": "×",
        "<": "≤≥≠≈±",
        "%": "٪‰",
        _MARK: "\u0e33\u0eb3\u200c\u200d\uff9e\uff9f",  # letters and joiners that are parts of the sign before them
        _LINK: "\u1039\u17d2\u1a60",  # join the next letter to the one before
        "\u00ad": "\u00ad",
    }.items()
    for sign in signs
}
_INVISIBLE_SIGN = re.compile(f"[{INVISIBLE}]")
# Scripts that put no blanks between words: a quotation may begin and end at each letter.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1980-\u19df\u1a20-\u1aaf\u2e80-\u312f\u3190-\ua4cf\ua9e0-\ua9ff"
    "\uaa60-\uaadf\uf900-\ufaff\uff66-\uff9d\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)


@lru_cache(maxsize=1 << 14)
def _find_stand_in(sign: str) -> str:
    """The sign by which the outline shows one that is not of ASCII."""
    category, plain = unicodedata.category(sign), unicodedata.normalize("NFKC", sign)
    if sign in _STAND_INS:
        return _STAND_INS[sign]
    if category[0] == "M":
        return _MARK
    if _INVISIBLE_SIGN.match(sign):
        return _HIDDEN
    if sign.isspace():
        return " "
    if unicodedata.decomposition(sign).startswith("<super>") and (plain.isdecimal() or plain in "+−"):
        return _SUPERSCRIPT
    if len(plain) == 1 and plain.isascii():
        return plain
    if category == "Nd":
        return "0"
    if "⁄" in plain or (sign.isalnum() and _UNSPACED.match(sign)):
        return _ALONE
    if sign.isalnum() or category == "Cf":
        return "x"
    return {"Pd": "-" if sign != "—" else sign, "Sc": "$"}.get(category, sign)


def _draw_outline(text: str) -> str:
    if text.isascii():
        return text
    return text.translate({ord(sign): _find_stand_in(sign) for sign in set(text) if not sign.isascii()})


# ---------------------------------------------------------------- words

_UNSEEN = "\x00-\x08\x0e-\x1b\x7f\u00ad"  # in an outline
_UNSEEN_SIGNS = "".join(map(chr, (*range(0x09), *range(0x0E, 0x1C), 0x7F, 0xAD)))
_QUOTES = ("'", '"')
_REST = rf"[A-Za-z0-9{_MARK}{_LINK}{_UNSEEN}]*+"
_BLANKS = r"[^\S\n]*+"
_JOINED = rf"(?:(?<=[0-9])(?:[.,:/'+*<>=—]|-(?:{_BLANKS}\n{_BLANKS})?)(?=[0-9]){_REST}|\^-?(?=[0-9]){_REST})*+"
_TAIL = rf"(?:(?<![A-Za-z]{{4}}){_SUPERSCRIPT}++)?(?:[+#]{{1,2}}(?![A-Za-z0-9+#]))?"
_RELATION = r"(?:(?:[<>=]{1,2}|\+|(?<!~)~)(?:(?<!\n.)(?<!\A.) )?|&[lg]t;=? ?)?"  # at a line's start it is Markdown
_MINUS = rf"(?:(?<![A-Za-z0-9{_MARK}{_ALONE}{_UNSEEN})\]\"'-])-)?"
_NUMBER = rf"{_RELATION}{_MINUS}(?:\$ ?)?[0-9]{_REST}{_JOINED}{_TAIL}(?: ?%| ?\$(?! ?[0-9]))?"
_LETTERS = rf"[A-Za-z]{_REST}{_JOINED}{_TAIL}"
_LETTER = rf"{_ALONE}[{_MARK}\0]*+(?:{_LINK}[{_MARK}\0]*+{_ALONE}?[{_MARK}\0]*+)*+"
_WORD = re.compile(f"{_LETTERS}|{_NUMBER}|{_LETTER}|{_SUPERSCRIPT}++")
# What a quotation may leave out, though the text has words there: marks of notes, the target of a link, tags, a page
# number; and the hyphen at the end of a line, which may belong to the word or not.
_NOTE = r"\[(?:\^?[0-9]{1,3}|[a-z]|\^[\w-]{1,20}|note [0-9]{1,3}|citation needed)(?:[,-] ?[0-9]{1,3})*+\]"
_NOTE_NUMBER = rf"(?:(?<=[A-Za-z]{{4}})|(?<=[.,;:!?)\]\"'])){_SUPERSCRIPT}++"
_TARGET = r"\]\([^()\s]{1,500}+(?: \"[^\"\n]{0,200}+\")?\)"
_TAG = (
    r"</?(?i:a|abbr|b|big|blockquote|br|cite|code|div|em|font|h[1-6]|hr|i|img|li|mark|ol|p|q|s|small|span|strike|strong"
    r"|sub|sup|table|tbody|td|th|thead|tr|u|ul)(?:\s[^<>]{0,300}+)?/?>"
)
_PAGE = rf"-?{_BLANKS}[0-9]{{1,4}}+{_BLANKS}-?{_BLANKS}"
_LOOSE = (
    rf"(?P<joint>(?:(?<=[A-Za-z{_MARK}])[-¬]|(?<=\u00ad)){_BLANKS}\n\s*+(?:{_PAGE}\n\s*+)?(?=[A-Za-z]))"
    rf"|(?P<inserted>{_NOTE}|{_NOTE_NUMBER}|{_TARGET}|{_TAG}|(?<=\n){_BLANKS}{_PAGE}(?=\n))"
)
_TOKEN = re.compile(rf"{_LETTERS}|{_LOOSE}|{_NUMBER}|{_LETTER}|{_SUPERSCRIPT}++|(?P<sign>&(?:[lg]t|amp|quot|nbsp);)")

# Vowel signs of Arabic and Hebrew, accents, and what nobody sees. Marks of other scripts are parts of the spelling.
_SILENT = re.compile(
    rf"[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0652"
    rf"\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
    rf"\ufe20-\ufe2f\s{INVISIBLE}]"
)
_ACCENTED = re.compile("[\u00c0-\u03ff\u1e00-\u1fff]")  # letters of Latin and Greek
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴-⁹⁺⁻]+")
_SPELLING = str.maketrans(
    dict(zip("ıøłđħёʹʻʼʽˈ’‘′‐‑‒–—―−⁄∕·٫٬", "iolдhе''''''''-------//..,", strict=True))
    | {"đ": "d", "æ": "ae", "œ": "oe", "≤": "<=", "≥": ">="}
)


@lru_cache(maxsize=1 << 15)
def _fold_word(word: str) -> str:
    """A word as it is compared: small letters without accents, ligatures or blanks; figures of all scripts are ours."""
    word = _SUPERSCRIPTS.sub(r"^\g<0>", word).replace("&lt;", "<").replace("&gt;", ">")
    word = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())
    word = _SILENT.sub("", _ACCENTED.sub(_drop_accent, word)).translate(_SPELLING)
    return word if word.isascii() else "".join(map(_fold_figure, word))


def _drop_accent(letter: re.Match[str]) -> str:
    return unicodedata.normalize("NFD", letter[0])[0]


def _fold_figure(sign: str) -> str:
    return str(unicodedata.decimal(sign)) if sign.isdecimal() else sign


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
    def _known(self) -> frozenset[str]:
        return frozenset(self.words)

    @cached_property
    def _pairs(self) -> frozenset[tuple[str, str]]:
        return frozenset(pairwise(self.words))

    def _read_like(self, quotation: Folded) -> Folded:
        """The same words; where they are loose, as the quotation has them."""
        read = Folded([], array("L"), array("L"), [])
        at = 0
        for first, after, is_joint in self.loose:
            if not 0 < first <= after < len(self.words):
                continue
            before, following = self.words[first - 1], self.words[after]
            is_one = is_joint and before + following in quotation._known
            if not is_one and (first == after or (before, following) not in quotation._pairs):
                continue
            read._add(self, at, first)
            at = after
            if is_one:
                read.words[-1] += following
                read.ends[-1] = self.ends[after]
                at += 1
        if not at:
            return self
        read._add(self, at, len(self.words))
        return read

    def _add(self, other: Folded, first: int, after: int) -> None:
        self.words += other.words[first:after]
        self.starts += other.starts[first:after]
        self.ends += other.ends[first:after]

    def find(self, quotation: Folded) -> Iterator[Span]:
        """Where the words of a quotation stand in the text, in order and without overlaps."""
        read = self._read_like(quotation)
        number = at = 0
        while (found := read.line.find(quotation.line, at)) >= 0:
            number += read.line.count(" ", at, found)
            yield read.starts[number], read.ends[number + len(quotation.words) - 1]
            number += len(quotation.words)
            at = found + len(quotation.line) - 1


@lru_cache(maxsize=512)
def fold(text: str) -> Folded:
    """The words of a text. Kept for a while, since each quotation is looked for in the same passages."""
    outline = _draw_outline(text)
    folded = Folded([], array("L"), array("L"), [])
    for token in _TOKEN.finditer(outline):
        if token.lastgroup is None:
            _add_word(folded, text, outline, *token.span())
        elif token.lastgroup != "sign":
            first = len(folded.words)
            for word in _WORD.finditer(outline, *token.span()):
                _add_word(folded, text, outline, *word.span())
            is_joint = token.lastgroup == "joint"
            if folded.loose and folded.loose[-1][1] == first:
                first, _, joined = folded.loose.pop()
                is_joint |= joined
            folded.loose.append((first, len(folded.words), is_joint))
    return folded


def _add_word(folded: Folded, text: str, outline: str, start: int, end: int) -> None:
    word = text[start:end]
    if word.isascii() and word.isalnum():
        word = word.lower()
    else:
        end = start + len(outline[start:end].rstrip(_UNSEEN_SIGNS))
        word = "".join(_fold_word(word[at : at + _PIECE]) for at in range(0, end - start, _PIECE))
    if word:
        folded.words.append(word)
        folded.starts.append(start)
        folded.ends.append(end)


# ---------------------------------------------------------------- quotations

# Words that deny, folded, of the languages that are spoken most.
_DENIAL = re.compile(
    r" (?:not?|never|n?either|nor|none|nobody|nothing|nowhere|without|cannot|hardly|scarcely|barely|seldom|rarely|unless"
    r"|except|\w*n t|nicht\w*|kein\w*|nie|niemals|niemand|weder|ohne|kaum|ne|pas|jamais|aucune?|sans|non|mai|senza"
    r"|nunca|jamas|tampoco|sin|nao|sem|nem|niet|geen|nooit|zonder|inte|ej|aldrig|ikke|nigdy|nikdy|bez|не|ни|нет|никогда"
    r"|без|degil|μη|δεν|لا|لم|لن|ليس\w*|ما|غير|بدون|לא|אין|בלי|नही|नहीं|न|मत|안|못|없\w*|않\w*|아니\w*"
    r"|不|没|沒|無|无|未|非|勿|な い|ま せ ん|ไ ม่) "
)


def find_quotation(parts: Sequence[str], text: str) -> list[Span]:
    """Where the parts of a quotation stand in a text, in order: one span for each, or none at all.

    Between two parts are at most 1,000 characters, and nothing that denies what the sentences of these parts say. Of
    several places the one counts where the text is written as the quotation. Parts of fewer than three letters and
    figures stand nowhere.
    """
    chains: list[list[Span]] = []
    for number, part in enumerate(parts):
        spans = list(_list_spans(part, text))
        ends = [chain[-1][1] for chain in chains]
        before = [bisect_right(ends, start) - 1 for start, _ in spans]
        chains = [
            [*chains[at], span] if number else [span]
            for span, at in zip(spans, before, strict=True)
            if not number or (at >= 0 and _may_leave_out(text, ends[at], span[0]))
        ]
    exact = (chain for chain in chains if len(chain) == 1 and text[slice(*chain[0])] in parts[0])
    return next(exact, chains[0] if chains else [])


def _list_spans(quotation: str, text: str) -> Iterator[Span]:
    wanted = fold(quotation)
    if sum(sign.isalnum() or not sign.isascii() for sign in wanted.line[:_AROUND]) >= _LEAST:
        for start, end in islice(fold(text).find(wanted), _OCCURRENCES):
            yield _add_signs(quotation, text, start, end)


def _may_leave_out(text: str, start: int, end: int) -> bool:
    """Whether a quotation may leave these characters out: whole sentences may deny what they like."""
    if end - start > _LEFT_OUT:
        return False
    begin = max(0, start - _CONTEXT)
    for sentence in split_sentences(text[begin : end + _CONTEXT], longest=2 * _LEFT_OUT):
        first, after = begin + sentence.start, begin + sentence.end
        is_whole = start <= first and after <= end
        if not is_whole and _DENIAL.search(fold(text[max(first, start) : min(after, end)]).line):
            return False
    return True


def _add_signs(quotation: str, text: str, start: int, end: int) -> Span:
    """The span of words with the signs around it that the quotation has too; with both of a pair of marks, or none."""
    words = fold(quotation)
    before = _list_signs(quotation[max(0, words.starts[0] - _AROUND) : words.starts[0]])[::-1]
    after = _list_signs(quotation[words.ends[-1] : words.ends[-1] + _AROUND])
    outlines = _draw_outline(text[max(0, start - _AROUND) : start])[::-1], _draw_outline(text[end : end + _AROUND])
    taken = [_match_signs(*pair) for pair in zip((before, after), outlines, strict=True)]
    if before[-1:] == after[-1:] in _QUOTES and not all(is_all for _, is_all in taken):
        taken = [_match_signs(signs[:-1], outline) for signs, outline in zip((before, after), outlines, strict=True)]
    return start - taken[0][0], end + taken[1][0]


def _list_signs(around: str) -> str:
    outline = _draw_outline(around.replace("&lt;", "<").replace("&gt;", ">"))
    return "".join(sign for sign in outline if sign in punctuation)


def _match_signs(signs: str, outline: str) -> tuple[int, bool]:
    """How much of an outline has the signs in order, with nothing but blanks between them, and whether it has all."""
    taken = number = 0
    for at, sign in enumerate(outline):
        if sign == signs[number : number + 1]:
            taken, number = at + 1, number + 1
        elif sign == _MARK and taken == at:
            taken = at + bool(taken)
        elif not (sign.isspace() or sign in _UNSEEN_SIGNS):
            break
    return taken, number == len(signs)
