"""Parts from outside: registered by a program, or named by the entry points of installed packages.

The entry-point group of a kind is `tomewise.KIND`, such as `tomewise.systems`. A part is imported when its name is
first used. Names of Tomewise's own parts come first: a plugin cannot replace them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from tomewise.errors import MissingDependency, UnknownName, UsageError, suggest

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "systems": "a recipe: a function of a Kit that returns a System",
        "recalls": "a function of a Kit that returns a Recall, to name before the + of RECALL+LOOP",
        "loops": "a function of a Kit, a Recall and keyword settings that returns a System, to name after the +",
        "layers": "a MappedLayer, or another class or function of a store, a model and an embedder that makes a Layer",
        "roles": "a Role, under its own name",
        "readers": "a function of a path that returns Documents, under the suffix of its files without the dot",
        "layouts": "a function of a folder (a Path) that returns a Dataset",
        "metrics": "a Metric",
        "judges": "a Judge",
        "models": "a function of the text after the colon, an embedder and keyword settings, to a LanguageModel",
        "embedders": "a function of the text after the colon that returns an Embedder",
    }
)
_registered: dict[tuple[str, str], object] = {}


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


def list_names(kind: str) -> list[str]:
    """The names of all parts of that kind, without importing them."""
    return list(dict.fromkeys(plugin.name for plugin in list_plugins(kind)))


def list_plugins(kind: str) -> list[Plugin]:
    """All parts of that kind, without importing them: registered ones first, then by name and package."""
    found = [
        Plugin(kind, point.name, point.dist.name if point.dist else "", _make_loader(kind, point))
        for point in entry_points(group=f"tomewise.{kind}")
    ]
    own = [
        Plugin(kind, name, "", lambda part=part: part)  # type: ignore[misc]
        for (of, name), part in _registered.items()
        if of == kind
    ]
    names = {plugin.name for plugin in own}
    return own + sorted((each for each in found if each.name not in names), key=lambda each: (each.name, each.package))


def _make_loader(kind: str, point: EntryPoint) -> Callable[[], object]:
    def load() -> object:
        try:
            return point.load()
        except Exception as error:  # a plugin may raise anything when it is imported
            package = point.dist.name if point.dist else point.value
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise MissingDependency(
                f"the plugin {point.name!r} of {package} (tomewise.{kind}) cannot be imported ({reason}): "
                f"update or uninstall {package}"
            ) from error

    return load
