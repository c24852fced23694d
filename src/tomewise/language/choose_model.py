"""From the name of a model to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tomewise.errors import UsageError
from tomewise.plugins import find_plugin, list_names

if TYPE_CHECKING:
    from tomewise.language.prompts import Prompts
    from tomewise.types import Embedder, LanguageModel


def choose_model(
    spec: str,
    *,
    embedder: Embedder,
    base_url: str | None = None,
    api_key: str | None = None,
    limit: int = 16,
    timeout: float = 120.0,
    prompts: Prompts | None = None,
    window: int | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
) -> LanguageModel:
    """The model that `spec` names: `extractive`, or `provider:model` (see `ChatModel`), within the given limits.

    The extractive model ignores the settings of a chat model. Raises `UsageError`.
    """
    model = _choose_without_limits(spec, embedder, base_url, api_key, limit, timeout, prompts, window)
    if max_calls is max_tokens is max_cost is None:
        return model
    from tomewise.language.budget import Budgeted

    return Budgeted(model, calls=max_calls, tokens=max_tokens, money=max_cost)


def check_model(spec: str, base_url: str | None) -> None:
    """Raise `UsageError` if `choose_model` would, without making a model."""
    if spec.strip() != "extractive" and spec.strip().partition(":")[0] not in list_names("models"):
        from tomewise.language.spec import ModelSpec

        ModelSpec.parse(spec, base_url)


def _choose_without_limits(
    spec: str,
    embedder: Embedder,
    base_url: str | None,
    api_key: str | None,
    limit: int,
    timeout: float,
    prompts: Prompts | None,
    window: int | None,
) -> LanguageModel:
    if spec.strip() == "extractive":
        from tomewise.language.extractive import ExtractiveModel

        return ExtractiveModel(embedder)
    kind, _, name = spec.strip().partition(":")
    if (make := find_plugin("models", kind)) is not None:
        if not callable(make):
            raise UsageError(f"the plugin {kind!r} is not a function that returns a LanguageModel: it is {make!r}")
        settings = {"base_url": base_url, "api_key": api_key, "limit": limit, "timeout": timeout, "window": window}
        model: LanguageModel = make(name, embedder=embedder, prompts=prompts, **settings)
        return model
    from tomewise.language.chat import ChatModel

    return ChatModel(
        spec, base_url=base_url, api_key=api_key, limit=limit, timeout=timeout, prompts=prompts, window=window
    )
