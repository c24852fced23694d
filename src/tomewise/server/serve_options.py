"""What `tome serve` was asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from tomewise.errors import UsageError

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(:\d+)?")
_ROOT_PATH = re.compile(r"[A-Za-z0-9._~/-]*")
_OWN_PATHS = frozenset({"api", "assets", "mcp", "v1"})
MAX_UPLOAD = 100_000_000  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The settings of a server. A server without a `token` is allowed on loopback alone."""

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    allow_hosts: tuple[str, ...] = ()
    root_path: str = ""
    read_only: bool = False
    questions: int = 8  # answered at once
    waiting: int = 32  # questions that may wait
    seconds: float = 900.0  # limit on one question
    max_upload: int = MAX_UPLOAD
    evaluations: Path | None = None

    def check(self) -> ServerOptions:
        """The options, unchanged. Raises UsageError for what cannot be served.

        That includes a server that anybody in the network could use.
        """
        if self.token is None and not is_loopback(self.host):
            raise UsageError(
                f"a server at {self.host} without a token is open to the network: leave out --no-token, or --host"
            )
        if self.token is not None and not (
            len(self.token) >= 16 and self.token.isascii() and self.token.isprintable() and " " not in self.token
        ):
            raise UsageError("TOMEWISE_TOKEN must have 16 or more characters, all ASCII, no blanks: make a longer one")
        for name in self.allow_hosts:
            if not _HOST.fullmatch(name):
                raise UsageError(f"--allow-host {name}: give a name alone, such as tomes.example or tomes.example:8443")
        if not _ROOT_PATH.fullmatch(self.root_path):
            raise UsageError(f"--root-path {self.root_path}: give a path alone, such as /tomes, of letters and digits")
        if (first := self.prefix.split("/")[1:2]) and first[0] in _OWN_PATHS:
            raise UsageError(f"--root-path {self.root_path}: /{first[0]} is a path of this server: choose another")
        if self.evaluations is not None and not self.evaluations.is_dir():
            raise UsageError(f"the folder {self.evaluations} does not exist: name one that `tome eval run` has written")
        return self

    @property
    def prefix(self) -> str:
        """The path at which a proxy serves this, with a slash before and none after it; empty for none."""
        path = self.root_path.strip("/")
        return f"/{path}" if path else ""


def is_loopback(host: str) -> bool:
    """Whether this address is reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
