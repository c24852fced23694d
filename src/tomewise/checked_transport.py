"""Requests that reach checked addresses alone."""

from __future__ import annotations

from collections.abc import Callable

import httpx2

from tomewise.addresses import Resolve, find_loopback


class CheckedTransport(httpx2.BaseTransport):
    """Sends requests to the addresses that `find` gives for their hosts, and refuses hosts for which it gives none.

    The host of each request is resolved once, and only the addresses that were checked are connected to, one after the
    other. So a name server cannot change its answer in between. No proxy is used. `refusal` says of a host why it is
    refused, after its name.
    """

    def __init__(self, find: Callable[[str], tuple[str, ...]], refusal: str) -> None:
        self._find = find
        self._refusal = refusal
        self._inner = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """As the method of httpx2. Raises ConnectError for another host, before anything is connected to."""
        host = request.url.host
        refusal = httpx2.ConnectError(f"{host!r} {self._refusal}", request=request)
        for address in self._find(host):
            try:
                return self._inner.handle_request(_send_to(address, request))
            except httpx2.ConnectError as error:
                refusal = error
        raise refusal

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


def is_loopback(address: str, resolve: Resolve | None = None) -> bool:
    """Whether an address of a server is on this machine, has no user name in it, and can be read at all."""
    try:
        url = httpx2.URL(address)  # the parser that the client uses: another one might find another host
    except httpx2.InvalidURL:
        return False
    return not url.userinfo and bool(find_loopback(url.host, resolve))


def _send_to(address: str, request: httpx2.Request) -> httpx2.Request:
    """The request to this address. Its header still names the host, and so must a certificate."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
