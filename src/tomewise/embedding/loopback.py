"""Requests that reach this machine alone, for addresses that nobody but a tome names."""

from __future__ import annotations

import httpx2

from tomewise.addresses import Resolve, find_loopback


def is_loopback(address: str, resolve: Resolve | None = None) -> bool:
    """Whether an address of a server is on this machine, has no user name in it, and can be read at all."""
    try:
        url = httpx2.URL(address)  # the reader of the client: another might see another host
    except httpx2.InvalidURL:
        return False
    return not url.userinfo and bool(find_loopback(url.host, resolve))


class LoopbackTransport(httpx2.BaseTransport):
    """Sends a request to the host that it names if this is loopback, and else to nobody.

    The host is resolved for each request, and the numbers that were checked are those that are connected to, one after
    the other: what a name server says later has no effect. No proxy is used.
    """

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._resolve = resolve
        self._inner = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """As the method of httpx2. Raises ConnectError for another host, before anything is connected to."""
        host = request.url.host
        refusal = httpx2.ConnectError(f"{host!r} is not on this machine", request=request)
        for address in find_loopback(host, self._resolve):
            try:
                return self._inner.handle_request(_send_to(address, request))
            except httpx2.ConnectError as error:
                refusal = error
        raise refusal

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


def _send_to(address: str, request: httpx2.Request) -> httpx2.Request:
    """The request, connected to this address; its header and a certificate still name the host."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
