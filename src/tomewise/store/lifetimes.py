"""How long a node lives: as long as all of its sources, as any, or until its layer removes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

Lifetime: TypeAlias = Literal["all", "any", "layer"]  # see `store.write_contract.Write.put_nodes`
PREFIXES: Mapping[Lifetime, str] = {"all": "made-of", "any": "seen-in", "layer": "drawn-from"}


def name_source_space(layer: str, lifetime: Lifetime) -> str:
    """The space of edges from the nodes of a layer with this lifetime to their sources."""
    return f"{PREFIXES[lifetime]}:{layer}"


def list_source_spaces(layer: str) -> list[str]:
    """The spaces of edges from the nodes of a layer to their sources, one for each lifetime."""
    return [f"{prefix}:{layer}" for prefix in PREFIXES.values()]
