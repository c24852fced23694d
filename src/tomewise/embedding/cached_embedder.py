"""Wrappers around embedders: their base, and a cache of the last queries.

Several searches for the same query embed it once, and searches at the same time embed their queries together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from operator import attrgetter
from threading import Lock
from typing import TypeAlias

import numpy as np

from tomewise.embedding.unit_rows import Vectors
from tomewise.errors import BadReply
from tomewise.types import Embedder

CACHE_SIZE = 256  # texts
AT_ONCE = 64  # texts, where the embedder states nothing: one or two seconds of work
MOST_JOINED = 64  # texts of a call that others may wait for; those of a build are more
_Row: TypeAlias = Future[Vectors]  # of shape (1, dimensions)


class ForwardingEmbedder:
    """The properties of the inner embedder; a wrapper adds `embed`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    inner = property(attrgetter("_embedder"))
    name = property(attrgetter("_embedder.name"))
    dimensions = property(attrgetter("_embedder.dimensions"))
    max_tokens = property(attrgetter("_embedder.max_tokens"))
    tokenizer = property(attrgetter("_embedder.tokenizer"))

    @property
    def texts_at_once(self) -> int:
        """How many texts of a longer list to embed before what is done can be shown, and the work stopped."""
        return int(getattr(self._embedder, "texts_at_once", AT_ONCE))


class CachedEmbedder(ForwardingEmbedder):
    """An embedder with a cache for calls with a single text. One call runs at a time.

    Where the last digits of a vector can depend on the other texts of its call, each of these texts is embedded alone,
    and calls with several texts bypass the cache. An embedder that `embeds_apart` has no such digits: what comes while
    a call runs, questions and their rewrites, is embedded together in the next one. What comes alone waits for nothing.
    """

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._joins: bool = getattr(embedder, "embeds_apart", False)
        self._cache: OrderedDict[str, _Row] = OrderedDict()
        self._waiting: dict[str, _Row] = {}
        self._lock = Lock()  # of both
        self._turn = Lock()  # of the call

    def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) != 1 and not (self._joins and 1 < len(texts) <= MOST_JOINED):
            return self._embedder.embed(texts)
        with self._lock:
            rows = [self._find_row(text, is_kept=len(texts) == 1) for text in texts]
        for text, row in zip(texts, rows, strict=True):
            if not row.done():
                with self._turn:
                    if not row.done():
                        self._embed_waiting(text)
        found = [row.result() for row in rows]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _find_row(self, text: str, *, is_kept: bool) -> _Row:
        """The row of a text, which may be there, or under way, or to be made."""
        row = self._cache.get(text) or self._waiting.get(text)
        if row is None:
            row = self._waiting[text] = Future()
        if is_kept:
            self._cache[text] = row
            self._cache.move_to_end(text)
            if len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)
        return row

    def _embed_waiting(self, text: str) -> None:
        """Embed this text; with it others that wait, where that changes nothing.

        A failure of several texts together may be due to one of them, so each is then embedded alone. An interrupt is
        this caller's: the texts still wait, and whoever asked for one embeds it.
        """
        with self._lock:
            others = [each for each in self._waiting if each != text] if self._joins else []
            taken = [text, *others[: MOST_JOINED - 1]]
        if len(taken) > 1:
            with suppress(Exception):
                self._embed_and_give(taken)
                return
        for each in taken:
            try:
                self._embed_and_give([each])
            except Exception as error:  # noqa: BLE001 - all who wait for this text get it, this caller too
                with self._lock:
                    self._cache.pop(each, None)
                    waiting = self._waiting.pop(each)
                waiting.set_exception(error)

    def _embed_and_give(self, texts: Sequence[str]) -> None:
        """Embed these texts, and give their vectors to all who wait for them."""
        vectors = self._embedder.embed(texts)
        if len(vectors) != len(texts):
            raise BadReply(f"the embedder {self.name} gave {len(vectors)} vectors for {len(texts)} texts")
        rows = [vectors[[place]] for place in range(len(texts))]
        for row in rows:
            row.flags.writeable = False
        with self._lock:
            waiting = [self._waiting.pop(text) for text in texts]
        for future, row in zip(waiting, rows, strict=True):
            future.set_result(row)
