"""Parts from outside: registered by a program, or named by the entry points of installed packages.

The entry-point group of a kind is `tomewise.KIND`, such as `tomewise.systems`. A part is imported when its name is
first used. Names of Tomewise's own parts come first: a plugin cannot replace them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from inspect import isfunction, signature, unwrap
from traceback import walk_tb
from types import CodeType, MappingProxyType
from typing import Any

from tomewise.errors import (
    MissingDependency,
    PartError,
    TomewiseError,
    UnknownName,
    UsageError,
    describe_fault,
    suggest,
)

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "systems": "a recipe, a function of a Kit that returns a System, or a SystemDeclaration of one",
        "recalls": "a function of a Kit that returns a Recall, to name before the + of RECALL+LOOP",
        "loops": "a function of a Kit, a Recall and keyword settings that returns a System, to name after the +",
        "layers": "a MappedLayer, or another class or function of a store, a model and an embedder that makes a Layer",
        "roles": "a Role, under its own name",
        "readers": "a function of a path that returns Documents, under the suffix of its files without the dot",
        "layouts": "a function of a folder (a Path) that returns a Dataset",
        "metrics": "a Metric",
        "judges": "a Judge",
        "models": "a function of the text after the colon and keywords (`embedder`, `limit`, ...) to a LanguageModel",
        "embedders": "a function of the text after the colon that returns an Embedder",
    }
)
_registered: dict[tuple[str, str], object] = {}
_imported: dict[tuple[str, str], tuple[object, str]] = {}  # the parts of packages that were used, with their packages
_OURS = "tomewise"
_SURE = 2


@dataclass(frozen=True, slots=True)
class Plugin:
    """A part from outside. `package` is the distribution that brings it; empty for a part that a program registered."""

    kind: str
    name: str
    package: str
    load: Callable[[], object]


def register(kind: str, name: str, part: object) -> None:
    """Make a part known under a name in this process; a part registered earlier under this name is replaced.

    `KINDS` says what a part of each kind is. Raises UnknownName for a kind that does not exist, and UsageError for a
    name that the notation for systems cannot hold, and for a reader, which only a package can bring.
    """
    if kind not in KINDS:
        raise UnknownName(f"{kind!r} is not a kind of part: {suggest(kind, KINDS)}known are {', '.join(KINDS)}")
    if kind == "readers":
        raise UsageError(
            f"the reader {name!r} cannot be registered, because it runs in a process of its own: "
            "name it in the entry points tomewise.readers of a package"
        )
    if not name or any(character.isspace() or character in ":=+@" for character in name):
        raise UsageError(f"{name!r} cannot name a part: write it without blanks and without any of : = + @")
    _registered[kind, name] = part


def refuse_hidden(kind: str, name: str) -> None:
    """Raise UsageError if a part was registered under this name, which is one of Tomewise's own: it would not be used.

    The parts of packages are not looked at: a package cannot take a part of Tomewise away.
    """
    if (kind, name) in _registered:
        raise UsageError(f"{name!r} is one of Tomewise's own {kind}: register yours under another name")


def find_plugin(kind: str, name: str) -> object | None:
    """The part of that kind and name, or None without one.

    Raises MissingDependency if it cannot be imported, and UsageError if several packages bring that name.
    """
    if (kind, name) in _registered:
        return _registered[kind, name]
    plugins = [plugin for plugin in list_plugins(kind) if plugin.name == name]
    if len(plugins) > 1:
        packages = ", ".join(plugin.package for plugin in plugins)
        raise UsageError(f"several packages bring {name!r} to tomewise.{kind} ({packages}): uninstall all but one")
    return plugins[0].load() if plugins else None


def call_part(kind: str, name: str, part: object, *given: object, **named: object) -> Any:
    """Call a part that is a function, see `KINDS`. Raises UsageError if it cannot be called so, and PartError."""
    says = f"the plugin {name!r} is not {KINDS[kind]}"
    if not callable(part):
        raise UsageError(f"{says}: it is {part!r}")
    try:
        signature(part).bind(*given, **named)
    except TypeError as error:
        keywords = f", and by keyword {', '.join(named)}" if named else ""
        raise UsageError(f"{says}: it must take {len(given)} by position{keywords} ({error})") from None
    except ValueError:
        pass  # a function without a signature, as of C
    with name_faults():
        return part(*given, **named)


@contextmanager
def name_faults() -> Iterator[None]:
    """Turn an error that a part from outside raised inside into a PartError, which names the part."""
    try:
        yield
    except Exception as error:
        if fault := find_fault(error):
            raise fault from error
        raise


def find_fault(error: BaseException) -> PartError | None:
    """The error that names the part from outside whose code raised this one, by its traceback; None for other errors.

    A part is named if its code raised the error, or called the library that did. Where code of Tomewise is nearer to
    the error, the part has no share in it: that code failed, or a callback or a model that it called. An error of
    Tomewise is as it was meant, and so stays; so does one of the system, such as a full disk.
    """
    if isinstance(error, TomewiseError | OSError):
        return None
    used = {key: (part, "") for key, part in _registered.items()} | _imported
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] == _OURS:
            return None
        sureness = {key: _own_code(part, frame.f_code, module) for key, (part, _) in used.items()}
        most = max(sureness.values(), default=0)
        owners = [key for key, value in sureness.items() if value == most]
        if not most or (most < _SURE and len(owners) > 1):  # a class that several parts use tells nothing
            continue
        package = used[owners[0]][1]
        part = " or ".join(f"the {kind[:-1]} {name!r}" for kind, name in owners)
        part += f" of {package}" if package else ""
        what = f"{part} failed ({describe_fault(error)}; {module}, line {line})"
        return PartError(f"{what}: mend it, or use another one", part)
    return None


def _own_code(part: object, code: CodeType, module: str) -> int:
    """How surely the part has this code: `_SURE` for its functions and methods, 1 for a class that they name, or 0."""
    sureness = 0
    for function in _list_functions(part):
        name = function.__qualname__
        if function.__module__ != module:
            continue
        if code.co_qualname == name or code.co_qualname.startswith(f"{name}."):
            return _SURE
        own_code = getattr(function, "__code__", None)
        if own_code and _names_class(own_code, name, code.co_qualname):
            sureness = 1
    return sureness


def _names_class(own_code: CodeType, function: str, method: str) -> bool:
    """Whether a function names the class of this method, which stands beside the function or in the module."""
    beside = method.removeprefix(function.rpartition(".")[0] + ".")
    for place in (beside, method):
        owner, _, rest = place.partition(".")
        if rest and not rest.startswith("<locals>") and owner in own_code.co_names + own_code.co_freevars:
            return True
    return False


def _list_functions(part: object) -> Iterator[Any]:
    """The functions and classes of a part: itself, or what the fields of its declaration hold."""
    while isinstance(part, partial):
        part = part.func
    if isfunction(part) or isinstance(part, type):
        yield unwrap(part)
    elif is_dataclass(part):
        for field in fields(part):
            value = getattr(part, field.name)
            if callable(value):
                yield from _list_functions(value)
    else:
        yield type(part)


def list_names(kind: str) -> list[str]:
    """The names of all parts of that kind, without importing them."""
    return list(dict.fromkeys(plugin.name for plugin in list_plugins(kind)))


def list_plugins(kind: str) -> list[Plugin]:
    """All parts of that kind, without importing them: registered ones first, then by name and package."""
    found = [
        Plugin(kind, point.name, point.dist.name if point.dist else "", partial(_load, kind, point))
        for point in _find_entry_points(f"tomewise.{kind}", tuple(map(_stamp, sys.path)))
    ]
    own = [
        Plugin(kind, name, "", lambda part=part: part)  # type: ignore[misc]
        for (of, name), part in _registered.items()
        if of == kind
    ]
    names = {plugin.name for plugin in own}
    return own + sorted((each for each in found if each.name not in names), key=lambda each: (each.name, each.package))


@lru_cache(maxsize=4 * len(KINDS))
def _find_entry_points(group: str, _places: tuple[tuple[str, int], ...]) -> EntryPoints:
    """The entry points of a group, kept until a place changes: reading them from all packages takes 25 ms."""
    return entry_points(group=group)


def _stamp(place: str) -> tuple[str, int]:
    """A place where packages are, and when one was last installed there or removed."""
    with suppress(OSError, ValueError):
        return place, os.stat(place or ".").st_mtime_ns
    return place, 0


def _load(kind: str, point: EntryPoint) -> object:
    try:
        part = point.load()
    except Exception as error:  # a plugin may raise anything when it is imported
        package = point.dist.name if point.dist else point.value
        raise MissingDependency(
            f"the plugin {point.name!r} of {package} (tomewise.{kind}) cannot be imported ({describe_fault(error)}): "
            f"update or uninstall {package}"
        ) from error
    _imported[kind, point.name] = part, point.dist.name if point.dist else ""
    return part
