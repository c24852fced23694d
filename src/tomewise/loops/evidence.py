"""Pieces of evidence: what each is, where it stands, which repeat others, and how many fit."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from tomewise.language.wrapped import find_room
from tomewise.store.records import PASSAGES
from tomewise.text.sentences import split_sentences
from tomewise.text.words import fold as fold
from tomewise.types import DocumentId, Embedder, Evidence, In, LanguageModel, Out, Passage, PassageId, Role
from tomewise.types.place import describe_place

if TYPE_CHECKING:
    from tomewise.store.contract import Texts

Piece = TypeVar("Piece")
Count = Callable[[Sequence[str]], list[int]]  # tokens of each text
_Run = tuple[str, ...]
FENCE = 12  # tokens counted for label and fence of a piece of evidence, or of a note; its place is not counted
_PROMPT_BYTES = 16_000  # what the prompt around the evidence takes at most
_COUNTS_KEPT = 16_384  # texts, whose counts take 3 MB
PASSAGE = "passage"  # the only kind that may be quoted
EXTRACTS = "extracts"  # the layer of evidence that is words of passages
_WORD = re.compile(r"\w+")
_LEAST = 12  # words: shorter texts, such as facts, cost little and are seldom the same by mistake
_RUN = 3  # words
_SHARE = 0.9  # of the runs of a text that another one must have


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
    return measure_texts([f"{describe_piece(piece)}\n{piece.text}" for piece in evidence], count)


def measure_texts(texts: Sequence[str], count: Count) -> list[int]:
    """The tokens that each text takes in a prompt, its label and fence included."""
    return [tokens + FENCE for tokens in count(texts)] if texts else []


def fit_to_window(
    material: Sequence[Piece],
    model: LanguageModel,
    role: Role[In, Out],
    make_input: Callable[[Sequence[Piece]], In],
    most: float = inf,
) -> list[Piece]:
    """The longest beginning of the material with which the call, its reply included, fits into the model's window.

    The prompt has `most` tokens at most.
    """
    room = min(most, find_room(model, role))

    def fits(count: int) -> bool:
        return model.count_input_tokens(role, make_input(material[:count])) <= room

    # No token is shorter than a byte: if all bytes fit, no tokens are counted.
    if len(make_input(material).model_dump_json().encode()) + _PROMPT_BYTES <= room or fits(len(material)):
        return list(material)
    return list(material[: bisect_left(range(len(material)), True, key=lambda count: not fits(count + 1))])


def load_passages(store: Texts, ids: Iterable[PassageId]) -> dict[PassageId, Passage]:
    """The passages that exist, by id, in the order asked for."""
    wanted = list(ids)
    found = store.find(wanted)
    passages = store.passages(found[id].key for id in wanted if id in found)
    return {passage.id: passage for passage in passages.values()}


def describe_piece(piece: Evidence) -> str:
    """The stated title and the place of a passage: "The Tide, ch. 3, p. 37"."""
    return ", ".join(filter(None, (piece.title, describe_place(piece.place))))


def name_kind(piece: Evidence) -> str:
    """What a piece of evidence is: as its layer declares it, else the name of the layer."""
    return piece.kind or (PASSAGE if piece.layer == PASSAGES else piece.layer)


def describe_origin(places: Sequence[tuple[DocumentId, int]], totals: Mapping[DocumentId, int]) -> tuple[str, str]:
    """Where passages stand: the last part of the document's id, and the place as "part 12 of 59". Both may be empty.

    `places` are documents with positions from 0. `totals` counts the passages of each document.
    """
    documents = list(dict.fromkeys(document for document, _ in places))
    if len(documents) != 1:
        return "", f"{len(documents)} documents" if documents else ""
    (document,) = documents
    name, total = document.rstrip("/").rsplit("/", 1)[-1], totals.get(document, 0)
    parts = sorted({position + 1 for _, position in places})
    if total < 2:
        return name, ""
    if len(parts) == 1:
        return name, f"part {parts[0]} of {total}"
    gaps = "" if parts[-1] - parts[0] + 1 == len(parts) else ", with gaps"
    return name, f"parts {parts[0]} to {parts[-1]} of {total}{gaps}"


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


def drop_near_repeats(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The evidence without pieces that add no word to an earlier one: copies, and texts that quote a passage.

    Nearly all their words must stand in the same order. A piece with another number, name or "not" has a word more, so
    it stays. A passage is left out for another passage only, since nothing else can be quoted.
    """
    kept: list[Evidence] = []
    known: list[tuple[bool, set[str], set[_Run]]] = []
    for piece in evidence:
        is_passage, runs = name_kind(piece) == PASSAGE, set(_list_runs(piece.text))
        words = {word for run in runs for word in run}
        if len(runs) > _LEAST - _RUN:
            if any(
                is_passage <= is_earlier and words <= earlier and len(runs & earlier_runs) >= _SHARE * len(runs)
                for is_earlier, earlier, earlier_runs in known
            ):
                continue
            known.append((is_passage, words, runs))
        kept.append(piece)
    return kept


def drop_said(notes: Sequence[str], shown: Iterable[str]) -> list[str]:
    """The notes without those that say nothing of their own: each of their sentences stands in what is shown.

    It may also stand in a note that stays. A sentence is the same only whole, whatever its case, its spaces and the
    marks at its ends.
    """
    known = {sentence for text in shown for sentence in _fold_sentences(text)}
    own = {note: _fold_sentences(note) for note in notes}
    kept = list(notes)
    for note in reversed(notes):
        if own[note] <= known.union(*(own[each] for each in kept if each != note)):
            kept.remove(note)
    return kept


def _fold_sentences(text: str) -> frozenset[str]:
    return frozenset(fold(sentence.text) for sentence in split_sentences(text))


def _list_runs(text: str) -> Iterable[_Run]:
    """The runs of neighbouring words; of fewer words there is one."""
    words = _WORD.findall(text.casefold())
    return zip(*(words[start:] for start in range(min(_RUN, len(words)))), strict=False)
