"""The settings that are fixed when a tome is created: its embedder, and the size and overlap of its passages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tomewise.errors import Locked, StoreError, UsageError
from tomewise.store.lookups import read_setting
from tomewise.store.records import SETTINGS
from tomewise.tome.embedder_address import remember_address

if TYPE_CHECKING:
    from tomewise.reading.splitter import PassageSplitter
    from tomewise.store.contract import Store
    from tomewise.types import Embedder

_DEFAULT_TOKENS = 512  # size of a passage, unless the embedder sees less


def fix_settings(store: Store, embedder: Embedder, tokens: int | None, overlap: int | None) -> tuple[int, int]:
    """Fix the settings of a tome without documents, or compare them with those recorded in a tome that has some.

    Returns the passage size and the overlap, in tokens. Raises StoreError for a setting that differs, and UsageError
    for sizes that are impossible.
    """
    requested = {"embedder": embedder.name, "passage_tokens": tokens, "overlap": overlap}
    recorded = {key: read_setting(store, key) for key in requested}
    differing = [key for key, value in requested.items() if value is not None and str(value) != recorded[key]]
    if differing and store.holds_documents():
        key = differing[0]
        raise StoreError(
            f"{store.address} was made with {key.replace('_', ' ')} {recorded[key]}, not {requested[key]}: "
            f"leave that setting out, or start another tome with -m"
        )
    if not differing:
        return int(recorded["passage_tokens"] or 0), int(recorded["overlap"] or 0)
    defaults = recorded if "embedder" not in differing else {}
    size = tokens or int(defaults.get("passage_tokens") or min(embedder.max_tokens, _DEFAULT_TOKENS))
    overlap_size = int(defaults.get("overlap") or 0) if overlap is None else overlap
    _record_settings(store, embedder, size, overlap_size, recorded)
    return size, overlap_size


def check_embedder(store: Store, embedder: Embedder) -> None:
    """Raise StoreError if the tome has another embedder now than when it was opened: see `tome.reembedding`."""
    recorded = read_setting(store, "embedder")
    if recorded != embedder.name and store.holds_documents():
        raise StoreError(f"{store.address} has another embedder now, {recorded}, not {embedder.name}: open it again")


def make_splitter(store: Store, embedder: Embedder, size: int, overlap: int) -> PassageSplitter:
    """The splitter for the sizes of a tome. Raises StoreError for impossible ones: they were checked before."""
    from tomewise.reading.splitter import PassageSplitter

    try:
        return PassageSplitter(embedder.tokenizer, max_tokens=size, overlap=overlap)
    except UsageError as error:
        raise StoreError(
            f"{store.address} is damaged: the rows 'passage_tokens' and 'overlap' of the table meta are {size} and "
            f"{overlap} ({error}); restore it from a copy, or add the documents to a new file"
        ) from None


def _record_settings(
    store: Store, embedder: Embedder, size: int, overlap: int, recorded: Mapping[str, str | None]
) -> None:
    from tomewise.reading.splitter import PassageSplitter

    if size > embedder.max_tokens:
        raise UsageError(
            f"passages of {size} tokens are too long: {embedder.name} sees {embedder.max_tokens} tokens at most"
        )
    PassageSplitter(embedder.tokenizer, max_tokens=size, overlap=overlap)  # raises UsageError for impossible sizes
    settings = {"embedder": embedder.name, "passage_tokens": size, "overlap": overlap}
    with store.write() as change:
        if any(change.note(SETTINGS, key) not in (value, str(settings[key])) for key, value in recorded.items()):
            raise Locked(f"{store.address} was given other settings by another program just now: try again")
        for key, value in {**settings, "dimensions": embedder.dimensions}.items():
            change.put_note(SETTINGS, key, str(value))
    remember_address(store, embedder)
