"""Requests to this machine only: for addresses that come from a tome, and not from its user."""

from __future__ import annotations

import httpx2

from tomewise.addresses import Resolve, find_loopback
from tomewise.checked_transport import CheckedTransport


def is_loopback(address: str, resolve: Resolve | None = None) -> bool:
    """Whether an address of a server is on this machine, has no user name in it, and can be read at all."""
    try:
        url = httpx2.URL(address)  # the parser that the client uses: another one might find another host
    except httpx2.InvalidURL:
        return False
    return not url.userinfo and bool(find_loopback(url.host, resolve))


def make_loopback_transport(resolve: Resolve | None = None) -> CheckedTransport:
    """A transport that sends requests to hosts on this machine, and refuses all others."""
    return CheckedTransport(lambda host: find_loopback(host, resolve), "is not on this machine")
