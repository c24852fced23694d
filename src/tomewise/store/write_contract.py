"""What the transaction of a store must do, and the notes that it shares with the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tomewise.store.lifetimes import Lifetime
from tomewise.types import Document, DocumentId, Node, Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.int64]
    Vectors = NDArray[np.float32]


class Notes(Protocol):
    """Small records by kind and name: the `SETTINGS` of the tome, texts; its `BUILDS` by layer and its `SESSIONS`.

    Builds and sessions are plain data.
    """

    def notes(self, kind: str) -> dict[str, Any]:
        """All notes of a kind, sorted by name."""
        ...

    def note_names(self, kind: str) -> list[str]:
        """The names of all notes of a kind, sorted, also of damaged ones."""
        ...

    def note(self, kind: str, name: str) -> Any:
        """A note, None where it does not exist. Raises StoreError for a damaged one alone."""
        ...


class Write(Notes, Protocol):
    """The changes of one transaction, which reads notes as it has changed them."""

    def put_document(self, document: Document, digest: str, passages: Sequence[Passage]) -> list[int]:
        """Add a document; it replaces a document of the same id. Returns the keys of its passages."""
        ...

    def remove_document(self, document: DocumentId) -> list[int]:
        """Remove a document, its passages, and all that was made from them. Returns the keys of all nodes removed."""
        ...

    def move_document(self, former: DocumentId, document: Document, digest: str) -> None:
        """Give a document another id, source and metadata; title and text must be the same.

        The document keeps its vectors and all that was made from it; its nodes keep their keys. Its passages get the
        ids that they would have under the new id, and what was made from them gets new ids too, since a document that
        later has the old id may bring nodes of the old ids again. `data["document"]`, where there is one, gets the new
        id as well.
        """
        ...

    def set_folders(self, folders: Mapping[DocumentId, str]) -> None:
        """Record the folders that documents were added with. Ids without a document are passed over."""
        ...

    def renew_passage(self, key: int) -> int:
        """Remove a passage with all that was made from it, and add the same passage again. Returns its new key."""
        ...

    def put_nodes(self, made: Sequence[Node], *, lifetime: Lifetime = "all") -> dict[str, int]:
        """Add nodes and their sources; a node that exists keeps its key and text and gets the new sources too.

        `lifetime` says how long a node lives. "all": as long as all of its sources, because its text is about all of
        them (a gist, a summary). "any": as long as one of its sources (an entity, a fact). "layer": until its layer
        removes it; it only loses the links to sources that are removed. Sources are edges of the space `made-of:LAYER`,
        `seen-in:LAYER` or `drawn-from:LAYER`; give a node the same lifetime each time. Ids are unique over all layers.
        Returns keys by id.
        """
        ...

    def update_nodes(self, changed: Sequence[Node], *, lifetime: Lifetime = "all") -> dict[str, int]:
        """Replace text, data, level, position and sources of nodes that exist; they keep their ids and keys.

        For the other node layers, a node with a new text is one that was removed and made again: what was made from it
        goes, if its lifetime says so, and the layers that had processed it process it again. Nodes of its own layer
        are left to the layer. Vectors stay: replace them with `put_vectors`. Raises ValueError for a node that does
        not exist. Returns keys by id.
        """
        ...

    def remove_nodes(self, keys: Iterable[int]) -> list[int]:
        """Remove nodes with their edges and vectors, and the nodes made from them, if their lifetimes say so.

        The removal is logged for the layers that had processed the nodes. Returns the keys of all removed.
        """
        ...

    def put_vectors(self, space: str, keys: Sequence[int], rows: Vectors, *, replace: bool = False) -> None:
        """Add vectors (n, d) for node keys without a vector in this space; with `replace`, also for others."""
        ...

    def put_edges(self, space: str, a: Keys, b: Keys, weights: NDArray[Any], *, replace: bool = False) -> None:
        """Add edges between node keys; an edge that exists keeps its weight and its key.

        With `replace`, it gets the new weight; of a pair that is given twice, the last weight counts.
        """
        ...

    def remove_edges(self, space: str, pairs: Keys | None = None) -> None:
        """Remove the edges between these pairs of node keys (n, 2), or all edges of a space.

        Pairs without an edge are passed over. No node is removed, also not one that loses its last source.
        """
        ...

    def put_note(self, kind: str, name: str, data: Any) -> None:
        """Store a note; it replaces an earlier note of this kind and name."""
        ...

    def remove_note(self, kind: str, name: str) -> bool:
        """Remove a note, and return whether it existed."""
        ...

    def record_intake(self, layer: str, taken: Iterable[int], failed: Mapping[int, str] | None = None) -> None:
        """Record which nodes a layer has processed, and which failed, each with its reason.

        It has processed all removals too, so their log is emptied. A layer that commits once a batch calls this with
        the first batch that follows the removals.
        """
        ...

    def forget_intake(self, layer: str) -> None:
        """Forget what a layer has processed, removals too, so that it processes all nodes again."""
        ...
