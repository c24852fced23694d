"""Which of several models plays a role, and wrappers around models: the base of all, a shared one, one per role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tomewise.run import current_run
from tomewise.types import (
    Closable,
    ComputesHere,
    In,
    LanguageModel,
    MeasuresReplies,
    Out,
    PerRole,
    Preparable,
    Role,
    Sampling,
)


def find_name(model: LanguageModel, role: Role[In, Out]) -> str:
    """The name of the model that plays `role`, as in keys of the cache and in records of builds."""
    return model.name_for(role) if isinstance(model, PerRole) else model.name


def find_window(model: LanguageModel, role: Role[In, Out]) -> int:
    """How many tokens the model that plays `role` accepts, reply included."""
    return model.window_for(role) if isinstance(model, PerRole) else model.window


def join_names(model: LanguageModel, roles: Iterable[Role[Any, Any]]) -> str:
    """The names of the models that play `roles`, each once, separated by commas."""
    return ", ".join(dict.fromkeys(find_name(model, role) for role in roles))


class Forwarding:
    """A language model around another one: passes everything on but `ask`, which the wrapper defines."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def _find(self, role: Role[In, Out]) -> LanguageModel:
        """The model that plays this role."""
        return self._model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def window(self) -> int:
        return self._model.window

    def count_input_tokens(self, role: Role[In, Out], given: In) -> int:
        """As the model."""
        return self._find(role).count_input_tokens(role, given)

    async def measure_reply(self, role: Role[In, Out], given: In) -> int | None:
        """As the model; None for a model that cannot say."""
        model = self._find(role)
        return await model.measure_reply(role, given) if isinstance(model, MeasuresReplies) else None

    def name_for(self, role: Role[In, Out]) -> str:
        """The name of the role's model."""
        return find_name(self._find(role), role)

    def window_for(self, role: Role[In, Out]) -> int:
        """The window of the role's model, in tokens."""
        return find_window(self._find(role), role)

    def samples(self, role: Role[In, Out]) -> bool:
        """As the model; False for a model that does not say."""
        model = self._find(role)
        return isinstance(model, Sampling) and model.samples(role)

    def is_quick(self, role: Role[In, Out], given: In) -> bool:
        """As the model; False for a model that does not say."""
        model = self._find(role)
        return isinstance(model, ComputesHere) and model.is_quick(role, given)

    async def prepare(self) -> None:
        """Prepare the model, if it has something to prepare."""
        if isinstance(self._model, Preparable):
            await self._model.prepare()

    async def close(self) -> None:
        """Close the model, if it has something to close."""
        if isinstance(self._model, Closable):
            await self._model.close()


class SharedModel(Forwarding):
    """A model that several tomes share, or the one of the run where that has one. Whoever made a model closes it."""

    def __init__(self, model: LanguageModel) -> None:
        self._own = model

    @property
    def _model(self) -> LanguageModel:  # type: ignore[override]
        return current_run().model or self._own

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model."""
        return await self._model.ask(role, given)

    async def close(self) -> None:
        """Do nothing: others still use the model."""


class ModelPerRole(Forwarding):
    """Asks `models[role.name]` where there is one, and `model` for all other roles.

    Each model has its own limit on concurrent calls, its own window and its own prices. Its name covers all models, and
    its window is the smallest of theirs: for one role, `find_name` and `find_window` are exact.
    """

    def __init__(self, model: LanguageModel, models: Mapping[str, LanguageModel]) -> None:
        super().__init__(model)
        self._models = dict(models)

    def _find(self, role: Role[In, Out]) -> LanguageModel:
        return self._models.get(role.name, self._model)

    @property
    def name(self) -> str:
        return " ".join([self._model.name, *(f"{role}={self._models[role].name}" for role in sorted(self._models))])

    @property
    def window(self) -> int:
        return min(model.window for model in (self._model, *self._models.values()))

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the role's model."""
        return await self._find(role).ask(role, given)

    async def prepare(self) -> None:
        """Prepare every model that has something to prepare, once."""
        for model in self._list_models():
            if isinstance(model, Preparable):
                await model.prepare()

    async def close(self) -> None:
        """Close every model that has something to close, once."""
        for model in self._list_models():
            if isinstance(model, Closable):
                await model.close()

    def _list_models(self) -> Iterable[LanguageModel]:
        return {id(model): model for model in (self._model, *self._models.values())}.values()
