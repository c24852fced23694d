"""What the MCP tools return: the types of their structured content, which become their output schemas."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class Result(BaseModel):
    """What every tool returns."""

    rest: str = Field("", description="What was left out and which call returns it; empty if nothing was.")


class Source(BaseModel):
    """A passage by its document and its number there, from 0."""

    document: str
    passage: str
    position: int


class QuotedText(Source):
    """A verified quotation: characters `start` to `end` of the document."""

    start: int
    end: int
    quote: str
    title: str
    place: dict[str, Any]


class NearPassage(Source):
    """A passage with its text."""

    title: str
    place: dict[str, Any]
    text: str


class AnswerResult(Result):
    """An answer, as `tome ask --json` prints it."""

    answer: str
    choice: str | None
    resolved: bool = Field(description="False if the memory does not hold the answer.")
    forced: bool
    supported: str = Field(description="How far the evidence holds the answer: full, partly or none.")
    missing: str = Field(description="What the evidence lacks.")
    system: str
    model: str
    citations: list[QuotedText]
    dropped_quotes: int
    derived_quotes: int
    usage: dict[str, Any]
    nearest: list[NearPassage] = Field(description="The nearest passages of a question that was declined.")


class Piece(BaseModel):
    """A piece of evidence and the passages that it rests on.

    `rewrite` is the question that recall asked besides the query, if that brought the piece; else it is empty.
    """

    node: str
    layer: str
    score: float
    title: str
    place: dict[str, Any]
    text: str
    sources: list[Source]
    rewrite: str


class SearchResult(Result):
    """Evidence, best first."""

    pieces: list[Piece]


class PassageSpan(BaseModel):
    """Where a passage stands in its document."""

    passage: str
    position: int
    start: int
    end: int


class TextResult(Result):
    """A part of the text of a document: characters `start` to `end` of `characters`."""

    document: str
    title: str
    start: int
    end: int
    characters: int
    text: str
    passages: list[PassageSpan] = Field(description="The passages that begin in this part.")


class DocumentEntry(BaseModel):
    """A document without its text."""

    id: str
    title: str
    characters: int
    passages: int
    metadata: dict[str, Any]


class DocumentsResult(Result):
    """Documents by id; `total` is the number of all."""

    total: int
    documents: list[DocumentEntry]


class LayerEntry(BaseModel):
    """A memory layer: how many nodes it has, and how many it failed to take in."""

    layer: str
    nodes: int
    failed: int


class OverviewResult(Result):
    """What a tome holds."""

    tome: str
    embedder: str
    passage_tokens: int
    documents: int
    passages: int
    characters: int
    fields: list[str] = Field(description="The fields of metadata that `where` can test.")
    layers: list[LayerEntry]


class FactEntry(BaseModel):
    """A fact of a graph in words."""

    text: str
    graph: str


class EntityResult(Result):
    """What the graphs of a tome hold on an entity."""

    name: str
    similar: list[str] = Field(description="Names that contain the words, if none is equal.")
    facts: list[FactEntry]
    passages: list[NearPassage] = Field(description="The passages in which the entity is seen.")


class AddResult(Result):
    """The result of `add_text`: `outcome` is added, replaced or unchanged."""

    document: str
    outcome: str
    passages: int


class RemoveResult(Result):
    """The result of `remove_document`: what went, or would go."""

    document: str
    removed: bool
    passages: int
    derived: int
    layers: dict[str, int] = Field(description="Derived memories by layer.")
    paid: dict[str, int] = Field(description="Those of them that a model was asked for, by its name.")


class BuildResult(Result):
    """The estimate, and the report if the build ran."""

    built: bool
    estimate: dict[str, Any]
    report: dict[str, Any] | None = None
