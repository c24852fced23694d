"""Read and write the text that names a system, an ablation, or other settings: `comorag:without episodic`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from shlex import quote, split
from typing import Any, TypeAlias

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.systems import registry
from tomewise.systems.kit import Kit, Recipe, System
from tomewise.systems.recipe_settings import name_recipe, validate_settings

_SYSTEM_AND_ABLATION = re.compile(r"(?P<system>[^\s:=]+)(?::(?P<ablation>[^=]*))?")
_SETTING = re.compile(r"\w+=.+", re.DOTALL)
ALL = "all"


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
        return [self.recipe] if self.recipe else registry.find_outside_parts(self.system)

    @property
    def label(self) -> str:
        """The one name of this system with these settings, however it was written."""
        if self.recipe is not None:
            return _join_settings(self.system, self.settings)
        return name_variant(self.system, self.settings)

    def wire(self, kit: Kit) -> System:
        """The system. The settings were checked when the variant was made."""
        recipe = self.recipe or registry.find_recipe(self.system)
        system = recipe(kit, **self.settings)
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
    recipe = choice.recipe or registry.find_recipe(choice.system)
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
    return registry.ABLATIONS.get(system) or registry.ABLATIONS.get(system.partition("+")[0], {})


def _parse_text(text: str) -> list[Variant]:
    if text == ALL:
        return [Variant(name, name) for name in registry.RECIPES]
    try:
        words = split(text)
    except ValueError:
        words = []  # the text has an unclosed quotation mark
    setting_start = next((place for place, word in enumerate(words) if _SETTING.fullmatch(word)), len(words))
    match = _SYSTEM_AND_ABLATION.fullmatch(" ".join(words[:setting_start]))
    if match is None or not all(map(_SETTING.fullmatch, words[setting_start:])):
        raise UsageError(f"{text!r} names no system: write 'SYSTEM', 'SYSTEM:ABLATION' or 'SYSTEM key=value'")
    system, ablation = match["system"], (match["ablation"] or "").strip()
    pairs = [_parse_setting(word) for word in words[setting_start:]]
    if twice := [name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place])]:
        raise UsageError(f"{text!r} gives the setting {twice[0]!r} twice: leave one out")
    settings = registry.check_settings(system, dict(pairs))
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


def _parse_setting(pair: str) -> tuple[str, Any]:
    key, _, value = pair.partition("=")
    return key, _read_value(value)


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
