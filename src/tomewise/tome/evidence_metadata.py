"""The metadata of evidence: that of the document that a piece rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tomewise.store.lookups import read_places
from tomewise.types import Evidence

if TYPE_CHECKING:
    from tomewise.store.contract import Texts


def add_metadata(found: Sequence[Evidence], store: Texts) -> tuple[Evidence, ...]:
    """The same evidence; each piece has the metadata of the one document that it rests on."""
    places = read_places(store, {source for piece in found for source in piece.sources})
    documents = [{places[source][0] for source in piece.sources if source in places} for piece in found]
    records = store.documents({document for group in documents if len(group) == 1 for document in group})
    metadata = {record.id: record.metadata for record in records}
    return tuple(
        replace(piece, metadata=metadata.get(next(iter(group)), {}) if len(group) == 1 else {})
        for piece, group in zip(found, documents, strict=True)
    )
