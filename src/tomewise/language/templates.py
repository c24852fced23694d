"""Prompt templates as a small language of their own: Jinja2 without calls, assignments, macros and attributes.

People share prompt folders, so a template is taken for the work of a stranger. It sees plain data only, and whatever
it does ends: its length, its depth, its output and its time are bounded, and nothing in it can multiply a text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS
from jinja2.visitor import NodeTransformer

from tomewise.language.fences import fenced, lettered, numbered, oneline

if TYPE_CHECKING:
    from jinja2.runtime import Context

LONGEST = 100_000  # characters of a template
MOST = 50_000_000  # characters of a prompt: more than the largest window takes in
SECONDS = 10.0  # of computing for one prompt: a large one takes a tenth of a second
_MADE = 4 * MOST  # characters that filters may make for one prompt, all together: they may be held at the same time
_LARGEST = 2**63  # a number: those of any length take any time to multiply
_DEEPEST = 40  # nodes, one within another
_LIMITS = "_limits"  # names that no template can use, since they begin with an underscore
_PACED = "_paced"
_LOOP = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length"})
_ALLOWED = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.If, nodes.For, nodes.CondExpr,
    nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos, nodes.Add, nodes.Sub, nodes.Mul,
    nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Concat, nodes.Filter, nodes.Test, nodes.Keyword, nodes.Getattr,
    nodes.Getitem, nodes.Slice, nodes.List, nodes.Tuple,
)  # fmt: skip


class Template:
    """A template that was found harmless. Raises `TemplateSyntaxError` for one that is broken or is not."""

    def __init__(self, source: str) -> None:
        if len(source) > LONGEST:
            raise TemplateSyntaxError(f"it has {len(source):,} characters and may have {LONGEST:,}", 1)
        try:
            tree = _environment().parse(source)
            _check(tree)
            self._template = _environment().from_string(_Bounded().visit(tree))
        except (RecursionError, MemoryError, SyntaxError, ValueError) as error:
            raise TemplateSyntaxError(f"it cannot be compiled ({type(error).__name__}: {error})", 1) from error

    def render(self, fields: Mapping[str, Any], *, seconds: float = SECONDS, most: int = MOST) -> str:
        """The text for plain `fields`. Raises `TemplateError`, and what operators and filters raise."""
        limits = _Limits(time.thread_time() + seconds)  # a machine that sleeps or is busy is not the template's fault
        pieces: list[str] = []
        length = 0
        for piece in self._template.generate({**fields, _LIMITS: limits}):
            length += len(piece)
            if length > most:
                raise SecurityError(f"it writes more than {most:,} characters")
            limits.check()
            pieces.append(piece)
        return "".join(pieces)


class _Limits:
    """What one prompt may still take."""

    def __init__(self, ends: float) -> None:
        self._ends = ends  # by the clock of the thread
        self._characters = _MADE

    def check(self, made: object = None) -> None:
        """Raise SecurityError when the time is over, or the text `made` is one too many."""
        if isinstance(made, str):
            self._characters -= len(made)
        if self._characters < 0:
            raise SecurityError(f"its filters make more than {_MADE:,} characters")
        if time.thread_time() > self._ends:
            raise SecurityError("it takes too long: simplify its loops")


class _Environment(ImmutableSandboxedEnvironment):
    """Where a name leads to a key of the data or to nothing."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, LoopContext) and attribute in _LOOP:
            return super().getattr(obj, attribute)
        return self._key(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, list | str) and isinstance(argument, int):
            return obj[argument] if -len(obj) <= argument < len(obj) else self.undefined(obj=obj, name=str(argument))
        return self._key(obj, argument)

    def _key(self, obj: Any, name: Any) -> Any:
        if isinstance(obj, StrictUndefined):
            return obj[name]  # raises, saying what is not there
        if isinstance(obj, dict) and isinstance(name, str):
            return obj[name] if name in obj else self.undefined(obj=obj, name=name)
        return self.unsafe_undefined(obj, str(name))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        # Two texts would make one that is twice as long, a text and a number one of any length.
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            raise SecurityError(f"{operator!r} is for numbers: join texts with ~")
        if max(abs(left), abs(right)) > _LARGEST:
            raise SecurityError(f"{operator!r} is for numbers up to {_LARGEST:,}")
        return super().call_binop(context, operator, left, right)

    def is_safe_callable(self, obj: Any) -> bool:
        return False


