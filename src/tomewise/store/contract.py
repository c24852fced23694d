"""What a store must do. Parts name the narrowest of these protocols that they need.

Every text of every layer is a node with a key, a whole number that is never used again. A space is a named table of
rows under keys: vectors under node keys, or edges, whose rows are two node keys and a weight. All methods may be called
from several threads. They raise StoreError if the store is closed or cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from tomewise.store.records import PASSAGES, DocumentRecord, Found, Intake, Lifetime
from tomewise.types import CallCache, Document, DocumentId, Node, NodeId, Passage, Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tomewise.store.nearest import Nearest, Pairs

Keys: TypeAlias = "NDArray[np.int64]"
Vectors: TypeAlias = "NDArray[np.float32]"
End: TypeAlias = Literal["a", "b"]  # of an edge: its first node, its second


class Texts(Protocol):
    """Documents, passages and the nodes of all layers."""

    def holds_documents(self) -> bool:
        """Whether the store holds at least one document."""

    def documents(self, wanted: Scope | Iterable[DocumentId] | None = None) -> list[DocumentRecord]:
        """All documents, those of these ids, or those that the documents and conditions of a scope leave, by id."""

    def document(self, document: DocumentId) -> Document:
        """A document with its text. Raises UnknownName."""

    def text_between(self, document: DocumentId, start: int, end: int) -> str:
        """The characters of a document from `start` to before `end`, fewer where the text ends. Raises UnknownName."""

    def passages(
        self,
        keys: Iterable[int] | None = None,
        *,
        documents: Iterable[DocumentId] | None = None,
        between: tuple[int, int] | None = None,
    ) -> dict[int, Passage]:
        """The passages that exist by node key, in the order of `keys`; without keys, in document order.

        Without keys they are all, or those of these `documents`; with `between`, only those that hold a character from
        a start to before an end.
        """

    def nodes(self, layer: str) -> dict[int, Node]:
        """All nodes of a layer by key, ordered by level, position and id, without their sources."""

    def nodes_at(self, keys: Iterable[int]) -> dict[int, Node]:
        """The nodes that exist by key, in the order of the keys, without their sources."""

    def count_passages(self) -> int:
        """How many passages the tome has."""
        ...

    def node_keys(self, layer: str) -> list[int]:
        """Keys of the nodes of a layer; passages in document order, others by level, position and id."""

    def find(self, ids: Iterable[NodeId]) -> dict[NodeId, Found]:
        """The nodes that exist among these ids, passages too: where they are."""

    def find_dependants(self, keys: Iterable[int]) -> dict[str, int]:
        """How many nodes of each layer would go if these nodes were removed, by their lifetimes; without the nodes."""

    def passage_order(self) -> tuple[Keys, Keys, Keys]:
        """All passages in document order, without their texts: their keys, their documents, their positions (n,) each.

        A document is a number that all of its passages have, and only these.
        """

    def find_neighbours(self, keys: Iterable[int], distance: int) -> dict[int, list[int]]:
        """Keys of the passages at most `distance` before or after each passage: the nearest first, then the later."""

    def keys_within(self, scope: Scope | None, layer: str = PASSAGES) -> Keys | None:
        """The keys of the nodes of a layer within a scope, ascending; None if the scope is the whole tome.

        A node that was made from others (a gist, a summary) or drawn from them is within if all these are; a node that
        lives as long as any of its sources (an entity, a fact) if one of the passages that it is seen in is. The keys
        may not be changed.
        """


class SpaceRows(Protocol):
    """A whole space at one version: `keys` ascending, `rows[i]` belongs to `keys[i]`. Neither may be changed."""

    @property
    def version(self) -> int: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def rows(self) -> NDArray[Any]: ...


class Spaces(Protocol):
    """Vectors and edges. `among` restricts a search to these keys, sorted in ascending order."""

    def nearest(self, space: str, queries: Vectors, limit: int, *, among: Keys | None = None) -> Nearest:
        """The `limit` vectors nearest to a query (d,) or to any of several (q, d), and all that tie with the last.

        Cosines are exact; with several queries, each row has its greatest.
        """

    def scores(self, space: str, query: Vectors, *, among: Keys | None = None) -> tuple[Keys, Vectors]:
        """Keys (n,) in ascending order and their cosines (n,) with a query (d,); keys without a vector are left out."""

    def rows(self, space: str, keys: Iterable[int]) -> Vectors:
        """The vectors (n, d) of these keys, in their order. Raises KeyError for a key without a vector."""

    def alike(self, space: str, rows: Vectors, least: float) -> Pairs:
        """Pairs of a row of unit length and a vector with a cosine of at least `least`; `neighbours` are keys.

        Cosines are exact, rounded to 4 decimals.
        """

    def edges_at(self, spaces: Iterable[str], keys: Iterable[int], end: End) -> NDArray[np.float64]:
        """The edges (n, 3) of these spaces with one of these nodes at this end: node key, node key, weight.

        They are in the document order of the nodes at the other end, then by level, position and id.
        """

    def arrays(self, spaces: Iterable[str]) -> Mapping[str, SpaceRows]:
        """Several spaces (`vectors/NAME` or `edges/NAME`) as they were at one moment."""

    def versions(self, spaces: Iterable[str] | None = None) -> dict[str, int]:
        """For each space, or all that were used, a number that changes whenever the space changes.

        `documents` is such a space too: its number changes with the ids, sources, folders and metadata of the
        documents. All are of one moment. The number is 0 for a space that was never used.
        """

    def find_kept(self, name: str, versions: Mapping[str, int]) -> NDArray[np.int8] | None:
        """The bytes kept under a name at these versions of spaces, or None. A stranger may have written them."""

    def keep(self, name: str, versions: Mapping[str, int], content: NDArray[np.int8]) -> None:
        """Keep bytes that follow from these versions of spaces, if that can be done now, in place of earlier ones."""


class Words(Protocol):
    """Search for the words of passages."""

    def lexical(self, query: str, limit: int, *, within: Scope | None = None) -> list[tuple[int, float]]:
        """Keys of the passages within a scope with their BM25 scores over the whole tome, best first."""

    def exact(self, query: str, most: int, *, within: Scope | None = None) -> Mapping[int, int]:
        """How many codes ("PPR-9087", also without its signs) and quoted words of a query each passage holds, by key.

        Those that more than `most` passages within the scope hold do not count.
        """

    def find_holders(self, words: Iterable[str], among: Keys) -> list[tuple[int, Keys]]:
        """For each word, how many passages of the tome hold it, and the keys of those of `among` that do, ascending.

        What holds a word is what `lexical` finds by it.
        """


class Notes(Protocol):
    """Small records by kind and name: the `SETTINGS` of the tome, texts; its `BUILDS` by layer and its `SESSIONS`.

    Builds and sessions are plain data.
    """

    def notes(self, kind: str) -> dict[str, Any]:
        """All notes of a kind, sorted by name."""

    def note_names(self, kind: str) -> list[str]:
        """The names of all notes of a kind, sorted, also of damaged ones."""

    def note(self, kind: str, name: str) -> Any:
        """A note, None where it does not exist. Raises StoreError for a damaged one alone."""


class Records(Notes, Protocol):
    """Notes, and what each layer has processed."""

    def intake(self, layer: str, among: Iterable[int] | None = None) -> Intake:
        """What a layer has processed so far, of these nodes or of all."""

    def count_taken(self, layer: str) -> int:
        """How many nodes a layer has processed, failures not included."""

    def find_removed_ids(self, layer: str) -> tuple[NodeId, ...]:
        """Ids of the nodes removed since the last build of a layer that it had processed, failures included, sorted."""

    def find_pending_keys(self, layer: str, below: Iterable[str]) -> list[int]:
        """Keys of the nodes of the layers `below` that this layer has yet to process, failures included.

        They are in document order.
        """

    def layers(self) -> dict[str, dict[str, int]]:
        """For each layer, the number of its nodes, and the number of nodes that it failed to process."""


class Traces(Protocol):
    """How questions were answered."""

    def save_trace(self, *, asked: str, question: str, record: dict[str, Any]) -> int:
        """Store the record of how a question was answered, and return its number."""

    def trace_numbers(self, limit: int | None = 20, *, before: int | None = None, matching: str = "") -> list[int]:
        """The numbers of the latest traces, newest first; with `before`, lower ones.

        With `matching`, those whose question and answer (`text` and `quoted` of the record) hold all these words, or
        parts of words.
        """

    def trace(self, number: int) -> dict[str, Any] | None:
        """The trace with this number, None where it does not exist. Raises StoreError for a damaged one alone."""

    def delete_trace(self, number: int) -> bool:
        """Delete a trace, and return whether it existed. Its number is not used again."""


class Calls(CallCache, Protocol):
    """Replies of models by key."""

    def mean_reply_bytes(self, role: str, model: str) -> float | None:
        """The mean length of the model's replies in a role, or None while there are too few replies."""


