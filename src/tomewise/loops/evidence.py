"""Evidence fitted into a budget of tokens or a window, and found again by its label."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tomewise.language.per_role import find_window
from tomewise.place import describe_place
from tomewise.types import Embedder, Evidence, In, LanguageModel, Out, Role

Piece = TypeVar("Piece")
Count = Callable[[Sequence[str]], list[int]]  # tokens of each text
FENCE = 12  # tokens counted for label and fence of a piece of evidence, or of a note; its place is not counted
_PROMPT_BYTES = 16_000  # what the prompt around the evidence takes at most


def make_token_counter(embedder: Embedder) -> Count:
    """Counts tokens with the embedder's tokenizer; a chat model's own differs by some percent."""

    def count(texts: Sequence[str]) -> list[int]:
        return [len(found.ids) for found in embedder.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    return count


def fit_to_budget(evidence: Sequence[Evidence], budget: int, count: Count) -> list[Evidence]:
    """The first pieces that fit together; one that is too long for what is left is passed over, not cut."""
    fitting: list[Evidence] = []
    texts = [f"{describe_source(piece)}\n{piece.text}" for piece in evidence]
    for piece, tokens in zip(evidence, count(texts), strict=True):
        if tokens + FENCE <= budget:
            fitting.append(piece)
            budget -= tokens + FENCE
    return fitting


def fit_to_window(
    material: Sequence[Piece], model: LanguageModel, role: Role[In, Out], make_input: Callable[[Sequence[Piece]], In]
) -> list[Piece]:
    """The longest beginning of the material with which the call, its reply included, fits into the model's window."""
    room = find_window(model, role) - role.output_tokens

    def fits(count: int) -> bool:
        return model.count_input_tokens(role, make_input(material[:count])) <= room

    # No token is shorter than a byte: if all bytes fit, no tokens are counted.
    if len(make_input(material).model_dump_json().encode()) + _PROMPT_BYTES <= room or fits(len(material)):
        return list(material)
    return list(material[: bisect_left(range(len(material)), True, key=lambda count: not fits(count + 1))])


def describe_source(piece: Evidence) -> str:
    """The stated title and the place of a passage: "The Tide, ch. 3, p. 37"."""
    return ", ".join(filter(None, (piece.title, describe_place(piece.place))))


def find_labelled(label: str, evidence: Sequence[Evidence]) -> list[Evidence]:
    """The piece that a prompt shows under this label ("E1", "[e1]"), in a list; an empty list for an unknown label."""
    number = label.strip("[]() .").lstrip("Ee")
    known = number.isdecimal() and len(number) < 9 and int(number) > 0
    return list(evidence[int(number) - 1 : int(number)]) if known else []


def share_budget(
    budget: int, shares: Mapping[str, int], texts: Mapping[str, Sequence[str]], count: Count
) -> dict[str, list[int]]:
    """Find which texts of each layer fit, as indices of its list.

    Each layer fills its share in the order given, passing over what is too long for what is left. What a layer leaves
    unused spills over to the others, the layer with the largest share first (ComoRAG, appendix B.4: 8:2:2:1).
    """
    sizes = {layer: [tokens + FENCE for tokens in count(layer_texts)] for layer, layer_texts in texts.items()}
    whole = sum(shares.values())
    chosen: dict[str, list[int]] = {layer: [] for layer in texts}
    left = budget
    for layer in texts:
        left -= _fill_room(chosen[layer], sizes[layer], budget * shares[layer] // whole)
    for layer in sorted(texts, key=lambda name: -shares[name]):
        left -= _fill_room(chosen[layer], sizes[layer], left)
    return {layer: sorted(indices) for layer, indices in chosen.items()}


def _fill_room(chosen: list[int], sizes: Sequence[int], room: int) -> int:
    """Choose more of the texts, as many as fit. Returns the tokens that they use."""
    used = 0
    earlier = set(chosen)
    for index, size in enumerate(sizes):
        if index not in earlier and used + size <= room:
            chosen.append(index)
            used += size
    return used
