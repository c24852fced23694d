"""Asking a system's retriever once more for its ranking, without paying twice for what its loop asked already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tomewise.errors import BadReply, ModelError, Refused
from tomewise.language.forwarding import Forwarding
from tomewise.types import Embedder, Passage

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from tomewise.store.sqlite.store import SqliteStore
    from tomewise.types import In, Out, Role


@dataclass(slots=True)
class Memo:
    """What one question has asked for."""

    replies: dict[tuple[str, str], Any] = field(default_factory=dict)
    rows: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    passages: dict[int, Passage] = field(default_factory=dict)
    lexical: dict[tuple[str, int], list[tuple[int, float]]] = field(default_factory=dict)
    replaying: bool = False


_memo: ContextVar[Memo | None] = ContextVar("tomewise_replay", default=None)


@contextmanager
def one_question() -> Iterator[None]:
    """Replies and vectors are remembered inside, and nothing from before is used."""
    token = _memo.set(Memo())
    try:
        yield
    finally:
        _memo.reset(token)


@contextmanager
def replaying() -> Iterator[None]:
    """Inside, what was asked since `one_question` began is answered from memory: neither paid nor timed."""
    memo = _memo.get()
    if memo is None:
        raise RuntimeError("there is nothing to replay outside of `one_question`")
    memo.replaying = True
    try:
        yield
    finally:
        memo.replaying = False


class ReplayedModel(Forwarding):
    """The model, remembering its replies for the question under way."""

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model."""
        memo = _memo.get()
        if memo is None:
            return await self._model.ask(role, given)
        key = (role.name, given.model_dump_json())
        if memo.replaying and key in memo.replies:
            kept = memo.replies[key]
            if isinstance(kept, ModelError):
                raise kept
            again: Out = kept.model_copy(deep=True)
            return again
        try:
            reply = await self._model.ask(role, given)
        except (BadReply, Refused) as error:
            memo.replies[key] = error
            raise
        memo.replies[key] = reply
        return reply

    async def close(self) -> None:
        """Leave the model open: the caller that made it closes it."""


class ReplayedEmbedder:
    """The embedder, remembering the vectors of the question under way."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def max_tokens(self) -> int:
        return self._embedder.max_tokens

    @property
    def tokenizer(self) -> Tokenizer:
        return self._embedder.tokenizer

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As the embedder."""
        memo = _memo.get()
        if memo is None:
            return self._embedder.embed(texts)
        if memo.replaying and texts and all(text in memo.rows for text in texts):
            return np.stack([memo.rows[text] for text in texts])
        rows = self._embedder.embed(texts)
        memo.rows.update(zip(texts, rows, strict=True))
        return rows


class ReplayedStore:
    """The store, remembering the passages that were read for the question under way, and its searches for words.

    It stands in for the store in the kit of a system: reading passages is most of what a ranking takes.
    """

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def passages(self, keys: Iterable[int] | None = None) -> dict[int, Passage]:
        """As the store."""
        memo = _memo.get()
        if memo is None or keys is None:
            return self._store.passages(keys)
        wanted = [int(key) for key in keys]
        lacking = [key for key in wanted if key not in memo.passages] if memo.replaying else wanted
        found = self._store.passages(lacking) if lacking else {}
        memo.passages |= found
        return {key: memo.passages[key] for key in dict.fromkeys(wanted) if key in memo.passages}

    def lexical(self, query: str, limit: int) -> list[tuple[int, float]]:
        """As the store."""
        memo = _memo.get()
        if memo is None:
            return self._store.lexical(query, limit)
        if not memo.replaying or (query, limit) not in memo.lexical:
            memo.lexical[query, limit] = self._store.lexical(query, limit)
        return list(memo.lexical[query, limit])
