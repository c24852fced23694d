"""What a model gets to see: evidence fitted into a budget of tokens, in order, under labels."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from tomewise.language.per_role import find_window
from tomewise.language.roles import Shown
from tomewise.loops.origins import describe_origin, name_kind
from tomewise.place import describe_place
from tomewise.store.records import PASSAGES
from tomewise.types import Embedder, Evidence, In, LanguageModel, NodeId, Out, Scope

if TYPE_CHECKING:
    from tomewise.store.contract import Texts
    from tomewise.types import Role

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
    kept: list[Evidence] = []
    texts = [f"{describe_source(piece)}\n{piece.text}" for piece in evidence]
    for piece, tokens in zip(evidence, count(texts), strict=True):
        if tokens + FENCE <= budget:
            kept.append(piece)
            budget -= tokens + FENCE
    return kept


def fit_to_window(
    material: Sequence[Piece], model: LanguageModel, role: Role[In, Out], given: Callable[[Sequence[Piece]], In]
) -> list[Piece]:
    """The longest beginning of the material with which the call, its reply included, fits into the model's window."""
    room = find_window(model, role) - role.output_tokens

    def fits(count: int) -> bool:
        return model.reckon(role, given(material[:count])) <= room

    # No token is shorter than a byte: where all bytes fit, nothing need be reckoned.
    if len(given(material).model_dump_json().encode()) + _PROMPT_BYTES <= room or fits(len(material)):
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


class Shelf:
    """Knows where evidence stands in its documents."""

    def __init__(self, store: Texts) -> None:
        self._store = store

    def show(self, evidence: Sequence[Evidence]) -> list[Shown]:
        """Evidence as a prompt shows it, with what it is and where it stands: E1, E2, ... in the order given."""
        places = self._store.places(source for piece in evidence for source in piece.sources)
        totals = self._store.count_passages({document for document, _ in places.values()})
        shown = []
        for number, piece in enumerate(evidence, start=1):
            origin = describe_origin([places[source] for source in piece.sources if source in places], totals)
            shown.append(
                Shown(
                    label=f"E{number}",
                    text=piece.text,
                    title=piece.title,
                    kind=name_kind(piece.layer),
                    document="" if piece.title else origin.document,
                    place=", ".join(filter(None, (describe_place(piece.place), origin.place))),
                )
            )
        return shown

    def fetch(self, nodes: Sequence[NodeId], within: Scope | None) -> list[Evidence]:
        """The passages within a scope among these nodes, in the order given."""
        keys = self._store.keys_of(nodes)
        allowed = self._store.keys_within(within)
        inside = [keys[node] for node in nodes if node in keys and (allowed is None or keys[node] in allowed)]
        return [
            Evidence(
                node=passage.id,
                layer=PASSAGES,
                text=passage.text,
                score=0.0,
                sources=(passage.id,),
                title=passage.title,
                place=passage.place,
            )
            for passage in self._store.passages(inside).values()
        ]

    def in_order(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        """Layers in the order in which they first occur, and in each the evidence in document order."""
        layers = list(dict.fromkeys(piece.layer for piece in evidence))
        known = self._store.places(piece.sources[0] for piece in evidence if piece.sources)

        def place(piece: Evidence) -> tuple[int, str, int, int, str]:
            where = known.get(piece.sources[0], ("", 0)) if piece.sources else ("", 0)
            return (layers.index(piece.layer), *where, -len(piece.sources), piece.node)

        return sorted(evidence, key=place)


def share_budget(
    budget: int, shares: Mapping[str, int], texts: Mapping[str, Sequence[str]], count: Count
) -> dict[str, list[int]]:
    """Find which texts of each layer fit, as places in its list.

    Each layer fills its share in the order given, passing over what is too long for what is left. What a layer leaves
    unused spills over to the others, the layer with the largest share first (ComoRAG, appendix B.4: 8:2:2:1).
    """
    sizes = {layer: [tokens + FENCE for tokens in count(layer_texts)] for layer, layer_texts in texts.items()}
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
    earlier = set(taken)
    for place, size in enumerate(sizes):
        if place not in earlier and used + size <= room:
            taken.append(place)
            used += size
    return used
