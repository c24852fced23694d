"""What a store says about its content, apart from the texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tomewise.types import DocumentId, Metadata, Noun

PASSAGES = "passages"  # the layer of the passages, and the space of their vectors
SETTINGS, BUILDS, SESSIONS = "settings", "builds", "sessions"  # the kinds of notes


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
