"""Documents, passages and evidence as they go out."""

from __future__ import annotations

from typing import Any, Self

from pydantic import AliasChoices, Field, model_validator

from tomewise.outgoing.form import DocumentName, Outgoing, Place, SourceName


class DocumentEntry(Outgoing):
    """A document without its text."""

    id: DocumentName
    title: str = ""
    source: SourceName = ""
    characters: int
    passages: int = Field(description="How many it has.")
    metadata: dict[str, Any] = {}


class Document(Outgoing):
    """A document with its text; `marks` are offsets in it, each with the place that begins there."""

    id: DocumentName
    text: str
    title: str = ""
    source: SourceName = ""
    metadata: dict[str, Any] = {}
    marks: list[tuple[int, Place]] = []


class Span(Outgoing):
    """Where a passage stands: characters `start` to `end` of its document; `position` counts its passages from 0."""

    id: str
    position: int
    start: int
    end: int
    place: Place = {}


class Passage(Span):
    """A passage with its text."""

    document: DocumentName
    title: str = ""
    text: str


class Source(Outgoing):
    """A passage by its document, its id, and its number in that document, from 0."""

    document: DocumentName
    passage: str = ""
    position: int


class Slice(Outgoing):
    """A part of the text of a document: characters `start` to `end` of `characters`."""

    document: DocumentName
    title: str = ""
    start: int
    end: int
    characters: int
    text: str
    passages: list[Span] = Field(description="The passages of this part.")


class Rewrite(Outgoing):
    """A question that recall asked besides the given one; `name` in it comes from the passage `source`."""

    text: str
    name: str = ""
    source: str = ""


class Evidence(Outgoing):
    """A piece of evidence, and the passages that it rests on."""

    id: str = Field(validation_alias=AliasChoices("id", "node"))
    kind: str = Field("", description="What it is, in a word.")
    layer: str
    score: float
    title: str = ""
    place: Place = {}
    text: str
    metadata: dict[str, Any] = Field({}, description="Of the document that it rests on; empty for several documents.")
    sources: list[Source] = []
    rewrite: Rewrite | None = Field(None, description="The question that brought it, if not the given one.")

    @model_validator(mode="after")
    def _find_kind(self) -> Self:
        self.kind = self.kind or ("passage" if self.layer == "passages" else self.layer)
        return self
