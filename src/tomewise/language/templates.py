"""Prompt templates in a small part of Jinja2, without calls, assignments, macros and attributes.

People share prompt folders, so a template may come from a stranger. It sees only plain data. Its length, depth, output
and time are bounded, and nothing in it can multiply a text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS
from jinja2.visitor import NodeTransformer

from tomewise.language.fences import fence, letter_items, number_items, oneline

if TYPE_CHECKING:
    from jinja2.runtime import Context

LONGEST = 100_000  # characters of a template
MOST = 50_000_000  # characters of a prompt: more than the largest window
SECONDS = 10.0  # of computing time for one prompt: a large one takes a tenth of a second
_MOST_FILTERED = 4 * MOST  # characters that all filters of one prompt may make: all may be in memory together
_LARGEST = 2**63  # of a number: multiplying longer numbers could take any time
_DEEPEST = 40  # nodes inside one another
# A template cannot use these two names, since they begin with an underscore.
_LIMITS = "_limits"
_CHECKED_ITEMS = "_checked_items"
_LOOP = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length"})
_ALLOWED = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.If, nodes.For, nodes.CondExpr,
    nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos, nodes.Add, nodes.Sub, nodes.Mul,
    nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Concat, nodes.Filter, nodes.Test, nodes.Keyword, nodes.Getattr,
    nodes.Getitem, nodes.Slice, nodes.List, nodes.Tuple,
)  # fmt: skip


class Template:
    """A template that was checked. Raises `TemplateSyntaxError` for one that is broken or uses more than is allowed."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST:
            raise TemplateSyntaxError(f"it has {len(text):,} characters and may have {LONGEST:,}", 1)
        environment = _make_environment()
        try:
            tree = environment.parse(text)
            _check(tree)
            self._template = environment.from_string(_AddChecks().visit(tree))
        except (RecursionError, MemoryError, SyntaxError, ValueError) as error:
            raise TemplateSyntaxError(f"it cannot be compiled ({type(error).__name__}: {error})", 1) from error

    def render(self, fields: Mapping[str, Any], *, seconds: float = SECONDS, most: int = MOST) -> str:
        """The text for plain `fields`. Raises `TemplateError`, and the errors of operators and filters."""
        limits = _Limits(time.thread_time() + seconds)  # thread time, since a busy machine must not fail a template
        pieces: list[str] = []
        length = 0
        for piece in self._template.generate({**fields, _LIMITS: limits}):
            length += len(piece)
            if length > most:
                raise SecurityError(f"it writes more than {most:,} characters")
            limits.check()
            pieces.append(piece)
        return "".join(pieces)


@cache
def _make_environment() -> _Environment:
    # No escaping, since prompts are not HTML (see `fence`). No optimiser, since it would run unchecked code.
    environment = _Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, optimized=False)
    plain = {name: FILTERS[name] for name in ("default", "d", "int", "length", "count", "lower", "upper")}
    filters = {**plain, "fenced": fence, "oneline": oneline, **_OF_LISTS}
    environment.globals.clear()
    environment.filters = {name: _limit_filter(name, filter) for name, filter in filters.items()}
    environment.filters[_CHECKED_ITEMS] = _check_items
    environment.tests = {name: TESTS[name] for name in ("defined", "undefined", "none", "string", "number")}
    return environment


def _join(items: Sequence[object], between: str = "") -> str:
    parts = [str(item) for item in items]
    if sum(map(len, parts)) + len(parts) * len(between) > MOST:
        raise SecurityError(f"it joins texts to more than {MOST:,} characters")
    return between.join(parts)


_OF_LISTS = {"join": _join, "numbered": number_items, "lettered": letter_items}  # of a text, they would make letters


def _limit_filter(name: str, filter: Callable[..., Any]) -> Callable[..., Any]:
    """The filter, checked against the limits of the prompt."""

    @pass_context
    def apply(context: Context, value: Any, *arguments: Any, **options: Any) -> Any:
        if name in _OF_LISTS and not isinstance(value, list):
            raise SecurityError(f"{name!r} is for lists, not for {type(value).__name__}")
        limits: _Limits = context[_LIMITS]
        limits.check()
        output = filter(value, *arguments, **options)
        limits.check(output)
        return output

    return apply


@pass_context
def _check_items(context: Context, items: Any) -> Iterator[Any]:
    """The items of a loop, with a look at the limits before each."""
    if not isinstance(items, list | tuple):
        raise SecurityError(f"a loop goes over a list, not over {type(items).__name__}")
    limits: _Limits = context[_LIMITS]
    for item in items:
        limits.check()
        yield item


def _check(tree: nodes.Node, depth: int = 0) -> None:
    """Refuse every kind of node that is not listed in `_ALLOWED`."""
    if depth > _DEEPEST:
        raise TemplateSyntaxError(f"it is more than {_DEEPEST} levels deep", tree.lineno)
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
    # A list of data could double the data in every inner loop. The names that a loop defines hold no data yet.
    return isinstance(item, nodes.Const) or (isinstance(item, nodes.Name) and item.ctx == "store")


class _Limits:
    """The time and the characters that are left for one prompt."""

    def __init__(self, end: float) -> None:
        self._end = end  # on the clock of the thread
        self._characters = _MOST_FILTERED

    def check(self, output: object = None) -> None:
        """Count the output of a filter. Raise SecurityError if the time or the characters are used up."""
        if isinstance(output, str):
            self._characters -= len(output)
        if self._characters < 0:
            raise SecurityError(f"its filters make more than {_MOST_FILTERED:,} characters")
        if time.thread_time() > self._end:
            raise SecurityError("it takes too long: simplify its loops")


class _Environment(ImmutableSandboxedEnvironment):
    """A sandbox in which a name is a key of the data, and nothing else."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, LoopContext) and attribute in _LOOP:
            return super().getattr(obj, attribute)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        is_key = isinstance(obj, dict) and isinstance(argument, str)
        is_position = isinstance(obj, list | str) and isinstance(argument, int)
        if is_key or is_position or isinstance(obj, StrictUndefined):
            try:
                return obj[argument]  # of what is undefined itself, this raises an error that names the missing key
            except LookupError:
                return self.undefined(obj=obj, name=str(argument))
        return self.unsafe_undefined(obj, str(argument))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        # With `+`, two texts make one of twice the length; with `*`, a text and a number make one of any length.
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            raise SecurityError(f"{operator!r} is for numbers: join texts with ~")
        if max(abs(left), abs(right)) > _LARGEST:
            raise SecurityError(f"{operator!r} is for numbers up to {_LARGEST:,}")
        return super().call_binop(context, operator, left, right)


class _AddChecks(NodeTransformer):
    """Makes every loop check the time, and makes `~` join texts within a bound."""

    def visit_For(self, loop: nodes.For) -> nodes.For:  # noqa: N802 - the name that Jinja2 looks for
        self.generic_visit(loop)
        loop.iter = nodes.Filter(loop.iter, _CHECKED_ITEMS, [], [], None, None, lineno=loop.lineno)
        return loop

    def visit_Concat(self, texts: nodes.Concat) -> nodes.Filter:  # noqa: N802
        self.generic_visit(texts)
        parts = nodes.List(texts.nodes, lineno=texts.lineno)
        return nodes.Filter(parts, "join", [], [], None, None, lineno=texts.lineno)
