"""What the transaction of a store must do."""

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


class Write(Protocol):
    """The changes of one transaction."""

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
        are left to the layer. Vectors stay: replace them with `replace_vectors`. Raises ValueError for a node that does
        not exist. Returns keys by id.
        """
        ...

    def remove_nodes(self, keys: Iterable[int]) -> list[int]:
        """Remove nodes with their edges and vectors, and the nodes made from them, if their lifetimes say so.

        The removal is logged for the layers that had processed the nodes. Returns the keys of all removed.
        """
        ...

    def put_vectors(self, space: str, keys: Sequence[int], rows: Vectors) -> None:
        """Add vectors (n, d) for node keys that do not have a vector in this space yet."""
        ...

    def remove_vectors(self, space: str, keys: Sequence[int]) -> None:
        """Remove the vectors of these nodes from one space."""
        ...

    def replace_vectors(self, space: str, keys: Sequence[int], rows: Vectors) -> None:
        """Give these nodes other vectors (n, d) in one space, or their first ones."""
        ...

    def put_edges(self, space: str, a: Keys, b: Keys, weights: NDArray[Any]) -> None:
        """Add edges between node keys; an edge that exists keeps its weight."""
        ...

    def reweight_edges(self, space: str, pairs: Keys, weights: NDArray[Any]) -> None:
        """Give the edges between these pairs of node keys (n, 2) other weights (n,).

        Of a pair that is given twice, the last weight counts. Raises ValueError for a pair without an edge.
        """
        ...

    def remove_edges(self, space: str, pairs: Keys | None = None) -> None:
        """Remove the edges between these pairs of node keys (n, 2), or all edges of a space.

        Pairs without an edge are passed over. No node is removed, also not one that loses its last source.
        """
        ...

    def put_session(self, name: str, record: Mapping[str, Any]) -> None:
        """Store the record of a session, plain data; it replaces an earlier record of this name."""
        ...

    def remove_session(self, name: str) -> bool:
        """Remove a session, and return whether it existed."""
        ...

    def set_meta(self, key: str, value: str) -> None:
        """Record a setting of the tome."""
        ...

    def record_build(self, layer: str, record: Mapping[str, Any]) -> None:
        """Record the last build of a layer. It has processed all removals, so their log is emptied.

        What `count_replies` and `record_writes` recorded stays, and so are the other models of earlier builds, as
        `former_models`; a mark to ask for replies again is removed, since that is done. A layer that commits once a
        batch calls it with the first batch that follows the removals.
        """
        ...

    def record_writes(self, layer: str, writes: Sequence[str]) -> None:
        """Record which node layers a layer writes, for layers above that are built without it."""
        ...

    def count_replies(self, layer: str, counts: Mapping[str, int]) -> None:
        """Add to the counts of replies, by kind, in the layer's record; they cover all builds."""
        ...

    def mark_again(self, layer: str, mark: str) -> None:
        """Mark a layer: until its next build succeeds, its calls are repeated (see `Run.fresh_mark`)."""
        ...

    def record_intake(self, layer: str, taken: Iterable[int], failed: Mapping[int, str] | None = None) -> None:
        """Record which nodes a layer has processed, and which failed, each with its reason."""
        ...

    def forget_layer(self, layer: str) -> None:
        """Delete the intake and the records of a layer, so that the next build processes all nodes again."""
        ...
