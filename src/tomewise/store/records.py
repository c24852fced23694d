"""What a store says about its content, apart from the texts."""

from __future__ import annotations

from dataclasses import dataclass

from tomewise.types import DocumentId, Metadata

PASSAGES = "passages"  # the layer of the passages, and the space of their vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord:
    """What the store has of a document, without its text."""

    id: DocumentId
    title: str
    source: str
    digest: str
    characters: int
    passages: int
    metadata: Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The node keys that a layer has processed, and those that failed, each with its reason."""

    done: frozenset[int]
    failed: dict[int, str]
