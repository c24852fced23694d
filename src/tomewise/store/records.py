"""What a store says about its content, apart from the texts, and how long a node lives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from tomewise.types import DocumentId, Metadata, Noun

PASSAGES = "passages"  # the layer of the passages, and the space of their vectors
LEFT_OUT = "left_out"  # the setting that holds the files that could not be read
SETTINGS, BUILDS, SESSIONS = "settings", "builds", "sessions"  # the kinds of notes
# As long as all of its sources, as any of them, or until its layer removes it: see `contract.Write.put_nodes`.
Lifetime: TypeAlias = Literal["all", "any", "layer"]
PREFIXES: Mapping[Lifetime, str] = {"all": "made-of", "any": "seen-in", "layer": "drawn-from"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord(Noun):
    """What the store has of a document, without its text."""

    kept_back: ClassVar[tuple[str, ...]] = ("folder",)
    id: DocumentId
    """Its name for people and for `tome remove`."""
    title: str
    """Empty without a stated title."""
    source: str
    """The place it came from."""
    folder: str = ""
    """The folder it was added with; empty if there was none."""
    digest: str
    """SHA-256 of what was read, which tells whether it changed."""
    characters: int
    """The length of its text."""
    passages: int
    """How many passages it has."""
    metadata: Metadata
    """Further fields that the source states, or that were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The node keys that a layer has processed, and those that failed, each with its reason."""

    done: frozenset[int]
    failed: dict[int, str]


class Found(NamedTuple):
    """Where a node is."""

    key: int
    layer: str
    document: DocumentId | None
    """The document that a passage is of; None for another node."""
    position: int


def name_source_space(layer: str, lifetime: Lifetime) -> str:
    """The space of edges from the nodes of a layer with this lifetime to their sources."""
    return f"{PREFIXES[lifetime]}:{layer}"


def list_source_spaces(layer: str) -> list[str]:
    """The spaces of edges from the nodes of a layer to their sources, one for each lifetime."""
    return [f"{prefix}:{layer}" for prefix in PREFIXES.values()]
