"""Words as texts are compared by them: lower case, stemmed, without stop words."""

from __future__ import annotations

import re
from functools import lru_cache

from tomewise.text.stop_words import STOP

WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)*")
_CHINESE_OR_JAPANESE = re.compile("[\u3040-\u30ff\u3400-\u9fff]")

# Words with which questions are asked, beside the stop words. They do not show where the answer is.
ASKING = frozenset(
    """name tell explain describe happen happened happens kind sort type call called refer refers summarize summarise
    summary discussion discuss discussed discussing talking talk talked meeting whole mention mentioned think thought
    say said opinion opinions""".split()
)
# Endings, each with what takes its place; the first that fits counts.
_ENDINGS = [
    ending.split("=")
    for ending in """
    ations=ate ation=ate ingly= edly= iness=y ness= ments= ment= ies=y ied=y sses=ss ings= ing= ers= ors= er= or=
    ed= es= ly= s=""".split()
]
# Stems, each with its irregular forms.
_FORMS = """
    die died dies dead death dying, kill killed, birth born, write wrote written, say said says, think thought, buy
    bought, sell sold, steal stole stolen, hide hid hidden, break broke broken, win won, lead led, leave left, lose
    lost, build built, child children, wife wives, marry married marriage, woman women, man men, know knew known, tell
    told, speak spoke spoken, hold held, keep kept, send sent, pay paid, drink drank, drive drove, fall fell, flee
    fled, fight fought, bring brought, catch caught, teach taught, sing sang, shoot shot, sleep slept, stand stood,
    strike struck, wear wore, run ran, meet met, live lives lived living"""
_IRREGULAR = {form: base for base, *forms in map(str.split, _FORMS.split(",")) for form in forms}


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The word in lower case with one English ending taken off; words of other scripts stay as they are."""
    word = word.lower()
    if not word.isascii():
        word = word.replace("’", "'")
    word = word.removesuffix("'s")
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.isascii() or word.endswith(("ss", "us", "is")):
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiosl":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


ASKING_STEMS = frozenset(map(stem, ASKING))


@lru_cache(maxsize=1 << 16)
def _list_word_terms(word: str) -> tuple[str, ...]:
    if _CHINESE_OR_JAPANESE.search(word):
        # Chinese and Japanese have no spaces. As usual, pairs of characters take the place of words.
        return tuple(word[i : i + 2] for i in range(len(word) - 1)) or (word,)
    plain = word.lower().replace("’", "'").removesuffix("'s")
    return () if plain in STOP or (len(plain) == 1 and plain.isascii() and not plain.isdigit()) else (stem(plain),)


def list_terms(text: str) -> list[str]:
    """The stems of the content words of `text`, in order, repeated as often as they occur."""
    found: list[str] = []
    for word in WORD.findall(text):
        found += _list_word_terms(word)
    return found


def list_words(text: str) -> list[str]:
    """All words of `text`, in lower case and not stemmed; of Chinese and Japanese, pairs of characters."""
    found: list[str] = []
    for word in WORD.findall(text.replace("’", "'").casefold()):
        found += _list_word_terms(word) if _CHINESE_OR_JAPANESE.search(word) else (word,)
    return found


def make_bag(text: str) -> frozenset[str]:
    """The different stems of the content words of `text`."""
    return frozenset(list_terms(text))


def list_question_terms(question: str) -> list[str]:
    """The stems of the words that a question is about, each once, in order."""
    stems = dict.fromkeys(term for term in list_terms(question) if term not in ASKING_STEMS)
    return list(stems) or list(dict.fromkeys(list_terms(question)))


def flatten(text: str) -> str:
    """The text on one line, with single spaces."""
    return " ".join(text.split())


def fold(text: str) -> str:
    """The text for comparison: without differences of case, spaces and the marks at its ends."""
    return flatten(text.casefold()).strip(" ?.!\"'")
