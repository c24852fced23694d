"""Ask a system's retriever again for its ranking without paying twice for what its loop already asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tomewise.embedding.forwarding import ForwardingEmbedder
from tomewise.errors import BadReply, ModelError, Refused
from tomewise.language.forwarding import Forwarding
from tomewise.types import Passage, Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import Store
    from tomewise.types import In, Out, Role


@dataclass(slots=True)
class Memo:
    """What one question asked of the model, the embedder and the store."""

    replies: dict[tuple[str, str], Any] = field(default_factory=dict)
    rows: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    passages: dict[int, Passage] = field(default_factory=dict)
    lexical: dict[tuple[str, int, Scope | None], list[tuple[int, float]]] = field(default_factory=dict)
    replaying: bool = False


_memo: ContextVar[Memo | None] = ContextVar("tomewise_replay", default=None)


@contextmanager
def remember_question() -> Iterator[None]:
    """Remember the replies, vectors and passages of one question, starting with none."""
    token = _memo.set(Memo())
    try:
        yield
    finally:
        _memo.reset(token)


@contextmanager
def replay() -> Iterator[None]:
    """Answer inside from what `remember_question` has remembered so far, without cost and without model time."""
    memo = _memo.get()
    if memo is None:
        raise RuntimeError("`replay` works inside `remember_question` only")
    memo.replaying = True
    try:
        yield
    finally:
        memo.replaying = False


class ReplayedModel(Forwarding):
    """The model, remembering its replies for the question under way."""

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """Answer as the model does."""
        memo = _memo.get()
        if memo is None:
            return await self._model.ask(role, given)
        key = (role.name, given.model_dump_json())
        if memo.replaying and key in memo.replies:
            remembered = memo.replies[key]
            if isinstance(remembered, ModelError):
                raise remembered
            replayed: Out = remembered.model_copy(deep=True)
            return replayed
        try:
            reply = await self._model.ask(role, given)
        except (BadReply, Refused) as error:
            memo.replies[key] = error
            raise
        memo.replies[key] = reply
        return reply

    async def close(self) -> None:
        """Leave the model open: the caller that made it closes it."""


class ReplayedEmbedder(ForwardingEmbedder):
    """An embedder that remembers the vectors of the current question."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed as the embedder does."""
        memo = _memo.get()
        if memo is None:
            return self._embedder.embed(texts)
        if memo.replaying and texts and all(text in memo.rows for text in texts):
            return np.stack([memo.rows[text] for text in texts])
        rows = self._embedder.embed(texts)
        memo.rows.update(zip(texts, rows, strict=True))
        return rows


class ReplayedStore:
    """A store that remembers the passages and the lexical searches of the current question.

    It replaces the store in the kit of a system, because reading passages takes most of the time of a ranking.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def passages(self, keys: Iterable[int] | None = None) -> dict[int, Passage]:
        """Read passages as the store does."""
        memo = _memo.get()
        if memo is None or keys is None:
            return self._store.passages(keys)
        wanted = [int(key) for key in keys]
        missing = [key for key in wanted if key not in memo.passages] if memo.replaying else wanted
        memo.passages |= self._store.passages(missing) if missing else {}
        return {key: memo.passages[key] for key in dict.fromkeys(wanted) if key in memo.passages}

    def lexical(self, query: str, limit: int, *, within: Scope | None = None) -> list[tuple[int, float]]:
        """Search for words as the store does."""
        memo = _memo.get()
        if memo is None:
            return self._store.lexical(query, limit, within=within)
        key = (query, limit, within)
        if not memo.replaying or key not in memo.lexical:
            memo.lexical[key] = self._store.lexical(query, limit, within=within)
        return list(memo.lexical[key])
