"""All systems by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tomewise.errors import UnknownName, UsageError
from tomewise.names import suggest
from tomewise.systems import comorag, flat, graph, tree
from tomewise.systems.kit import Kit, Recipe, System

_DEVIATIONS = "Deviations:"  # opens the paragraph of a recipe's docstring that `tome systems` shows
RECIPES: Mapping[str, Recipe] = {**flat.RECIPES, **graph.RECIPES, **tree.RECIPES, **comorag.RECIPES}
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {**graph.ABLATIONS, **tree.ABLATIONS, **comorag.ABLATIONS}
DEFAULT = "hybrid"


def find_recipe(name: str) -> Recipe:
    """The recipe of a system. Raises UnknownName offering the nearest."""
    if name not in RECIPES:
        raise UnknownName(f"there is no system {name!r}: {suggest(name, RECIPES)}known are {', '.join(RECIPES)}")
    return RECIPES[name]


def describe(name: str) -> str:
    """The first line of a recipe's docstring."""
    return (inspect.getdoc(find_recipe(name)) or "").partition("\n")[0]


def deviations(name: str) -> str:
    """Where a recipe deviates from its paper, as its docstring says; empty where it does not say."""
    paragraphs = (inspect.getdoc(find_recipe(name)) or "").split("\n\n")
    said = next((text for text in paragraphs if text.startswith(_DEVIATIONS)), "")
    return " ".join(said.removeprefix(_DEVIATIONS).split())


def assemble(name: str, kit: Kit, **options: Any) -> System:
    """A system by name. Raises UnknownName and UsageError, see `check_settings`."""
    check_settings(name, options)
    return find_recipe(name)(kit, **options)


def check_settings(name: str, options: Mapping[str, Any]) -> None:
    """Raises UnknownName for a setting that the recipe does not have, UsageError for a value that it cannot take."""
    recipe = find_recipe(name)
    kinds = get_type_hints(recipe)
    known = [option for option in inspect.signature(recipe).parameters if option != "kit"]
    for option, value in options.items():
        if option not in known:
            raise UnknownName(f"{name} has no setting {option!r}: known are {', '.join(known) or 'none'}")
        if get_origin(kinds[option]) is Literal:
            fits, wanted = value in get_args(kinds[option]), " or ".join(map(repr, get_args(kinds[option])))
        else:
            whole = kinds[option] is int
            fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool) and value >= 0
            wanted = "a whole number from 0 up" if whole else "a number from 0 up"
        if not fits:
            raise UsageError(f"{name}: {option} must be {wanted}, not {value!r}")
