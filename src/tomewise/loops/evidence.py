"""Evidence fitted into a budget of tokens or a window, and found again by its label."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from tomewise.language.labels import find_number
from tomewise.language.per_role import find_window
from tomewise.store.lookups import find_keys
from tomewise.types import Embedder, Evidence, In, LanguageModel, Out, Passage, PassageId, Role
from tomewise.types.place import describe_place

if TYPE_CHECKING:
    from tomewise.store.contract import Texts

Piece = TypeVar("Piece")
Count = Callable[[Sequence[str]], list[int]]  # tokens of each text
FENCE = 12  # tokens counted for label and fence of a piece of evidence, or of a note; its place is not counted
_PROMPT_BYTES = 16_000  # what the prompt around the evidence takes at most
_COUNTS_KEPT = 16_384  # texts, whose counts take 3 MB


def make_token_counter(embedder: Embedder, *, kept: int = _COUNTS_KEPT) -> Count:
    """Counts tokens with the embedder's tokenizer; a chat model's own differs by some percent.

    The counts of the last texts, `kept` of them, are remembered: the same passages are found again and again.
    """
    counts: OrderedDict[bytes, int] = OrderedDict()  # by the digest of a text, which may be of any length
    lock = Lock()

    def count(texts: Sequence[str]) -> list[int]:
        digests = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        with lock:
            known = {digest: counts[digest] for digest in digests if digest in counts}
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        if missing:
            found = embedder.tokenizer.encode_batch_fast(list(missing.values()), add_special_tokens=False)
            known |= {digest: len(tokens.ids) for digest, tokens in zip(missing, found, strict=True)}
        with lock:
            for digest, tokens in known.items():  # the oldest come first
                counts[digest] = tokens
                counts.move_to_end(digest)
            while len(counts) > kept:
                counts.popitem(last=False)
        return [known[digest] for digest in digests]

    return count


def fit_to_budget(evidence: Sequence[Evidence], budget: int, count: Count) -> list[Evidence]:
    """The first pieces that fit together; one that is too long for what is left is passed over, not cut."""
    fitting: list[Evidence] = []
    for piece, tokens in zip(evidence, measure_pieces(evidence, count), strict=True):
        if tokens <= budget:
            fitting.append(piece)
            budget -= tokens
    return fitting


def measure_pieces(evidence: Sequence[Evidence], count: Count) -> list[int]:
    """The tokens that each piece takes in a prompt."""
    return measure_texts([f"{describe_source(piece)}\n{piece.text}" for piece in evidence], count)


def measure_texts(texts: Sequence[str], count: Count) -> list[int]:
    """The tokens that each text takes in a prompt, its label and fence included."""
    return [tokens + FENCE for tokens in count(texts)] if texts else []


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


def load_passages(store: Texts, ids: Iterable[PassageId]) -> dict[PassageId, Passage]:
    """The passages that exist, by id, in the order asked for."""
    wanted = list(ids)
    keys = find_keys(store, wanted)
    passages = store.passages(keys[id] for id in wanted if id in keys)
    return {passage.id: passage for passage in passages.values()}


def describe_source(piece: Evidence) -> str:
    """The stated title and the place of a passage: "The Tide, ch. 3, p. 37"."""
    return ", ".join(filter(None, (piece.title, describe_place(piece.place))))


def find_labelled(labels: Iterable[str], shown: Sequence[Piece]) -> list[Piece]:
    """What a prompt shows under these labels, each once; labels that it does not show are passed over."""
    numbers = dict.fromkeys(find_number(label, "E") for label in labels)
    return [shown[number - 1] for number in numbers if number and number <= len(shown)]


def join_texts(run: Sequence[Passage]) -> tuple[str, list[int]]:
    """The text of passages that follow one another, and where in it each begins.

    Only blanks stand between passages. What two of them share comes once.
    """
    text, starts = run[0].text, [0]
    for before, passage in pairwise(run):
        gap = passage.start - before.end
        text += ("", " ", "\n\n")[max(0, min(gap, 2))]
        starts.append(len(text) + min(gap, 0))
        text += passage.text[max(0, -gap) :]
    return text, starts