class Readable(Texts, Spaces, Words, Protocol):
    """All that recall reads."""


class Snapshot(Readable, Records, Protocol):
    """All that a tome remembers, at one moment."""


class Write(Notes, Protocol):
    """The changes of one transaction, which reads notes as it has changed them."""

    def put_document(self, document: Document, digest: str, passages: Sequence[Passage]) -> list[int]:
        """Add a document; it replaces a document of the same id. Returns the keys of its passages."""

    def remove_document(self, document: DocumentId) -> list[int]:
        """Remove a document, its passages, and all that was made from them. Returns the keys of all nodes removed."""

    def move_document(self, former: DocumentId, document: Document, digest: str) -> None:
        """Give a document another id, source and metadata; title and text must be the same.

        The document keeps its vectors and all that was made from it; its nodes keep their keys. Its passages get the
        ids that they would have under the new id, and what was made from them gets new ids too, since a document that
        later has the old id may bring nodes of the old ids again. `data["document"]`, where there is one, gets the new
        id as well.
        """

    def set_folders(self, folders: Mapping[DocumentId, str]) -> None:
        """Record the folders that documents were added with. Ids without a document are passed over."""

    def renew_passage(self, key: int) -> int:
        """Remove a passage with all that was made from it, and add the same passage again. Returns its new key."""

    def put_nodes(self, made: Sequence[Node], *, lifetime: Lifetime = "all") -> dict[str, int]:
        """Add nodes and their sources; a node that exists keeps its key and text and gets the new sources too.

        `lifetime` says how long a node lives. "all": as long as all of its sources, because its text is about all of
        them (a gist, a summary). "any": as long as one of its sources (an entity, a fact). "layer": until its layer
        removes it; it only loses the links to sources that are removed. Sources are edges of the space `made-of:LAYER`,
        `seen-in:LAYER` or `drawn-from:LAYER`; give a node the same lifetime each time. Ids are unique over all layers.
        Returns keys by id.
        """

    def update_nodes(self, changed: Sequence[Node], *, lifetime: Lifetime = "all") -> dict[str, int]:
        """Replace text, data, level, position and sources of nodes that exist; they keep their ids and keys.

        For the other node layers, a node with a new text is one that was removed and made again: what was made from it
        goes, if its lifetime says so, and the layers that had processed it process it again. Nodes of its own layer
        are left to the layer. Vectors stay: replace them with `put_vectors`. Raises ValueError for a node that does
        not exist. Returns keys by id.
        """

    def remove_nodes(self, keys: Iterable[int]) -> list[int]:
        """Remove nodes with their edges and vectors, and the nodes made from them, if their lifetimes say so.

        The removal is logged for the layers that had processed the nodes. Returns the keys of all removed.
        """

    def put_vectors(self, space: str, keys: Sequence[int], rows: Vectors, *, replace: bool = False) -> None:
        """Add vectors (n, d) for node keys without a vector in this space; with `replace`, also for others."""

    def put_edges(self, space: str, a: Keys, b: Keys, weights: NDArray[Any], *, replace: bool = False) -> None:
        """Add edges between node keys; an edge that exists keeps its weight and its key.

        With `replace`, it gets the new weight; of a pair that is given twice, the last weight counts.
        """

    def remove_edges(self, space: str, pairs: Keys | None = None) -> None:
        """Remove the edges between these pairs of node keys (n, 2), or all edges of a space.

        Pairs without an edge are passed over. No node is removed, also not one that loses its last source.
        """

    def put_note(self, kind: str, name: str, data: Any) -> None:
        """Store a note; it replaces an earlier note of this kind and name."""

    def remove_note(self, kind: str, name: str) -> bool:
        """Remove a note, and return whether it existed."""

    def record_intake(self, layer: str, taken: Iterable[int], failed: Mapping[int, str] | None = None) -> None:
        """Record which nodes a layer has processed, and which failed, each with its reason.

        It has processed all removals too, so their log is emptied. A layer that commits once a batch calls this with
        the first batch that follows the removals.
        """

    def forget_intake(self, layer: str) -> None:
        """Forget what a layer has processed, removals too, so that it processes all nodes again."""


