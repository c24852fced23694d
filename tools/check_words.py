"""Check the wording rules of `CONTRIBUTING.md` that a program can count.

python tools/check_words.py            # exit code 1 and one line for each place that breaks a rule
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "tests", "bench", "tools", "examples")
MESSAGE_FOLDERS = ("src", "bench", "tools", "examples")  # here all strings are checked; strings of tests are often data
PAGES = ("*.md", "docs/**/*.md", "bench/*.md", "tests/**/*.md")

# A function name begins with a verb in its base form: `fit_to_budget`, not `fitting` or `told_apart`.
# `put`, `cut` and `read` are participles and base forms, so a program cannot judge them.
PARTICIPLE = re.compile(
    r"\w+(ed|ing)|(un|re)?(begun|broken|brought|built|chosen|done|drawn|fallen|found|given|gone|held|kept|known|led|left"
    r"|lost|made|meant|met|paid|said|seen|sent|shown|spent|spoken|taken|thought|told|understood|written)"
)
# These end like participles, but are verbs in their base form or nouns.
NOT_PARTICIPLES = frozenset(("embed", "seed", "feed", "need", "proceed", "exceed", "bring", "string", "substring"))
EMPTY_NAMES = frozenset(("some", "one", "other", "said", "held", "told"))
WORDS = re.compile(r"\b(is\s+no(?!\s+longer)|is\s+none|said|told)\b", re.IGNORECASE)
# Code in a page, comment or docstring quotes a word, and so does what a page shows as output.
CODE = re.compile(r"```.*?```|`[^`\n]+`|<!-- shown -->.*?<!-- end -->", re.DOTALL)
BOOLEAN_CALLS = frozenset(("all", "any", "bool", "isinstance"))

# Places that break a rule for a reason, as `file: name or word`. Keep these at ten or fewer.
EXCEPTIONS: dict[str, str] = {
    f"src/tomewise/{file}.py: {word}": "a word that a program reads in texts"
    for file, word in (
        ("language/extractive/question_words", "told"),
        ("reading/captions", "said"),
        ("text/lexicon", "said"),
        ("text/lexicon", "told"),
        ("text/words", "said"),
        ("text/words", "told"),
    )
}
MOST_EXCEPTIONS = 10


@dataclass(frozen=True, order=True)
class Fault:
    """A line that breaks a rule: the name or word that breaks it, and what to write."""

    line: int
    subject: str
    remedy: str


def main() -> int:
    """Print every fault. Returns 1 if there is a fault, an unused exception, or one exception too many."""
    used: set[str] = set()
    messages = []
    for path, faults in (*_check_sources(), *_check_pages()):
        file = path.relative_to(ROOT).as_posix()
        for fault in faults:
            place = f"{file}: {fault.subject}"
            if place in EXCEPTIONS:
                used.add(place)
            else:
                messages.append(f"{file}:{fault.line}: {fault.subject!r}: {fault.remedy}")
    messages += [f"{place}: this exception is not needed: remove it" for place in EXCEPTIONS if place not in used]
    if len(EXCEPTIONS) > MOST_EXCEPTIONS:
        messages.append(f"{len(EXCEPTIONS)} exceptions: keep at most {MOST_EXCEPTIONS}")
    print("\n".join(messages) or f"words: no faults ({len(EXCEPTIONS)} named exceptions)")
    return int(bool(messages))


def _check_sources() -> Iterator[tuple[Path, list[Fault]]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, check_source(path.read_text(encoding="utf-8"), messages=folder in MESSAGE_FOLDERS)


def _check_pages() -> Iterator[tuple[Path, list[Fault]]]:
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            yield path, list(find_words(path.read_text(encoding="utf-8"), 1))


def check_source(source: str, *, messages: bool) -> list[Fault]:
    """All faults of a Python file. `messages` also checks the strings that are not docstrings."""
    tree = ast.parse(source)
    faults = (
        *check_functions(tree),
        *check_names(tree),
        *check_products(tree),
        *check_comments(source),
        *check_strings(tree, messages=messages),
    )
    return sorted(set(faults))


def check_functions(tree: ast.AST) -> Iterator[Fault]:
    """Functions whose name begins with a participle. A property is a noun, so its name may."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.name.strip("_").partition("_")[0]
        is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
        if not is_property and first not in NOT_PARTICIPLES and PARTICIPLE.fullmatch(first):
            yield Fault(node.lineno, node.name, "begin the name of a function with a verb in its base form")


def check_names(tree: ast.AST) -> Iterator[Fault]:
    """Functions, properties, variables, parameters and attributes whose name does not say what they hold."""
    for node in ast.walk(tree):
        for name in _list_bound_names(node):
            if name.strip("_") in EMPTY_NAMES:
                yield Fault(getattr(node, "lineno", 1), name, "use a name that says what it holds")


def _list_bound_names(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            # Python's own protocols call the second operand `other`.
            is_operator = node.name.startswith("__") and node.name.endswith("__")
            return [node.name, *([] if is_operator else [arg.arg for arg in _list_parameters(node.args)])]
        case ast.Lambda():
            return [arg.arg for arg in _list_parameters(node.args)]
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
        case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            return [name]
        case _:
            return []


def _list_parameters(args: ast.arguments) -> list[ast.arg]:
    return [arg for arg in ast.walk(args) if isinstance(arg, ast.arg)]


def check_products(tree: ast.AST) -> Iterator[Fault]:
    """Products of a string and a bool, such as `"s" * (count != 1)`.

    A name is a bool if the file annotates it so or assigns a comparison, a `not`, or a call such as `any(...)` to it.
    """
    flags = _list_flags(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = (node.left, node.right)
            if any(_is_text(side) for side in sides) and any(_is_boolean(side, flags) for side in sides):
                yield Fault(node.lineno, ast.unparse(node), "write a conditional")


def _list_flags(tree: ast.AST) -> frozenset[str]:
    flags = set()
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, annotation=ast.Name(id="bool")):
                flags.add(name)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="bool")):
                flags.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_boolean(value, frozenset()):
                flags.add(name)
    return frozenset(flags)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_boolean(node: ast.expr, flags: frozenset[str]) -> bool:
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=True | False):
            return True
        case ast.BoolOp(values=values):
            return all(_is_boolean(value, flags) for value in values)
        case ast.Call(func=ast.Name(id=name)):
            return name in BOOLEAN_CALLS
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in flags
        case _:
            return False


def check_comments(source: str) -> Iterator[Fault]:
    """Words that `CONTRIBUTING.md` replaces, in comments."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from find_words(token.string, token.start[0])


def check_strings(tree: ast.AST, *, messages: bool) -> Iterator[Fault]:
    """The same words in docstrings and, with `messages`, in every string that is more than a bare word."""
    docstrings = [
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    ]
    for node in ast.walk(tree) if messages else docstrings:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\s", node.value):
            yield from find_words(node.value, node.lineno)


def find_words(text: str, line: int) -> Iterator[Fault]:
    """Words that `CONTRIBUTING.md` replaces, outside of code; the text begins at `line`."""
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    for match in WORDS.finditer(prose):
        word = " ".join(match[0].lower().split())
        yield Fault(line + prose.count("\n", 0, match.start()), word, "see the words in CONTRIBUTING.md")


if __name__ == "__main__":
    sys.exit(main())
