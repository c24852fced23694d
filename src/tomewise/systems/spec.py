"""The notation for a system, an ablation of it, or a system with other settings: `comorag:without episodic`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from shlex import quote, split
from typing import Any

from tomewise.errors import UnknownName, UsageError
from tomewise.names import suggest
from tomewise.systems import registry
from tomewise.systems.kit import Kit, System

_FORM = re.compile(r"(?P<system>[^\s:=]+)(?::(?P<ablation>[^=]*))?")
_SETTING = re.compile(r"\w+=.+", re.DOTALL)
ALL = "all"


@dataclass(frozen=True, slots=True)
class Variant:
    """A system with settings for its recipe. `name` is the text that a person wrote for it."""

    name: str
    system: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def wire(self, kit: Kit) -> System:
        """The system. The settings were checked when the variant was made."""
        return registry.find_recipe(self.system)(kit, **self.settings)


def parse_variants(texts: Iterable[str]) -> tuple[Variant, ...]:
    """The variants that texts name: `SYSTEM`, `SYSTEM:ABLATION`, `SYSTEM key=value ...`. Each one once, in this order.

    `all` means every system, `SYSTEM:all` every ablation of a system. Values are JSON, or else text. Raises
    UnknownName, and UsageError for a value that the recipe does not take.
    """
    variants = [variant for text in texts for variant in _parse_text(text.strip())]
    return tuple({variant.name: variant for variant in variants}.values())


def parse_variant(text: str) -> Variant:
    """The variant that a text names, see `parse_variants`. Raises UsageError also if it names several."""
    variants = parse_variants([text])
    if len(variants) != 1:
        raise UsageError(f"{text!r} names {len(variants)} systems: name one")
    return variants[0]


def choose_variant(system: str | Variant, settings: Mapping[str, Any] | None = None) -> Variant:
    """The variant that a text names, with further settings; these replace equal ones in the text.

    A variant without further settings is returned as it is: its settings were checked. Raises UnknownName, UsageError.
    """
    variant = parse_variant(system) if isinstance(system, str) else system
    if not settings:
        return variant
    changed = {**variant.settings, **registry.check_settings(variant.system, settings)}
    return Variant(name_variant(variant.system, changed), variant.system, changed)


def name_variant(system: str, settings: Mapping[str, Any]) -> str:
    """The text for this system with these settings (the inverse of `parse_variant`). An ablation has its name."""
    for ablation, changes in list_ablations(system).items():
        if dict(changes) == dict(settings):
            return f"{system}:{ablation}"
    return _join_settings(system, settings)


def list_ablations(system: str) -> Mapping[str, Mapping[str, Any]]:
    """The ablations of a system by name, each with the settings that it changes."""
    return registry.ABLATIONS.get(system, {})


def _parse_text(text: str) -> list[Variant]:
    if text == ALL:
        return [Variant(name, name) for name in registry.RECIPES]
    try:
        words = split(text)
    except ValueError:
        words = []  # the text has an unclosed quotation mark
    first = next((place for place, word in enumerate(words) if _SETTING.fullmatch(word)), len(words))
    match = _FORM.fullmatch(" ".join(words[:first]))
    if match is None or not all(map(_SETTING.fullmatch, words[first:])):
        raise UsageError(f"{text!r} names no system: write 'SYSTEM', 'SYSTEM:ABLATION' or 'SYSTEM key=value'")
    system, ablation = match["system"], (match["ablation"] or "").strip()
    settings = registry.check_settings(system, dict(map(_parse_setting, words[first:])))
    known = list_ablations(system)
    if ablation == ALL:
        return [_make_variant(system, name, known[name], settings) for name in known]
    if ablation and ablation not in known:
        raise UnknownName(
            f"{system} has no ablation {ablation!r}: {suggest(ablation, known)}it has {', '.join(known) or 'none'}"
        )
    return [_make_variant(system, ablation, known.get(ablation, {}), settings)]


def _make_variant(system: str, ablation: str, changes: Mapping[str, Any], settings: Mapping[str, Any]) -> Variant:
    name = f"{system}:{ablation}" if ablation else system
    return Variant(_join_settings(name, settings), system, {**changes, **settings})


def _join_settings(name: str, settings: Mapping[str, Any]) -> str:
    return " ".join([name, *(quote(f"{key}={_write_value(value)}") for key, value in settings.items())])


def _parse_setting(pair: str) -> tuple[str, Any]:
    key, _, value = pair.partition("=")
    return key, _read_value(value)


def _read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _write_value(value: Any) -> str:
    """The text that `_read_value` reads as this value. An object without a JSON form is named for readers alone."""
    if isinstance(value, str) and _read_value(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False, default=repr)
