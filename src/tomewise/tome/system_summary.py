"""What a system is, in the words of its own parts: settings, ablations, layers, and calls of the model."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from tomewise.calls import CallCount, read_calls, sum_calls, write_number
from tomewise.embedding.hash import HashEmbedder
from tomewise.language.extractive import ExtractiveModel
from tomewise.systems.kit import Kit
from tomewise.systems.recipe_settings import list_settings, read_types
from tomewise.systems.registry import Variant, find_recipe, list_ablations
from tomewise.tome.open_store import open_store

_RANGES = {
    "minimum": "from {:g}",
    "exclusiveMinimum": "above {:g}",
    "maximum": "to {:g}",
    "exclusiveMaximum": "below {:g}",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a recipe: its type in words, and its default or `required`. `value` is what the variant sets."""

    name: str
    type: str
    default: Any
    required: bool
    value: Any


@dataclass(frozen=True, slots=True)
class LayerSummary:
    """A memory layer that a system needs, the layers below it, and its calls for each passage."""

    name: str
    needs: tuple[str, ...]
    calls: CallCount


@dataclass(frozen=True, slots=True)
class SystemSummary:
    """A system with certain settings. `index` are the calls for each passage, `ask` those for each question."""

    name: str
    description: str
    settings: tuple[Setting, ...]
    ablations: Mapping[str, Mapping[str, Any]]
    layers: tuple[LayerSummary, ...]
    index: CallCount
    ask: CallCount


def summarise_system(variant: Variant) -> SystemSummary:
    """Wire the system in an empty tome and read what its parts state. Calls no model.

    Raises UsageError and MissingDependency if it cannot be wired.
    """
    recipe = variant.recipe or find_recipe(variant.system)
    with TemporaryDirectory() as folder:
        embedder = HashEmbedder()
        store = open_store(Path(folder) / "empty.tome")
        try:
            system = variant.wire(Kit(store, ExtractiveModel(embedder), embedder))
            layers = tuple(LayerSummary(layer.name, tuple(layer.needs), read_calls(layer)) for layer in system.layers)
        finally:
            store.close()
    return SystemSummary(
        name=variant.name,
        description=inspect.getdoc(recipe) or "",
        settings=_list_settings(variant),
        ablations=list_ablations(variant.system),
        layers=layers,
        index=_sum_layers(layers),
        ask=read_calls(system.loop),
    )


def describe_type(type_: Any) -> str:
    """A type in words, such as `integer from 0`, or the values that it allows."""
    try:
        schema = TypeAdapter(type_).json_schema()
    except PydanticUserError:  # pydantic knows no such type, or no JSON form of it
        return inspect.formatannotation(type_)
    return inspect.formatannotation(type_) if "$defs" in schema else _describe_schema(schema)


def _describe_schema(schema: Mapping[str, Any]) -> str:
    if values := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    if "anyOf" in schema:
        return " | ".join(map(_describe_schema, schema["anyOf"]))
    ranges = [text.format(schema[key]) for key, text in _RANGES.items() if key in schema]
    return " ".join([schema.get("type", "any value"), *ranges])


def _list_settings(variant: Variant) -> tuple[Setting, ...]:
    recipe = variant.recipe or find_recipe(variant.system)
    parameters = list_settings(recipe)
    types = read_types(recipe, parameters)
    settings = []
    for name, parameter in parameters.items():
        required = parameter.default is parameter.empty
        default = None if required else parameter.default
        value = variant.settings.get(name, default)
        settings.append(Setting(name, describe_type(types.get(name, Any)), default, required, value))
    return tuple(settings)


def _sum_layers(layers: tuple[LayerSummary, ...]) -> CallCount:
    """The calls of all layers; each formula is named by its layer where there are several."""
    total = sum_calls(layer.calls for layer in layers)
    if total.most == 0 or len(layers) == 1:
        return total
    formula = "; ".join(f"{layer.name}: {layer.calls.formula}" for layer in layers)
    limit = "" if total.most is None else f"; together at most {write_number(total.most)} a passage"
    return CallCount(formula + limit, total.most)
