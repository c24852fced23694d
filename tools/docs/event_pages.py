"""The page of the events of a trace: what their table says, and the systems whose loops make them."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from tools.docs.markdown import escape_html, write_table

from tomewise import events, fallbacks
from tomewise.events import EVENTS, PIECE
from tomewise.systems.registry import LOOPS, SYSTEMS

_ROOMS = ("tomewise.loops", "tomewise.systems", events.__name__)  # where events are made, and what makes these parts


def write_event_page() -> str:
    """The page, as Markdown."""
    lines = [
        "# Trace events",
        "",
        "While a question is answered, its loop yields an event for each thing that happens. `tome ask --trace` prints "
        "a line for each; `tome ask --trace --json`, `tome log --json`, `Answer.events` and the stream of HTTP have "
        "them whole. Each event has four fields:",
        "",
        *write_table(
            ["field", "type", "what"],
            [
                ("`name`", "text", "what happened, one of the headings below; a loop of a plug-in may have others"),
                ("`step`", "integer", "the round of the loop, from 0"),
                ("`summary`", "text", "one line for people; its words may change"),
                ("`detail`", "object", "data for programs: the fields below, by name"),
            ],
        ),
        "These fields of `detail` mean the same in every event: `evidence` (a list of [pieces](#a-piece-of-evidence)), "
        "`notes` (texts), `pool` (what a working memory holds), `found` and `cut` (how many pieces were found, and how "
        "many of them did not fit). *Systems* are those whose loop can yield the event; most answers have only some of "
        "them. `+probe` stands for `RECALL+probe`; `auto` has those of the systems that it goes on to, too.",
        "",
        "A trace that is kept has at most `trace_bytes` bytes ([limits](limits.md#traces-and-sessions)): of a longer "
        "one texts and details are cut, those of the last three events at last, and `cut` of the trace says so. In "
        "Python, `tomewise.events.EVENTS` is this table, and `make_event` makes an event of it.",
        "",
        "The stream of HTTP has the name as its `event` and the other fields as `data`. Its own events are `started`, "
        "`usage` after each event, and `answer` or `error` at the end.",
        "",
    ]
    for name, kind in EVENTS.items():
        systems = _list_systems(find_makers().get(name, []))
        lines += [f"## {name}", "", escape_html(kind.about), "", f"Systems: {systems}.", ""]
        lines += _write_fields("field of `detail`", kind.fields)
        if name == "fallbacks":
            lines += [f"Kinds: {', '.join(f'`{kind}`' for kind in _list_kinds())}.", ""]
    return "\n".join([*lines, "## A piece of evidence", "", *_write_fields("field", PIECE)])


@cache
def find_makers() -> Mapping[str, list[str]]:
    """Of each event, the systems whose loops make it; a loop that goes around any recall is `+LOOP`."""
    recipes = _list_recipes()
    systems = {recipe for name, recipe in recipes.items() if not name.startswith("+")}
    makers: dict[str, list[str]] = {}
    for name, recipe in recipes.items():
        others = systems - {recipe}  # their recall is taken, and not their loops
        for made in _find_events(recipe, others):
            makers.setdefault(made, []).append(name)
    return makers


def _list_systems(names: Sequence[str]) -> str:
    is_all = len(names) in (0, len(_list_recipes()))  # what happens around a loop is made by none
    return "all" if is_all else ", ".join(f"`{each}`" for each in names)


def _list_recipes() -> dict[str, Callable[..., Any]]:
    systems = {name: SYSTEMS[name].recipe for name in SYSTEMS}
    return {**systems, **{f"+{name}": LOOPS[name].recipe for name in LOOPS}}


def _find_events(recipe: Callable[..., Any], others: set[Callable[..., Any]]) -> set[str]:
    """The events that a recipe makes, or what it names, or what that names in turn."""
    seen, waiting = set[Any](), [recipe]
    while waiting:
        part: Any = waiting.pop()
        if part not in seen and part not in others:
            seen.add(part)
            waiting += _list_named(part)
    return {event for part in seen for event in _list_made(part)}


@cache
def _list_named(part: Any) -> tuple[Any, ...]:
    """The classes and functions of our loops and systems that the source of a class or a function names."""
    scope = vars(sys.modules[part.__module__])
    named = (scope.get(node.id) for node in ast.walk(_parse(part)) if isinstance(node, ast.Name))
    return tuple(
        each
        for each in named
        if (inspect.isclass(each) or inspect.isfunction(each)) and each.__module__.startswith(_ROOMS)
    )


@cache
def _list_made(part: Any) -> frozenset[str]:
    """The events that a class or a function makes: a call of `make_event`, or of a function around it, names one."""
    calls = (node for node in ast.walk(_parse(part)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    named = (
        node for call in calls if call.args and call.func.id.startswith("make_") for node in ast.walk(call.args[0])
    )
    return frozenset(node.value for node in named if isinstance(node, ast.Constant) and node.value in EVENTS)


@cache
def _parse(part: Any) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(part)))


def _write_fields(heading: str, fields: Mapping[str, str]) -> list[str]:
    """The table of the fields of a detail, or of an object in it."""
    parts = ((name, *words.partition(": ")) for name, words in fields.items())
    return write_table(
        [heading, "type", "what"], [(f"`{name}`", form, escape_html(about)) for name, form, _, about in parts]
    )


def _list_kinds() -> Iterator[str]:
    return (value for name, value in vars(fallbacks).items() if name.isupper() and isinstance(value, str))
