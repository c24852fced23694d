"""Passages: a document cut to what an embedder takes in, at the ends of paragraphs and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from tomewise.errors import ReadingError, UsageError
from tomewise.reading.units import CHARACTERS_PER_TOKEN, Break, Unit, Units
from tomewise.types import Document, Passage, content_id

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SMALLEST = 16  # tokens of text without which a passage says nothing


class PassageSplitter:
    """Cuts documents into passages of at most `max_tokens` tokens of an embedder's own tokenizer.

    The count is of `Passage.content` (stated title, newline, text) with special tokens; a title that would take more
    than a quarter of it is shortened in the passages. A passage is at most 8 characters long per token. `overlap` is
    how many tokens two neighbours share at most, in whole sentences. Raises `UsageError` for sizes that cannot be.

    Not built on semantic-text-splitter: measured on a novel of 472 kB, its search tokenizes the text over and over
    and takes 2.3 s, where one pass that counts paragraphs in batches and packs them takes 0.12 s.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, overlap: int = 0) -> None:
        special = tokenizer.num_special_tokens_to_add(False)
        if max_tokens - special < 2 * SMALLEST:
            raise UsageError(f"passages of {max_tokens} tokens are too small: ask for {2 * SMALLEST + special} or more")
        if not 0 <= overlap <= max_tokens // 2:
            raise UsageError(f"an overlap of {overlap} tokens does not fit passages of {max_tokens}: ask for 0 to half")
        self._given = tokenizer
        self._room = max_tokens - special
        self._overlap = overlap

    def split(self, document: Document) -> list[Passage]:
        """The passages of a document, in order.

        `document.text[p.start:p.end] == p.text` without outer white space, positions count from 0, and every
        character that is not white space lies in a passage (in exactly one when there is no overlap). The same
        document gives the same passages and ids. Raises `ReadingError` for half surrogate pairs.
        """
        return list(self.stream(document))

    def stream(self, document: Document) -> Iterator[Passage]:
        """`split`, one passage at a time: no step takes long, so that a caller can stop between two."""
        _refuse_surrogates(document)
        title, title_tokens = self._title(document.title)
        capacity = self._room - title_tokens
        paragraph = min(capacity // 2, self._overlap or capacity)
        units = Units(self._tokenizer, capacity, paragraph).of(document.text)
        position = begun = covered = 0
        for group in self._packed(units, capacity):
            first = group[0].start
            if position and first <= begun:  # the passage before was cut again, down to what they were to share
                first = next(unit.start for unit in group if unit.start >= covered)
            for start, end in self._fitting(document.text, title, first, group[-1].end, counted=len(group)):
                if end <= covered:  # a part of a group that was cut again: no more than the overlap
                    continue
                text = document.text[start:end]
                yield Passage(
                    id=content_id("p", document.id, start, end, text),
                    document=document.id,
                    position=position,
                    start=start,
                    end=end,
                    text=text,
                    title=title,
                )
                position, begun, covered = position + 1, start, end

    def _packed(self, units: Iterable[Unit], capacity: int) -> Iterator[list[Unit]]:
        window: list[Unit] = []
        shared = 0  # units at the front of the window that the passage before holds too
        for unit in units:
            while window and not _joins(window, unit, capacity):
                if shared == len(window):
                    window, shared = window[1:], shared - 1
                    continue
                cut = len(window) if window[-1].behind is Break.HARD else _best_cut(window, shared)
                yield window[:cut]
                kept = self._kept(window[:cut])
                window, shared = kept + window[cut:], len(kept)
            window.append(unit)
        if len(window) > shared:
            yield window

    def _kept(self, group: list[Unit]) -> list[Unit]:
        """The units at the end of a passage that the next one begins with."""
        if not self._overlap:
            return []
        tokens = 0
        for index in range(len(group) - 1, 0, -1):
            tokens += group[index].tokens
            if tokens > self._overlap or group[index].behind is Break.HARD:
                return group[index + 1 :]
        return group[1:]

    def _fitting(self, text: str, title: str, start: int, end: int, counted: int) -> Iterator[tuple[int, int]]:
        """The span, or parts of it where the tokenizer makes more of the whole than of its parts."""
        if self._adds_up or (counted == 1 and not title) or end - start < 2:
            yield start, end
            return
        piece = text[start:end]
        content = f"{title}\n{piece}" if title else piece
        if len(self._tokenizer.encode(content, add_special_tokens=False)) <= self._room:
            yield start, end
            return
        middle = len(piece) // 2
        cut = max(piece.rfind(" ", 1, middle), piece.rfind("\n", 1, middle)) + 1 or middle
        left, right = piece[:cut].rstrip(), piece[cut:].lstrip()
        yield from self._fitting(text, title, start, start + len(left), counted=2)
        yield from self._fitting(text, title, end - len(right), end, counted=2)

    def _title(self, title: str) -> tuple[str, int]:
        limit = self._room // 4
        title = title.strip()[: CHARACTERS_PER_TOKEN * limit]
        encoding = self._tokenizer.encode(title, add_special_tokens=False)
        if len(encoding) > limit:
            title = title[: encoding.offsets[limit - 1][1]].rstrip()
        return title, len(self._tokenizer.encode(f"{title}\n", add_special_tokens=False)) if title else 0

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        """The tokenizer as it counts, without the truncation and padding of a model's own settings."""
        if self._given.truncation is None and self._given.padding is None:
            return self._given
        from tokenizers import Tokenizer

        copy = Tokenizer.from_str(self._given.to_str())
        copy.no_truncation()
        copy.no_padding()
        return copy

    @cached_property
    def _adds_up(self) -> bool:
        """Whether tokens of units add up exactly, as they do where words are looked up one by one (BERT)."""
        from tokenizers.normalizers import BertNormalizer
        from tokenizers.pre_tokenizers import BertPreTokenizer

        known = (self._tokenizer.pre_tokenizer, BertPreTokenizer), (self._tokenizer.normalizer, BertNormalizer)
        return all(isinstance(part, kind) for part, kind in known)


def _joins(window: list[Unit], unit: Unit, capacity: int) -> bool:
    return (
        window[-1].behind is not Break.HARD
        and unit.end - window[0].start <= CHARACTERS_PER_TOKEN * capacity
        and sum(held.tokens for held in window) + unit.tokens <= capacity
    )


def _best_cut(window: list[Unit], shared: int) -> int:
    """How many units the passage takes: up to the last of the best breaks in its second half."""
    half = sum(unit.tokens for unit in window) / 2
    tokens, best, cut = 0, Break.HARD, len(window)
    for count, unit in enumerate(window, start=1):
        tokens += unit.tokens
        if count > shared and tokens >= half and unit.behind >= best:
            best, cut = unit.behind, count
    return cut


def _refuse_surrogates(document: Document) -> None:
    for field, text in (("text", document.text), ("title", document.title)):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ReadingError(
                f"the {field} of {document.name!r} holds half a surrogate pair at character {error.start}: "
                "decode it again, or replace that character"
            ) from None
