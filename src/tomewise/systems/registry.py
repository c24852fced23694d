"""All systems, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.plugins import find_plugin, list_names, refuse_hidden
from tomewise.settings import DEFAULTS
from tomewise.systems import auto, cam, comorag, cosmir, from_passages, graph_walk, hgmem, raptor, readers
from tomewise.systems.compose import Loop, compose
from tomewise.systems.kit import Kit, Recipe, System, once, rewrite
from tomewise.systems.recipe_settings import name_recipe, validate_settings

_DEVIATIONS = "Deviations:"  # first word of the paragraph of a recipe's docstring that `tome systems` shows
_OWN: Mapping[str, Recipe] = {
    **from_passages.RECIPES,
    **graph_walk.RECIPES,
    **raptor.RECIPES,
    **cam.RECIPES,
    **comorag.RECIPES,
    **hgmem.RECIPES,
    **readers.RECIPES,
    **cosmir.RECIPES,
    **auto.RECIPES,
}
# Each goes around the recall of any system.
LOOPS: Mapping[str, Loop] = {
    "once": once,
    "rewrite": rewrite,
    "probe": comorag.probe,
    "evolve": hgmem.evolve,
    "relay": cosmir.relay,
    "interleave": readers.interleave,
    "stepwise": readers.stepwise,
}
# The pairs that papers and our tables compare.
_NAMED = (
    *("raptor+probe", "hipporag2+probe", "hybrid+probe"),
    *("associative+rewrite", "raptor+interleave", "hipporag2+interleave", "hybrid+interleave", "hybrid+stepwise"),
)
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    **from_passages.ABLATIONS,
    **graph_walk.ABLATIONS,
    **raptor.ABLATIONS,
    **cam.ABLATIONS,
    **comorag.ABLATIONS,
    **hgmem.ABLATIONS,
    **readers.ABLATIONS,
    **cosmir.ABLATIONS,
}
DEFAULT = DEFAULTS.system


@cache  # the types of a recipe's settings are read once
def _compose(name: str, recall: Callable[..., object], loop: Loop) -> Recipe:
    return compose(name, recall, loop, comorag.with_query_cache)


def find_loop(name: str) -> Loop:
    """The loop of that name, ours or a plugin's. Raises UnknownName."""
    if name in LOOPS:
        refuse_hidden("loops", name)
    loop = LOOPS.get(name) or find_plugin("loops", name)
    if loop is None:
        names = list_loops()
        raise UnknownName(f"{name!r} is not a loop: {suggest(name, names)}known are {', '.join(names)}")
    if not callable(loop):
        raise UsageError(f"the plugin {name!r} is not a loop: it is {loop!r}, not a function of a Kit and a Recall")
    return loop


def _compose_own(name: str) -> Recipe:
    recall, _, loop = name.partition("+")
    return _compose(name, _OWN[recall], LOOPS[loop])


RECIPES: Mapping[str, Recipe] = {**_OWN, **{name: _compose_own(name) for name in _NAMED}}


def find_recipe(name: str) -> Recipe:
    """The recipe of a system. Raises UnknownName, which suggests the nearest name."""
    if name in RECIPES:
        refuse_hidden("systems", name)
    if recipe := RECIPES.get(name) or find_outside_recipe(name):
        return recipe
    recall, plus, loop = name.partition("+")
    if plus:
        around = find_loop(loop)
        if recall in comorag.RECIPES:
            raise UsageError(f"{name!r}: {recall} searches several layers at once, so no other loop can use its recall")
        return _compose(name, _find_recall(recall), around)
    names = list_systems()
    if name in list_names("recalls"):
        raise UsageError(f"{name!r} is a recall and needs a loop: write '{name}+once', or another loop")
    if name in list_loops():
        raise UsageError(f"{name!r} is a loop and needs a recall: write '{DEFAULT}+{name}', or another recall")
    raise UnknownName(f"{name!r} is not a system: {suggest(name, names)}known are {', '.join(names)}")


def list_loops() -> list[str]:
    """The names of all loops: Tomewise's own, then those of plugins."""
    return list(dict.fromkeys([*LOOPS, *list_names("loops")]))


def find_outside_recipe(name: str) -> Recipe | None:
    """The recipe that a plugin brings under this name. Raises MissingDependency if it cannot be imported."""
    recipe = None if name in RECIPES else find_plugin("systems", name)
    if recipe is not None and not callable(recipe):
        raise UsageError(f"the plugin {name!r} is not a recipe: it is {recipe!r}, not a function of a Kit")
    return recipe


def find_outside_parts(name: str) -> list[Callable[..., object]]:
    """The functions of plugins that make the system of that name: its recipe, or its recall and its loop."""
    recall, _, loop = name.partition("+")
    parts = [None if recall in RECIPES else find_outside_recipe(recall) or find_plugin("recalls", recall)]
    parts += [None if loop in LOOPS else find_plugin("loops", loop)]
    return [part for part in parts if callable(part)]


def _find_recall(name: str) -> Callable[..., object]:
    """What stands before `+`: the recipe of a system, or a recall that a plugin brings."""
    is_system = name in RECIPES or name in list_names("systems")
    recall = None if is_system else find_plugin("recalls", name)
    if recall is None:
        return find_recipe(name)
    if not callable(recall):
        raise UsageError(f"the plugin {name!r} is not a recall: it is {recall!r}, not a function of a Kit")
    return recall


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
