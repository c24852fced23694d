"""Parse a question, split it into smaller ones, and ask what to search for next."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tomewise.text.names import find_mentions, list_names
from tomewise.text.stop_words import STOP
from tomewise.text.words import ASKING_STEMS, WORD, flatten, list_question_terms, list_terms, make_bag

Want = Literal["person", "place", "date", "number", "name", "yes-no", "clause", "summary"]

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
    "clause": (
        r"\bwhy\b",
        r"\bhow (?:did|do|does|was|were|is|are|can|could|would|come)\b",
        r"\bfor what (?:reason|purpose)\b",
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
_OPPOSITE = re.compile(
    r"\b[Ww]hich (?:(?:one )?of (?:these|the following) (?:\w+ )?|(?:answer|claim|one|option|sentence|statement) )?"
    r"(?:is|are) (?:false|incorrect|untrue)\b"
    r"|\b(?:[Ww]hich|of these|of the following)\b.{0,200}?(?:\bNOT\b|\bleast likely\b|\bEXCEPT\b|\bexcept\W*\Z)",
    re.DOTALL,
)
# Questions are split on one line, with single blanks (`flatten`).
_RELATIVE = re.compile(
    r"\b(?P<head>(?:the|an?|that) (?:[\w'’-]+ ){1,4}?)"
    r"(?P<link>who|that|which|where|whose|in which|on which) (?P<clause>[^?,]{8,})",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"\b(?P<left>[A-Z][^?,]{1,80}?) (?:and|or) (?P<right>(?:the )?[A-Z\"“][^?,]{1,80}?)"
    r"(?=[?,]| (?:both|the same|share|have|were|are|born|from|in)\b|\Z)"
)
# Words of any remark about missing evidence; they do not show what is missing.
_REMARKS = ASKING_STEMS | frozenset(
    list_terms("evidence passage text note source document answer question give ask state provide contain specify lack")
)
_FIRST, _QUERY_WORDS, _NEW_NAMES = 5, 8, 6  # words beside a name in a query, words of a remark in one, and new names


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """The parts of a question: the kind of answer it wants, its terms, and the names in it."""

    text: str
    want: Want
    terms: tuple[str, ...]
    names: tuple[str, ...]


def read_question(question: str, instructions: str = "") -> ParsedQuestion:
    """Parse a question. Any text is a question; one that fits no pattern wants a clause."""
    text = question[:_READ]
    names = tuple(dict.fromkeys(m.text for m in find_mentions(text) if WORD.findall(m.text)))
    return ParsedQuestion(text, _find_want(text, instructions[:_READ]), tuple(list_question_terms(text)), names)


def _find_want(question: str, instructions: str) -> Want:
    if _ASKS_SUMMARY.search(instructions) or _WANTS_SUMMARY.search(question):
        return "summary"
    if _WANTS_YES_OR_NO.search(question):
        return "yes-no"
    matches = [(match.start(), i) for i, (_, pattern) in enumerate(_WANTS) if (match := pattern.search(question))]
    # The first question word decides ("When did the man who ..." asks for a date).
    return _WANTS[min(matches)[1]][0] if matches else "clause"


def asks_for_opposite(question: ParsedQuestion) -> bool:
    """Whether the option is wanted that the text does not support."""
    return bool(_OPPOSITE.search(question.text))


def list_focus_words(question: ParsedQuestion) -> list[str]:
    """The words of the question outside its names, as written, without stop words; of words with one stem the first."""
    named = set(list_terms(" ".join(question.names)))
    words: dict[str, str] = {}
    for word in WORD.findall(question.text):
        for term in list_terms(word):
            if term in question.terms and term not in named:
                words.setdefault(term, word)
    return list(words.values())


def split_question(question: str) -> list[str]:
    """The smaller questions in a question, from a relative clause or from a pair of names; empty if it has neither."""
    question = flatten(question[:_READ])
    match = _RELATIVE.search(question)
    if match is None or match.start() == 0:
        return split_pair(question)
    head, clause = match["head"].strip(), match["clause"].strip(" ?.")
    thing = re.sub(r"^(?:the|an?|that) ", "", head, flags=re.IGNORECASE)
    is_person = re.search(r"\b(?:person|man|woman|someone)\Z", head)
    inner = f"Who {clause}?" if is_person else f"Which {thing} {clause}?"
    outer = f"{question[: match.start()]}{head}{question[match.end() :]}".strip(" ?.") + "?"
    return [part for part in (inner, outer) if list_terms(part)]


def split_pair(question: str) -> list[str]:
    """One question for each of a pair of names; empty without one."""
    question = flatten(question[:_READ])
    first = WORD.match(question)
    # The capital of a question word does not make it a name.
    match = _BOTH.search(question, first.end() if first and first[0].lower() in STOP else 0)
    if match is None or not find_mentions(match["left"]) or not find_mentions(match["right"]):
        return []
    before, after = question[: match.start()], question[match.end() :]
    return [flatten(f"{before}{match[side]}{after}") for side in ("left", "right")]


def ask_next(
    question: str, limit: int, *, known: Sequence[str] = (), asked: Sequence[str] = (), missing: str = ""
) -> list[str]:
    """New queries: for what an attempt lacked, the parts of the question, then its names and those in what is known.

    Each name stands beside words of the question that nothing known has. No query has the words of one that was
    `asked`, or those of the question. In the end there are no more.
    """
    parsed = read_question(question)
    terms = {term for text in known for term in list_terms(text[:_READ])}
    words = list_focus_words(parsed)
    open_words = [word for word in words if not terms.issuperset(list_terms(word))] or words
    named = Counter(
        name for text in known for name in list_names(text[:_READ]) if not set(list_terms(name)) <= set(parsed.terms)
    )
    new_names = [name for name, _ in named.most_common(_NEW_NAMES)]
    key = " ".join(open_words[:_FIRST])
    ideas = [
        *_ask_for_missing(missing[:_READ], parsed),
        *(f"{name} {key}" for name in new_names[:1]),
        *split_question(question),
        *(f"{name} {key}" for name in (*parsed.names, *new_names[1:])),
        " ".join(words),
        *open_words,
    ]
    used = {frozenset[str](), *map(make_bag, (parsed.text, *(text[:_READ] for text in asked)))}
    queries: dict[frozenset[str], str] = {}
    for idea in ideas:
        queries.setdefault(make_bag(idea), flatten(idea))
    return [query for bag, query in queries.items() if bag not in used][: max(limit, 0)]


def _ask_for_missing(missing: str, question: ParsedQuestion) -> list[str]:
    """A query for what an attempt reported as missing: the words that say what it is, and the question's names."""
    terms = set(list_terms(missing))
    words = [word for word in WORD.findall(missing) if not set(list_terms(word)) <= _REMARKS]
    names = [name for name in question.names if not set(list_terms(name)) <= terms]
    return [" ".join([*names[:2], *words[:_QUERY_WORDS]])] if words else []
