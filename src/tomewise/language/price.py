"""What a model charges, from the price list of genai-prices."""

from __future__ import annotations

from functools import cache

from tomewise.language.spec import ModelSpec


def price(model_spec: str, input_tokens: int, output_tokens: int) -> float | None:
    """Dollars for one call of `provider:model` with so many tokens, or None if the price is unknown."""
    return find_price(ModelSpec.parse(model_spec), input_tokens, output_tokens)


@cache
def _has_price(provider: str, model: str) -> bool:
    """Whether the list has the model: to look for one that it does not have takes a walk through the whole list."""
    from genai_prices import Usage, calc_price

    try:
        calc_price(Usage(input_tokens=1), model, provider_id=provider)
    except LookupError:
        return False
    return True


def find_price(spec: ModelSpec, input_tokens: int, output_tokens: int) -> float | None:
    """As `price`."""
    from genai_prices import Usage, calc_price

    if not _has_price(spec.provider, spec.model):
        return None
    used = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    return float(calc_price(used, spec.model, provider_id=spec.provider).total_price)
