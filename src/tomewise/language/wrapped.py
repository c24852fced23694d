"""Wrappers: functions that stand between those who ask and a language model, and the model with some of them round it.

From the outside in, a tome has the cache of its replies (`cached`), the budget of a question and the stop at failures
(`budget`), the limits of its settings (`budget`) and, with a pool, the workers (`cluster.pooled_model`). They see whole
asks. The slots and the tries again are those of a single request, and stand in the client of a model (`client`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from tomewise.language.prompts import needs_short
from tomewise.run import current_run
from tomewise.types import Abilities, In, LanguageModel, Out, Role

Wrapper: TypeAlias = Callable[[LanguageModel, Role[Any, Any], Any], Awaitable[Any]]
"""Plays a role on an input. It asks the model that it is given, which stands for all that is further inside, or not."""


def find_abilities(model: LanguageModel, role: Role[In, Out] | None = None) -> Abilities:
    """What the model says of itself; with a role, what the one inside that plays it says."""
    abilities: Abilities = getattr(model if role is None else find_model(model, role), "abilities", Abilities())
    return abilities


def find_model(model: LanguageModel, role: Role[In, Out]) -> LanguageModel:
    """The model that plays `role` inside all wrappers."""
    while isinstance(model, Wrapped):
        model = model.find(role)
    return model


def list_models(model: LanguageModel) -> Iterator[LanguageModel]:
    """All models inside all wrappers."""
    if isinstance(model, Wrapped):
        for each in model.models:
            yield from list_models(each)
    else:
        yield model


def find_name(model: LanguageModel, role: Role[In, Out]) -> str:
    """The name of the model that plays `role`, as in keys of the cache and in records of builds."""
    found = find_model(model, role)
    return find_abilities(found).names.get(role.name, found.name)


def find_window(model: LanguageModel, role: Role[In, Out]) -> int:
    """How many tokens the model that plays `role` accepts, reply included."""
    return find_model(model, role).window


def find_room(model: LanguageModel, role: Role[In, Out]) -> int:
    """How many tokens a prompt of `role` may have beside its reply."""
    window = find_window(model, role)
    return window - role.limit_reply(short=needs_short(find_name(model, role), window))


def join_names(model: LanguageModel, roles: Iterable[Role[Any, Any]]) -> str:
    """The names of the models that play `roles`, each once, separated by commas."""
    return ", ".join(dict.fromkeys(find_name(model, role) for role in roles))


class Wrapped:
    """A language model inside wrappers, of which the first is asked first.

    `models[role.name]` plays a role in place of `model`, with its own limit on concurrent calls, its own window and its
    own prices. The name covers all models, and the window is the smallest of theirs: for one role, `find_name` and
    `find_window` are exact.
    """

    def __init__(
        self, model: LanguageModel, *wrappers: Wrapper, models: Mapping[str, LanguageModel] | None = None
    ) -> None:
        self.wrappers = wrappers
        self._model = model
        self._models = models or {}

    @property
    def inner(self) -> LanguageModel:
        """The model of the roles without one of their own."""
        return self._model

    def find(self, role: Role[In, Out]) -> LanguageModel:
        """The model that plays this role, which may have wrappers of its own."""
        return self._models.get(role.name, self.inner)

    @property
    def models(self) -> Sequence[LanguageModel]:
        """That of most roles, then those of single ones."""
        return (self.inner, *self._models.values())

    @property
    def name(self) -> str:
        return " ".join([self.inner.name, *(f"{role}={self._models[role].name}" for role in sorted(self._models))])

    @property
    def window(self) -> int:
        return min(model.window for model in self.models)

    @property
    def abilities(self) -> Abilities:
        """It prepares and closes every model, once. All else depends on the role."""
        models = {id(model): model for model in self.models}
        each = [find_abilities(model) for model in models.values()]
        return Abilities(
            prepare=partial(_do_all, [model.prepare for model in each]),
            close=partial(_do_all, [model.close for model in each]),
        )

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """What comes of asking through all wrappers."""
        model = self.find(role)
        if not self.wrappers:
            return await model.ask(role, given)
        first, *others = self.wrappers
        output: Out = await first(Wrapped(model, *others), role, given)
        return output

    def count_input_tokens(self, role: Role[In, Out], given: In) -> int:
        """As the role's model."""
        return self.find(role).count_input_tokens(role, given)


class SharedModel(Wrapped):
    """A model that others use too, or the one of the run where that has one. Whoever made a model closes it."""

    abilities = Abilities()

    @property
    def inner(self) -> LanguageModel:
        return current_run().model or self._model


async def _do_all(verbs: Iterable[Callable[[], Awaitable[None]]]) -> None:
    for do in verbs:
        await do()
