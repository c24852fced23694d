"""Runs of signs in a document, a question or a reply: four times the text takes about four times the work.

`re` holds the interpreter's lock, so a pattern that looks through a run from each of its signs freezes a server. Every
pattern of the package is found here without a list: the compiled ones in its modules, and those that a call of `re`
names. Each is tried, as its module uses it, on runs of its own signs and words.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import json
import pkgutil
import random
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import product
from re import _constants as codes
from re import _parser
from types import ModuleType
from typing import Any

import pytest

import tomewise
from tomewise.credentials import hide_credentials
from tomewise.errors import BadReply, UsageError
from tomewise.language.extractive.plays import plan_reading
from tomewise.language.extractive.pronouns import write_gist
from tomewise.language.extractive.question_words import read_question
from tomewise.language.labels import read_labels
from tomewise.language.memory_faults import find_fault
from tomewise.language.reply import decode
from tomewise.language.roles import ANSWER, PassageIn, PlanReadingIn
from tomewise.loops.citing import locate
from tomewise.reading.fetching import is_allowed
from tomewise.reading.metadata import read_front_matter
from tomewise.reading.places import mark_headings, mark_speakers
from tomewise.recall.several_searches import split_comparison
from tomewise.text.names import find_mentions
from tomewise.text.quotable import find_sentences
from tomewise.text.support import Grounds
from tomewise.tome.scopes import parse_condition
from tomewise.types import Passage

SHORT = 1_000  # characters
MOST = 6  # times the work for four times the characters
FLOOR = 0.0003  # seconds of processor time below which nothing is compared
LONGEST = 4  # times `SHORT`, for runs of `WORDS` signs and more
WORDS = 6
SLOW = 0.5  # seconds after which a search is stopped
AT_ONCE = 0.05  # seconds that a bounded entry may take

# Patterns that only ever see so many characters, by the place that gives them no more.
BOUNDS = {
    "tomewise.text.names._OPENING": 8,  # `opens_sentence`
    "tomewise.text.sentences._LAST_WORD": 24,  # `_ends_sentence`
}
VERBS = frozenset({"search", "match", "fullmatch", "split", "sub", "subn", "findall", "finditer"})
SCANS = frozenset({"search", "split", "sub", "subn", "findall", "finditer"})


class Stopped(Exception):
    pass


@dataclass(frozen=True)
class Used:
    """A pattern, what it is called, and the methods by which it is used."""

    name: str
    pattern: re.Pattern[Any]
    verbs: frozenset[str]


# Finding the patterns


@cache
def load_modules() -> dict[str, ModuleType]:
    names = [module.name for module in pkgutil.walk_packages(tomewise.__path__, "tomewise.")]
    return {name: importlib.import_module(name) for name in names if not name.endswith("__main__")}


@cache
def read_trees() -> dict[str, ast.Module]:
    return {name: ast.parse(inspect.getsource(module)) for name, module in load_modules().items()}


def find_compiled(value: object, name: str, depth: int = 6) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """The patterns in a value, its parts and its attributes."""
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(value, dict) and depth:
        for key, item in [*value.items()]:
            yield from find_compiled(key, f"{name}, a key", depth - 1)
            yield from find_compiled(item, f"{name}[{key!r}]", depth - 1)
    elif isinstance(value, list | tuple | set | frozenset) and depth:
        for number, item in enumerate(value):
            yield from find_compiled(item, f"{name}[{number}]", depth - 1)
    elif getattr(value if isinstance(value, type) else type(value), "__module__", "").startswith("tomewise"):
        for key in [key for key in getattr(value, "__dict__", ()) if not key.startswith("__")] if depth else ():
            yield from find_compiled(value.__dict__[key], f"{name}.{key}", depth - 1)


@cache
def find_verbs() -> tuple[dict[re.Pattern[Any], set[str]], dict[str, set[str]]]:
    """The methods that are called on each pattern by its name, and in each module on what has another name."""
    known: dict[re.Pattern[Any], set[str]] = {}
    loose: dict[str, set[str]] = {}
    for name, tree in read_trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in VERBS:
                owner = getattr(load_modules()[name], ast.unparse(node.value), None)
                if isinstance(owner, re.Pattern):
                    known.setdefault(owner, set()).add(node.attr)
                elif owner is not re:
                    loose.setdefault(name, set()).add(node.attr)
    return known, loose


def find_inline(name: str) -> Iterator[Used]:
    """The patterns that calls of `re` name: `re.sub(...)` anywhere, and `re.compile(...)` in a function."""
    module, tree = load_modules()[name], read_trees()[name]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {call: function for function in functions for call in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            verb = node.func.attr
            if ast.unparse(node.func.value) == "re" and verb in (VERBS if node not in inside else {*VERBS, "compile"}):
                text = spell(node.args[0], module, inside.get(node))
                flags = sum(getattr(re, flag) for flag in re.findall(r"re\.([A-Z]+)", ast.unparse(node)))
                verbs = frozenset({verb} if verb in VERBS else find_verbs()[1].get(name, SCANS))
                yield Used(f"{name}:{node.lineno}", re.compile(text, flags), verbs)


def spell(node: ast.expr, module: ModuleType, function: ast.AST | None) -> str:
    """The text of a pattern as it stands in the code, with a word for what only a call knows."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(spell(part, module, function) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return spell(node.value, module, function)
    if isinstance(node, ast.IfExp):
        return f"(?:{spell(node.body, module, function)}|{spell(node.orelse, module, function)})"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        return spell(node.func.value, module, function).join(("one", "two", "two"))
    if isinstance(node, ast.Name):
        for each in ast.walk(function) if function else ():
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == node.id:
                return spell(each.value, module, function)
    found = getattr(module, ast.unparse(node), UNKNOWN)
    return found if isinstance(found, str) else UNKNOWN


