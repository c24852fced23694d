"""All systems by name, and the texts that name one, its ablations, or other settings: `comorag:without episodic`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from shlex import quote, split
from typing import Any, TypeAlias

from tomewise.errors import MissingDependency, UnknownName, UsageError, suggest
from tomewise.plugins import KINDS, find_plugin, list_names, name_faults, refuse_hidden
from tomewise.settings import Settings
from tomewise.systems.compose import compose
from tomewise.systems.declaration import OURS, SystemDeclaration, read_declaration
from tomewise.systems.kit import Kit, Recipe, System, once, rewrite
from tomewise.systems.recipe_settings import name_recipe, validate_settings

_SYSTEM_AND_ABLATION = re.compile(r"(?P<system>[^\s:=]+)(?::(?P<ablation>[^=]*))?")
_SETTING = re.compile(r"\w+=.+", re.DOTALL)
ALL = "all"
DEFAULT = Settings.system


class Declared(Mapping[str, SystemDeclaration]):
    """Declarations by name. Each is read when it is first looked at: the file of a family imports all that it wires."""

    def __init__(self, readers: Mapping[str, Callable[[], SystemDeclaration]]) -> None:
        self._readers = readers
        self._declarations: dict[str, SystemDeclaration] = {}

    def __getitem__(self, name: str) -> SystemDeclaration:
        if name not in self._declarations:
            self._declarations[name] = self._readers[name]()
        return self._declarations[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


def _list_readers(kind: str, families: Mapping[str, Sequence[str]]) -> dict[str, Callable[[], SystemDeclaration]]:
    """A reader for each name that the files of families declare."""

    def read(file: str, name: str) -> Any:
        return getattr(import_module(f"tomewise.systems.{file}"), kind)[name]

    return {name: partial(read, file, name) for file, names in families.items() for name in names}


def _read_auto() -> SystemDeclaration:
    from tomewise.systems.auto import declare_auto

    return declare_auto(_wire_way, list_systems)


# Each goes around the recall of any system.
LOOPS = Declared(
    {
        "once": lambda: SystemDeclaration(
            recipe=once,
            kind="one search",
            summary="One answer from what was retrieved once.",
            paper=OURS,
        ),
        "rewrite": lambda: SystemDeclaration(
            recipe=rewrite,
            kind="two searches",
            summary=(
                "A second search with a question that the model writes from the first `shown` pieces found; then the "
                "answer."
            ),
            paper=OURS,
        ),
        **_list_readers(
            "LOOPS",
            {
                "comorag": ("probe",),
                "hgmem": ("evolve",),
                "cosmir": ("relay",),
                "readers": ("interleave", "stepwise"),
            },
        ),
    }
)
SYSTEMS = Declared(
    {
        **_list_readers(
            "SYSTEMS",
            {
                "from_passages": ("naive", "hybrid", "full_context"),
                "graph_walk": ("hipporag2", "cogitorag", "associative"),
                "raptor": ("raptor",),
                "cam": ("cam",),
                "memtree": ("memtree",),
                "lightrag": ("lightrag",),
                "comorag": ("comorag",),
                "hgmem": ("hgmem",),
                "graphrag": ("graphrag",),
                "readers": ("read_agent",),
                "cosmir": ("cosmir", "chain_of_agents"),
            },
        ),
        "auto": _read_auto,
    }
)


@dataclass(frozen=True, slots=True)
class Variant:
    """A system with settings for its recipe. `name` is the text that names both, as `parse_variants` reads it.

    `recipe` is a recipe that was passed as a function; without it `system` is the name of one.
    """

    name: str
    system: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    recipe: Recipe | None = None

    @property
    def outside_parts(self) -> list[Callable[..., object]]:
        """The functions that are not Tomewise's own: a recipe that was passed, or those that plugins bring."""
        return [self.recipe] if self.recipe else find_outside_parts(self.system)

    @property
    def label(self) -> str:
        """The one name of this system with these settings, however it was written."""
        if self.recipe is not None:
            return _join_settings(self.system, self.settings)
        return name_variant(self.system, self.settings)

    @property
    def declaration(self) -> SystemDeclaration:
        """What the system declares; a recipe that was passed has its docstring alone. Raises UnknownName."""
        return read_declaration(self.recipe) if self.recipe else find_declaration(self.system)

    def wire(self, kit: Kit) -> System:
        """The system. The settings were checked when the variant was made."""
        with name_faults():
            system = self.declaration.recipe(kit, **self.settings)
        if not isinstance(system, System):
            raise UsageError(f"the recipe {self.system} returned {system!r}: a recipe returns a System")
        return system


