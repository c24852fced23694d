"""The settings that are fixed when a tome is created: its embedder, and the size and overlap of its passages.

The embedder and its address are used as far as a tome from anyone may be trusted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tomewise.embedding.cached_embedder import ForwardingEmbedder
from tomewise.embedding.choose_embedder import BUNDLED, choose_embedder
from tomewise.errors import Locked, StoreError, UnknownName, UsageError
from tomewise.language.spec import check_address
from tomewise.settings import read_variable
from tomewise.store.contract import Store
from tomewise.store.lookups import read_setting
from tomewise.store.records import SETTINGS
from tomewise.types import Embedder

if TYPE_CHECKING:
    from tomewise.reading.splitter import PassageSplitter

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
    from tomewise.reading.splitter import PassageSplitter

    defaults = recorded if "embedder" not in differing else {}
    size = tokens or int(defaults.get("passage_tokens") or min(embedder.max_tokens, _DEFAULT_TOKENS))
    overlap = int(defaults.get("overlap") or 0) if overlap is None else overlap
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
    return size, overlap


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


# ---------------------------------------------------------------- the embedder and its address

ADDRESS_KEY = "embedder_base_url"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_LOCAL = re.compile(rf"hash(:[0-9]+)?|{'|'.join(map(re.escape, BUNDLED))}", re.ASCII)


def remember_address(store: Store, embedder: Embedder) -> None:
    """Record the address of an OpenAI embedder that is not at OpenAI's own; without a user name and a password."""
    from tomewise.embedding.openai import ADDRESS

    address = find_address(embedder)
    if address and address != (read_setting(store, ADDRESS_KEY) or ADDRESS):
        with store.write() as change:
            change.put_note(SETTINGS, ADDRESS_KEY, address)


def find_address(embedder: Embedder) -> str:
    """The address of an OpenAI embedder, without a user name and a password; empty for any other."""
    from tomewise.embedding.openai import OpenAIEmbedder

    while isinstance(embedder, ForwardingEmbedder):
        embedder = embedder.inner
    if not isinstance(embedder, OpenAIEmbedder):
        return ""
    parts = urlsplit(embedder.address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def is_local(embedder: str) -> bool:
    """Whether an embedder of this name computes here and fetches nothing."""
    return _LOCAL.fullmatch(embedder) is not None


def refuse_foreign_embedder(settings: Mapping[str, str], source: str, own: Embedder) -> None:
    """Raise UsageError if a tome was made with an embedder that is neither bundled, `hash`, nor our `own`.

    Any other one would be fetched, or asked at an address, for whoever sent the tome.
    """
    from tomewise.embedding.openai import ADDRESS

    name = settings.get("embedder") or "bundled"
    address = (settings.get(ADDRESS_KEY) or ADDRESS) if name.startswith("openai:") else ""
    if is_local(name) or (name, address) == (own.name, find_address(own)):
        return
    place = f" at {address[:200]!a}" if address else ""
    raise UsageError(
        f"{source} was made with the embedder {name[:200]!a}{place}, which this server does not use: its owner "
        "can import it with `tome import`"
    )


def find_embedder(store: Store, named: str | Embedder | None, base_url: str | None) -> Embedder:
    """The embedder that is given or named, else the one that the tome was made with, else the bundled one.

    A folder or an address in the name is refused if only the tome names it, because a tome may come from anyone. Raises
    UsageError, StoreError.
    """
    if named is not None and not isinstance(named, str):
        return named
    recorded = read_setting(store, "embedder")
    if recorded and named is None:
        refuse_embedder(recorded, store.address)
    if recorded and named in (None, recorded):
        try:
            return _reopen_embedder(store, recorded, base_url)
        except UnknownName as error:
            raise StoreError(f"{store.address} was made with an embedder that is not known here: {error}") from None
    return choose_embedder(named or "bundled", base_url=base_url)


def refuse_embedder(embedder: str, source: str) -> None:
    """Raise UsageError if `source`, which the user did not write, names a folder or an address as its embedder.

    The folder of a model may contain code, and weights other than it claims. A name on the model hub that is also a
    local folder is refused too, because the folder would be loaded instead. An address, which an embedder of a plugin
    may take, would be sent what is asked.
    """
    kind, _, model = embedder.partition(":")
    what = "an address" if "://" in model else ""
    if kind == "sentence-transformers" and (not _HUB_NAME.fullmatch(model) or os.path.lexists(model)):
        what = "a folder"
    if what:
        raise UsageError(
            f"{source} names {what} as its embedder, {embedder!r}, and only you may name one: "
            f"if you know it, set TOMEWISE_EMBEDDER to this name"
        )


def _reopen_embedder(store: Store, name: str, base_url: str | None) -> Embedder:
    """The embedder that a tome was made with: at `base_url`, else at OPENAI_BASE_URL, else where the tome says.

    A tome may come from anyone. So an address of its own is used only on this machine: the embedder then asks nothing
    else, and sends no key. OpenAI's own address is asked with the user's key. Raises StoreError that names any other.
    """
    recorded = read_setting(store, ADDRESS_KEY) if name.startswith("openai:") else None
    if base_url or recorded is None or read_variable("OPENAI_BASE_URL"):
        return choose_embedder(name, base_url=base_url)
    from tomewise.embedding.openai import ADDRESS

    if recorded == ADDRESS:
        return choose_embedder(name, base_url=recorded)
    from tomewise.checked_transport import is_loopback

    try:
        check_address(recorded)
    except UsageError as error:
        raise StoreError(f"{store.address} names a server for its embedder, and {error}") from error
    if not is_loopback(recorded):
        raise StoreError(
            f"{store.address} was made with {name} at {recorded}, where your questions would be sent, and that is not "
            "this machine: if you know that server, set TOMEWISE_EMBEDDER_BASE_URL to its address, or keep it with "
            "`tome config set embedder_base_url ADDRESS`"
        )
    return choose_embedder(name, base_url=recorded, loopback_only=True)
