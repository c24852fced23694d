"""The names of layers that have settings: each setting that is not the usual one is part of the name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class LayerRules:
    """The settings of a layer, numbers and texts; an instance without arguments has the usual ones."""

    base: ClassVar[str]  # the name of the layer with the usual settings

    @property
    def layer(self) -> str:
        """The name of the layer, such as `schemata:k=4`; a text stands there without the name of its field."""
        usual = vars(type(self)())
        changed = {field: value for field, value in vars(self).items() if value != usual[field]}
        parts = [value if isinstance(value, str) else f"{field}={value:g}" for field, value in changed.items()]
        return ":".join([self.base, *([",".join(parts)] if parts else [])])
