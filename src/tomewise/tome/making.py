"""What a tome is made with: its embedder, and the size and overlap of its passages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tomewise.errors import StoreError, UsageError

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore
    from tomewise.types import Embedder

_TOKENS = 512  # a passage is at most this long, or as long as the embedder can see


def settle(store: SqliteStore, embedder: Embedder, tokens: int | None, overlap: int | None) -> tuple[int, int]:
    """What passages a tome is made with. What is asked for must not differ, unless the tome holds no document yet."""
    given = {"embedder": embedder.name, "passage_tokens": tokens, "overlap": overlap}
    recorded = {key: store.meta(key) for key in given}
    differing = [key for key, value in given.items() if value is not None and str(value) != recorded[key]]
    if differing and store.holds_documents():
        key = differing[0]
        raise StoreError(
            f"{store.path} was made with {key.replace('_', ' ')} {recorded[key]}, not {given[key]}: "
            f"leave that setting out, or start another tome with -m"
        )
    if not differing:
        return int(recorded["passage_tokens"] or 0), int(recorded["overlap"] or 0)
    kept = recorded if "embedder" not in differing else {}
    size = tokens or int(kept.get("passage_tokens") or min(embedder.max_tokens, _TOKENS))
    shared = int(kept.get("overlap") or 0) if overlap is None else overlap
    _record(store, embedder, size, shared)
    return size, shared


def _record(store: SqliteStore, embedder: Embedder, size: int, overlap: int) -> None:
    from tomewise.reading.splitter import PassageSplitter

    if size > embedder.max_tokens:
        raise UsageError(
            f"passages of {size} tokens are too long: {embedder.name} sees {embedder.max_tokens} tokens at most"
        )
    PassageSplitter(embedder.tokenizer, max_tokens=size, overlap=overlap)  # raises what it cannot do
    settings = {"embedder": embedder.name, "passage_tokens": size, "overlap": overlap}
    with store.write() as change:
        for key, value in {**settings, "dimensions": embedder.dimensions}.items():
            change.set_meta(key, str(value))
