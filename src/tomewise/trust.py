"""What is taken from others: settings of folders that the user has confirmed, and no folder as an embedder.

Confirmations stand in the user's own configuration folder. Each holds for one folder and one wording of its
`tomewise.toml`: a file that changed asks again.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from tomewise.errors import UsageError

FILE = "trusted.json"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


class TrustedFolders:
    """The folders confirmed so far. `home` is the user's configuration folder; it is made when first needed."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def holds(self, folder: Path, settings: bytes) -> bool:
        """Whether the user has confirmed this folder with exactly these settings."""
        return self.all().get(_name(folder)) == sha256(settings).hexdigest()

    def add(self, folder: Path, settings: bytes) -> None:
        """Confirm the folder with these settings, in place of what was confirmed of it before."""
        self._write({**self.all(), _name(folder): sha256(settings).hexdigest()})

    def forget(self, folder: Path) -> None:
        """Take a confirmation back. Raises UsageError where there is none."""
        known = dict(self.all())
        if known.pop(_name(folder), None) is None:
            raise UsageError(f"{folder} is not among the trusted folders: `tome trust --list` shows them")
        self._write(known)

    def all(self) -> Mapping[str, str]:
        """The digest of the settings of each folder, by the folder's full name. Raises UsageError for a bad file."""
        try:
            known = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise UsageError(f"{self._path} cannot be read: {error}; mend or delete it") from error
        if not isinstance(known, dict):
            raise UsageError(f"{self._path} holds no list of folders: delete it, then run `tome trust` again")
        return known

    def _write(self, known: Mapping[str, str]) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, made = tempfile.mkstemp(dir=self._path.parent)  # readable by the user alone
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(dict(sorted(known.items())), file, indent=1)
            os.replace(made, self._path)
        except OSError as error:
            raise UsageError(f"{self._path} cannot be written: {error}") from error


def _name(folder: Path) -> str:
    # Without links, so that a link that is turned elsewhere takes no confirmation with it.
    return str(folder.resolve())


def refuse_folder(embedder: str, source: str) -> None:
    """Raises UsageError where `source`, which the user did not write, names a folder as its embedder.

    A model's folder may bring code of its own, and weights that are not what they seem. A name of the hub that is also
    a folder here is refused too, for the folder would be loaded in its place.
    """
    kind, _, model = embedder.partition(":")
    if kind == "sentence-transformers" and (not _HUB_NAME.fullmatch(model) or os.path.lexists(model)):
        raise UsageError(
            f"{source} names a folder as its embedder, {embedder!r}, and only you may name one: "
            f"if you know that folder, set TOMEWISE_EMBEDDER to this name"
        )
