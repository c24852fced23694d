"""All systems, by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from tomewise.errors import UnknownName
from tomewise.names import suggest
from tomewise.systems import comorag, flat, graph, tree
from tomewise.systems.kit import Kit, Recipe, System
from tomewise.systems.recipe_settings import name_recipe, validate_settings

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


def assemble(system: str | Recipe, kit: Kit, /, **settings: Any) -> System:
    """The system of a name or a recipe, with these settings. Raises UnknownName and UsageError."""
    if isinstance(system, str):
        return find_recipe(system)(kit, **check_settings(system, settings))
    return system(kit, **validate_settings(name_recipe(system), system, settings))


def check_settings(system: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, as the recipe's signature types them.

    Raises UnknownName for a setting that the recipe does not have, UsageError for a value that it cannot take.
    """
    return validate_settings(system, find_recipe(system), settings)
