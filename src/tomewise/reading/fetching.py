"""Fetch a page that the user names by its address.

Only public addresses are asked: a page may redirect, and must not lead us to what is inside the user's network. What
`robots.txt` keeps from programs is not fetched. Size, time and redirects have bounds.
"""

from __future__ import annotations

import codecs
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

import httpx2

from tomewise.addresses import find_public, is_never_asked
from tomewise.checked_transport import CheckedTransport
from tomewise.errors import ReadingError
from tomewise.reading.bounds import Bounds, describe_error, make_bound_error
from tomewise.reading.formats import list_suffixes
from tomewise.reading.robots import is_allowed

_AGENT = "tomewise"
_MOST_REDIRECTS = 5
_LONGEST_ROBOTS = 500 * 1024  # bytes that count of a robots.txt, as RFC 9309 asks at least
_STEP_SECONDS = 30.0  # limit on connecting, and on waiting for the next bytes
_SUFFIXES = dict(
    row.split()
    for row in """
    text/html .html
    application/xhtml+xml .xhtml
    text/plain .txt
    text/markdown .md
    text/csv .csv
    text/vtt .vtt
    text/rtf .rtf
    application/rtf .rtf
    application/json .json
    application/pdf .pdf
    application/epub+zip .epub
    application/vnd.openxmlformats-officedocument.wordprocessingml.document .docx
    application/vnd.openxmlformats-officedocument.presentationml.presentation .pptx
    application/vnd.openxmlformats-officedocument.spreadsheetml.sheet .xlsx
    application/vnd.oasis.opendocument.text .odt
    application/vnd.oasis.opendocument.spreadsheet .ods
    """.strip().splitlines()
)
_UNSAID = frozenset({"", "application/octet-stream", "binary/octet-stream"})  # the address says more than these
# Encodings of texts by the names that Python has for them. Others that it knows can take very long to decode.
_ENCODING = re.compile(
    r"ascii|utf-(?:8|16|32)(?:-[bl]e|-sig)?|iso8859-\d+|cp(?:125\d|437|85\d|866|874|932|949|950)|koi8-[rtu]|mac-\w+|tis-620"
    r"|shift_jis\w*|euc_\w+|iso2022_\w+|gb2312|gbk|gb18030|hz|big5\w*|johab"
)

FindAddresses = Callable[[str], tuple[str, ...]]


@contextmanager
def fetch(address: str, bounds: Bounds, find: FindAddresses = find_public) -> Iterator[Path]:
    """The file at an address, in a folder that is deleted at the end. Its suffix says of which format it is.

    `find` gives the numbers to connect to for a host, and none for a host that is not asked. Raises `ReadingError`.
    """
    with TemporaryDirectory(prefix="tomewise-") as folder, closing(_Fetcher(address, bounds, find)) as fetcher:
        yield fetcher.fetch(Path(folder))


@dataclass(slots=True)
class _Fetched:
    """What a server replied: the status, the headers and the body; `location` is where it redirects to."""

    status: int
    type: str
    charset: str
    body: bytes
    location: str


