"""What a system is, in the words of its own parts: settings, ablations, layers, and calls of the model."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from tomewise.calls import CallCount, read_calls, sum_calls, write_number
from tomewise.embedding.hash import HashEmbedder
from tomewise.language.extractive import ExtractiveModel
from tomewise.systems.kit import Kit, SystemDeclaration
from tomewise.systems.recipe_settings import read_declared
from tomewise.systems.registry import Variant
from tomewise.tome.open_store import open_store

_RANGES = {
    "minimum": "from {:g}",
    "exclusiveMinimum": "above {:g}",
    "maximum": "to {:g}",
    "exclusiveMaximum": "below {:g}",
}
_NUMBERS = ("integer", "number")


@dataclass(frozen=True, slots=True)
class SystemSetting:
    """A setting of a recipe: its type in words, and its default or `required`. `value` is what the variant sets.

    `multiplies` says what a larger number makes more of. `most` is the largest number that a server allows; None for a
    setting that is not a number.
    """

    name: str
    type: str
    default: Any
    required: bool
    value: Any
    help: str
    multiplies: str
    most: float | None


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
    settings: tuple[SystemSetting, ...]
    ablations: Mapping[str, Mapping[str, Any]]
    layers: tuple[LayerSummary, ...]
    index: CallCount
    ask: CallCount
    summary: str
    paper: str
    deviations: str
    kind: str


def summarise_system(variant: Variant) -> SystemSummary:
    """Wire the system in an empty tome and read what its parts state. Calls no model.

    Raises UsageError and MissingDependency if it cannot be wired.
    """
    declaration = variant.declaration
    embedder = HashEmbedder()
    with TemporaryDirectory() as folder, closing(open_store(Path(folder) / "empty.tome")) as store:
        system = variant.wire(Kit(store, ExtractiveModel(embedder), embedder))
        layers = tuple(LayerSummary(layer.name, tuple(layer.needs), read_calls(layer)) for layer in system.layers)
    return SystemSummary(
        name=variant.name,
        description=declaration.description,
        settings=_list_settings(variant, declaration),
        ablations=declaration.ablations,
        layers=layers,
        index=_sum_layers(layers),
        ask=read_calls(system.loop),
        summary=declaration.summary,
        paper=declaration.paper,
        deviations=declaration.deviations,
        kind=declaration.kind,
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


def _list_settings(variant: Variant, declaration: SystemDeclaration) -> tuple[SystemSetting, ...]:
    settings = []
    for each in read_declared(declaration.recipe, declaration.ablations).values():
        type_ = describe_type(each.type)
        most = each.most if type_.startswith(_NUMBERS) else None
        value = variant.settings.get(each.name, each.default)
        settings.append(
            SystemSetting(each.name, type_, each.default, each.required, value, each.help, each.multiplies, most)
        )
    return tuple(settings)


def _sum_layers(layers: tuple[LayerSummary, ...]) -> CallCount:
    """The calls of all layers; each formula is named by its layer where there are several."""
    total = sum_calls(layer.calls for layer in layers)
    if total.most == 0 or len(layers) == 1:
        return total
    formula = "; ".join(f"{layer.name}: {layer.calls.formula}" for layer in layers)
    limit = "" if total.most is None else f"; together at most {write_number(total.most)} a passage"
    return CallCount(formula + limit, total.most)
