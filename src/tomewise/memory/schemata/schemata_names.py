"""The names of one instance of the schemata in the store, which the layer and recall share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from tomewise.memory.schemata.network import LinkRules

SCHEMATA = "schemata"


@dataclass(frozen=True, slots=True)
class SchemataNames:
    """The names of the schemata that these settings make.

    The layer of the default settings is `schemata`; other settings are part of the layer's name, so that each has its
    own state. Nodes and vectors have the layer's name. Edge spaces: `LAYER-links:L` (vertex, vertex, score; each link
    of level L once, the smaller key first) and `LAYER-labels:L` (see `memory.schemata.schemata_state`), and the store's
    `seen-in:LAYER`.
    """

    layer: str = SCHEMATA
    kind: ClassVar = "summary"  # what its nodes are

    @classmethod
    def from_settings(cls, rules: LinkRules, *, split: bool, hierarchy: bool, entities: str) -> SchemataNames:
        """The names for these settings, see `SchemataLayer`."""
        usual = LinkRules()
        settings = {field.name: getattr(rules, field.name) for field in fields(rules)}
        parts = [f"{name}={value:g}" for name, value in settings.items() if value != getattr(usual, name)]
        parts += [] if split else ["unsplit"]
        parts += [] if hierarchy else ["links"]
        parts += [entities] if entities else []
        return cls(":".join([SCHEMATA, ",".join(parts)] if parts else [SCHEMATA]))

    def links(self, level: int) -> str:
        """The space of the links of a level; 0 is that of passages."""
        return f"{self.layer}-links:{level}"

    def labels(self, level: int) -> str:
        """The space of the labels of a level."""
        return f"{self.layer}-labels:{level}"

    @property
    def sources(self) -> str:
        """The space of the edges from schemata to what they were made from."""
        return f"seen-in:{self.layer}"
