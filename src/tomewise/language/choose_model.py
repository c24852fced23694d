"""Choose a model by its name, or a model for each role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeAlias

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.plugins import call_part, find_plugin, list_names
from tomewise.settings import Settings
from tomewise.types import Embedder, LanguageModel, Limit

if TYPE_CHECKING:
    from tomewise.language.prompts import Prompts

EXTRACTIVE = "extractive"
ModelOrName: TypeAlias = str | LanguageModel


def choose_model(
    spec: ModelOrName,
    roles: Mapping[str, ModelOrName] | None = None,
    *,
    embedder: Embedder,
    base_url: str | None = None,
    api_key: str | None = None,
    limit: int = Settings.limit,
    timeout: float = Settings.timeout,
    prompts: Prompts | None = None,
    window: int | None = None,
    server: Mapping[str, str] | None = None,
    budget: str | None = None,
    short_answers: bool = False,
) -> LanguageModel:
    """The model that `spec` names: `extractive`, or `provider:model` (see `ChatModel`), within the `budget`.

    `roles` names other models by role. Equal names are one model with one `limit`; the budget holds over all
    models together. `base_url` and `api_key` are for the models of one provider: that of `spec`, or, if `spec` is
    extractive, that of the first role. `window` is for `spec` alone, `server` (see the setting) for all chat models.
    The extractive model ignores the settings of a chat model, and so does a model that is given as an object;
    `short_answers` is for that one alone. Raises
    `UsageError`.
    """
    settings: dict[str, Any] = {"limit": limit, "timeout": timeout, "prompts": prompts}
    at_address: dict[str, Any] = {"base_url": base_url, "api_key": api_key}
    home = find_provider(spec, roles or {})
    made: dict[str, LanguageModel] = {}

    def make(spec: ModelOrName, **options: Any) -> LanguageModel:
        if not isinstance(spec, str):
            return spec
        name = spec.strip()
        if name not in made:
            address = at_address if _read_provider(name) == home else {}
            made[name] = _make_model(name, embedder, short_answers, server, **settings, **address, **options)
        return made[name]

    model = make(spec, window=window)
    if roles:
        from tomewise.language.wrapped import Wrapped

        model = Wrapped(model, models={role: make(name) for role, name in roles.items()})
    return limit_spending(model, budget)


def limit_spending(model: LanguageModel, budget: str | None) -> LanguageModel:
    """The model within this limit; without one the model itself."""
    if budget is None:
        return model
    from tomewise.language.budget import Budget
    from tomewise.language.wrapped import Wrapped

    return Wrapped(model, Budget(Limit.parse(budget), name=model.name).ask)


def check_models(spec: ModelOrName, roles: Mapping[str, ModelOrName], base_url: str | None) -> None:
    """Raise `UsageError` if `choose_model` would, and `UnknownName` for a role that looks misspelt. Makes no model."""
    home = find_provider(spec, roles)
    for name in (spec, *roles.values()):
        if isinstance(name, str) and name.strip() != EXTRACTIVE and _read_provider(name) not in list_names("models"):
            from tomewise.language.spec import ModelSpec

            ModelSpec.parse(name, base_url if _read_provider(name) == home else None)
    known = list_roles() if roles else set()
    for role in roles:  # one that is near to none of ours may come from outside
        if role not in known and (hint := suggest(role, known)):
            raise UnknownName(f"{role!r} is not a role: {hint}known are {', '.join(sorted(known))}")


def list_roles() -> set[str]:
    """The names of our roles and of those that plugins bring."""
    from tomewise.language.roles import ROLES

    return {*(role.name for role in ROLES), *list_names("roles")}


def check_model_settings(names: Iterable[str], others: Iterable[str]) -> None:
    """Raise `UsageError` for a name that is neither a setting of `choose_model` nor one of `others`."""
    parameters = signature(choose_model).parameters.values()
    known = {*others, *(each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY)}
    for name in names:
        if name not in known:
            hint = suggest(name, known)
            raise UsageError(f"{name!r} is not an argument: {hint}known are {', '.join(sorted(known))}")


def _read_provider(name: str) -> str:
    return name.strip().partition(":")[0]


def find_provider(spec: ModelOrName, roles: Mapping[str, ModelOrName]) -> str | None:
    """The provider to which the base URL and the key belong: that of the first chat model that is named."""
    names = (_read_provider(name) for name in (spec, *roles.values()) if isinstance(name, str))
    return next((name for name in names if name != EXTRACTIVE), None)


def _make_model(
    name: str, embedder: Embedder, short_answers: bool, server: Mapping[str, str] | None, **settings: Any
) -> LanguageModel:
    if name == EXTRACTIVE:
        from tomewise.language.extractive import ExtractiveModel

        return ExtractiveModel(embedder, short_answers=short_answers)
    kind, _, rest = name.partition(":")
    if (make := find_plugin("models", kind)) is not None:
        model = call_part("models", kind, make, rest, embedder=embedder, **settings)
        if not isinstance(model, LanguageModel):
            raise UsageError(f"the plugin {kind!r} made {model!r}, which is not a LanguageModel")
        return model
    from tomewise.language.chat import ChatModel

    return ChatModel(name, server=server, **settings)
