"""Which input from other people is trusted: settings of confirmed folders are, an embedder's folder or address is not.

Confirmations are kept in the user's configuration folder. Each one is for one folder and the exact bytes of its
`tomewise.toml`: after a change of the file the user must confirm again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from tomewise.errors import UsageError

FILE = "trusted.json"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


class TrustedFolders:
    """The folders that the user has confirmed. `home` is the user's configuration folder, created when needed."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def is_confirmed(self, folder: Path, settings: bytes) -> bool:
        """Whether the user has confirmed this folder with exactly these settings."""
        return self.read_all().get(_resolve_path(folder)) == sha256(settings).hexdigest()

    def add(self, folder: Path, settings: bytes) -> None:
        """Confirm the folder with these settings; they replace an earlier confirmation of this folder."""
        self._write({**self.read_all(), _resolve_path(folder): sha256(settings).hexdigest()})

    def forget(self, folder: Path) -> None:
        """Withdraw a confirmation. Raises UsageError if the folder is not confirmed."""
        known = dict(self.read_all())
        if known.pop(_resolve_path(folder), None) is None:
            raise UsageError(f"{folder} is not among the trusted folders: `tome trust --list` shows them")
        self._write(known)

    def read_all(self) -> Mapping[str, str]:
        """The digest of each folder's settings, by the folder's full path. Raises UsageError for a bad file."""
        try:
            known = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise UsageError(f"{self._path} cannot be read: {error}; repair or delete it") from error
        if not isinstance(known, dict):
            raise UsageError(f"{self._path} does not hold a list of folders: delete it, then run `tome trust` again")
        return known

    def _write(self, known: Mapping[str, str]) -> None:
        try:
            replace_file(self._path, json.dumps(dict(sorted(known.items())), indent=1).encode())
        except OSError as error:
            raise UsageError(f"{self._path} cannot be written: {error}") from error


def replace_file(path: Path, raw: bytes, *, keep_mode: bool = False) -> None:
    """Replace a file in one step. Only the user can read it, unless it is to keep its mode. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        if keep_mode and path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _resolve_path(folder: Path) -> str:
    # Links are resolved: a link that later points to another folder must not keep the confirmation.
    return str(folder.resolve())


def refuse_embedder(embedder: str, source: str) -> None:
    """Raise UsageError if `source`, which the user did not write, names a folder or an address as its embedder.

    The folder of a model may contain code, and weights other than it claims. A name on the model hub that is also a
    local folder is refused too, because the folder would be loaded instead. An address, which an embedder of a plugin
    may take, would be sent what is asked.
    """
    kind, _, model = embedder.partition(":")
    what = "an address" if "://" in model else ""
    if kind == "sentence-transformers" and (not _HUB_NAME.fullmatch(model) or os.path.lexists(model)):
        what = "a folder"
    if what:
        raise UsageError(
            f"{source} names {what} as its embedder, {embedder!r}, and only you may name one: "
            f"if you know it, set TOMEWISE_EMBEDDER to this name"
        )
