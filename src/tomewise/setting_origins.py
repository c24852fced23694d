"""Where the value of each setting comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from tomewise.settings import Place, Settings, find_places, name_variable

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """A setting, its value, and where that comes from: `default`, a variable of the environment, or a file."""

    name: str
    value: Any
    origin: str


def find_origins() -> tuple[list[SettingOrigin], list[str]]:
    """Every setting with its origin, and why the file of the current folder is not used, if it is not.

    The model of a role is a row of its own, `models.ROLE`. Raises UsageError for a place that cannot be read.
    """
    refused: list[str] = []
    places = find_places(refused=refused)
    rows = [
        _find_origin(setting.name, setting.default, places) for setting in fields(Settings) if setting.name != "models"
    ]
    models = [
        SettingOrigin(f"models.{role}", model, _name(place, "models"))
        for role, (model, place) in sorted(_find_models(places).items())
    ]
    return [*rows, *(models or [SettingOrigin("models", None, DEFAULT)])], refused


def _find_origin(name: str, default: object, places: Sequence[Place]) -> SettingOrigin:
    for place in reversed(places):
        if name in place.values:
            return SettingOrigin(name, place.values[name], _name(place, name))
    return SettingOrigin(name, default, DEFAULT)


def _find_models(places: Sequence[Place]) -> dict[str, tuple[str, Place]]:
    """The model of each role that has one of its own; a place that names the model replaces those of later places."""
    found: dict[str, tuple[str, Place]] = {}
    for place in places:
        if "model" in place.values:
            found.clear()
        found |= {role: (model, place) for role, model in place.values.get("models", {}).items()}
    return found


def _name(place: Place, setting: str) -> str:
    return str(place.path) if place.path else name_variable(setting)