@cache
def find_patterns() -> list[Used]:
    """All patterns, each once."""
    known, loose = find_verbs()
    found: dict[re.Pattern[Any], Used] = {}
    for module in load_modules():
        for key, value in [*vars(load_modules()[module]).items()]:
            for name, pattern in find_compiled(value, f"{module}.{key}"):
                verbs = known.get(pattern) or loose.get(module) or SCANS
                if pattern not in found or not loose.get(module, SCANS) >= found[pattern].verbs:
                    found.setdefault(pattern, Used(name, pattern, frozenset(verbs)))
        for used in find_inline(module):
            found.setdefault(used.pattern, used)
    return list(found.values())


# Making texts that are hard for a pattern

Parsed = Sequence[tuple[Any, Any]]
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
CLASSES = {
    codes.CATEGORY_SPACE: " \n\t",
    codes.CATEGORY_NOT_SPACE: "a.1",
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_NOT_DIGIT: "a .",
    codes.CATEGORY_WORD: "a1_",
    codes.CATEGORY_NOT_WORD: " .\n",
}
SIGNS = "a A1.\n,\"'-(:é。"
BREAK = "\0"
UNKNOWN = "word"  # in the place of what only a call knows


def list_signs(code: Any, value: Any) -> str:
    """Signs that one element of a pattern matches."""
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.RANGE:
        return chr(value[0])
    if code is codes.CATEGORY:
        return CLASSES[value]
    if code is codes.ANY:
        return "a\n"
    if code is codes.NOT_LITERAL:
        return "".join(sign for sign in SIGNS if ord(sign) != value)[:3]
    if code is codes.IN and value[0][0] is codes.NEGATE:
        return "".join(sign for sign in SIGNS if not any(holds(sign, *each) for each in value[1:]))[:3]
    return "".join(list_signs(*each) for each in value) if code is codes.IN else ""


def holds(sign: str, code: Any, value: Any) -> bool:
    if code is codes.RANGE:
        return bool(value[0] <= ord(sign) <= value[1])
    if code is codes.CATEGORY:
        name = str(value).removeprefix("CATEGORY_").removeprefix("NOT_")
        is_in = {"SPACE": sign.isspace(), "DIGIT": sign.isdigit(), "WORD": sign.isalnum() or sign == "_"}[name]
        return is_in != ("NOT" in str(value))
    return code is codes.LITERAL and ord(sign) == value


def list_inner(code: Any, value: Any) -> list[Parsed]:
    """The sequences inside of one element of a pattern."""
    if code in REPEATS:
        return [value[2]]
    if code is codes.SUBPATTERN:
        return [value[3]]
    if code is codes.BRANCH:
        return list(value[1])
    if code is codes.ATOMIC_GROUP:
        return [value]
    return [value[1]] if code in (codes.ASSERT, codes.ASSERT_NOT) else []


def walk(sequence: Parsed, before: str = "") -> Iterator[tuple[str, Parsed]]:
    """A sequence and all that are inside of it, each with a text that leads to it."""
    sequence = list(sequence)
    yield before, sequence
    for at, (code, value) in enumerate(sequence):
        for inner in list_inner(code, value):
            yield from walk(inner, before + write(sequence[:at]))


def write(sequence: Parsed, repeat: int = 0) -> str:
    """A text that a sequence matches, so far as lookarounds allow; what may repeat does so `repeat` times."""
    text = ""
    for code, value in sequence:
        if code in REPEATS:
            text += write(value[2], repeat) * max(value[0], min(repeat, value[1]))
        elif code not in (codes.ASSERT, codes.ASSERT_NOT):
            inner = list_inner(code, value)
            text += write(inner[0], repeat) if inner else list_signs(code, value)[:1]
    return text


