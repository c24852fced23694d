"""A model per role: one model for most roles, and other models for the roles that need more, or less."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tomewise.types import Closable, LanguageModel, PerRole, Rehearsing, Sampling

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role


class ModelPerRole:
    """Asks `models[role.name]` where there is one, and `model` for all other roles.

    Each model has its own limit on concurrent calls, its own window and its own prices. Its name covers all models, and
    its window is the smallest of theirs: for one role, `find_name` and `find_window` are exact.
    """

    def __init__(self, model: LanguageModel, models: Mapping[str, LanguageModel]) -> None:
        self._model = model
        self._models = dict(models)

    @property
    def name(self) -> str:
        return " ".join([self._model.name, *(f"{role}={self._models[role].name}" for role in sorted(self._models))])

    @property
    def window(self) -> int:
        return min(model.window for model in self._all)

    def name_for(self, role: Role[In, Out]) -> str:
        """The name of the role's model."""
        return find_name(self._find(role), role)

    def window_for(self, role: Role[In, Out]) -> int:
        """The window of the role's model, in tokens."""
        return find_window(self._find(role), role)

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the role's model."""
        return await self._find(role).ask(role, given)

    def reckon(self, role: Role[In, Out], given: In) -> int:
        """As the role's model."""
        return self._find(role).reckon(role, given)

    async def rehearse(self, role: Role[In, Out], given: In) -> int | None:
        """As the role's model; None for a model that cannot rehearse."""
        model = self._find(role)
        return await model.rehearse(role, given) if isinstance(model, Rehearsing) else None

    def samples(self, role: Role[In, Out]) -> bool:
        """As the role's model; False for a model that does not say."""
        model = self._find(role)
        return isinstance(model, Sampling) and model.samples(role)

    async def close(self) -> None:
        """Close every model that has something to close."""
        for model in self._all:
            if isinstance(model, Closable):
                await model.close()

    @property
    def _all(self) -> list[LanguageModel]:
        """Every model once."""
        return list({id(model): model for model in (self._model, *self._models.values())}.values())

    def _find(self, role: Role[In, Out]) -> LanguageModel:
        return self._models.get(role.name, self._model)


def find_name(model: LanguageModel, role: Role[In, Out]) -> str:
    """The name of the model that plays `role`: keys of the cache and build records are about this one."""
    return model.name_for(role) if isinstance(model, PerRole) else model.name


def find_window(model: LanguageModel, role: Role[In, Out]) -> int:
    """How many tokens the model that plays `role` accepts, reply included."""
    return model.window_for(role) if isinstance(model, PerRole) else model.window


def join_names(model: LanguageModel, roles: Iterable[Role[Any, Any]]) -> str:
    """The names of the models that play `roles`, each once, separated by commas."""
    return ", ".join(dict.fromkeys(find_name(model, role) for role in roles))
