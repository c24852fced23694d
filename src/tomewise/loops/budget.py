"""Sharing one budget of tokens among layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tomewise.loops.showing import FENCE, Count


def shared(
    budget: int, shares: Mapping[str, int], texts: Mapping[str, Sequence[str]], count: Count
) -> dict[str, list[int]]:
    """Which texts of each layer fit, as places in its list.

    Each layer fills its share in the order given, passing over what is too long for what is left. What a layer leaves
    unused spills over to the others, the layer with the largest share first (ComoRAG, appendix B.4: 8:2:2:1).
    """
    sizes = {layer: [tokens + FENCE for tokens in count(some)] for layer, some in texts.items()}
    whole = sum(shares.values())
    taken: dict[str, list[int]] = {layer: [] for layer in texts}
    left = budget
    for layer in texts:
        left -= _fill(taken[layer], sizes[layer], budget * shares[layer] // whole)
    for layer in sorted(texts, key=lambda name: -shares[name]):
        left -= _fill(taken[layer], sizes[layer], left)
    return {layer: sorted(places) for layer, places in taken.items()}


def _fill(taken: list[int], sizes: Sequence[int], room: int) -> int:
    """Take what fits of what is not taken yet; returns what it used."""
    used = 0
    held = set(taken)
    for place, size in enumerate(sizes):
        if place not in held and used + size <= room:
            taken.append(place)
            used += size
    return used
