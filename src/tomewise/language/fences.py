"""Text that others wrote, as a prompt shows it: between tags that it cannot close, without what a reader cannot see.

A model reads more as a tag than a parser would: wide letters, letters of other alphabets, a doubled slash. So a sign
that opens something is followed letter by letter for as long as it could still spell a name of ours.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_uppercase

from tomewise.errors import UsageError

TAGS = (
    "evidence", "note", "question", "options", "instructions", "passage", "names", "name", "description",
    "text", "items", "tried", "finding", "missing", "probe", "reference", "prediction",
)  # fmt: skip
# Characters without a shape of their own: controls, direction marks, fillers, variation selectors, Unicode tags.
INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
OPENING = "<\uff1c\ufe64‹\u2329\u3008⟨⧼˂ᐸ❬❮❰"  # what looks like the sign that opens a tag
BRACKETS = "[\uff3b\ufe47"
_CLOSING = frozenset(">\uff1e\ufe65›\u232a\u3009⟩⧽˃ᐳ❭❯❱]\uff3d\ufe48")
_SLASHES = frozenset("/\\⁄∕╱╲⧸⧹⟋⟍∖")
_BARS = "|¦│∣ǀ\uff5c\uffe8"
# By these, servers tell the turns, the thoughts and the tools of a conversation apart. Some heed them anywhere.
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
    other: "".join(known for known, others in _ALIKE.items() if other in others) for other in "".join(_ALIKE.values())
}
_BEGINNINGS = frozenset(name[:end] for name in _NAMES | _MARKS | _BRACKETED for end in range(len(name) + 1))
_GLIMPSE = 3  # characters
_UNSEEN = re.compile(f"[{INVISIBLE}]")
_CONTROLS = dict.fromkeys((code for code in range(128) if _UNSEEN.match(chr(code))), "")
_SIGN = re.compile(f"[{OPENING}{re.escape(BRACKETS)}]")
_BARRED = re.compile(rf"[{_BARS}][^\s<>]{{1,60}}?[{_BARS}]\s?[{re.escape(''.join(sorted(_CLOSING)))}]")
# Scripts that are written with joiners, from Arabic to Myanmar, Khmer and Mongolian: there they are spelling.
_JOINED = re.compile("[\u0600-\u109f\u1780-\u18af\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc]")


def neutralise(text: str) -> str:
    """The text as a prompt may show it: nothing invisible in it, and nothing that opens a tag or a turn.

    The sign that would open one becomes `&lt;`; a bracket that would is followed by a blank (`[ INST]`). All else
    stays as it is.
    """
    if text.isascii():
        text = text.translate(_CONTROLS)  # ten times as fast as a pattern
    elif _UNSEEN.search(text):
        text = _UNSEEN.sub(_seen, text)
    return _SIGN.sub(_shown, text)


def fenced(text: str, tag: str, **attributes: object) -> str:
    """The text between `<tag>` and `</tag>`, neither of which it can contain. Empty attributes are left out.

    Raises UsageError for a tag that is not in `TAGS`: texts are not kept from closing others.
    """
    if tag not in _NAMES:
        raise UsageError(f"there is no fence {tag!r}: name one of {', '.join(sorted(TAGS))}")
    stated = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items() if value not in ("", None))
    return f"<{tag}{stated}>\n{neutralise(text)}\n</{tag}>"


def oneline(text: str) -> str:
    """The text on one line, so that an item of a list cannot pretend to be two."""
    return neutralise(" ".join(text.split()))


def numbered(items: Sequence[str]) -> str:
    """One item a line, numbered from 1."""
    return "\n".join(f"{number}. {oneline(item)}" for number, item in enumerate(items, start=1))


def lettered(items: Sequence[str]) -> str:
    """One item a line, lettered from A."""
    return "\n".join(f"{letter(index)}. {oneline(item)}" for index, item in enumerate(items))


def letter(index: int) -> str:
    """The letter of the option at `index`, counted from 0: A, B, C. There are at most 26 options."""
    return ascii_uppercase[index]


def _attribute(value: object) -> str:
    return oneline(str(value)).replace('"', "'").replace("<", "&lt;").replace(">", "&gt;")


def _seen(unseen: re.Match[str]) -> str:
    """A joiner between two letters that need it; nothing for anything else that is invisible."""
    if unseen[0] not in "\u200c\u200d":
        return ""
    around = unseen.string[max(0, unseen.start() - 1) : unseen.start()], unseen.string[unseen.end() : unseen.end() + 1]
    return unseen[0] if all(map(_JOINED.match, around)) else ""


def _shown(sign: re.Match[str]) -> str:
    text, start = sign.string, sign.end()
    bracket = sign[0] in BRACKETS
    if _is_harmless(text[start : start + _GLIMPSE], bracket) or not _opens(text, start, bracket):
        return sign[0]
    if bracket:
        return sign[0] if text[start].isspace() else f"{sign[0]} "
    return "&lt;"


@lru_cache(maxsize=4096)
def _is_harmless(beginning: str, bracket: bool) -> bool:
    """Whether so few characters tell already that no name follows: markup repeats itself, and is known from memory."""
    return len(beginning) == _GLIMPSE and _opens(beginning, 0, bracket) is False


def _opens(text: str, start: int, bracket: bool) -> bool | None:
    """Whether the text from `start` on spells a tag, or a mark and the sign that closes it. None: it ends too early.

    Ends at the first sign that cannot go on, so that all signs of a text together cost time linear in it: blanks and
    slashes are passed over, and no other sign that opens something is.
    """
    names, marks = (frozenset(), _BRACKETED) if bracket else (_NAMES, _MARKS)
    live = {""}
    for index in range(start, len(text)):
        sign, begun = text[index], live != {""}
        if sign in _BARS and not begun:
            return bool(_BARRED.match(text, index)) or None
        spelt = _plain(sign)
        if spelt[:1].isalnum() or spelt[:1] in ("_", "-"):
            live = _longer(live, spelt)
            if not live:
                return False
        elif not live.isdisjoint(names):
            return True
        elif sign in _CLOSING:
            return not live.isdisjoint(marks)
        elif spelt and not sign.isspace() and (begun or spelt not in _SLASHES):
            return False
    return True if not live.isdisjoint(names) else None


def _longer(live: set[str], spelt: str) -> set[str]:
    """The beginnings of names that any of `live` becomes with the letters `spelt`, each read in all its ways."""
    for letter in spelt:
        ways = letter + _READ_AS.get(letter, "")
        live = {longer for known in live for way in ways if (longer := known + way) in _BEGINNINGS}
    return live


@lru_cache(maxsize=4096)
def _plain(sign: str) -> str:
    """The sign in plain small letters ("ﬁ" is "fi"), without accents; empty when nothing is left of it."""
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", sign).casefold())
    return "".join(part for part in apart if unicodedata.category(part)[0] != "M" and not _UNSEEN.match(part))
