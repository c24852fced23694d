"""Hold the wording rules of `CONTRIBUTING.md` that a program can count.

python tools/check_words.py            # exit code 1 and one line for each place that breaks a rule
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "tests", "bench", "tools")
PAGES = ("*.md", "docs/**/*.md", "bench/*.md")

# A function is named by a verb in its base form: `fit_to_budget`, not `fitting` or `told`.
PARTICIPLE = re.compile(r"\w+(ed|ing)|told|said|given|held|kept|shown|made|known|found|put|left|cut|led|meant")
# These end like participles and are verbs in their base form, or nouns that name a kind of thing.
BASE_FORMS = frozenset(("embed", "seed", "feed", "need", "proceed", "exceed", "bring", "string"))
EMPTY_NAMES = frozenset(("some", "one", "other", "said", "held", "told"))
WORDS = re.compile(r"\b(is no|is none|said|told)\b", re.IGNORECASE)

# Places that break a rule for a reason, as `file: name or word`. Keep these at ten or fewer.
EXCEPTIONS: dict[str, str] = {
    f"src/tomewise/language/extractive/{file}.py: '{word}':": "a word that the extractive model reads in texts"
    for file in ("lexicon", "question_words", "words")
    for word in ("said", "told")
}

Fault = tuple[int, str]


def main() -> int:
    """Print every fault; 1 where there are any."""
    faults = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path, found in (*_check_sources(), *_check_pages())
        for line, what in found
        if f"{path.relative_to(ROOT)}: {what.split(' ')[0]}" not in EXCEPTIONS
    ]
    print("\n".join(faults) or f"words: no faults ({len(EXCEPTIONS)} named exceptions)")
    return bool(faults) or len(EXCEPTIONS) > 10


def _check_sources() -> Iterator[tuple[Path, list[Fault]]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source)
            faults = [*check_names(tree), *check_comments(source), *check_texts(tree, everywhere=folder == "src")]
            yield path, sorted(faults)


def _check_pages() -> Iterator[tuple[Path, list[Fault]]]:
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            lines = path.read_text(encoding="utf-8").splitlines()
            yield path, [fault for number, line in enumerate(lines, 1) for fault in _find_words(line, number)]


def check_names(tree: ast.AST) -> Iterator[Fault]:
    """Functions that are named by a participle, variables whose name says nothing."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_participle(node):
                yield node.lineno, f"{node.name} is a participle: name the function by a verb in its base form"
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name.strip("_") in EMPTY_NAMES:
                yield node.lineno, f"{name} does not say what it holds"


def check_comments(source: str) -> Iterator[Fault]:
    """Words that `CONTRIBUTING.md` replaces, in comments."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from _find_words(token.string, token.start[0])


def check_texts(tree: ast.AST, *, everywhere: bool) -> Iterator[Fault]:
    """The same in docstrings, and `everywhere` in all strings, for there they are messages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not everywhere:
            yield from _find_words(ast.get_docstring(node) or "", getattr(node, "lineno", 1))
        if everywhere and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _find_words(node.value, node.lineno)


def _is_participle(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    bare = node.name.strip("_")
    is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    return not is_property and bare not in BASE_FORMS and "_" not in bare and bool(PARTICIPLE.fullmatch(bare))


def _find_words(text: str, line: int) -> Iterator[Fault]:
    for found in WORDS.finditer(text):
        yield line + text.count("\n", 0, found.start()), f"{found[0]!r}: see the words in CONTRIBUTING.md"


if __name__ == "__main__":
    sys.exit(main())