Choice: TypeAlias = str | Recipe | Variant  # what names a system: a text, a recipe, or a variant made earlier


def parse_variants(texts: Iterable[str]) -> tuple[Variant, ...]:
    """The variants that these texts name, each once, in the order of the texts.

    A text is `SYSTEM`, `SYSTEM:ABLATION` or `SYSTEM key=value ...`. `all` names every system, and `SYSTEM:all` every
    ablation of a system. A value that is not valid JSON is a string. Raises UnknownName for an unknown name, and
    UsageError for a text of another form or a value that the recipe does not take.
    """
    variants = [variant for text in texts for variant in _parse_text(text.strip())]
    return tuple({variant.name: variant for variant in variants}.values())


def parse_variant(text: str) -> Variant:
    """The variant that a text names, see `parse_variants`. Raises UsageError if the text does not name exactly one."""
    variants = parse_variants([text])
    if len(variants) != 1:
        raise UsageError(f"{text!r} names {len(variants)} systems: name one")
    return variants[0]


def choose_variants(choices: Iterable[Choice]) -> tuple[Variant, ...]:
    """The variants of texts, recipes and variants, each name once. Raises UnknownName, UsageError."""
    variants: dict[str, Variant] = {}
    for choice in choices:
        for variant in parse_variants([choice]) if isinstance(choice, str) else [choose_variant(choice)]:
            known = variants.setdefault(variant.name, variant)
            if known != variant:
                raise UsageError(f"two different systems are named {variant.name!r}: rename one of them")
    return tuple(variants.values())


def choose_variant(choice: Choice, settings: Mapping[str, Any] | None = None) -> Variant:
    """The variant of a text, a recipe or a variant, with further settings; these replace equal ones in the text.

    A variant without further settings is returned as it is: its settings were checked. Raises UnknownName, UsageError.
    """
    if settings is not None and not isinstance(settings, Mapping):
        raise UsageError(f"settings are a mapping such as {{'limit': 5}}, not {settings!r}")
    if isinstance(choice, System):
        raise UsageError("a System is wired already and cannot be chosen here: pass its name or its recipe")
    if isinstance(choice, str):
        choice = parse_variant(choice)
    elif not isinstance(choice, Variant):
        if not callable(choice):
            raise UsageError(f"{choice!r} is not a system to choose: pass a name, or a function of a Kit")
        name = name_recipe(choice)
        choice = Variant(name, name, validate_settings(name, choice, {} if settings is None else settings), choice)
        return replace(choice, name=choice.label)
    if not settings:
        return choice
    recipe = choice.recipe or find_recipe(choice.system)
    changed = replace(choice, settings={**choice.settings, **validate_settings(choice.system, recipe, settings)})
    return replace(changed, name=changed.label)


def name_variant(system: str, settings: Mapping[str, Any]) -> str:
    """The text that names this system with these settings: the inverse of `parse_variant`.

    If the settings are those of an ablation, the text is `SYSTEM:ABLATION`.
    """
    for ablation, changes in list_ablations(system).items():
        if dict(changes) == dict(settings):
            return f"{system}:{ablation}"
    return _join_settings(system, settings)


def list_ablations(system: str) -> Mapping[str, Mapping[str, Any]]:
    """The name of each ablation of a system, and the settings that it changes."""
    try:
        return find_declaration(system).ablations
    except (UsageError, MissingDependency):  # a name that is gone, as a trace may hold it, or a broken plugin
        return {}


def _parse_text(text: str) -> list[Variant]:
    if text == ALL:
        return [Variant(name, name) for name in SYSTEMS]
    try:
        words = split(text)
    except ValueError:
        words = []  # the text has an unclosed quotation mark
    setting_start = next((place for place, word in enumerate(words) if _SETTING.fullmatch(word)), len(words))
    match = _SYSTEM_AND_ABLATION.fullmatch(" ".join(words[:setting_start]))
    if match is None or not all(map(_SETTING.fullmatch, words[setting_start:])):
        raise UsageError(f"{text!r} names no system: write 'SYSTEM', 'SYSTEM:ABLATION' or 'SYSTEM key=value'")
    system, ablation = match["system"], (match["ablation"] or "").strip()
    pairs = [(key, _read_value(value)) for key, _, value in (word.partition("=") for word in words[setting_start:])]
    if twice := [name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place])]:
        raise UsageError(f"{text!r} gives the setting {twice[0]!r} twice: leave one out")
    settings = validate_settings(system, find_recipe(system), dict(pairs))
    ablations = list_ablations(system)
    if ablation == ALL:
        return [_make_variant(system, name, ablations[name], settings) for name in ablations]
    if ablation and ablation not in ablations:
        names = ", ".join(ablations) or "none"
        raise UnknownName(f"{system} has no ablation {ablation!r}: {suggest(ablation, ablations)}it has {names}")
    return [_make_variant(system, ablation, ablations.get(ablation, {}), settings)]