class Store(Snapshot, Traces, Protocol):
    """The whole store of one tome."""

    @property
    def address(self) -> str:
        """Where the tome is, in the form in which a command names it."""

    @property
    def read_only(self) -> bool:
        """Whether the tome may only be read."""

    @property
    def calls(self) -> Calls: ...

    def size(self) -> int:
        """How many bytes the tome takes on its disk."""

    def cache_size(self) -> int:
        """How many bytes the caches beside the tome take."""

    def clear_cache(self) -> None:
        """Delete the caches beside the tome; they are made again when they are needed."""

    def write(self) -> AbstractContextManager[Write]:
        """One transaction: all its changes are committed together, or none if an error leaves the context."""

    def hold(self, name: str, refusal: str, *, is_long: bool = False) -> AbstractContextManager[None]:
        """Take the exclusive right of this name. Raises Locked with this refusal at once if somebody else has it.

        Parts of a name are words with a space between them. A right ends with the process that has it. Where a store
        can keep none from one transaction to the next, one that `is_long` is refused with StoreError, and of the others
        a writer's is taken by each transaction.
        """

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """The methods that read, all of them at one moment."""

    def check(self) -> None:
        """Raise StoreError if the store cannot be used any more."""

    def find_damage(self) -> str:
        """What is damaged in the tome: where, what, and the remedy; empty if nothing is. This may read all of it."""

    def close(self) -> None:
        """Close the store after all pending replies are written. It cannot be used afterwards."""
