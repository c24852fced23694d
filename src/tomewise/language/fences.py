"""Put text that others wrote into a prompt: between tags that it cannot close, without invisible characters.

A model takes more texts for a tag than a parser does: wide letters, letters of other alphabets, a doubled slash. So
after each sign that may open a tag, the text is read letter by letter while it can still spell one of our names. The
marks of servers are matched exactly by a tokenizer, so these are known by their shape.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from string import ascii_uppercase

from tomewise.errors import UsageError
from tomewise.text.alignment import INVISIBLE

TAGS = tuple(
    "evidence note question options instructions passage before names name description text items tried finding "
    "missing probe reference prediction".split()
)
# These look like the sign that opens a tag. Triangles and double signs do so in some fonts.
OPENING = "<\uff1c\ufe64‹\u2329\u3008《⟨⟪⧼⦑˂ᐸᚲ❬❮❰≮≪≺⋖⋘⪡⊲◁◃"
_BRACKET_END = "]\uff3d\ufe48"
BRACKETS = "[\uff3b\ufe47" + _BRACKET_END  # both begin marks
_TAG_END = ">\uff1e\ufe65›»\u232a\u3009》⟩⟫⧽⦒˃ᐳ❭❯❱≯≫≻⋗⋙⪢⊳▷▹"
_CLOSING = frozenset(_TAG_END + _BRACKET_END)
_SLASHES = frozenset("/\\⁄∕╱╲⧸⧹⟋⟍∖⫽㇓")
# In an attribute, a sign that looks like the quotation mark could end it: the rest of a title would be outside of it.
_IN_ATTRIBUTE = str.maketrans({**dict.fromkeys('"\uff02“”„‟″‶〃〝〞ʺ˝״', "'"), "<": "&lt;", ">": "&gt;"})
_BARS = "|¦│∣ǀ\uff5c\uffe8"
_BLANK_CELL = "\u2800"  # of Braille
# Servers set off turns, thoughts and tools by marks, and some obey them anywhere. Most are known by their shape (see
# `_is_mark`); these are plain words.
_MARKS = frozenset(
    "s bos eos pad unk mask sop eop eoh eoa sep cls sys suf mid eot eod system user assistant human bot model role "
    "think thinking thought reasoning answer response observation documents results tool tools toolcall functions step "
    "image video audio img global-img box quad ref escape endoftext filename reponame".split()
)
_BRACKETED = frozenset(
    "inst sys args think img audio transcribe gmask smask mask cls sep pad unk bos eos eot prefix middle suffix "
    "unused".split()
)
_NAMES = frozenset(TAGS)
_OPENED = _NAMES | {"function", "parameter", "invoke"}  # with attributes too
# Letters that look like a Latin one, though neither their decomposition nor their name says so.
_ALIKE = (
    "aаαɑᎪꓮᗩ bвьβᏏᏴꓐᗷ cсσᏟꓚᑕ dԁдδᎠᏧꓓᗪ eеєэεə℮Ꭼꓰᗴ3 fϝꓝᖴ gցᏀᏳꓖ hһнηհᎻᏂꓧᕼ iіӏιɩᎥᏆꓲ1 jјϳᎫꓙᒍ kкκᏦꓗ lӏᏞꓡᒪ1 "
    "mмμᎷꓟᗰ nнпиηνπոꓠᑎ oоοσօꓳ0 pрρքᏢꓑᑭ qԛգզᑫ rгґрρᎡᏒꓣᖇ sѕсσᏚᏕꓢᔕ5 tтτᎢꓔ uицυսμꓴᑌ vѵвνᏙꓦᐯ wԝωᎳᏔꓪᗯ xхχꓫ᙭ "
    "yуυγᎩᎽꓬ zζᏃꓜᘔ"
).split()  # the letter, and what looks like it
_READ_AS = {sign: "".join(group[0] for group in _ALIKE if sign in group[1:]) for alike in _ALIKE for sign in alike[1:]}
_BEGINNINGS = frozenset(name[:end] for name in _OPENED | _MARKS | _BRACKETED for end in range(len(name) + 1))
_TAG = re.compile("[a-z]+([_-][a-z]+)*")
_extra_tags: ContextVar[frozenset[str]] = ContextVar("tomewise_extra_tags", default=frozenset())
_GLIMPSE = 4  # characters
_INVISIBLE_SIGN = re.compile(f"[{INVISIBLE}]")
_CONTROLS = dict.fromkeys((code for code in range(128) if _INVISIBLE_SIGN.match(chr(code))), "")
# What may be a mark, behind its first sign. Another mark may begin inside: once that is neutral, this one must not be
# whole.
_TAG_SHAPE = rf"(?=(\s?[^\s{_TAG_END}]{{1,60}}+\s?[{_TAG_END}]|[{_BARS}][^\s{_BARS}]{{1,60}}+[{_BARS}]))?"
_BRACKET_SHAPE = rf"(?=([^\s{re.escape(BRACKETS)}]{{1,60}}+[{re.escape(BRACKETS)}]))"
# One pattern for each sign: a text is searched for one sign ten times as fast as for one of several. The end of a
# bracket begins the marks `]~b]`, `]!p~[` and `]<]image[>[`.
_SIGNS = {
    **{sign: re.compile(rf"{re.escape(sign)}{_BRACKET_SHAPE}?") for sign in "[\uff3b\ufe47"},
    **{sign: re.compile(rf"{re.escape(sign)}(?=[~!<]){_BRACKET_SHAPE}") for sign in _BRACKET_END},
    **{sign: re.compile(f"{sign}{_TAG_SHAPE}") for sign in f"{OPENING}«"},
}
_JOINTS = dict.fromkeys(map(ord, ":_=#~"))
_RARE = re.compile(f"[{INVISIBLE}{''.join(sign for sign in _SIGNS if not sign.isascii())}]")
_WORD = re.compile(r"[^\W\d_]{3}")
# Scripts from Arabic to Myanmar, Khmer and Mongolian: there joiners are part of the spelling.
_SCRIPTS_WITH_JOINERS = re.compile("[\u0600-\u109f\u1780-\u18af\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc]")


@contextmanager
def use_tags(tags: Iterable[str]) -> Iterator[None]:
    """Allow these tags inside this context, in addition to `TAGS`: there, no text can open or close them.

    Raises UsageError for a tag that is not made of small letters of ASCII, with single `_` or `-` between them.
    """
    extra_tags = frozenset(tags)
    for tag in sorted(extra_tags):
        if not _TAG.fullmatch(tag):
            raise UsageError(f"{tag!r} cannot be a tag: write small letters from a to z, as in 'field_note'")
    token = _extra_tags.set(extra_tags)
    try:
        yield
    finally:
        _extra_tags.reset(token)


def neutralise(text: str) -> str:
    """The text without invisible characters, and without anything that opens a tag or a turn.

    A sign that would open one becomes `&lt;`, and `«` becomes `"`; a bracket that would open one gets a blank
    (`[ INST]`). The rest of the text stays as it is.
    """
    signs = set("[]<")
    if text.isascii():
        text = text.translate(_CONTROLS)  # ten times as fast as a pattern
    elif rare := set(_RARE.findall(text)):
        signs |= rare
        text = _INVISIBLE_SIGN.sub(_keep_needed_joiner, text) if rare - _SIGNS.keys() else text
    neutralise_sign = partial(_neutralise_sign, _extra_tags.get())
    for sign, pattern in _SIGNS.items():
        if sign in signs:
            text = pattern.sub(neutralise_sign, text)
    return text


def _keep_needed_joiner(sign: re.Match[str]) -> str:
    """The sign if it joins two letters that need a joiner; otherwise nothing, since it is invisible."""
    if sign[0] not in "\u200c\u200d":
        return ""
    neighbours = sign.string[max(0, sign.start() - 1) : sign.start()], sign.string[sign.end() : sign.end() + 1]
    return sign[0] if all(map(_SCRIPTS_WITH_JOINERS.match, neighbours)) else ""


def _neutralise_sign(extra_tags: frozenset[str], sign: re.Match[str]) -> str:
    text, start = sign.string, sign.start()
    is_named = not _is_harmless(text[start : start + _GLIMPSE], extra_tags) and _opens(text, start, extra_tags)
    if not is_named and not (sign[1] and _is_mark(sign[0] + sign[1])):
        return sign[0]
    if sign[0] in BRACKETS:
        return sign[0] if text[start + 1].isspace() else f"{sign[0]} "
    return '"' if sign[0] == "«" else "&lt;"  # as a quotation finds it


@lru_cache(maxsize=4096)
def _is_mark(tag: str) -> bool:
    """Whether a text in brackets of any kind has the shape of a mark: `<|im_end|>`, `<extra_id_1>`, `[e~[`.

    Addresses, numbers, expressions, indices and plain words have not. A name with `_`, `:`, `=`, `#` or a digit has, so
    that `vector<size_t>` in code is broken up too.
    """
    body = unicodedata.normalize("NFKC", tag[1:-1]).strip().strip("/")
    if not any(map(str.isalnum, body)):
        return body.strip(_BARS) not in ("", body) or (body == "<" and tag[0] in _BRACKET_END)
    if "~" in body or body[0] in _BARS or body[-1] in _BARS:
        return True
    word = body.translate(_JOINTS)
    if not word.isalnum() or tag[0] in _BRACKET_END:
        return False
    has_word, is_constant = bool(_WORD.search(body)), "_" in body and word.isupper()
    if tag[0] in BRACKETS:
        is_named = body.rstrip("0123456789").casefold() in _BRACKETED
        return tag[-1] in _BRACKET_END and (is_named or (is_constant and has_word))
    return not body.isalpha() and (has_word or is_constant)


@lru_cache(maxsize=4096)
def _is_harmless(beginning: str, extra_tags: frozenset[str]) -> bool:
    """Whether these few characters already rule out a name. Cached, since markup repeats itself."""
    return len(beginning) == _GLIMPSE and _opens(beginning, 0, extra_tags) is False


def _opens(text: str, start: int, extra_tags: frozenset[str]) -> bool | None:
    """Whether the sign at `start` opens a tag, or a name with its closing sign. None if the text ends too early.

    Stops at the first sign that cannot continue a name. Blanks and slashes are skipped, but no further opening sign, so
    all opening signs of a text together take time linear in its length.
    """
    names, marks = (frozenset(), _BRACKETED) if text[start] in BRACKETS else (_OPENED | extra_tags, _MARKS)
    beginnings = _BEGINNINGS | _list_beginnings(extra_tags) if extra_tags else _BEGINNINGS
    live = {""}
    for index in range(start + 1, len(text)):
        sign, has_letters = text[index], live != {""}
        spelt = _normalise(sign)
        if spelt[:1].isalnum() or spelt[:1] in ("_", "-"):
            live = _extend(live, spelt, beginnings)
            if not live:
                return False
        elif not live.isdisjoint(names):
            return True
        elif sign in _CLOSING:
            return not live.isdisjoint(marks)
        elif spelt and not sign.isspace() and sign != _BLANK_CELL and (has_letters or spelt not in _SLASHES):
            return False
    return True if not live.isdisjoint(names) else None


@lru_cache(maxsize=64)
def _list_beginnings(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name[:end] for name in names for end in range(len(name) + 1))


@lru_cache(maxsize=4096)
def _normalise(sign: str) -> str:
    """The sign in plain small letters ("ﬁ" is "fi"), without accents; empty for an accent or an invisible sign."""
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", sign).casefold())
    seen = (part for part in parts if unicodedata.category(part)[0] != "M" and not _INVISIBLE_SIGN.match(part))
    return "".join(map(_find_latin, seen))


def _find_latin(sign: str) -> str:
    """The Latin letter that the name of a sign ends with, such as "negative circled Latin capital letter E"."""
    words = [] if sign.isascii() else unicodedata.name(sign, "").partition(" WITH ")[0].split()
    is_latin = ("LATIN" in words or "REGIONAL" in words) and len(words[-1]) == 1
    return words[-1].lower() if is_latin else sign


def _extend(live: set[str], spelt: str, beginnings: frozenset[str]) -> set[str]:
    """Beginnings of names, made longer by the letters `spelt`. A letter counts as each letter that it looks like."""
    for sign in spelt:
        letters = sign + _READ_AS.get(sign, "")
        live = {longer for start in live for each in letters if (longer := start + each) in beginnings}
    return live


def fence(text: str, tag: str, **attributes: object) -> str:
    """The text between `<tag>` and `</tag>`. The text can contain neither. Empty attributes are left out.

    Raises UsageError for a tag that is not in `TAGS` nor in `use_tags`: a text could close such a tag.
    """
    if tag not in _NAMES and tag not in _extra_tags.get():
        known = ", ".join(sorted(_NAMES | _extra_tags.get()))
        raise UsageError(f"{tag!r} is not a fence: name one of {known}, or add it to the `tags` of the role")
    shown = {name: value for name, value in attributes.items() if value not in ("", None)}
    opening = "".join(f' {name}="{oneline(str(value)).translate(_IN_ATTRIBUTE)}"' for name, value in shown.items())
    return f"<{tag}{opening}>\n{neutralise(text)}\n</{tag}>"


def oneline(text: str) -> str:
    """The text on one line, so that one item of a list cannot look like two."""
    return neutralise(" ".join(text.split()))


def number_items(items: Sequence[str]) -> str:
    """One item a line, with numbers from 1."""
    return "\n".join(f"{number}. {oneline(item)}" for number, item in enumerate(items, start=1))


def letter_items(items: Sequence[str]) -> str:
    """One item a line, with letters from A."""
    return "\n".join(f"{get_letter(index)}. {oneline(item)}" for index, item in enumerate(items))


def get_letter(index: int) -> str:
    """The letter of the option at `index`, counted from 0: A, B, C. `index` is at most 25."""
    return ascii_uppercase[index]
