"""All systems, by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tomewise.errors import UnknownName, UsageError
from tomewise.names import suggest
from tomewise.systems import comorag, flat, graph, tree
from tomewise.systems.kit import Kit, Recipe, System

_DEVIATIONS = "Deviations:"  # first word of the paragraph of a recipe's docstring that `tome systems` shows
RECIPES: Mapping[str, Recipe] = {**flat.RECIPES, **graph.RECIPES, **tree.RECIPES, **comorag.RECIPES}
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {**graph.ABLATIONS, **tree.ABLATIONS, **comorag.ABLATIONS}
DEFAULT = "hybrid"


def find_recipe(name: str) -> Recipe:
    """The recipe of a system. Raises UnknownName, which suggests the nearest name."""
    if name not in RECIPES:
        raise UnknownName(f"{name!r} is not a system: {suggest(name, RECIPES)}known are {', '.join(RECIPES)}")
    return RECIPES[name]


def describe(name: str) -> str:
    """The first line of a recipe's docstring."""
    return (inspect.getdoc(find_recipe(name)) or "").partition("\n")[0]


def describe_deviations(name: str) -> str:
    """The deviations of a recipe from its paper, from its docstring; empty if the docstring names none."""
    paragraphs = (inspect.getdoc(find_recipe(name)) or "").split("\n\n")
    paragraph = next((text for text in paragraphs if text.startswith(_DEVIATIONS)), "")
    return " ".join(paragraph.removeprefix(_DEVIATIONS).split())


def assemble(name: str, kit: Kit, **settings: Any) -> System:
    """The system with this name and these settings. Raises UnknownName and UsageError, see `check_settings`."""
    check_settings(name, settings)
    return find_recipe(name)(kit, **settings)


def check_settings(name: str, settings: Mapping[str, Any]) -> None:
    """Raise UnknownName for a setting that the recipe does not have, UsageError for a value that it cannot take."""
    recipe = find_recipe(name)
    types = get_type_hints(recipe)
    known = [parameter for parameter in inspect.signature(recipe).parameters if parameter != "kit"]
    for setting, value in settings.items():
        if setting not in known:
            raise UnknownName(f"{name} has no setting {setting!r}: known are {', '.join(known) or 'none'}")
        if get_origin(types[setting]) is Literal:
            fits, wanted = value in get_args(types[setting]), " or ".join(map(repr, get_args(types[setting])))
        else:
            whole = types[setting] is int
            fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool) and value >= 0
            wanted = "a whole number from 0 up" if whole else "a number from 0 up"
        if not fits:
            raise UsageError(f"{name}: {setting} must be {wanted}, not {value!r}")
