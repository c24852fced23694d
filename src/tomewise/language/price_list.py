"""Which providers have a key, and what their models cost: by the user's own list, else by that of genai-prices."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import Field, TypeAdapter

from tomewise.errors import UnknownName, suggest
from tomewise.language.spec import PROVIDERS, ModelSpec
from tomewise.settings import find_file
from tomewise.types.plain import describe_invalid

OWN_LIST = "prices.toml"  # beside the settings of the user
_OWN = TypeAdapter(
    dict[str, Annotated[list[Annotated[float, Field(ge=0, allow_inf_nan=False)]], Field(min_length=2, max_length=3)]]
)


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A provider, the environment variables for its key, and whether one of them is set."""

    name: str
    variables: str
    has_key: bool


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """A model with its price in dollars for a million tokens in and out; None if it is not known as one number."""

    name: str
    input: float | None
    output: float | None


def list_providers() -> list[ModelProvider]:
    """The providers whose keys are known by name, in alphabetical order."""
    specs = {name: ModelSpec(name, "any") for name in sorted(PROVIDERS)}
    return [ModelProvider(name, spec.key_variables, spec.find_key(None) is not None) for name, spec in specs.items()]


def list_prices(provider: str) -> list[ModelPrice]:
    """The models of a provider in the user's list, then in that of genai-prices, without what that calls deprecated.

    Of these come those with the largest window first, those of which none is known last. Raises UnknownName.
    """
    from genai_prices.data_snapshot import get_snapshot

    listed = {found.id: found for found in get_snapshot().providers}
    listed |= {"xai": listed["x-ai"]} if "x-ai" in listed else {}
    if provider not in PROVIDERS or provider not in listed:
        known = sorted(PROVIDERS.intersection(listed))
        raise UnknownName(f"no price list of {provider!r}: {suggest(provider, known)}known are {', '.join(known)}")
    models = (model for model in listed[provider].models if not model.deprecated)
    ranked = sorted(models, key=lambda model: (-(model.context_window or 0), model.id))
    own = read_own_prices()
    mine = [ModelPrice(name, *dollars[:2]) for name, dollars in own.items() if name.startswith(f"{provider}:")]
    names = {f"{provider}:{model.id}": model.prices for model in ranked}
    return [*mine, *(_read_price(name, prices) for name, prices in names.items() if name not in own)]


@cache
def read_own_prices() -> Mapping[str, list[float]]:
    """The user's list: by model dollars for a million tokens in and out, and perhaps for those read from a cache.

    One that cannot be read is not used, with a warning.
    """
    path = find_file().with_name(OWN_LIST)
    try:
        return _OWN.validate_python(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        form = 'a line is "openai:gpt-6" = [1.25, 10.0], dollars for a million tokens in and out'
        warnings.warn(f"{path} is not used ({describe_invalid(error)}): {form}", stacklevel=2)
        return {}


def _read_price(name: str, prices: object) -> ModelPrice:
    dollars: list[float | None] = []
    for field in ("input_mtok", "output_mtok"):
        try:  # a list of prices that change over time, or tiers, have no one number
            dollars.append(float(getattr(prices, field)))
        except (AttributeError, TypeError, ValueError):
            dollars.append(None)
    return ModelPrice(name, *dollars)


def find_price(spec: ModelSpec, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float | None:
    """Dollars for one call of the model with so many tokens, or None if the price is unknown.

    Of the input tokens so many are `cached_tokens`.
    """
    from genai_prices import Usage, calc_price

    if own := read_own_prices().get(str(spec)):
        cached = cached_tokens * (own[-1] - own[0]) if len(own) > 2 else 0.0
        return (input_tokens * own[0] + output_tokens * own[1] + cached) / 1e6
    if not _has_price(spec.provider, spec.model):
        return None
    used = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached_tokens)
    return float(calc_price(used, spec.model, provider_id=spec.provider).total_price)


def find_model_price(spec: ModelSpec) -> ModelPrice:
    """What a model costs, for short prompts where long ones cost more."""
    prices = (find_price(spec, 1_000, 0), find_price(spec, 0, 1_000))
    return ModelPrice(str(spec), *(None if price is None else price * 1_000 for price in prices))


@cache
def _has_price(provider: str, model: str) -> bool:
    """Whether the list has the model. Cached, since to find that it does not takes a pass over the whole list."""
    from genai_prices import Usage, calc_price

    try:
        calc_price(Usage(input_tokens=1), model, provider_id=provider)
    except LookupError:
        return False
    return True
