"""The embedder of a tome and its address: used as far as a tome from anyone may be trusted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tomewise.embedding.cached_embedder import ForwardingEmbedder
from tomewise.embedding.choose_embedder import BUNDLED, choose_embedder
from tomewise.errors import StoreError, UnknownName, UsageError
from tomewise.language.spec import check_address
from tomewise.settings import read_variable
from tomewise.store.lookups import read_setting
from tomewise.store.records import SETTINGS
from tomewise.trust import refuse_embedder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tomewise.store.contract import Store
    from tomewise.types import Embedder

ADDRESS_KEY = "embedder_base_url"
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
    from tomewise.embedding.loopback import is_loopback

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
