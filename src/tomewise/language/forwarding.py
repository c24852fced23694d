"""What every wrapper around a language model passes on to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tomewise.language.per_role import find_name, find_window
from tomewise.types import Closable, LanguageModel, Rehearsing, Sampling

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role


class Forwarding:
    """A language model around another one: passes everything on but `ask`, which the wrapper defines."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def window(self) -> int:
        return self._model.window

    def reckon(self, role: Role[In, Out], given: In) -> int:
        """As the model."""
        return self._model.reckon(role, given)

    async def rehearse(self, role: Role[In, Out], given: In) -> int | None:
        """As the model; None for a model that cannot rehearse."""
        return await self._model.rehearse(role, given) if isinstance(self._model, Rehearsing) else None

    def name_for(self, role: Role[In, Out]) -> str:
        """As the model."""
        return find_name(self._model, role)

    def window_for(self, role: Role[In, Out]) -> int:
        """As the model."""
        return find_window(self._model, role)

    def samples(self, role: Role[In, Out]) -> bool:
        """As the model; False for a model that does not say."""
        return isinstance(self._model, Sampling) and self._model.samples(role)

    async def close(self) -> None:
        """Close the model, if it has something to close."""
        if isinstance(self._model, Closable):
            await self._model.close()


class Lent(Forwarding):
    """A model that several tomes share. It asks as the model does, and whoever made the model closes it."""

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model."""
        return await self._model.ask(role, given)

    async def close(self) -> None:
        """Do nothing: others still use the model."""
