"""Fetch a page that the user names by its address.

Only public addresses are asked: a page may redirect, and must not lead us to what is inside the user's network. What
`robots.txt` keeps from programs is not fetched. Size, time and redirects have bounds.
"""

from __future__ import annotations

import re
import socket
import string
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any
from urllib.parse import quote

import httpx2

from tomewise.addresses import find_public, is_never_asked
from tomewise.checked_transport import CheckedTransport
from tomewise.errors import ReadingError
from tomewise.reading.decode import find_codec
from tomewise.reading.formats import list_suffixes
from tomewise.reading.process import Bounds, describe_error, make_bound_error

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
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")

FindAddresses = Callable[[str], tuple[str, ...]]


@contextmanager
def fetch(address: str, bounds: Bounds, find: FindAddresses = find_public) -> Iterator[Path]:
    """The file at an address, in a folder that is deleted at the end. Its suffix says of which format it is.

    `find` gives the numbers to connect to for a host, and none for a host that is not asked. Raises `ReadingError`.
    """
    with TemporaryDirectory(prefix="tomewise-") as folder, closing(_Fetcher(address, bounds, find)) as fetcher:
        yield fetcher.fetch(Path(folder))


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
        url, reply, body = self._follow(self._parse(self._address), is_page=True)
        if _find_target(reply):
            raise ReadingError(f"{self._address} redirects more than {_MOST_REDIRECTS} times: name the page itself")
        return self._write(reply, body, url, folder)

    def _follow(self, url: httpx2.URL, *, is_page: bool) -> tuple[httpx2.URL, httpx2.Response, bytes]:
        """Where the redirects from an address lead, the reply there and its body; or the last redirect of too many.

        The address is that of a page, or of a robots.txt, of which only the beginning counts.
        """
        for _ in range(_MOST_REDIRECTS + 1):
            if is_page:
                self._check_robots(url)
            reply, body = self._get(url, self._bounds.bytes if is_page else _LONGEST_ROBOTS, cut=not is_page)
            if not (target := _find_target(reply)):
                break
            url = self._parse(str(url.join(target)))
        return url, reply, body

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
        robots, reply, body = self._follow(url.copy_with(raw_path=b"/robots.txt"), is_page=False)
        status = reply.status_code
        if _find_target(reply) or 400 <= status < 500:
            return  # the server has none
        if status != 200:
            raise ReadingError(f"{self._address} is not read: {robots} answers {status}; try again later")
        if not is_allowed(body, _AGENT, url.raw_path.decode("ascii")):
            raise ReadingError(
                f"{self._address} is not read: {robots} keeps programs from it; save the page, and add that file"
            )

    def _get(self, url: httpx2.URL, most_bytes: int, *, cut: bool) -> tuple[httpx2.Response, bytes]:
        """The reply and its body. With `cut`, a longer one loses its end. Raises ReadingError."""
        body = bytearray()
        try:
            seconds = max(min(_STEP_SECONDS, self._ends - time.monotonic()), 0.001)
            with self._client.stream("GET", url, timeout=seconds, extensions={"trace": self._trace}) as reply:
                for chunk in () if _find_target(reply) else reply.iter_bytes():
                    body += chunk
                    self._check_time()
                    if len(body) > most_bytes:
                        if not cut:
                            raise make_bound_error(self._address, self._bounds, "characters")
                        break
                self._check_time()  # a body without a stated length seems to end when the connection is shut
                return reply, bytes(body[:most_bytes])
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

    def _write(self, reply: httpx2.Response, body: bytes, url: httpx2.URL, folder: Path) -> Path:
        if reply.status_code != 200:
            raise ReadingError(
                f"{self._address} could not be fetched: the server answers {reply.status_code}; check it"
            )
        kind = reply.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        suffix = _SUFFIXES.get(kind, "")
        if kind in _UNSAID:
            own = PurePosixPath(url.path).suffix.lower()
            suffix = own if own in list_suffixes() else ""
        if not suffix:
            raise ReadingError(
                f"{self._address} is of the type {kind or 'that nobody states'!r}, which is not read: save it in "
                "another format, and add that file"
            )
        file = folder / f"page{suffix}"
        file.write_bytes(_recode(body, reply.charset_encoding) if kind.startswith("text/") else body)
        return file


def _find_target(reply: httpx2.Response) -> str:
    """Where a reply redirects to; empty for one that does not."""
    return str(reply.headers.get("Location", "")) if reply.is_redirect else ""


def _recode(body: bytes, charset: str | None) -> bytes:
    """A text as UTF-8 with a mark, if the server states another encoding, which counts before the page's."""
    name = find_codec(charset or "")
    with suppress(ValueError):  # else the reader finds out
        return body.decode(name).encode("utf-8-sig") if name not in (None, "utf-8") else body
    return body


# ---------------------------------------------------------------- robots.txt, as RFC 9309 says


def is_allowed(robots: bytes, agent: str, path: str) -> bool:
    """Whether a robots.txt lets this agent fetch a path with its query.

    The groups that name the agent count, or those for all if there are none. The longest rule that fits wins, and of
    two that are as long, the one that allows.
    """
    groups = _read_groups(robots)
    path = _write_alike(path)
    fitting = [
        (len(pattern), allows)
        for rules in groups.get(agent.lower(), groups.get("*", []))
        for allows, pattern in rules
        if pattern and _fits(pattern, path)
    ]
    return max(fitting, default=(0, True))[1]


def _read_groups(robots: bytes) -> dict[str, list[list[tuple[bool, str]]]]:
    """The groups of rules by the agents that they are for: whether each rule allows, and its pattern.

    The agents of a group share its rules, since a stranger may write many of both.
    """
    groups: dict[str, list[list[tuple[bool, str]]]] = {}
    rules: list[tuple[bool, str]] = []
    is_in_rules = False
    for line in robots.decode("utf-8-sig", "replace").splitlines():
        name, _, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        name = name.lower()
        if name == "user-agent":
            if is_in_rules:
                rules, is_in_rules = [], False
            known = groups.setdefault(value.partition("/")[0].strip().lower(), [])
            if not known or known[-1] is not rules:
                known.append(rules)
        elif name in ("allow", "disallow"):
            is_in_rules = True
            rules.append((name == "allow", _write_alike(value)))
    return groups


def _write_alike(path: str) -> str:
    """A path with escapes only where they are needed, so that two spellings of one path are equal."""
    return _ESCAPE.sub(
        lambda found: octet if (octet := chr(int(found[1], 16))) in _UNRESERVED else found[0].upper(),
        quote(path, safe=string.punctuation),
    )


def _fits(pattern: str, path: str) -> bool:
    """Whether a path begins with a pattern, in which `*` is any text, and `$` at the end is the end of the path.

    The first place for each part is enough, so the time grows with the path alone: the pattern may be a stranger's.
    """
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    if not pattern.endswith("$"):
        last = ""
    elif parts:
        last = parts.pop()
    else:
        return path == first
    at = len(first)
    for part in parts:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return path.endswith(last) and len(path) - len(last) >= at
