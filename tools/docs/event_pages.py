"""The page of the events of a trace: what their classes say, and the systems whose loops make them."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

import griffe
from pydantic import TypeAdapter
from tools.docs.markdown import REFERENCE, describe_schema, escape_html, write_table

from tomewise import events, run
from tomewise.events import CLASSES, TypedEvent
from tomewise.systems.registry import LOOPS, SYSTEMS

_ROOMS = ("tomewise.loops", "tomewise.systems", events.__name__)  # where events are made, and what makes these parts
_FIELDS = frozenset(("name", "step", "summary", "detail"))


def write_event_page(package: griffe.Module) -> str:
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
        "These fields of `detail` mean the same in every event: `evidence` (a list of [Piece](#piece), each also with "
        "its node as `id`), `notes` (texts), `pool` (what a working memory holds), `found` and `cut` (how many pieces "
        "were found, and how many of them did not fit). *Systems* are those whose loop can yield the event; most "
        "answers have only some of them. `+probe` stands for `RECALL+probe`; `auto` has those of the systems that it "
        "goes on to, too.",
        "",
        "A trace that is kept has at most `trace_bytes` bytes ([limits](limits.md#traces-and-sessions)): of a longer "
        "one texts and details are cut, those of the last three events at last, and `cut` of the trace says so. From "
        "Python, `tomewise.events` has a class for each event.",
        "",
        "The stream of HTTP has the name as its `event` and the other fields as `data`. Its own events are `started`, "
        "`usage` after each event, and `answer` or `error` at the end.",
        "",
    ]
    makers = find_makers()
    for name, classes in CLASSES.items():
        lines += [f"## {name}", ""]
        for made in classes:
            lines += [escape_html(_read_docstring(package, made)), ""]
            lines += [f"Systems: {_list_systems(makers.get(made, []))}.", ""]
            lines += _write_fields(package, made)
            if made is events.Fallbacks:
                lines += [f"Kinds: {', '.join(f'`{kind}`' for kind in _list_kinds())}.", ""]
    lines += ["## Objects", ""]
    for name, schema in sorted(_list_objects().items()):
        found = next(thing for thing in _list_shared() if thing.__name__ == name)
        lines += [f"### {name}", "", escape_html(schema["description"]), "", *_write_fields(package, found)]
    return "\n".join(lines)


@cache
def find_makers() -> Mapping[type[TypedEvent], list[str]]:
    """Of each class of events, the systems whose loops make it; a loop that goes around any recall is `+LOOP`."""
    recipes = _list_recipes()
    systems = {recipe for name, recipe in recipes.items() if not name.startswith("+")}
    makers: dict[type[TypedEvent], list[str]] = {}
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


def _find_events(recipe: Callable[..., Any], others: set[Callable[..., Any]]) -> set[type[TypedEvent]]:
    """The events in what a recipe names, and in what that names in turn."""
    seen, waiting = set[Any](), [recipe]
    while waiting:
        part: Any = waiting.pop()
        if part not in seen and part not in others:
            seen.add(part)
            if not _is_event(part):
                waiting += _list_named(part)
    return {part for part in seen if _is_event(part) and "name" in vars(part)}


@cache
def _list_named(part: Any) -> tuple[Any, ...]:
    """The classes and functions of our loops and systems that the source of a class or a function names."""
    scope = vars(sys.modules[part.__module__])
    tree = ast.parse(textwrap.dedent(inspect.getsource(part)))
    named = (scope.get(node.id) for node in ast.walk(tree) if isinstance(node, ast.Name))
    return tuple(
        each
        for each in named
        if (inspect.isclass(each) or inspect.isfunction(each)) and each.__module__.startswith(_ROOMS)
    )


def _is_event(part: object) -> bool:
    return isinstance(part, type) and issubclass(part, TypedEvent)


def _write_fields(package: griffe.Module, owner: type) -> list[str]:
    """The table of the fields of an event, as its `detail` has them, or of an object in it."""
    schema = _read_schema(owner)
    rows = [
        (f"`{key}`", describe_schema(schema["properties"][name]), escape_html(_read_docstring(package, owner, name)))
        for key, name in _list_keys(owner).items()
    ]
    return write_table(["field of `detail`" if _is_event(owner) else "field", "type", "what"], rows)


def _list_keys(owner: type) -> dict[str, str]:
    """The field behind each key of plain data."""
    assert is_dataclass(owner)
    names = [each.name for each in fields(owner) if each.compare and not (_is_event(owner) and each.name in _FIELDS)]
    if owner is events.Fallbacks:
        return {"KIND": "counts"}
    if owner is events.Chosen:
        return {name.replace("_", " "): name for name in names}
    return {name: name for name in names}


def _list_kinds() -> Iterator[str]:
    return (value for name, value in vars(run).items() if name.isupper() and isinstance(value, str))


def _read_schema(owner: Any) -> dict[str, Any]:
    return TypeAdapter(owner).json_schema(ref_template=f"{REFERENCE}{{model}}")


def _list_objects() -> dict[str, dict[str, Any]]:
    """The schemas of the objects that events hold, by name."""
    found: dict[str, dict[str, Any]] = {}
    for classes in CLASSES.values():
        for made in classes:
            found |= _read_schema(made).get("$defs", {})
    return found


def _list_shared() -> Iterator[type]:
    """The classes of these objects."""
    waiting: list[Any] = [made for classes in CLASSES.values() for made in classes]
    seen = set[type]()
    while waiting:
        part = waiting.pop()
        waiting += get_args(part)
        if is_dataclass(part) and isinstance(part, type) and part not in seen:
            seen.add(part)
            waiting += get_type_hints(part).values()
            yield part


def _read_docstring(package: griffe.Module, owner: type, field: str = "") -> str:
    """The docstring of a class or of its field, its own or that of the class above that has it. Raises KeyError."""
    for each in owner.__mro__:
        if each.__module__.startswith("tomewise."):
            found = package[each.__module__.removeprefix("tomewise.")][each.__name__]
            member = found.members.get(field) if field else found
            if member is not None and member.docstring:
                return " ".join(member.docstring.value.split())
    raise KeyError(f"{owner.__name__}.{field} has no docstring: say what it holds")
