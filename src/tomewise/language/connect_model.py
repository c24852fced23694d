"""Make the model of Pydantic AI that a specification names, with our HTTP client."""

from __future__ import annotations

import inspect
from contextlib import suppress
from importlib import import_module
from typing import Any

import httpx2
from pydantic_ai import exceptions
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from tomewise.errors import MissingDependency, ModelUnavailable, UsageError, suggest
from tomewise.language.adapting import Adapter
from tomewise.language.spec import EXAMPLES, PROVIDERS, ModelSpec
from tomewise.language.wire import BoundedClient

_EXTRAS = frozenset({"anthropic", "google"})  # ours; Pydantic AI has one for every other provider

_NEWER = ("openai", "azure", "cerebras", "github", "github-copilot")  # the field `max_completion_tokens` is theirs
_NO_TAGS = ("\udfff", "\udfff")  # no text that was read as UTF-8 has them


def connect_model(
    spec: ModelSpec, api_key: str | None, limit: int, adapter: Adapter
) -> tuple[Model, httpx2.AsyncClient]:
    """The model and its HTTP client, without sending anything. Raises `UsageError` or `MissingDependency`."""
    http = BoundedClient(limit, spec.model, adapter.adapt)
    try:
        return _make_model(spec, _make_provider(spec, api_key, http)), http
    except exceptions.UserError as error:
        raise ModelUnavailable(f"{spec} cannot be used: {error}") from error
    except ImportError as error:
        package = "tomewise" if spec.provider in _EXTRAS else "pydantic-ai-slim"
        raise MissingDependency(
            f"the provider {spec.provider!r} needs a package that is not installed: "
            f"pip install '{package}[{spec.provider}]' ({error})"
        ) from error


def import_provider(name: str) -> None:
    """Import the code of a provider before its first call: it takes a second. The call raises what fails here."""
    with suppress(ValueError, ImportError):
        infer_provider_class(name)
    if name == "openai":
        import_module("pydantic_ai.models.openai")


def find_provider_class(provider: str) -> type[Provider[Any]]:
    """The class of Pydantic AI for a provider. Raises UsageError, and ImportError if its package is not installed."""
    try:
        return infer_provider_class(provider)
    except ValueError as error:
        near = suggest(provider, sorted({*PROVIDERS, "ollama"}))
        raise UsageError(
            f"Pydantic AI has no provider {provider!r}: {near}write provider:model, such as {EXAMPLES}"
        ) from error


def _make_provider(spec: ModelSpec, api_key: str | None, http: httpx2.AsyncClient) -> Provider[Any]:
    kind = find_provider_class(spec.provider)
    api_key = spec.find_key(api_key)
    if spec.address:
        api_key = api_key or "none"  # the clients require a key, the server may not
    arguments = {"api_key": api_key, "base_url": spec.address, "http_client": http}
    parameters = inspect.signature(kind.__init__).parameters
    if spec.address and "base_url" not in parameters:
        raise UsageError(f"{spec.provider!r} cannot be asked at another address: leave the base URL out")
    accepted = {name: value for name, value in arguments.items() if value and name in parameters}
    try:
        provider: Provider[Any] = kind(**accepted)
    except TypeError as error:  # its client takes an HTTP client of another library alone
        raise UsageError(
            f"{spec.provider!r} cannot be asked in its own protocol here: name the model openai:{spec.model}, with the "
            f"address of its OpenAI-compatible endpoint as the base URL ({error})"
        ) from error
    if hasattr(provider.client, "max_retries"):
        provider.client.max_retries = 0  # `retry` counts and bounds the retries, and waits as the server asks
    return provider


def _make_model(spec: ModelSpec, provider: Provider[Any]) -> Model:
    if spec.provider == "openai":  # every compatible server speaks Chat Completions
        from pydantic_ai.models.openai import OpenAIChatModel

        model: Model = OpenAIChatModel(spec.model, provider=provider)
    else:
        model = infer_model(str(spec), provider_factory=lambda _: provider)
    profile: dict[str, Any] = model.profile  # type: ignore[assignment]
    # A reply is JSON, in which such a tag may stand: `reply` leaves out the thoughts, when it has read the JSON.
    profile["thinking_tags"] = _NO_TAGS
    # Others often know only the older field, and ignore the newer one without an error: then nothing bounds a reply.
    # OpenAI's models that think know only the newer one, wherever they are.
    thinks = spec.provider == "openai" and profile.get("thinking_enabled_by_default")
    is_theirs = spec.provider in _NEWER and not spec.address
    profile["openai_chat_supports_max_completion_tokens"] = bool(thinks or is_theirs)
    if type(provider.client).__module__.startswith(
        "openai"
    ):  # who refuses the schema says so, and is asked without it from then on
        profile["supports_json_schema_output"] = True
    return model