class _Fetcher:
    """Fetches one address, with its redirects."""

    def __init__(self, address: str, bounds: Bounds, find: FindAddresses) -> None:
        self._address = address
        self._bounds = bounds
        self._ends = time.monotonic() + bounds.seconds
        self._sockets: list[socket.socket] = []
        self._timer = Timer(bounds.seconds, self._stop)
        self._timer.daemon = True
        self._timer.start()
        transport = CheckedTransport(
            lambda host: () if is_never_asked(host) else find(host),
            "is not known here, or not a public address, and only those are asked",
        )
        self._client = httpx2.Client(
            transport=transport,
            headers={"User-Agent": _AGENT, "Accept-Encoding": "gzip, deflate"},
            trust_env=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._timer.cancel()
        self._client.close()

    def fetch(self, folder: Path) -> Path:
        """Fetch the file into this folder."""
        url = self._parse(self._address)
        for _ in range(_MOST_REDIRECTS + 1):
            self._check_robots(url)
            reply = self._get(url, self._bounds.bytes)
            if not reply.location:
                return self._write(reply, url, folder)
            url = self._parse(str(url.join(reply.location)))
        raise ReadingError(f"{self._address} redirects more than {_MOST_REDIRECTS} times: name the page itself")

    def _parse(self, address: str) -> httpx2.URL:
        try:
            url = httpx2.URL(address)
        except httpx2.InvalidURL as error:
            raise ReadingError(f"the address {address!a} cannot be read ({error}): check it") from None
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            raise ReadingError(
                f"{address!a} is not read: an address begins with http:// or https:// and holds no user name"
            )
        return url.copy_with(fragment=None)

    def _check_robots(self, url: httpx2.URL) -> None:
        """Raise ReadingError if the robots.txt of the server keeps programs from the page, or cannot be had."""
        robots = url.copy_with(raw_path=b"/robots.txt")
        for _ in range(_MOST_REDIRECTS + 1):
            reply = self._get(robots, _LONGEST_ROBOTS, cut=True)
            if not reply.location:
                break
            robots = self._parse(str(robots.join(reply.location)))
        if reply.location or 400 <= reply.status < 500:
            return  # the server has none
        if reply.status != 200:
            raise ReadingError(f"{self._address} is not read: {robots} answers {reply.status}; try again later")
        if not is_allowed(reply.body, _AGENT, url.raw_path.decode("ascii")):
            raise ReadingError(
                f"{self._address} is not read: {robots} keeps programs from it; save the page, and add that file"
            )

    def _get(self, url: httpx2.URL, most_bytes: int, *, cut: bool = False) -> _Fetched:
        """The reply. With `cut`, a longer body loses its end. Raises ReadingError."""
        body = bytearray()
        try:
            seconds = max(min(_STEP_SECONDS, self._ends - time.monotonic()), 0.001)
            with self._client.stream("GET", url, timeout=seconds, extensions={"trace": self._trace}) as reply:
                location = reply.headers.get("Location", "") if reply.is_redirect else ""
                for chunk in () if location else reply.iter_bytes():
                    body += chunk
                    self._check_time()
                    if len(body) > most_bytes:
                        if not cut:
                            raise make_bound_error(self._address, self._bounds, "characters")
                        break
                self._check_time()  # a body without a stated length seems to end when the connection is shut
                kind = reply.headers.get("Content-Type", "").partition(";")[0].strip().lower()
                return _Fetched(
                    reply.status_code, kind, reply.charset_encoding or "", bytes(body[:most_bytes]), location
                )
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            self._check_time()
            raise ReadingError(
                f"{self._address} could not be fetched ({describe_error(error)}): check it, or try again later"
            ) from None

    def _check_time(self) -> None:
        if time.monotonic() >= self._ends:
            raise ReadingError(
                f"{self._address} took longer than {self._bounds.seconds:g} seconds to fetch: raise the setting "
                "`read_seconds`, or leave it out"
            )

    def _trace(self, event: str, details: Mapping[str, Any]) -> None:
        """Keep each connection that is made, for `_stop`. It is made anew for TLS.

        An error is raised only before there is a connection: else that would never be closed.
        """
        if event == "connection.connect_tcp.started":
            self._check_time()
        elif event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._sockets.append(details["return_value"].get_extra_info("socket"))
            if time.monotonic() >= self._ends:
                self._stop()

    def _stop(self) -> None:
        """Shut the connections, so that whoever waits for bytes of a slow server waits no longer."""
        for connection in self._sockets:
            with suppress(OSError):  # it is closed
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def _write(self, reply: _Fetched, url: httpx2.URL, folder: Path) -> Path:
        if reply.status != 200:
            raise ReadingError(f"{self._address} could not be fetched: the server answers {reply.status}; check it")
        suffix = _SUFFIXES.get(reply.type, "")
        if reply.type in _UNSAID:
            own = PurePosixPath(url.path).suffix.lower()
            suffix = own if own in list_suffixes() else ""
        if not suffix:
            raise ReadingError(
                f"{self._address} is of the type {reply.type or 'that nobody states'!r}, which is not read: save it in "
                "another format, and add that file"
            )
        file = folder / f"page{suffix}"
        file.write_bytes(_recode(reply))
        return file


def _recode(reply: _Fetched) -> bytes:
    """The body; a text as UTF-8 with a mark, if the server states another encoding, which counts before the page's."""
    if not reply.type.startswith("text/") or not reply.charset:
        return reply.body
    try:
        name = codecs.lookup(reply.charset).name
        if name == "utf-8" or not _ENCODING.fullmatch(name):
            return reply.body
        return reply.body.decode(name).encode("utf-8-sig")
    except (LookupError, ValueError):
        return reply.body  # the reader finds out
