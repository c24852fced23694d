"""The system that a request names, within bounds: a client must not make one question run for days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tomewise.errors import UsageError
from tomewise.systems.recipe_settings import DeclaredSetting, is_ours, list_numbers, list_settings, read_declared
from tomewise.systems.registry import Variant, choose_variant

_LONGEST = 2000  # characters of a value
# What follows where a recipe from outside declares no bound: its author may set one.
_DECLARE = '; its recipe may declare more, as Annotated[int, Multiplies("calls of a question", most=N)]'


def choose_bounded(system: str | None, settings: Mapping[str, Any], default: str = "") -> Variant:
    """The variant that a request names. Raises UnknownName, and UsageError for a setting that is out of bounds.

    A request may leave the system out where there is a `default`, which the operator chose: its own settings have no
    bounds.
    """
    for name, value in settings.items():  # all, before the message of another check repeats a long value
        _check_length(name, value)
    variant = choose_variant(system or default, settings)
    _check_variant(variant, settings if system in (None, "", default) else variant.settings)
    return variant


def _check_variant(variant: Variant, names: Iterable[str]) -> None:
    """Check the settings of these names."""
    declaration = variant.declaration
    declared = read_declared(declaration.recipe, declaration.ablations)
    for name in names:
        _check_setting(declared[name], variant.settings[name], _takes_mark(variant, name))


def _takes_mark(variant: Variant, name: str) -> bool:
    """Whether a part from outside has this setting: its author may declare a bound."""
    recipes = [part for part in variant.outside_parts if not is_ours(part)]
    return any(name in list_settings(recipe) for recipe in recipes)


def _check_length(name: str, value: Any) -> None:
    if len(str(value)) > _LONGEST:
        raise UsageError(f"settings.{name[:100]} is too long: this server allows {_LONGEST:,} characters")


def _check_setting(setting: DeclaredSetting, value: Any, takes_mark: bool) -> None:
    _check_length(setting.name, value)
    for number in list_numbers(value):
        if not abs(number) <= setting.most:
            raise UsageError(
                f"settings.{setting.name} is {number}: this server allows {setting.most:,.10g} at most"
                + (_DECLARE if takes_mark and not setting.declares_most else "")
            )
