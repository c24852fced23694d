"""Recall × loop: `associative+probe` is the recall of one system inside the loop of another."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from tomewise.errors import UsageError
from tomewise.systems.declaration import SystemDeclaration
from tomewise.systems.kit import Kit, Recipe, System, find_recall
from tomewise.systems.recipe_settings import list_settings, read_types

# Recipes have these for their own loop. In a composed system the loop's values go to both.
_OF_ANSWERS = frozenset(("limit", "context", "selection"))


def compose(name: str, recall: SystemDeclaration, loop: SystemDeclaration) -> SystemDeclaration:
    """The system of `recall` inside `loop`, with the settings of both.

    Raises UsageError for a setting that both have, except `limit`, `context` and `selection`, which are the loop's.
    """
    _check_loop(name, loop.recipe)
    of_recall, of_loop = _list_typed(recall.recipe), _list_typed(partial(loop.recipe, None))
    both = of_recall.keys() & of_loop.keys() - _OF_ANSWERS
    if both:
        raise UsageError(f"{name}: recall and loop both have the setting {sorted(both)[0]!r}: rename it in one of them")

    def recipe(kit: Kit, **settings: Any) -> System:
        own = {key: value for key, value in settings.items() if key in of_recall}
        found = find_recall(name.partition("+")[0], recall.recipe(kit, **own))
        return loop.recipe(kit, found, **{key: settings[key] for key in settings.keys() & of_loop.keys()})

    settings = {key: each for key, each in of_recall.items() if key not in _OF_ANSWERS} | of_loop
    kit = inspect.Parameter("kit", inspect.Parameter.POSITIONAL_ONLY)
    recipe.__signature__ = inspect.Signature([kit, *settings.values()])  # type: ignore[attr-defined]
    recipe.__name__ = recipe.__qualname__ = name
    of_both = f"Recall of `{name.partition('+')[0]}`: {recall.summary[:1].lower()}{recall.summary[1:]}"
    return SystemDeclaration(
        recipe=recipe,
        summary=f"{loop.summary} {of_both}",
        paper="; ".join(dict.fromkeys(paper for paper in (recall.paper, loop.paper) if paper)),
        kind=loop.kind,
        ablations={
            name: {key: value for key, value in changes.items() if key not in _OF_ANSWERS}
            for name, changes in recall.ablations.items()
        },
    )


def _check_loop(name: str, loop: Recipe) -> None:
    try:
        inspect.signature(loop).bind_partial(None, None)
    except (TypeError, ValueError):
        raise UsageError(f"{name}: {loop!r} is not a loop: it must take a Kit and a Recall by position") from None


def _list_typed(part: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The settings with types in place of their texts, which only the module of the part can read."""
    settings = list_settings(part)
    types = read_types(part, settings)
    return {
        key: each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=types.get(key, Any))
        for key, each in settings.items()
    }
