"""Put text that others wrote into a prompt: between tags that it cannot close, without invisible characters.

A model takes more texts for a tag than a parser does: wide letters, letters of other alphabets, a doubled slash. So
after each sign that may open a tag, the text is read letter by letter while it can still spell one of our names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from string import ascii_uppercase

from tomewise.errors import UsageError

TAGS = (
    "evidence", "note", "question", "options", "instructions", "passage", "before", "names", "name", "description",
    "text", "items", "tried", "finding", "missing", "probe", "reference", "prediction",
)  # fmt: skip
# Characters without a shape of their own: controls, direction marks, fillers, variation selectors, Unicode tags.
INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
OPENING = "<\uff1c\ufe64‹\u2329\u3008⟨⧼˂ᐸ❬❮❰"  # these look like the sign that opens a tag
BRACKETS = "[\uff3b\ufe47"
_CLOSING = frozenset(">\uff1e\ufe65›\u232a\u3009⟩⧽˃ᐳ❭❯❱]\uff3d\ufe48")
_SLASHES = frozenset("/\\⁄∕╱╲⧸⧹⟋⟍∖")
_QUOTES = str.maketrans(dict.fromkeys('"\uff02“”„‟″‶〃〝〞ʺ˝״', "'"))
_BARS = "|¦│∣ǀ\uff5c\uffe8"
# With these names servers mark the turns, thoughts and tools of a conversation. Some servers obey them anywhere.
_MARKS = frozenset({
    "s", "bos", "eos", "pad", "unk", "mask", "sop", "eop", "sep", "cls", "sys", "system", "user", "assistant", "model",
    "think", "thinking", "thought", "start_of_turn", "end_of_turn", "start_of_image", "end_of_image", "tool",
    "tool_call", "tool_calls", "tool_code", "tool_output", "tool_response", "tools", "function", "function_call",
    "function_calls", "endoftext",
})  # fmt: skip
_BRACKETED = frozenset({
    "inst", "sys", "system_prompt", "tool_calls", "tool_content", "tool_results", "available_tools", "call_id", "args",
    "think", "img", "img_break", "img_end", "audio", "begin_audio", "gmask", "smask", "mask", "cls", "sep", "pad",
    "unk", "bos", "eos", "prefix", "middle", "suffix", "model_settings",
})  # fmt: skip
_NAMES = frozenset(TAGS)
_ALIKE = {
    "a": "аαɑᴀᎪ", "b": "вьβʙᏴᏼ", "c": "сσᴄᏟ", "d": "ԁдδđᴅᎠ", "e": "еєэεɛəǝᴇᎬ3", "f": "ꜰϝ", "g": "ɡɢցᏀ", "h": "һнηհħʜᎻ",
    "i": "іӏιıɩɪᎥ1", "j": "јϳᎫ", "k": "кκᴋᏦ", "l": "ӏłʟᏞ1", "m": "мμᴍᎷ", "n": "нпиηνπոɴ", "o": "оοσօøᴏ0",
    "p": "рρքᴘᏢ", "q": "ԛգզ", "r": "гґрρʀᎡᏒ", "s": "ѕσꜱᏚᏕ5", "t": "тτŧᴛᎢ", "u": "ицυսμᴜ", "v": "ѵвνᴠᏙ", "w": "ԝωᴡᎳᏔ",
    "x": "хχ", "y": "уυγʏ", "z": "ζᴢᏃ"
}  # fmt: skip
_READ_AS = {
    sign: "".join(letter for letter, lookalikes in _ALIKE.items() if sign in lookalikes)
    for sign in "".join(_ALIKE.values())
}
_BEGINNINGS = frozenset(name[:end] for name in _NAMES | _MARKS | _BRACKETED for end in range(len(name) + 1))
_TAG = re.compile("[a-z]+([_-][a-z]+)*")
_extra_tags: ContextVar[frozenset[str]] = ContextVar("tomewise_extra_tags", default=frozenset())
_GLIMPSE = 3  # characters
_INVISIBLE_SIGN = re.compile(f"[{INVISIBLE}]")
_CONTROLS = dict.fromkeys((code for code in range(128) if _INVISIBLE_SIGN.match(chr(code))), "")
_SIGN = re.compile(f"[{OPENING}{re.escape(BRACKETS)}]")
# A second mark may begin inside the first one: once it is neutral, the first one alone would be a mark.
_BARRED = re.compile(
    rf"[{_BARS}](?:[^\s<>]|<(?=[{_BARS}])){{1,60}}?[{_BARS}]\s?[{re.escape(''.join(sorted(_CLOSING)))}]"
)
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

    A sign that would open one becomes `&lt;`; a bracket that would open one gets a blank (`[ INST]`). The rest of the
    text stays as it is.
    """
    if text.isascii():
        text = text.translate(_CONTROLS)  # ten times as fast as a pattern
    elif _INVISIBLE_SIGN.search(text):
        text = _INVISIBLE_SIGN.sub(_keep_needed_joiner, text)
    return _SIGN.sub(_neutralise_sign, text)


