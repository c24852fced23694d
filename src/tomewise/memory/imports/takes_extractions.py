"""What a layer offers that can take in extractions from elsewhere instead of asking a model for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tomewise.types import LayerReport, Report

if TYPE_CHECKING:
    from tomewise.memory.graph.graph_names import Style
    from tomewise.memory.imports.given_triples import Imported


@runtime_checkable
class TakesExtractions(Protocol):
    """A layer that is made from extractions of the texts of `source`, a node layer, in one style."""

    @property
    def source(self) -> str: ...
    @property
    def style(self) -> Style: ...

    def check_takes(self, imported: Imported) -> None:
        """Raise UsageError if the layer cannot take these extractions."""
        ...

    async def take(self, imported: Imported, report: Report) -> LayerReport:
        """Take in the extractions; texts that were taken in before do not change. Raises UsageError."""
        ...
