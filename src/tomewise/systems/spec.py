"""Read and write the text that names a system, an ablation, or other settings: `comorag:without episodic`."""

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

_SYSTEM_AND_ABLATION = re.compile(r"(?P<system>[^\s:=]+)(?::(?P<ablation>[^=]*))?")
_SETTING = re.compile(r"\w+=.+", re.DOTALL)
ALL = "all"


@dataclass(frozen=True, slots=True)
class Variant:
    """A system with settings for its recipe. `name` is the text that names both, as `parse_variants` reads it."""

    name: str
    system: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def parse_variants(texts: Iterable[str]) -> tuple[Variant, ...]:
    """The variants that these texts name, each once, in the order of the texts.

    A text is `SYSTEM`, `SYSTEM:ABLATION` or `SYSTEM key=value ...`. `all` names every system, and `SYSTEM:all` every
    ablation of a system. A value that is not valid JSON is a string. Raises UnknownName for an unknown name, and
    UsageError for a text of another form or a value that the recipe does not take.
    """
    variants = [variant for text in texts for variant in _parse_text(text.strip())]
    return tuple({variant.name: variant for variant in variants}.values())


def parse_variant(text: str) -> Variant:
    """The variant that a text names, see `parse_variants`. Raises UsageError if the text does not name exactly one."""
    variants = parse_variants([text])
    if len(variants) != 1:
        raise UsageError(f"{text!r} names {len(variants)} systems: name one")
    return variants[0]


def name_variant(system: str, settings: Mapping[str, Any]) -> str:
    """The text that names this system with these settings: the inverse of `parse_variant`.

    If the settings are those of an ablation, the text is `SYSTEM:ABLATION`.
    """
    for ablation, changes in list_ablations(system).items():
        if dict(changes) == dict(settings):
            return f"{system}:{ablation}"
    return _join_settings(system, settings)


def list_ablations(system: str) -> Mapping[str, Mapping[str, Any]]:
    """The name of each ablation of a system, and the settings that it changes."""
    return registry.ABLATIONS.get(system, {})


def _parse_text(text: str) -> list[Variant]:
    if text == ALL:
        return [Variant(name, name) for name in registry.RECIPES]
    try:
        words = split(text)
    except ValueError:
        words = []  # the text has an unclosed quotation mark
    setting_start = next((place for place, word in enumerate(words) if _SETTING.fullmatch(word)), len(words))
    match = _SYSTEM_AND_ABLATION.fullmatch(" ".join(words[:setting_start]))
    if match is None or not all(map(_SETTING.fullmatch, words[setting_start:])):
        raise UsageError(f"{text!r} names no system: write 'SYSTEM', 'SYSTEM:ABLATION' or 'SYSTEM key=value'")
    system, ablation = match["system"], (match["ablation"] or "").strip()
    settings = dict(map(_parse_setting, words[setting_start:]))
    registry.check_settings(system, settings)
    ablations = list_ablations(system)
    if ablation == ALL:
        return [_make_variant(system, name, ablations[name], settings) for name in ablations]
    if ablation and ablation not in ablations:
        names = ", ".join(ablations) or "none"
        raise UnknownName(f"{system} has no ablation {ablation!r}: {suggest(ablation, ablations)}it has {names}")
    return [_make_variant(system, ablation, ablations.get(ablation, {}), settings)]


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
