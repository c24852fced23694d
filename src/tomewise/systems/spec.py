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

_FORM = re.compile(r"(?P<system>[^\s:=]+)(?::(?P<ablation>[^=]*))?")
_SETTING = re.compile(r"\w+=.+", re.DOTALL)
ALL = "all"


@dataclass(frozen=True, slots=True)
class Variant:
    """A system with settings for its recipe. `name` is the text that a person wrote for it."""

    name: str
    system: str
    settings: Mapping[str, Any] = field(default_factory=dict)


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
    settings = dict(map(_parse_setting, words[first:]))
    registry.check_settings(system, settings)
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
    return " ".join([name, *(quote(f"{key}={value}") for key, value in settings.items())])


def _parse_setting(pair: str) -> tuple[str, Any]:
    key, _, value = pair.partition("=")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value
