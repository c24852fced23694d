"""Parse a question: the kind of answer it wants, the names in it, and its terms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tomewise.text.names import find_mentions
from tomewise.text.words import ASKING_STEMS, WORD, list_question_terms, list_terms, make_bag, stem

Want = Literal["person", "place", "date", "number", "name", "yes-no", "clause", "reason", "summary"]

_READ = 4_000  # characters of a question that are read
_AUXILIARY = r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|may|might|must)"
_PLACE_NOUNS = (
    "city|country|state|county|town|village|place|continent|province|region|district|island|river|lake|street|location"
    "|borough|neighbou?rhood|birthplace|capital|municipality|territory"
)
_PERSON_NOUNS = (
    "person|man|woman|actor|actress|singer|author|writer|director|president|king|queen|performer|character|player"
    "|founder|composer|artist|mother|father|husband|wife|spouse|brother|sister|son|daughter|child|murderer|killer"
)
_TELL = "think|thinks|say|says|said|discuss|propose|suggest|recommend|feel|believe|talk|conclude|learn|agree|mention"
_TOLD = "discussion|discussed|opinions?|views?|attitudes?|suggestions?|recommendations?|conclusions?|decisions?"
_SUMMARY = (
    r"\A\W*(?:summari[sz]e|describe|outline|recap|give (?:an?|me) (?:overview|summary)|explain)\b"
    rf"|\bsummar(?:y|i[sz]e)\b|\bwhat (?:did|do|does) .{{1,200}}\b(?:{_TELL})\b"
    r"|\bhow (?:did|do|does) .{1,200}\b(?:think|feel|say)\b"
    rf"|\bwhat (?:was|were|is|are) (?:the |.{{1,60}} )?(?:{_TOLD})\b"
)
# If two patterns match at the same place, the first one in this order counts.
_PATTERNS: dict[Want, tuple[str, ...]] = {
    "number": (
        r"\bhow (?:many|much|old|long|far|tall|high|large|big|often)\b",
        r"\bwhat (?:is the )?(?:percentage|percent|number|age|population)\b",
    ),
    "date": (r"\bwhen\b", r"\b(?:what|which) (?:\w+ )?(?:year|date|day|month|time|century|decade)\b"),
    "place": (r"\bwhere\b", rf"\b(?:what|which) (?:\w+ ){{0,2}}(?:{_PLACE_NOUNS})\b"),
    "person": (r"\bwho(?:m|se)?\b", rf"\b(?:what|which) (?:\w+ ){{0,2}}(?:{_PERSON_NOUNS})\b"),
    "reason": (
        r"\bwhy\b",
        r"\bhow (?:did|do|does|was|were|is|are|can|could|would|come)\b",
        r"\bfor what (?:reason|purpose)\b",
    ),
    "clause": (
        r"\bwhat (?:did|do|does|had|has|happen\w*|would|will|can|could|should|became)\b",
        # "What hangs on ...", "What gave Mrs. ...", "What was printed ...": the answer is a sentence, seldom a name.
        r"\bwhat (?!is|was|are|were)\w+ (?:the|an?|his|her|its|their|on|to|up|out)\b",
        r"\bwhat (?:[a-z]+s|gave|made|took|led|kept|brought|caused) (?-i:[A-Z])",
        r"\bwhat (?:is|was|are|were) (?:\w+ed|found|hidden|written|told|seen)\b",
    ),
    "name": (r"\b(?:what|which)\b",),
}
_WANTS = [(want, re.compile("|".join(patterns), re.IGNORECASE)) for want, patterns in _PATTERNS.items()]
_ASKS_SUMMARY = re.compile(r"\bsummar(?:y|i[sz])", re.IGNORECASE)
_WANTS_SUMMARY = re.compile(_SUMMARY, re.IGNORECASE)
_WANTS_YES_OR_NO = re.compile(rf"\A\W*{_AUXILIARY}\b", re.IGNORECASE)
# "Which of these did she NOT carry?", "Which of these is false?", "All of these are true except:".
_CHOICE_OR_UNFIT = re.compile(
    r"(\b(?:[Ww]hich|of these|of the following)\b)|\bNOT\b|\bleast likely\b|\bEXCEPT\b|\bexcept\W*\Z"
)
_FARTHEST = 1_000  # characters between "which" and "NOT"
_FALSE = re.compile(
    r"\b[Ww]hich (?:(?:one )?of (?:these|the following) (?:\w+ )?|(?:answer|claim|one|option|sentence|statement) )?"
    r"(?:is|are) (?:false|incorrect|untrue)\b"
)
_SPEAKER = re.compile(
    r"\b(?:did|does|do|according to|of|by|from)\s+(?:the\s+)?([A-Z][\w'’.-]*(?:\s+[A-Z][\w'’.-]*){0,3})"
)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """The parts of a question: the kind of answer it wants, its terms, and the names in it.

    `speaker` has the terms of the name of the person whose words the question asks for.
    """

    text: str
    want: Want
    terms: tuple[str, ...]
    names: tuple[str, ...]
    speaker: frozenset[str]


def read_question(question: str, instructions: str = "") -> ParsedQuestion:
    """Parse a question. Any text is a question; one that fits no pattern wants a clause."""
    text = question[:_READ]
    names = tuple(dict.fromkeys(m.text for m in find_mentions(text) if WORD.findall(m.text)))
    match = _SPEAKER.search(text)
    speaker = make_bag(match[1]) if match else frozenset()
    return ParsedQuestion(
        text, _find_want(text, instructions[:_READ]), tuple(list_question_terms(text)), names, speaker
    )


def _find_want(question: str, instructions: str) -> Want:
    if _ASKS_SUMMARY.search(instructions) or _WANTS_SUMMARY.search(question):
        return "summary"
    if _WANTS_YES_OR_NO.search(question):
        return "yes-no"
    matches = [(match.start(), i) for i, (_, pattern) in enumerate(_WANTS) if (match := pattern.search(question))]
    # The first question word decides ("When did the man who ..." asks for a date).
    return _WANTS[min(matches)[1]][0] if matches else "clause"


def is_about_all(question: ParsedQuestion) -> bool:
    """Whether the question wants a summary and does not say of what."""
    return question.want == "summary" and set(question.terms) <= ASKING_STEMS


def asks_for_opposite(question: ParsedQuestion) -> bool:
    """Whether the option is wanted that the text does not support."""
    if _FALSE.search(question.text):
        return True
    choice: int | None = None  # where the last words that ask for a choice end
    for match in _CHOICE_OR_UNFIT.finditer(question.text):
        if match[1]:
            choice = match.end()
        elif choice is not None and match.start() - choice <= _FARTHEST:
            return True
    return False


def list_focus_words(question: ParsedQuestion) -> list[str]:
    """The words of the question outside its names, as written, without stop words."""
    name_stems = {stem(word) for name in question.names for word in WORD.findall(name)}
    return [word for term, word in find_words(question).items() if term not in name_stems]


def find_words(question: ParsedQuestion) -> dict[str, str]:
    """The first word that has each of the question's terms, as written, in order."""
    words: dict[str, str] = {}
    for word in WORD.findall(question.text):
        for term in list_terms(word):
            if term in question.terms:
                words.setdefault(term, word)
    return words
