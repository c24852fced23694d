"""All systems by name, and the texts that name one, its ablations, or other settings: `comorag:without episodic`."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from shlex import quote, split
from types import MappingProxyType
from typing import Any, TypeAlias

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.plugins import KINDS, find_plugin, list_names, name_faults, refuse_hidden
from tomewise.settings import Settings
from tomewise.systems.kit import OURS, Kit, Recipe, System, SystemDeclaration, find_recall, read_declaration
from tomewise.systems.recipe_settings import list_settings, name_recipe, validate_settings

_SYSTEM_AND_ABLATION = re.compile(r"(?P<system>[^\s:=]+)(?::(?P<ablation>[^=]*))?")
_SETTING = re.compile(r"\w+=.+", re.DOTALL)
ALL = "all"
DEFAULT = Settings.system
_PUBLISHED = "as published"  # an ablation where the system is not that by itself
# Recipes have these for their own loop. In a composed system the loop's values go to both.
_OF_ANSWERS = frozenset(("limit", "context"))


class Declared(Mapping[str, SystemDeclaration]):
    """Our own declarations of a kind by name, each in the table of its file, which is imported at its first use.

    `find` and `list_names` look at the parts of plugins too.
    """

    def __init__(self, kind: str, files: Mapping[str, str]) -> None:
        self._kind = kind
        self._files = files

    def __getitem__(self, name: str) -> SystemDeclaration:
        file: Any = import_module(f"tomewise.systems.{self._files[name]}")
        return getattr(file, self._kind.upper())[name]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def find(self, name: str) -> SystemDeclaration | None:
        """Ours, else what a plugin brings. Raises MissingDependency if it cannot be imported, and UsageError."""
        if name in self._files:
            refuse_hidden(self._kind, name)
            return self[name]
        part: Any = find_plugin(self._kind, name)
        if part is None:
            return None
        if not isinstance(part, SystemDeclaration) and not callable(part):
            raise UsageError(f"the plugin {name!r} is not {KINDS[self._kind]}: it is {part!r}")
        return read_declaration(part)

    def list_names(self) -> list[str]:
        """All names: our own, then those of plugins."""
        return list(dict.fromkeys([*self._files, *list_names(self._kind)]))


RECALLS = Declared("recalls", {})
# Each goes around the recall of any system.
LOOPS = Declared(
    "loops",
    {
        "once": "from_passages",
        "probe": "comorag",
        "evolve": "hgmem",
        "interleave": "readers",
        "stepwise": "readers",
    },
)
# Ours first, by the effort that they are (`efforts`).
SYSTEMS = Declared(
    "systems",
    {
        "auto": "auto",
        "hybrid": "from_passages",
        "associative": "graph_walk",
        "investigate": "investigate",
        "whole": "auto",
        "read_through": "cosmir",
        "explore": "agents",
        "naive": "from_passages",
        "bm25": "from_passages",
        "grep_agent": "agents",
        "full_context": "from_passages",
        "hipporag2": "graph_walk",
        "cogitorag": "graph_walk",
        "raptor": "trees",
        "cam": "cam",
        "memtree": "trees",
        "lightrag": "relations",
        "comorag": "comorag",
        "hgmem": "hgmem",
        "graphrag": "relations",
        "read_agent": "readers",
        "cosmir": "cosmir",
        "chain_of_agents": "cosmir",
    },
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
        """The functions that are not Tomewise's own: a recipe that was passed, or those that plugins bring.

        These are a recipe, or a recall and a loop.
        """
        if self.recipe:
            return [self.recipe]
        recall, _, loop = self.system.partition("+")
        parts = [] if recall in SYSTEMS else [SYSTEMS.find(recall) or RECALLS.find(recall)]
        parts += [] if loop in LOOPS else [LOOPS.find(loop)]
        return [part.recipe for part in parts if part]

    @property
    def label(self) -> str:
        """The one name of this system with these settings, however it was written; of an ablation, its name."""
        for ablation, changes in self.declaration.ablations.items():  # a recipe that was passed has none
            if dict(changes) == dict(self.settings):
                return f"{self.system}:{ablation}"
        return _join_settings(self.system, self.settings)

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
    variants = _parse_text(text.strip())
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


def choose_variant(choice: Choice, settings: Mapping[str, Any] = MappingProxyType({})) -> Variant:
    """The variant of a text, a recipe or a variant, with further settings; these replace equal ones.

    A recipe may be a `functools.partial` with its settings. Raises UnknownName, UsageError.
    """
    if not isinstance(settings, Mapping):
        raise UsageError(f"settings are a mapping such as {{'limit': 5}}, not {settings!r}")
    if isinstance(choice, System):
        raise UsageError("a System is wired already and cannot be chosen here: pass its name or its recipe")
    if isinstance(choice, str):
        choice = parse_variant(choice)
    if isinstance(choice, Variant):
        if not settings:
            return choice  # its settings were checked
        checked = validate_settings(choice.system, choice.declaration.recipe, settings)
        changed = replace(choice, settings={**choice.settings, **checked})
    else:
        if not callable(choice):
            raise UsageError(f"{choice!r} is not a system to choose: pass a name, or a function of a Kit")
        while isinstance(choice, partial) and not choice.args:
            settings, choice = {**choice.keywords, **settings}, choice.func
        name = name_recipe(choice)
        changed = Variant(name, name, validate_settings(name, choice, settings), choice)
    return replace(changed, name=changed.label)


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
    declaration = find_declaration(system)
    settings, ablations = validate_settings(system, declaration.recipe, dict(pairs)), declaration.ablations
    if ablation and ablation not in (ALL, *ablations):
        names = ", ".join(ablations) or "none"
        is_default = ablation == _PUBLISHED and declaration.paper not in ("", OURS)
        hint = f"{system} is that by default; " if is_default else suggest(ablation, ablations)
        raise UnknownName(f"{system} has no ablation {ablation!r}: {hint}it has {names}")
    return [
        Variant(
            _join_settings(f"{system}:{name}" if name else system, settings),
            system,
            {**(ablations[name] if name else {}), **settings},
        )
        for name in (ablations if ablation == ALL else [ablation])
    ]


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


def find_declaration(name: str) -> SystemDeclaration:
    """What a system declares. Raises UnknownName, which suggests the nearest name."""
    if declaration := SYSTEMS.find(name):
        return declaration
    recall, plus, loop = name.partition("+")
    if plus:
        around = LOOPS.find(loop)
        if around is None:
            names = LOOPS.list_names()
            raise UnknownName(f"{loop!r} is not a loop: {suggest(loop, names)}known are {', '.join(names)}")
        inner = SYSTEMS.find(recall) or RECALLS.find(recall) or find_declaration(recall)
        if inner.no_recall:
            raise UsageError(f"{name!r}: {recall} {inner.no_recall}, so no other loop can use its recall")
        return compose(name, inner, around)
    if name in RECALLS.list_names():
        raise UsageError(f"{name!r} is a recall and needs a loop: write '{name}+once', or another loop")
    if name in LOOPS.list_names():
        raise UsageError(f"{name!r} is a loop and needs a recall: write '{DEFAULT}+{name}', or another recall")
    names = SYSTEMS.list_names()
    raise UnknownName(f"{name!r} is not a system: {suggest(name, names)}known are {', '.join(names)}")


def assemble(system: str | Recipe, kit: Kit, /, **settings: Any) -> System:
    """The system of a name or a recipe, with these settings. Raises UnknownName and UsageError."""
    return choose_variant(system, settings).wire(kit)


# ---------------------------------------------------------------- recall × loop


@cache  # the types of a recipe's settings are read once
def compose(name: str, recall: SystemDeclaration, loop: SystemDeclaration) -> SystemDeclaration:
    """The system of `recall` inside `loop`, as in `associative+probe`, with the settings of both.

    What each says of itself, and its deviations, stand under its name.
    Raises UsageError for a setting that both have, except `limit` and `context`, which are the loop's.
    """
    try:
        inspect.signature(loop.recipe).bind_partial(None, None)
    except (TypeError, ValueError):
        raise UsageError(
            f"{name}: {loop.recipe!r} is not a loop: it must take a Kit and a Recall by position"
        ) from None
    of_recall, of_loop = list_settings(recall.recipe), list_settings(partial(loop.recipe, None))
    both = of_recall.keys() & of_loop.keys() - _OF_ANSWERS
    if both:
        raise UsageError(f"{name}: recall and loop both have the setting {sorted(both)[0]!r}: rename it in one of them")

    def recipe(kit: Kit, **settings: Any) -> System:
        own = {key: value for key, value in settings.items() if key in of_recall}
        found = find_recall(name.partition("+")[0], recall.recipe(kit, **own))
        return loop.recipe(kit, found, **{key: settings[key] for key in settings.keys() & of_loop.keys()})

    settings = {**{key: each for key, each in of_recall.items() if key not in _OF_ANSWERS}, **of_loop}
    kit = inspect.Parameter("kit", inspect.Parameter.POSITIONAL_ONLY)
    recipe.__signature__ = inspect.Signature([kit, *settings.values()])  # type: ignore[attr-defined]
    recipe.__name__ = recipe.__qualname__ = name
    inner, _, around = name.partition("+")
    of_both = f"Recall of `{inner}`: {recall.summary[:1].lower()}{recall.summary[1:]}"

    def join(of_loop: str, of_recall: str) -> str:
        return " ".join(f"`{part}`: {text}" for part, text in ((around, of_loop), (inner, of_recall)) if text)

    return SystemDeclaration(
        recipe=recipe,
        summary=f"{loop.summary} {of_both}",
        paper="; ".join(dict.fromkeys(paper for paper in (recall.paper, loop.paper) if paper)),
        about=join(loop.about, recall.about),
        deviations=join(loop.deviations, recall.deviations),
        kind=loop.kind,
        ablations={
            name: {key: value for key, value in changes.items() if key not in _OF_ANSWERS}
            for name, changes in recall.ablations.items()
        },
    )
