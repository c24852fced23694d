"""Find what makes a reply unfit to become memory of the texts that the model was shown.

A reply may fit its type and still be useless: an excuse, the placeholder of the prompt, one letter for a megabyte. The
checks are lenient, so that honest replies pass. A reply in another language or script than its texts is not compared
with their words. Words that the texts have too are never a fault.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence

_SHORTEST = 20  # bytes; a shorter reply is too short for a text ten times as long
_LOOPED = 0.08  # a text that compresses to this share of its length repeats itself
_LOOP_FROM = 400  # bytes; in shorter texts that share means nothing
_FEW = 5  # words (or pairs of signs); with fewer of them their share means nothing
_FAMILIAR = 0.25  # two texts that share this part of their short words are in one language
_SHARE = 0.08  # the least share of a memory's words that its texts must have
_SAMPLE = 600  # characters that decide the script of a text
_LATIN = "LATIN"
_STEM = 4  # letters; words are compared by their first ones, so that endings do not matter

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_TAG = re.compile(r"\W*[<\[{][\w /|-]{1,40}[>\]}]\W*")
_PLACEHOLDER = re.compile(
    r"\W*(?:strings?|texts?|summar(?:y|ies)|gists?|memory|notes?|none|null|nil|undefined|unknown|n/?a|todo|tbd"
    r"|placeholder|output|reply|(?:your|the|a) (?:summary|memory|text|reply)|(?:summary|memory|text) (?:goes )?here"
    r"|not applicable|no (?:summary|memory|content|text|information)|empty|lorem ipsum.*)\W*",
    re.IGNORECASE | re.DOTALL,
)
_DO = (
    r"(?:assist|help(?! but)|compl|fulfil|provid|creat|generat|continu|summari|process|access|answer|respond|engag"
    r"|produc|writ)"
)
_NOT = r"(?:can(?:no|'|\s+no)t|could(?:n'| no)t|won't|will not|(?:am|'m) (?:not able|unable) to|must decline)"
_REFUSAL = re.compile(
    rf"(?:(?:i'?m|i am|we'?re|we are)?\s*(?:(?:very|so|really) )?sorry\W+(?:but )?|i apologi[sz]e\W+(?:but )?"
    rf"|my apologies\W+(?:but )?|unfortunately\W+)?"
    rf"(?:(?:i|we)\s?(?:{_NOT})\s*(?:to )?(?:\w+ ){{0,2}}{_DO}|as an? (?:ai|artificial|(?:large )?language model)"
    r"|i'?m (?:just )?an? (?:ai|language model))"
    r"|(?:抱歉|对不起|對不起|很抱歉|非常抱歉)?[，,\s]*(?:但)?我(?:无法|無法|不能|没办法)(?:提供|协助|協助|帮助|幫助|完成|处理|回答|满足|总结)"
    r"|作为(?:一个|一名)?(?:ai|人工智能|语言模型)|申し訳(?:ありません|ございません)が|죄송하지만|죄송합니다"
    r"|es tut mir leid,? (?:aber )?(?:ich|dabei|das) |(?:je suis )?désolée?,? (?:mais )?je ne (?:peux|puis) pas"
    r"|lo siento,? (?:pero )?no puedo|desculpe,? (?:mas )?(?:eu )?não posso|mi dispiace,? (?:ma )?non posso"
    r"|извините,? (?:но )?я не могу|к сожалению,? я не могу",
    re.IGNORECASE,
)  # fmt: skip


def find_fault(text: str, sources: Sequence[str], longest: int = 0) -> str | None:
    """What is wrong with a text that shall be the memory of `sources`, or None.

    It may take `longest` bytes, or four times the bytes of the sources plus 1,500, whichever is more.
    """
    source = "\n".join(sources)
    size, source_size = _count_bytes(text), _count_bytes(source)
    bound = max(longest, 4 * source_size + 1500)
    if size > bound:
        return f"it takes {size:,} bytes for texts of {source_size:,}: write {bound:,} at most"
    if fault := _find_strange_signs(text, source) or find_excuse(text, source):
        return fault
    if not _WORD.search(source):
        return None  # the source has no words, so any text may be its memory
    if _is_placeholder(text, source):
        return f"{text[:60]!r} is a placeholder: write what the texts say"
    if size < _SHORTEST and size < source_size / 10:
        return f"{text!r} is too short to stand for texts of {source_size:,} bytes"
    if size > _LOOP_FROM and _measure_compression(text) < _LOOPED and _measure_compression(source) > 2 * _LOOPED:
        return "it says the same again and again: say each thing once"
    if _is_foreign(text, source):
        return "almost none of its words stand in the texts: write what these texts say"
    return None


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _find_strange_signs(text: str, source: str) -> str | None:
    strange = set(_CONTROL.findall(text)) - set(source)
    return f"it has the control character {min(strange)!a}: write plain text" if strange else None


def find_excuse(text: str, source: str = "") -> str | None:
    """What is wrong with a text that excuses itself in place of an answer, unless somebody in `source` speaks so."""
    excuse = _REFUSAL.match(_normalise(text[:400]).strip(" \n\"'*-([."))
    if excuse and excuse[0] not in _normalise(source):
        return f"{text[:60]!r} excuses itself instead of reading the texts"
    return None


def _normalise(text: str) -> str:
    """The text without case, accents and curly quotes, so that one word has one form."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.replace("’", "'").replace("\u02bc", "'"))
    base = "".join(sign for sign in decomposed if unicodedata.category(sign) != "Mn")
    return unicodedata.normalize("NFC", base).casefold()


