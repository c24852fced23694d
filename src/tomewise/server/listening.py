"""Listening: one process, one event loop, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_network
from types import FrameType

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from tomewise.errors import UsageError
from tomewise.server.app import make_app
from tomewise.server.library import Library
from tomewise.server.serve_options import ServerOptions

HEAD_SECONDS = 30.0
MOST_WAITING = 100  # connections of one peer that wait for a head
FRESH_SECONDS = 3.0  # so long the head of a new one may lie unread while many arrive at once


class Connection(H11Protocol):
    """Closes when no whole head of a request arrives in time, however often a byte of it does.

    Where many of one peer wait for a head, a new one closes the oldest: else they would shut all others out.
    """

    _deadline: asyncio.TimerHandle | None = None
    _peer = ""
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """As uvicorn's, and wait for the first head."""
        super().connection_made(transport)
        self._peer = _find_peer(transport)
        self._await_head()
        self._close_oldest()

    def connection_lost(self, exc: Exception | None) -> None:
        """As uvicorn's, and wait no more."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """As uvicorn's, and wait for the next head."""
        super().on_response_complete()
        self._await_head()

    def _await_head(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._since = self.loop.time()
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self.is_waiting:
            self.transport.close()

    @property
    def is_waiting(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def _close_oldest(self) -> None:
        """Close the oldest connections of this peer that wait for a head, but for the newest and the fresh ones."""
        found = [each for each in self.connections if isinstance(each, Connection) and each._peer == self._peer]
        waiting = sorted((each for each in found if each.is_waiting), key=lambda each: each._since)
        for each in waiting[:-MOST_WAITING]:
            if self._since - each._since > FRESH_SECONDS:
                each.transport.close()


def _find_peer(transport: asyncio.Transport) -> str:
    """Whose connection it is: an address, or of IPv6 its network, since one machine has many addresses there."""
    host = str((transport.get_extra_info("peername") or ("",))[0]).partition("%")[0]
    return str(ip_network((host, 64), strict=False)) if ":" in host else host


_GRACE = 1.8  # seconds until the process ends, whatever still computes
_STREAM_SECONDS = 1  # for streams to end
_TURN_SECONDS = 0.001  # that a computing thread keeps the interpreter while requests wait
_HEADER_BYTES = 32_768
_CONNECTIONS = 1000


class _Server(uvicorn.Server):
    """Ends the streams as soon as a signal comes, and the process soon after."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        watchdog = threading.Timer(_GRACE, os._exit, (128 + sig,))
        watchdog.daemon = True
        watchdog.start()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._app.state.stopping.set)
        super().handle_exit(sig, frame)


def serve(library: Library, options: ServerOptions, announce: Callable[[str], None], *, browse: bool = False) -> None:
    """Serve until a signal ends it. `announce` gets the address as soon as the server listens. Raises UsageError."""
    options.check()
    library.check()
    sys.setswitchinterval(_TURN_SECONDS)
    listener = _listen(options.host, options.port)
    options = replace(options, port=listener.getsockname()[1])
    app = make_app(library, options)
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_level="warning",
        use_colors=False,  # the stream for messages takes no sequences
        access_log=False,  # an address may hold the token
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=_STREAM_SECONDS,
    )
    address = make_address(options)
    announce(address)
    if browse:
        webbrowser.open(address)
    # Not `asyncio.run`: it would wait for threads that still compute.
    asyncio.new_event_loop().run_until_complete(_Server(config, app).serve(sockets=[listener]))


def make_address(options: ServerOptions) -> str:
    """The address to open, with the token."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(options.host, options.host)
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    token = f"?token={options.token}" if options.token else ""
    return f"http://{host}:{options.port}{options.prefix}/{token}"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY; without it each reply waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        remedy = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise UsageError(f"cannot listen at {host}, port {port}: {error.strerror}; choose another {remedy}") from None
    listener.set_inheritable(False)
    return listener
