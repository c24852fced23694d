"""What the transaction of a store must do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

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

    def renew_passage(self, key: int) -> int:
        """Remove a passage with all that was made from it, and add the same passage again. Returns its new key."""
        ...

    def put_nodes(self, made: Sequence[Node], *, shared: bool = False) -> dict[str, int]:
        """Add nodes and their sources; a node that exists keeps its key and text and gets the new sources too.

        A node is removed with any one of its sources, because its text is about all of them. A `shared` node (an
        entity, a fact) is removed only with the last of its sources. Ids are unique over all layers. Returns keys by
        id.
        """
        ...

    def set_data(self, data: Mapping[int, Mapping[str, Any]], texts: Mapping[int, str] | None = None) -> None:
        """Replace the data of nodes by key, and the texts of the nodes in `texts`."""
        ...

    def remove_nodes(self, keys: Iterable[int]) -> list[int]:
        """Remove nodes with their edges and vectors, and the nodes made from them. Returns the keys of all removed."""
        ...

    def put_vectors(self, space: str, keys: Sequence[int], rows: Vectors) -> None:
        """Add vectors (n, d) for node keys that do not have a vector in this space yet."""
        ...

    def remove_vectors(self, space: str, keys: Sequence[int]) -> None:
        """Remove the vectors of these nodes from one space."""
        ...

    def put_edges(self, space: str, a: Keys, b: Keys, weights: NDArray[Any]) -> None:
        """Add edges between node keys; an edge that exists keeps its weight."""
        ...

    def remove_edges(self, space: str) -> None:
        """Remove all edges of a space."""
        ...

    def set_meta(self, key: str, value: str) -> None:
        """Record a setting of the tome."""
        ...

    def record_build(self, layer: str, record: Mapping[str, Any]) -> None:
        """Record the last build of a layer. Call it after the intake: the record contains the size of the intake.

        The counts of replies are kept; a mark to ask for them again is removed, since that is done.
        """
        ...

    def count_replies(self, layer: str, counts: Mapping[str, int]) -> None:
        """Add to the counts of replies, by kind, in the layer's record; they cover all builds."""
        ...

    def mark_again(self, layer: str, mark: str) -> None:
        """Mark a layer: until its next build succeeds, its calls are repeated (see `language.cached.ask_anew`)."""
        ...

    def record_intake(self, layer: str, taken: Iterable[int], failed: Mapping[int, str] | None = None) -> None:
        """Record which nodes a layer has taken in, and which failed, each with its reason."""
        ...

    def forget_layer(self, layer: str) -> None:
        """Delete the intake and the record of a layer, so that the next build takes in all nodes again."""
        ...
