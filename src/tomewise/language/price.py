"""What a model charges, from the price list of genai-prices."""

from __future__ import annotations

from tomewise.language.spec import ModelSpec


def price(model_spec: str, input_tokens: int, output_tokens: int) -> float | None:
    """Dollars for one call of `provider:model` with so many tokens, or None if the price is unknown."""
    return find_price(ModelSpec.parse(model_spec), input_tokens, output_tokens)


def find_price(spec: ModelSpec, input_tokens: int, output_tokens: int) -> float | None:
    """As `price`."""
    from genai_prices import Usage, calc_price

    try:
        calculation = calc_price(
            Usage(input_tokens=input_tokens, output_tokens=output_tokens), spec.model, provider_id=spec.provider
        )
    except LookupError:
        return None
    return float(calculation.total_price)
