"""Hosts in addresses of servers: which are this machine, and which are never asked."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, TypeAlias

_UNICAST = IPv6Network("2000::/3")  # where all public addresses of IPv6 are
_PROTOCOLS = IPv4Network("192.0.0.0/24")
Resolve: TypeAlias = Callable[..., list[Any]]  # as `socket.getaddrinfo`

# Where clouds hand out the secrets of a machine; those of IPv4 are link-local, but for this one of Alibaba's.
_METADATA = frozenset({"fd00:ec2::254", "fd20:ce::254", "100.100.100.200"})
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "instance-data.ec2.internal"})


def is_address(source: str) -> bool:
    """Whether a source is an address that can be fetched, and no path."""
    return source.lower().startswith(("http://", "https://"))


def find_loopback(host: str, resolve: Resolve | None = None) -> tuple[str, ...]:
    """The loopback addresses that a host stands for, as numbers; none for any host but this machine.

    A number is read as a connection would read it, in whatever notation, but without a scope. Of names only `localhost`
    and those below it are resolved: to resolve another would tell its owner that somebody looked. All answers must be
    loopback.
    """
    is_name = _strip(host) == "localhost" or _strip(host).endswith(".localhost")
    addresses = _resolve(host, resolve, 0 if is_name else socket.AI_NUMERICHOST)
    return addresses if "%" not in host and all(_parse_address(address).is_loopback for address in addresses) else ()


def find_public(host: str, resolve: Resolve | None = None) -> tuple[str, ...]:
    """The addresses that a host stands for, as numbers, if all of them are public; else none.

    An address that stands for one of IPv4 in another way than a connection does (6to4, translation) is not public.
    """
    addresses = _resolve(host, resolve, 0)
    return addresses if "%" not in host and all(_is_public(_parse_address(address)) for address in addresses) else ()


def _is_public(address: Any) -> bool:
    if isinstance(address, IPv6Address):
        return address in _UNICAST and address.is_global and address.sixtofour is None
    return bool(address.is_global and not address.is_multicast and address not in _PROTOCOLS)


def is_never_asked(host: str) -> bool:
    """Whether a host is link-local or hands out the metadata of a machine in a cloud; no name is resolved."""
    numbers = [_parse_address(address) for address in _resolve(host, None, socket.AI_NUMERICHOST)]
    return _strip(host) in _METADATA_NAMES or any(each.is_link_local or str(each) in _METADATA for each in numbers)


def _strip(host: str) -> str:
    return host.lower().removesuffix(".")


def _resolve(host: str, resolve: Resolve | None, flags: int) -> tuple[str, ...]:
    try:
        found = (resolve or socket.getaddrinfo)(host, None, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError, ValueError):  # no such host; one that no resolver can be asked for
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _parse_address(address: str) -> Any:
    """The address without its scope, and of an IPv6 address that stands for one of IPv4 that one."""
    parsed = ip_address(address.partition("%")[0])
    return (parsed.ipv4_mapped or parsed) if isinstance(parsed, IPv6Address) else parsed