class _Bounded(NodeTransformer):
    """Makes loops look at the clock, and `~` know a bound."""

    def visit_For(self, loop: nodes.For) -> nodes.For:  # noqa: N802 - the name that Jinja2 looks for
        self.generic_visit(loop)
        loop.iter = nodes.Filter(loop.iter, _PACED, [], [], None, None, lineno=loop.lineno)
        return loop

    def visit_Concat(self, texts: nodes.Concat) -> nodes.Filter:  # noqa: N802
        self.generic_visit(texts)
        listed = nodes.List(texts.nodes, lineno=texts.lineno)
        return nodes.Filter(listed, "join", [], [], None, None, lineno=texts.lineno)


@cache
def _environment() -> _Environment:
    # Not escaped, since prompts are no HTML (see `fenced`). Not optimised, since that runs what was not checked.
    made = _Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, optimized=False)
    ours: dict[str, Callable[..., Any]] = {"fenced": fenced, "oneline": oneline}
    ours |= {"join": _of_lists(_join), "numbered": _of_lists(numbered), "lettered": _of_lists(lettered)}
    theirs = {name: FILTERS[name] for name in ("default", "d", "int", "length", "count", "lower", "upper")}
    made.globals.clear()
    made.filters = {name: _timed(filter) for name, filter in (theirs | ours).items()} | {_PACED: _paced}
    made.tests = {name: TESTS[name] for name in ("defined", "undefined", "none", "string", "number")}
    return made


def _check(tree: nodes.Node, depth: int = 0) -> None:
    """Refuses whatever is not allowed by name."""
    if depth > _DEEPEST:
        raise TemplateSyntaxError(f"it is nested more than {_DEEPEST} deep", tree.lineno)
    if not isinstance(tree, _ALLOWED) or (isinstance(tree, nodes.For) and tree.recursive):
        raise TemplateSyntaxError(f"a template may not use {type(tree).__name__.lower()}", tree.lineno)
    name = getattr(tree, "attr", None) or getattr(tree, "name", None)
    if isinstance(name, str) and (name.startswith("_") or name == "self"):
        raise TemplateSyntaxError(f"the name {name!r} is unsafe", tree.lineno)
    if isinstance(tree, nodes.List | nodes.Tuple) and not all(map(_is_plain, tree.items)):
        raise TemplateSyntaxError("a list that a template writes may hold texts and numbers only", tree.lineno)
    for child in tree.iter_child_nodes():
        _check(child, depth + 1)


def _is_plain(item: nodes.Node) -> bool:
    # A list of what the data holds could double it in every loop within a loop; a loop's own names hold nothing yet.
    return isinstance(item, nodes.Const) or (isinstance(item, nodes.Name) and item.ctx == "store")


def _timed(filter: Callable[..., Any]) -> Callable[..., Any]:
    """As the filter, within the limits of the prompt."""

    @pass_context
    @wraps(filter)
    def timed(context: Context, *given: Any, **named: Any) -> Any:
        limits: _Limits = context[_LIMITS]
        limits.check()
        made = filter(*given, **named)
        limits.check(made)
        return made

    return timed


def _of_lists(filter: Callable[..., str]) -> Callable[..., str]:
    """As the filter, for lists alone: of a text, each letter would become an item."""

    @wraps(filter)
    def of_lists(items: Any, *given: Any) -> str:
        if not isinstance(items, list):
            raise SecurityError(f"{filter.__name__.strip('_')!r} is for lists, not for {type(items).__name__}")
        return filter(items, *given)

    return of_lists


def _join(items: Sequence[object], between: str = "") -> str:
    parts = [str(item) for item in items]
    if sum(map(len, parts)) + len(parts) * len(between) > MOST:
        raise SecurityError(f"it joins texts to more than {MOST:,} characters")
    return between.join(parts)


@pass_context
def _paced(context: Context, items: Any) -> Iterator[Any]:
    if not isinstance(items, list | tuple):
        raise SecurityError(f"a loop goes over a list, not over {type(items).__name__}")
    limits: _Limits = context[_LIMITS]
    for item in items:
        limits.check()
        yield item