def make_texts(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """Heads, units and tails of texts: a head, a long run of the unit, a tail that ends what would match."""
    sequences = list(walk(_parser.parse(pattern.pattern, pattern.flags)))
    elements = [element for _, sequence in sequences for element in sequence]
    signs = choose((sign for element in elements for sign in list_signs(*element)), 20)
    ends = (each for code, value in elements if code is codes.IN and value[0][0] is codes.NEGATE for each in value[1:])
    tails = ["", BREAK, *choose((list_signs(*end)[:1] for end in ends), 2)]
    heads, words = [], []
    for before, sequence in sequences:
        for at, (code, value) in enumerate(sequence):
            if code in REPEATS and value[1] > 8:
                heads += [before + write(sequence[:at]), before + write(sequence[: at + 1], 1)]
            words += [write(sequence[at : at + length], repeat) for length in range(2, 7) for repeat in (0, 1)]
    heads = choose(heads, 30)
    repeated = [*signs, *heads, *(f"{head} " for head in heads), *choose(words, 30)]
    units = choose([*repeated, *(first + second for first, second in draw(signs, 30))])
    for unit in units:
        for head in ["", *choose(heads, 3)]:
            yield from ((head, unit, tail) for tail in tails)
    for first, second in draw(units, 40):
        yield from ((first * (SHORT // 2 // len(first)), second, tail) for tail in tails)


def choose(texts: Iterable[str], most: int | None = None) -> list[str]:
    """The texts of up to 40 signs, each once; of more than `most` those at even distances."""
    kept = [text for text in dict.fromkeys(texts) if text and len(text) <= 40]
    return kept if most is None or len(kept) <= most else [kept[at * len(kept) // most] for at in range(most)]


def draw(units: Sequence[str], count: int) -> Iterator[tuple[str, str]]:
    chance = random.Random(0)
    return ((chance.choice(units), chance.choice(units)) for _ in range(count if units else 0))


# Measuring


def measure(work: Callable[[], object]) -> float:
    """The seconds of processor time that some work takes; after `SLOW` seconds it is stopped."""

    def stop(number: int, frame: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGVTALRM, stop)
    gc.disable()  # it may take as long as the work, and swallows `Stopped`
    signal.setitimer(signal.ITIMER_VIRTUAL, SLOW)
    begun = time.thread_time()
    try:
        work()
    except Stopped:
        return SLOW
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        gc.enable()
    return time.thread_time() - begun


def use(used: Used, verb: str, text: str) -> Callable[[], object]:
    pattern, given = (
        used.pattern,
        text.encode("latin-1", "replace") if isinstance(used.pattern.pattern, bytes) else text,
    )
    if verb in ("sub", "subn"):
        return lambda: pattern.sub(given[:0], given)
    return lambda: pattern.findall(given) if verb == "finditer" else getattr(pattern, verb)(given)


def find_growth(make: Callable[[int], Callable[[], object]], floor: float = FLOOR, longest: int = 1) -> str | None:
    """How the work grows with the text, if four times as much takes more than `MOST` times as long.

    A text that is quick is made longer, up to `longest` times, until its work can be compared.
    """

    def run(times: int) -> float:
        return measure(make(times))

    times = 1
    while (short := run(times)) <= floor:  # too short to be compared
        if (times := times * 4) > longest:
            return None
    if (long := run(4 * times)) <= MOST * short < SLOW:
        return None
    short, long = (min(first, run(n), run(n)) for first, n in ((short, times), (long, 4 * times)))
    grows = long > MOST * short and (long > SLOW / 8 or run(16 * times) > MOST * long)
    return f"{short:.4f} s, then {long:.4f} s" if grows or long >= SLOW else None


def find_slow_text(used: Used) -> str | None:
    """The first text for which the work of a pattern grows faster than the text."""
    bound = BOUNDS.get(used.name)
    for verb, (head, unit, tail) in product(sorted(used.verbs), make_texts(used.pattern)):
        if bound is not None:
            assert measure(use(used, verb, (head + unit * bound + tail)[-bound:])) < AT_ONCE
            continue

        def make(times: int, parts: tuple[str, ...] = (verb, head, unit, tail)) -> Callable[[], object]:
            verb, head, unit, tail = parts
            return use(used, verb, head + unit * (times * SHORT // len(unit)) + tail)

        # Runs of words repeat less often in a text of one length, so they get longer ones.
        if growth := find_growth(make, longest=LONGEST if len(unit) >= WORDS else 1):
            return f"{verb} on {head[:40]!r} {unit!r}... {tail!r}: {growth}"
    return None


@pytest.mark.parametrize("room", [module.name for module in pkgutil.iter_modules(tomewise.__path__)])
def test_no_run_of_signs_is_slow_for_a_pattern(room: str) -> None:
    patterns = [used for used in find_patterns() if used.name.split(":")[0].split(".")[1] == room]
    assert not {used.name: text for used in patterns if (text := find_slow_text(used))}


def test_every_pattern_is_known() -> None:
    """A pattern that only a call knows is tried by no test: write it in the call, or as a constant."""
    names = {used.name: used.pattern.pattern for used in find_patterns()}
    assert not [name for name, pattern in names.items() if pattern == UNKNOWN]
    assert names.keys() >= BOUNDS.keys()
    assert len(names) > 200


# The doors through which texts come

PASSAGE = "The clerk forged the letter in May. " * 60
UNITS = (
    *' \n\t…"“([{<`|#-*_,:.?!1aAé。\\',
    *(". ", "? ", ", ", ": ", "A ", "A. ", "a. ", "1 ", "1. a\n", "- a\n", "# a\n", "A: x.\n", "x: y\n", "\n\n", " \n"),
    *(" or", ", or", " and A", "A and ", "the ", "the of ", "how many ", "he ", "A her ", "uh ", "'s ", "“A. ", "({"),
    *('"}', '{"a":', "</think>", "&lt;", "E1 ", "E1, ", "sorry ", "I can not ", "one ", "May ", "a@b:", "sk-", "---\n"),
)


def cite(text: str) -> None:
    passage = Passage(id="p", document="d", position=0, start=0, end=len(PASSAGE), text=PASSAGE, title="T")
    for quote in (text, f"The clerk{text}xforged the letter", f"The clerk{text}forged the letter"):
        locate(quote, passage)


def answer(text: str) -> None:
    quote = {"label": text, "quote": text}
    fields = {"reasoning": text, "supported": text, "answer": text, "choice": text, "quotes": [quote], "missing": text}
    for reply in (json.dumps(fields | {"supported": "full"}), json.dumps(fields), text, f"{{{text}"):
        with suppress(BadReply):
            decode(ANSWER, reply)


def state(text: str) -> None:
    for condition in (text, f"year{text}>=1911", f"year>={text}"):
        with suppress(UsageError):
            parse_condition(condition)


DOORS: dict[str, Callable[[str], object]] = {
    "a quotation": cite,
    "an answer": answer,
    "labels": lambda text: (read_labels(text), read_labels(f"E1{text}")),
    "a memory": lambda text: (find_fault(text, [PASSAGE]), find_fault(PASSAGE, [text])),
    "a gist": lambda text: Grounds([PASSAGE]).find_missing(text),
    "what supports a statement": lambda text: Grounds([text]).judge("The clerk did not forge it in May, at one."),
    "a passage": lambda text: write_gist(PassageIn(text=text, title=text)),
    "sentences": lambda text: list(find_sentences(text)),
    "names": find_mentions,
    "a question": lambda text: (split_comparison(text), read_question(text)),
    "a nested question": lambda text: plan_reading(PlanReadingIn(question=text, limit=4, nets=2)),
    "a condition": state,
    "an error": hide_credentials,
    "front matter": lambda text: read_front_matter(f"---\ntitle: {text}\n---\n"),
    "headings": lambda text: (mark_headings(text), mark_speakers(text)),
    "robots.txt": lambda text: is_allowed(f"User-agent: *\nDisallow: /{text}".encode(), "tome", f"/{text}"),
    "groups of robots.txt": lambda text: is_allowed(
        "".join(f"{name}: a{line}\n" for name in ("user-agent", "allow") for line in range(len(text))).encode(),
        "a",
        "/",
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_no_run_of_signs_is_slow_at_a_door(door: str) -> None:
    slow = {}
    for unit, tail in product(UNITS, ("", "x")):

        def make(times: int, unit: str = unit, tail: str = tail) -> Callable[[], object]:
            return lambda: DOORS[door](unit * (times * 2 * SHORT // len(unit)) + tail)

        if growth := find_growth(make, floor=0.01):
            slow[unit, tail] = growth
    assert not slow


@pytest.mark.parametrize("blank", [" ", "\n"])
def test_a_quotation_of_many_blanks_takes_no_time(blank: str) -> None:
    quote = f"The clerk{blank * 10_000}xforged the letter"
    assert min(measure(lambda: cite(quote)) for _ in range(3)) < AT_ONCE


def test_a_question_of_many_choices_takes_no_time() -> None:
    question = ", " * 160 + " or" * 224 + " ,"
    assert len(question) == 994
    assert min(measure(lambda: DOORS["a question"](question)) for _ in range(3)) < AT_ONCE
