"""All systems, by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from tomewise.errors import UnknownName, UsageError
from tomewise.names import suggest
from tomewise.plugins import find_plugin, list_names
from tomewise.systems import comorag, flat, graph, hgmem, tree
from tomewise.systems.compose import Loop, compose
from tomewise.systems.kit import Kit, Recipe, System, once
from tomewise.systems.recipe_settings import name_recipe, validate_settings

_DEVIATIONS = "Deviations:"  # first word of the paragraph of a recipe's docstring that `tome systems` shows
_OWN: Mapping[str, Recipe] = {**flat.RECIPES, **graph.RECIPES, **tree.RECIPES, **comorag.RECIPES, **hgmem.RECIPES}
LOOPS: Mapping[str, Loop] = {
    "once": once,
    "probe": comorag.probe,
    "evolve": hgmem.evolve,
}  # each goes around the recall of any system
_NAMED = ("raptor+probe", "hipporag2+probe", "hybrid+probe")  # the pairs that papers and our tables compare
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    **graph.ABLATIONS,
    **tree.ABLATIONS,
    **comorag.ABLATIONS,
    **hgmem.ABLATIONS,
}
DEFAULT = "hybrid"


@cache  # the types of a recipe's settings are read once
def _compose(name: str, recall: Recipe) -> Recipe:
    return compose(name, recall, LOOPS[name.partition("+")[2]], comorag.with_query_cache)


RECIPES: Mapping[str, Recipe] = {**_OWN, **{name: _compose(name, _OWN[name.partition("+")[0]]) for name in _NAMED}}


def find_recipe(name: str) -> Recipe:
    """The recipe of a system. Raises UnknownName, which suggests the nearest name."""
    if recipe := RECIPES.get(name) or find_outside_recipe(name):
        return recipe
    recall, plus, loop = name.partition("+")
    if plus:
        if loop not in LOOPS:
            raise UnknownName(f"{name!r}: {loop!r} is not a loop: {suggest(loop, LOOPS)}known are {', '.join(LOOPS)}")
        if recall in comorag.RECIPES:
            raise UsageError(f"{name!r}: {recall} searches several layers at once, so no other loop can use its recall")
        return _compose(name, find_recipe(recall))
    names = list_systems()
    raise UnknownName(f"{name!r} is not a system: {suggest(name, names)}known are {', '.join(names)}")


def find_outside_recipe(name: str) -> Recipe | None:
    """The recipe that a plugin brings under this name. Raises MissingDependency if it cannot be imported."""
    recipe = None if name in RECIPES else find_plugin("systems", name)
    if recipe is not None and not callable(recipe):
        raise UsageError(f"the plugin {name!r} is not a recipe: it is {recipe!r}, not a function of a Kit")
    return recipe


def list_systems() -> list[str]:
    """The names of all systems: Tomewise's own, then those of plugins."""
    return list(dict.fromkeys([*RECIPES, *list_names("systems")]))


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