def _make_variant(system: str, ablation: str, changes: Mapping[str, Any], settings: Mapping[str, Any]) -> Variant:
    name = f"{system}:{ablation}" if ablation else system
    return Variant(_join_settings(name, settings), system, {**changes, **settings})


def _join_settings(name: str, settings: Mapping[str, Any]) -> str:
    return " ".join([name, *(quote(f"{key}={_write_value(value)}") for key, value in settings.items())])


def _read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _write_value(value: Any) -> str:
    """The text that `_read_value` reads as this value. An object without a JSON form is named for readers alone."""
    if isinstance(value, str) and _read_value(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False, default=repr)


def find_recipe(name: str) -> Recipe:
    """The recipe of a system, see `find_declaration`."""
    return find_declaration(name).recipe


def find_declaration(name: str) -> SystemDeclaration:
    """What a system declares. Raises UnknownName, which suggests the nearest name."""
    if name in SYSTEMS:
        refuse_hidden("systems", name)
        return SYSTEMS[name]
    if declaration := _find_outside("systems", name):
        return declaration
    recall, plus, loop = name.partition("+")
    if plus:
        around = _find_loop(loop)
        inner = _find_recall(recall)
        if inner.no_recall:
            raise UsageError(f"{name!r}: {recall} {inner.no_recall}, so no other loop can use its recall")
        return _compose(name, inner, around)
    names = list_systems()
    if name in list_names("recalls"):
        raise UsageError(f"{name!r} is a recall and needs a loop: write '{name}+once', or another loop")
    if name in list_loops():
        raise UsageError(f"{name!r} is a loop and needs a recall: write '{DEFAULT}+{name}', or another recall")
    raise UnknownName(f"{name!r} is not a system: {suggest(name, names)}known are {', '.join(names)}")


def list_loops() -> list[str]:
    """The names of all loops: Tomewise's own, then those of plugins."""
    return list(dict.fromkeys([*LOOPS, *list_names("loops")]))


def find_outside_parts(name: str) -> list[Callable[..., object]]:
    """The functions of plugins that make the system of that name: its recipe, or its recall and its loop."""
    recall, _, loop = name.partition("+")
    parts = [] if recall in SYSTEMS else [_find_outside("systems", recall) or _find_outside("recalls", recall)]
    parts += [] if loop in LOOPS or not loop else [_find_outside("loops", loop)]
    return [part.recipe for part in parts if part]


def _find_outside(kind: str, name: str) -> SystemDeclaration | None:
    """What a plugin brings under this name. Raises MissingDependency if it cannot be imported, and UsageError."""
    part: Any = find_plugin(kind, name)
    if part is None:
        return None
    if not isinstance(part, SystemDeclaration) and not callable(part):
        raise UsageError(f"the plugin {name!r} is not {KINDS[kind]}: it is {part!r}")
    return read_declaration(part)


def _find_recall(name: str) -> SystemDeclaration:
    """What stands before `+`: a system, or a recall that a plugin brings."""
    recall = None if name in list_systems() else _find_outside("recalls", name)
    return recall or find_declaration(name)


def list_systems() -> list[str]:
    """The names of all systems: Tomewise's own, then those of plugins."""
    return list(dict.fromkeys([*SYSTEMS, *list_names("systems")]))


def assemble(system: str | Recipe, kit: Kit, /, **settings: Any) -> System:
    """The system of a name or a recipe, with these settings. Raises UnknownName and UsageError."""
    name, recipe = (system, find_recipe(system)) if isinstance(system, str) else (name_recipe(system), system)
    return recipe(kit, **validate_settings(name, recipe, settings))


def _find_loop(name: str) -> SystemDeclaration:
    """The loop of that name, ours or a plugin's. Raises UnknownName."""
    if name in LOOPS:
        refuse_hidden("loops", name)
        return LOOPS[name]
    if loop := _find_outside("loops", name):
        return loop
    names = list_loops()
    raise UnknownName(f"{name!r} is not a loop: {suggest(name, names)}known are {', '.join(names)}")


_compose = cache(compose)  # the types of a recipe's settings are read once


def _wire_way(name: str, kit: Kit) -> tuple[str, System]:
    """The label and the system of a name that `auto` may choose. Raises UnknownName and UsageError."""
    variant = parse_variant(name)
    if variant.system.partition("+")[0] == "auto":
        raise UsageError(f"auto cannot choose {name!r}: name systems other than auto")
    return variant.label, variant.wire(kit)
