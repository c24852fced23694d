"""What a tome holds, and the reports of what was done, as they go out."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tomewise.outgoing.answer_models import Lagging, Usage
from tomewise.outgoing.form import DocumentName, Outgoing
from tomewise.outgoing.passage_models import DocumentEntry, Passage, Source


class Fact(Outgoing):
    """A fact of a graph in words."""

    text: str
    graph: str


class SeenPassage(Passage):
    """A passage in which an entity is seen, with its gist where it has one."""

    gist: str | None = None


class Neighbour(Outgoing):
    """An entity at the other end of facts, and how many these are."""

    name: str
    facts: int


class Entity(Outgoing):
    """What the graphs of a tome hold on an entity, or names that contain its words if none is equal."""

    name: str
    kind: str = Field("", description="Such as person or place; empty where nothing shows it.")
    similar: list[str] = []
    facts: list[Fact] = []
    passages: list[SeenPassage] = Field([], description="The passages in which the entity is seen.")
    neighbours: list[Neighbour] = []
    counts: dict[str, int] = Field({}, description="How many facts, passages and neighbours it has in all.")


class LayerCounts(Outgoing):
    """How many nodes a layer has, and how many it failed to take in."""

    nodes: int
    failed: int


class FailedPart(Outgoing):
    """Passages of a document, by their positions, that a layer failed to take in."""

    layer: str
    document: DocumentName
    passages: list[int]
    reason: str
    count: int = Field(description="Failed nodes; each counts once, so they add up to `failed` of the layer.")


class Recommendation(Outgoing):
    """A system for a tome as it is, and the reason."""

    system: str
    because: str


class VectorSearch(Outgoing):
    """How the nearest vectors of a tome in a database are searched."""

    exact_rows: int = Field(description="Above so many vectors a space may be searched approximately; 0: none is.")
    approximate: dict[str, int] = Field(description="The spaces that are, with their vectors.")
    exact: dict[str, int] = Field(description="Spaces above `exact_rows` that are searched exactly all the same.")
    because: str = Field(description="Why they are, with the remedy; empty where none is.")


class Contents(Outgoing):
    """What a tome holds: what `tome show --json` prints."""

    tome: str
    embedder: str | None
    passage_tokens: int
    overlap: int
    bytes: int
    cache_bytes: int
    layers: dict[str, LayerCounts]
    documents: list[DocumentEntry]
    replies: dict[str, dict[str, Any]] = Field(description="By layer, what became of the replies of the model.")
    networks: dict[str, Any] = Field(description="By layer, what it says of its network.")
    failed: list[FailedPart]
    recommended: Recommendation | None = Field(None, description="The system that suits it as it is; null if empty.")
    search: VectorSearch | None = Field(None, description="How vectors are searched in a database; null for a file.")


class AddReport(Outgoing):
    """What was added: the ids of documents by outcome, and the reason for each path that was skipped or failed."""

    added: list[DocumentName] = []
    replaced: list[DocumentName] = []
    unchanged: list[DocumentName] = []
    removed: list[DocumentName] = []
    passages: int = 0
    skipped: dict[str, str] | None = None
    moved: list[DocumentName] = []
    failed: dict[str, str] = {}
    lagging: Lagging | None = Field(
        None, description="What a build of the layers that are there would take in and use."
    )


class RemoveReport(Outgoing):
    """The documents that went, and how many passages and derived nodes went with them."""

    document: DocumentName
    passages: int
    derived: int
    documents: list[DocumentName] = []


class Removal(Outgoing):
    """What would go with a document."""

    document: DocumentName
    passages: int
    layers: dict[str, int] = Field(description="Derived memories by layer.")
    paid: dict[str, int] = Field(description="Those of them that a model was asked for, by its name.")


class Failure(Outgoing):
    """A node that failed, by its key in the store, and the passages that it concerns."""

    node: int
    reason: str
    sources: list[Source] = []


class LayerReport(Outgoing):
    """What a build did to one layer."""

    layer: str
    added: int
    removed: int
    failed: list[Failure]
    notes: list[str]


class BuildReport(Outgoing):
    """What a build did, layer by layer, and its cost."""

    layers: list[LayerReport]
    usage: Usage


class Costs(Outgoing):
    """Calls, tokens and dollars; `cost` is null where a price is unknown."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None


class LayerCosts(Costs):
    """What an update of one layer would use."""

    layer: str


class OtherCosts(Outgoing):
    """What another system would use."""

    system: str
    total: Costs


class BuildCosts(Outgoing):
    """What a build would use, before anything is spent."""

    system: str
    model: str
    layers: list[LayerCosts]
    total: Costs


class ComparedCosts(BuildCosts):
    """What a build would use, and for comparison with another size of calls."""

    instead: OtherCosts
