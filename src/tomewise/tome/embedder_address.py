"""The embedder of a tome and its address: used as far as a tome from anyone may be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.errors import StoreError, UnknownName
from tomewise.settings import read_variable
from tomewise.trust import refuse_folder

if TYPE_CHECKING:
    from tomewise.store.contract import Store
    from tomewise.types import Embedder

_KEY = "embedder_base_url"
_NO_KEY = "none"


def remember_address(store: Store, embedder: Embedder) -> None:
    """Record the address of an OpenAI embedder that is not at OpenAI's own; without a user name and a password."""
    from tomewise.embedding.openai import ADDRESS, OpenAIEmbedder

    if not isinstance(embedder, OpenAIEmbedder):
        return
    parts = urlsplit(embedder.address)
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    if address != (store.meta(_KEY) or ADDRESS):
        with store.write() as change:
            change.set_meta(_KEY, address)


def find_embedder(store: Store, named: str | Embedder | None, base_url: str | None) -> Embedder:
    """The embedder that is given or named, else the one that the tome was made with, else the bundled one.

    A folder that only the tome names is refused, because a tome may come from anyone. Raises UsageError, StoreError.
    """
    if named is not None and not isinstance(named, str):
        return named
    recorded = store.meta("embedder")
    if recorded and named is None:
        refuse_folder(recorded, store.address)
    if recorded and named in (None, recorded):
        try:
            return _reopen_embedder(store, recorded, base_url)
        except UnknownName as error:
            raise StoreError(f"{store.address} was made with an embedder that is not known here: {error}") from None
    return choose_embedder(named or "bundled", base_url=base_url)


def _reopen_embedder(store: Store, name: str, base_url: str | None) -> Embedder:
    """The embedder that a tome was made with: at `base_url`, else at OPENAI_BASE_URL, else where the tome says.

    A tome may come from anyone. So an address of its own is used only on this machine or in its private network, and no
    key is sent there. Raises StoreError that names any other address.
    """
    recorded = store.meta(_KEY) if name.startswith("openai:") else None
    if base_url or recorded is None or read_variable("OPENAI_BASE_URL"):
        return choose_embedder(name, base_url=base_url)
    from tomewise.embedding.openai import ADDRESS, is_local

    if recorded == ADDRESS:
        return choose_embedder(name, base_url=recorded)
    if not is_local(recorded):
        raise StoreError(
            f"{store.address} was made with {name} at {recorded}, where your questions would be sent: "
            "if you know that server, set TOMEWISE_EMBEDDER_BASE_URL to it"
        )
    return choose_embedder(name, base_url=recorded, api_key=_NO_KEY)