def _is_placeholder(text: str, source: str) -> bool:
    if not _WORD.search(text) or _TAG.fullmatch(text):
        return text.strip() not in source
    return bool(_PLACEHOLDER.fullmatch(text)) and _normalise(text).strip(" .<>[]()") not in _normalise(source)


def _measure_compression(text: str) -> float:
    data = text.encode("utf-8", "replace")
    return len(zlib.compress(data, 1)) / max(1, len(data))


def _is_foreign(text: str, source: str) -> bool:
    """Whether the text is in the language of the source, but has almost none of its words."""
    if _find_script(text) != _find_script(source):
        return False
    units, source_units = _list_units(text), _list_units(source)
    if len(units) < _FEW or len(source_units) < 4 * _FEW:
        return False
    if len(units & source_units) >= _SHARE * len(units):
        return False
    return _is_one_language(text, source)


def _find_script(text: str) -> str:
    """The script of most letters at the beginning of the text. Kana distinguish Japanese from Chinese."""
    sample = text[:_SAMPLE]
    if sample.isascii():
        return _LATIN if any(map(str.isalpha, sample)) else ""
    scripts = Counter(_find_script_of_sign(sign) for sign in sample if sign.isalpha())
    if 10 * scripts["KANA"] > sum(scripts.values()):
        return "KANA"
    return scripts.most_common(1)[0][0] if scripts else ""


def _find_script_of_sign(sign: str) -> str:
    if sign.isascii():
        return _LATIN
    name = unicodedata.name(sign, "").split(" ")[0].split("-")[0]
    return "KANA" if name in ("HIRAGANA", "KATAKANA") else name


def _list_units(text: str) -> frozenset[str]:
    """The units by which two texts are compared: numbers, beginnings of words, and in scripts without spaces pairs."""
    units: set[str] = set()
    for word in _WORD.findall(_normalise(text)):
        if _UNSPACED.search(word):
            units.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif len(word) >= _STEM or word.isdigit():
            units.add(word if word.isdigit() else word[:_STEM])
    return frozenset(units)


def _is_one_language(text: str, source: str) -> bool:
    """Compare the short words. In scripts without spaces, one script counts as one language."""
    words, source_words = _list_short_words(text), _list_short_words(source)
    if not words:
        return bool(_UNSPACED.search(text))
    return sum(word in source_words for word in words) >= _FAMILIAR * len(words)


def _list_short_words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(_normalise(text)) if len(word) < _STEM and word.isalpha())


def find_fault_in_names(names: Iterable[str], sources: Sequence[str]) -> str | None:
    """What is wrong with names and phrases that were found in `sources`, or None. An empty list is not a fault."""
    stated_names = [name for name in names if name.strip()]
    source, text = "\n".join(sources), "\n".join(stated_names)
    if (size := _count_bytes(text)) > (bound := 12 * _count_bytes(source) + 4000):
        return f"it takes {size:,} bytes: write {bound:,} at most"
    if fault := _find_strange_signs(text, source):
        return fault
    for name in stated_names:
        if fault := find_excuse(name, source):
            return fault
    if not stated_names or _find_script(text) != _find_script(source) or _list_units(text) & _list_units(source):
        return None
    plain_source = _normalise(source)
    if any(_normalise(name) in plain_source for name in stated_names):  # for example an acronym, too short for a unit
        return None
    return f"nothing that it names stands in the text: {', '.join(stated_names)[:100]!r}"


def list_strings(value: object) -> list[str]:
    """All strings in nested lists and objects, in order."""
    strings: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            strings.append(item)
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(reversed(item))
    return strings
