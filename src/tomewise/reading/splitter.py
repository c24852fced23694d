"""Split documents into passages that fit the embedder, at the ends of paragraphs and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from tomewise.errors import ReadingError, UsageError
from tomewise.reading.units import CHARACTERS_PER_TOKEN, Break, Unit, Units
from tomewise.types import Document, Passage, content_id

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MIN_TOKENS = 16  # a passage with fewer tokens of text says too little


class PassageSplitter:
    """Splits documents into passages of at most `max_tokens` tokens of the embedder's own tokenizer.

    The limit is for `Passage.content` (stated title, newline, text) with special tokens. A title that would use more
    than a quarter of it is shortened in the passages. A passage has at most 8 characters per token. `overlap` is the
    most tokens that two neighbours share, in whole sentences. Raises `UsageError` for impossible sizes.

    Why not semantic-text-splitter: on a novel of 472 kB its search tokenizes the text many times and takes 2.3 s. This
    class counts paragraphs in batches, packs them in one pass, and takes 0.12 s.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, overlap: int = 0) -> None:
        special = tokenizer.num_special_tokens_to_add(False)
        if max_tokens - special < 2 * _MIN_TOKENS:
            least = 2 * _MIN_TOKENS + special
            raise UsageError(f"passages of {max_tokens} tokens are too small: ask for {least} or more")
        if not 0 <= overlap <= max_tokens // 2:
            raise UsageError(f"an overlap of {overlap} tokens does not fit passages of {max_tokens}: ask for 0 to half")
        self._original_tokenizer = tokenizer
        self._room = max_tokens - special
        self._overlap = overlap

    def split(self, document: Document) -> list[Passage]:
        """The passages of a document, in order.

        `document.text[p.start:p.end] == p.text` without outer white space. Positions count from 0. Every character
        that is not white space is in a passage, and without overlap in exactly one. Equal documents give equal
        passages and ids. Raises `ReadingError` for half surrogate pairs.
        """
        return list(self.stream(document))

    def stream(self, document: Document) -> Iterator[Passage]:
        """Like `split`, one passage at a time. No step takes long, so a caller can stop between two passages."""
        _refuse_surrogates(document)
        title, title_tokens = self._fit_title(document.title)
        capacity = self._room - title_tokens
        paragraph = min(capacity // 2, self._overlap or capacity)
        units = Units(self._tokenizer, capacity, paragraph).cut_text(document.text)
        position = last_start = covered = 0
        for group in self._pack(units, capacity):
            first = group[0].start
            if position and first <= last_start:  # the group before was split again; its last part is all overlap
                first = next(unit.start for unit in group if unit.start >= covered)
            for start, end in self._fit_span(document.text, title, first, group[-1].end, counted=len(group)):
                if end <= covered:  # this part of a group that was split again lies inside the overlap
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
                position, last_start, covered = position + 1, start, end

    def _pack(self, units: Iterable[Unit], capacity: int) -> Iterator[list[Unit]]:
        window: list[Unit] = []
        shared = 0  # units at the front of the window that the previous passage has too
        for unit in units:
            while window and not _joins(window, unit, capacity):
                if shared == len(window):
                    window, shared = window[1:], shared - 1
                    continue
                cut = len(window) if window[-1].behind is Break.HARD else _find_best_cut(window, shared)
                yield window[:cut]
                overlap = self._take_overlap(window[:cut])
                window, shared = overlap + window[cut:], len(overlap)
            window.append(unit)
        if len(window) > shared:
            yield window

    def _take_overlap(self, group: list[Unit]) -> list[Unit]:
        """The units at the end of a passage with which the next passage begins."""
        if not self._overlap:
            return []
        tokens = 0
        for index in range(len(group) - 1, 0, -1):
            tokens += group[index].tokens
            if tokens > self._overlap or group[index].behind is Break.HARD:
                return group[index + 1 :]
        return group[1:]

    def _fit_span(self, text: str, title: str, start: int, end: int, counted: int) -> Iterator[tuple[int, int]]:
        """The span, or its halves if it has more tokens as a whole than its units were counted to have.

        `counted` is the number of units in it.
        """
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
        yield from self._fit_span(text, title, start, start + len(left), counted=2)
        yield from self._fit_span(text, title, end - len(right), end, counted=2)

    def _fit_title(self, title: str) -> tuple[str, int]:
        """The title, shortened to a quarter of the room, and its number of tokens with the newline behind it."""
        limit = self._room // 4
        title = title.strip()[: CHARACTERS_PER_TOKEN * limit]
        encoding = self._tokenizer.encode(title, add_special_tokens=False)
        if len(encoding) > limit:
            title = title[: encoding.offsets[limit - 1][1]].rstrip()
        return title, len(self._tokenizer.encode(f"{title}\n", add_special_tokens=False)) if title else 0

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        """The tokenizer without truncation and padding, which a model's own settings may have switched on."""
        if self._original_tokenizer.truncation is None and self._original_tokenizer.padding is None:
            return self._original_tokenizer
        from tokenizers import Tokenizer

        copy = Tokenizer.from_str(self._original_tokenizer.to_str())
        copy.no_truncation()
        copy.no_padding()
        return copy

    @cached_property
    def _adds_up(self) -> bool:
        """Whether the token counts of units add up exactly, as in BERT, which looks up one word at a time."""
        from tokenizers.normalizers import BertNormalizer
        from tokenizers.pre_tokenizers import BertPreTokenizer

        known = (self._tokenizer.pre_tokenizer, BertPreTokenizer), (self._tokenizer.normalizer, BertNormalizer)
        return all(isinstance(part, kind) for part, kind in known)


def _joins(window: list[Unit], unit: Unit, capacity: int) -> bool:
    return (
        window[-1].behind is not Break.HARD
        and unit.end - window[0].start <= CHARACTERS_PER_TOKEN * capacity
        and sum(part.tokens for part in window) + unit.tokens <= capacity
    )


def _find_best_cut(window: list[Unit], shared: int) -> int:
    """How many units the passage gets: those up to the last of the best breaks in its second half."""
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
