"""A system as it is, ablated, or with other settings, and how a person writes that: on a command, in a table."""

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
    """A system under the name that a person gave it, with the settings that its recipe is given."""

    name: str
    system: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def variants_named(texts: Iterable[str]) -> tuple[Variant, ...]:
    """The variants of `SYSTEM`, `SYSTEM:ABLATION`, `SYSTEM key=value ...`; each name once, in the order given.

    `all` is every system, `SYSTEM:all` every ablation of one. Values are JSON, or else text. Raises UnknownName, and
    UsageError for a value that the recipe does not take.
    """
    found = [variant for text in texts for variant in _variants(text.strip())]
    return tuple({variant.name: variant for variant in found}.values())


def variant_named(text: str) -> Variant:
    """The one variant that a text names, see `variants_named`. Raises UsageError also where it names several."""
    found = variants_named([text])
    if len(found) != 1:
        raise UsageError(f"{text!r} names {len(found)} systems: name one")
    return found[0]


def name_of(system: str, settings: Mapping[str, Any]) -> str:
    """What `variant_named` reads as this system with these settings, an ablation by its name."""
    called = [f"{system}:{ablation}" for ablation, some in ablations(system).items() if dict(some) == dict(settings)]
    return called[0] if called else _with_settings(system, settings)


def ablations(system: str) -> Mapping[str, Mapping[str, Any]]:
    """The named variations of a system's recipe: what each is called, and the settings that make it."""
    return registry.ABLATIONS.get(system, {})


def _variants(text: str) -> list[Variant]:
    if text == ALL:
        return [Variant(name, name) for name in registry.RECIPES]
    try:
        words = split(text)
    except ValueError:
        words = []  # a quotation mark that is not closed
    first = next((place for place, word in enumerate(words) if _SETTING.fullmatch(word)), len(words))
    match = _FORM.fullmatch(" ".join(words[:first]))
    if match is None or not all(map(_SETTING.fullmatch, words[first:])):
        raise UsageError(f"{text!r} names no system: write 'SYSTEM', 'SYSTEM:ABLATION' or 'SYSTEM key=value'")
    system, ablation = match["system"], (match["ablation"] or "").strip()
    given = dict(map(_setting, words[first:]))
    registry.check_settings(system, given)
    known = ablations(system)
    if ablation == ALL:
        return [_variant(system, name, known[name], given) for name in known]
    if ablation and ablation not in known:
        raise UnknownName(_unknown(system, ablation))
    return [_variant(system, ablation, known.get(ablation, {}), given)]


def _variant(system: str, ablation: str, settings: Mapping[str, Any], given: Mapping[str, Any]) -> Variant:
    name = f"{system}:{ablation}" if ablation else system
    return Variant(_with_settings(name, given), system, {**settings, **given})


def _with_settings(name: str, settings: Mapping[str, Any]) -> str:
    return " ".join([name, *(quote(f"{key}={value}") for key, value in settings.items())])


def _setting(pair: str) -> tuple[str, Any]:
    key, _, value = pair.partition("=")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def _unknown(system: str, ablation: str) -> str:
    known = ablations(system)
    return f"{system} has no ablation {ablation!r}: {suggest(ablation, known)}it has {', '.join(known) or 'none'}"