def _keep_needed_joiner(sign: re.Match[str]) -> str:
    """The sign if it joins two letters that need a joiner; otherwise nothing, since it is invisible."""
    if sign[0] not in "\u200c\u200d":
        return ""
    neighbours = sign.string[max(0, sign.start() - 1) : sign.start()], sign.string[sign.end() : sign.end() + 1]
    return sign[0] if all(map(_SCRIPTS_WITH_JOINERS.match, neighbours)) else ""


def _neutralise_sign(sign: re.Match[str]) -> str:
    text, start = sign.string, sign.end()
    bracket = sign[0] in BRACKETS
    extra_tags = _extra_tags.get()
    if _is_harmless(text[start : start + _GLIMPSE], bracket, extra_tags) or not _opens(
        text, start, bracket, extra_tags
    ):
        return sign[0]
    if bracket:
        return sign[0] if text[start].isspace() else f"{sign[0]} "
    return "&lt;"


@lru_cache(maxsize=4096)
def _is_harmless(beginning: str, bracket: bool, extra_tags: frozenset[str]) -> bool:
    """Whether these few characters already rule out a name. Cached, since markup repeats itself."""
    return len(beginning) == _GLIMPSE and _opens(beginning, 0, bracket, extra_tags) is False


def _opens(text: str, start: int, bracket: bool, extra_tags: frozenset[str]) -> bool | None:
    """Whether the text from `start` on spells a tag, or a mark with its closing sign. None if the text ends too early.

    Stops at the first sign that cannot continue a name. Blanks and slashes are skipped, but no further opening sign, so
    all opening signs of a text together take time linear in its length.
    """
    names, marks = (frozenset(), _BRACKETED) if bracket else (_NAMES | extra_tags, _MARKS)
    beginnings = _BEGINNINGS | _list_beginnings(extra_tags) if extra_tags else _BEGINNINGS
    live = {""}
    for index in range(start, len(text)):
        sign, has_letters = text[index], live != {""}
        if sign in _BARS and not has_letters:
            return bool(_BARRED.match(text, index)) or None
        spelt = _normalise(sign)
        if spelt[:1].isalnum() or spelt[:1] in ("_", "-"):
            live = _extend(live, spelt, beginnings)
            if not live:
                return False
        elif not live.isdisjoint(names):
            return True
        elif sign in _CLOSING:
            return not live.isdisjoint(marks)
        elif spelt and not sign.isspace() and (has_letters or spelt not in _SLASHES):
            return False
    return True if not live.isdisjoint(names) else None


@lru_cache(maxsize=64)
def _list_beginnings(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name[:end] for name in names for end in range(len(name) + 1))


@lru_cache(maxsize=4096)
def _normalise(sign: str) -> str:
    """The sign in plain small letters ("ﬁ" is "fi"), without accents; empty for an accent or an invisible sign."""
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", sign).casefold())
    return "".join(part for part in parts if unicodedata.category(part)[0] != "M" and not _INVISIBLE_SIGN.match(part))


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
    opening = "".join(f' {name}="{_write_attribute(value)}"' for name, value in shown.items())
    return f"<{tag}{opening}>\n{neutralise(text)}\n</{tag}>"


def _write_attribute(value: object) -> str:
    # A sign that looks like the quotation mark could end the attribute: the rest of a title would be outside of it.
    return oneline(str(value)).translate(_QUOTES).replace("<", "&lt;").replace(">", "&gt;")


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
