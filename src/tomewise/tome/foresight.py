"""What goes with documents, before they are removed; and what of it a model was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tomewise.language.choose_model import EXTRACTIVE
from tomewise.store.records import BUILDS

if TYPE_CHECKING:
    from tomewise.store.contract import Store
    from tomewise.types import DocumentId


@dataclass(frozen=True, slots=True)
class Foresight:
    """The passages of documents, and the nodes that go with them by layer.

    `paid` counts those that rest on replies of a model, by the names of the models: memory that was paid for, in money
    or in time. The extractive model is free. What each of them cost is not kept.
    """

    passages: int
    layers: Mapping[str, int]
    paid: Mapping[str, int]

    @property
    def derived(self) -> int:
        """How many nodes go beside the passages."""
        return sum(self.layers.values())


def foresee_removal(documents: Collection[DocumentId], store: Store) -> Foresight:
    """What would go with these documents, as `Write.remove_document` decides it."""
    passages = list(store.passages(documents=documents))
    layers = store.find_dependants(passages)
    models = _find_models(store.notes(BUILDS))
    paid: Counter[str] = Counter()
    for layer, count in layers.items():
        if names := models.get(layer):
            paid[names] += count
    return Foresight(len(passages), layers, dict(paid))


def _find_models(builds: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The models that made each node layer, but for the free one; those of earlier builds too."""
    models: dict[str, str] = {}
    for layer, record in builds.items():
        recorded = ", ".join((str(record.get("model", "")), *map(str, record.get("former_models", ()))))
        names = ", ".join(sorted(set(recorded.split(", ")) - {"", EXTRACTIVE}))
        models |= dict.fromkeys(record.get("writes", (layer,)), names)
    return models
