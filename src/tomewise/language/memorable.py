"""Whether what a model wrote can be remembered of the texts it was shown.

A reply may fit its type and still be no reading: an excuse, the placeholder of the prompt, one letter for a megabyte.
Each check is far from what models write when they read: a reply in another language or script than its texts is not
measured by their words, and what stands in the texts themselves is never held against the reply.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence

_SHORTEST = 20  # bytes; less is too little to stand for a text ten times as long
_LOOPED = 0.08  # a text that can be packed into this share of its length says the same again and again
_LOOP_FROM = 400  # bytes from which that share says something
_FEW = 5  # words (or pairs of signs) from which their share says something
_FAMILIAR = 0.25  # share of little words in common from which two texts are of one language
_SHARE = 0.08  # of the words of a memory that its texts have, at least
_SAMPLE = 600  # characters by which the script of a text is told
_STEM = 4  # letters by which words are compared, so that endings do not matter

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
    """What is wrong with a text that is to be remembered of `sources`, or None.

    It may take `longest` bytes, or four times as many as the sources and some where that is more.
    """
    source = "\n".join(sources)
    size, ground = _bytes(text), _bytes(source)
    bound = max(longest, 4 * ground + 1500)
    if size > bound:
        return f"it takes {size:,} bytes for texts of {ground:,}: write {bound:,} at most"
    if fault := _find_strange_signs(text, source) or _find_excuse(text, source):
        return fault
    if not _WORD.search(source):
        return None  # ornament: whatever stands for it will do
    if _is_placeholder(text, source):
        return f"{text[:60]!r} is a placeholder: write what the texts say"
    if size < _SHORTEST and size < ground / 10:
        return f"{text!r} is too short to stand for texts of {ground:,} bytes"
    if size > _LOOP_FROM and _packed(text) < _LOOPED and _packed(source) > 2 * _LOOPED:
        return "it says the same again and again: say each thing once"
    if _is_foreign(text, source):
        return "hardly a word of it stands in the texts: write what these texts say"
    return None


def find_fault_in_names(names: Iterable[str], sources: Sequence[str]) -> str | None:
    """What is wrong with names and phrases that were found in `sources`, or None. To have found none is no fault."""
    found = [name for name in names if name.strip()]
    source, text = "\n".join(sources), "\n".join(found)
    if (size := _bytes(text)) > (bound := 12 * _bytes(source) + 4000):
        return f"it takes {size:,} bytes: write {bound:,} at most"
    if fault := _find_strange_signs(text, source):
        return fault
    for name in found:
        if fault := _find_excuse(name, source):
            return fault
    if not found or _script(text) != _script(source) or _units(text) & _units(source):
        return None
    ground = _plain(source)
    if any(_plain(name) in ground for name in found):  # an acronym, say, too short to be a unit
        return None
    return f"nothing of what it names stands in the text: {', '.join(found)[:100]!r}"


def strings_in(value: object) -> list[str]:
    """The strings in lists and objects within one another, as replies hold them."""
    found: list[str] = []
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(reversed(one))
    return found


def _find_strange_signs(text: str, source: str) -> str | None:
    strange = set(_CONTROL.findall(text)) - set(source)
    return f"it holds the control character {min(strange)!a}: write plain text" if strange else None


def _find_excuse(text: str, source: str) -> str | None:
    found = _REFUSAL.match(_plain(text[:400]).strip(" \n\"'*-([."))
    if found and found[0] not in _plain(source):  # else somebody in the texts says so
        return f"{text[:60]!r} excuses itself instead of reading the texts"
    return None


def _is_placeholder(text: str, source: str) -> bool:
    if not _WORD.search(text) or _TAG.fullmatch(text):
        return text.strip() not in source
    return bool(_PLACEHOLDER.fullmatch(text)) and _plain(text).strip(" .<>[]()") not in _plain(source)


def _is_foreign(text: str, source: str) -> bool:
    """Whether the text has next to no word of a source in its own language."""
    if _script(text) != _script(source):
        return False
    said, known = _units(text), _units(source)
    if len(said) < _FEW or len(known) < 4 * _FEW:
        return False
    if len(said & known) >= _SHARE * len(said):
        return False
    return _is_one_language(text, source)


def _is_one_language(text: str, source: str) -> bool:
    """By the little words; in scripts that do not part words, one script is taken for one language."""
    little = [_little_words(one) for one in (text, source)]
    if not little[0]:
        return bool(_UNSPACED.search(text))
    return sum(word in little[1] for word in little[0]) >= _FAMILIAR * len(little[0])


def _little_words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(_plain(text)) if len(word) < _STEM and word.isalpha())


def _units(text: str) -> frozenset[str]:
    """What two texts are compared by: numbers, the beginnings of words, pairs of signs where words are not parted."""
    found: set[str] = set()
    for word in _WORD.findall(_plain(text)):
        if _UNSPACED.search(word):
            found.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif len(word) >= _STEM or word.isdigit():
            found.add(word if word.isdigit() else word[:_STEM])
    return frozenset(found)


def _script(text: str) -> str:
    """The script that most letters of the beginning are of; Japanese apart from Chinese."""
    scripts = Counter(_script_of(sign) for sign in text[:_SAMPLE] if sign.isalpha())
    if 10 * scripts["KANA"] > sum(scripts.values()):
        return "KANA"
    return scripts.most_common(1)[0][0] if scripts else ""


def _script_of(sign: str) -> str:
    if sign.isascii():
        return "LATIN"
    name = unicodedata.name(sign, "").split(" ")[0].split("-")[0]
    return "KANA" if name in ("HIRAGANA", "KATAKANA") else name


def _packed(text: str) -> float:
    data = text.encode("utf-8", "replace")
    return len(zlib.compress(data, 1)) / max(1, len(data))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _plain(text: str) -> str:
    """Without case, accents and curly marks, so that a word is one however it is written."""
    if text.isascii():
        return text.lower()
    parted = unicodedata.normalize("NFKD", text.replace("’", "'").replace("\u02bc", "'"))
    kept = "".join(sign for sign in parted if unicodedata.category(sign) != "Mn")
    return unicodedata.normalize("NFC", kept).casefold()
