"""What tells one set of documents, of wordings or of code from another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from tomewise.language.prompts import PACKAGED
from tomewise.memory.passages import digest_document
from tomewise.types import Document

PACKAGE = PACKAGED.parent
_ABOVE_MEMORY = ("evaluate", "loops", "recall", "working", "terminal", "systems/spec.py")


def documents_digest(documents: Sequence[Document]) -> str:
    """What tells one set of documents from another, in whatever order."""
    return digest_of(*sorted((document.id, digest_document(document)) for document in documents))


def prompts_digest(folder: Path | None) -> str:
    """What tells one set of wordings from another, those of judges apart; a folder's wordings come first."""
    texts = []
    for packaged in sorted(PACKAGED.glob("*.md")):
        own = folder / packaged.name if folder else packaged
        if not packaged.name.startswith("judge_"):
            texts.append((own if own.is_file() else packaged).read_bytes())
    return digest_of(*(sha256(text).hexdigest() for text in texts))


def code_digest() -> str:
    """What tells one state of the package from another: its sources and its prompts."""
    return _files_digest(PACKAGE, ())


def memory_code_digest() -> str:
    """The same of the code that makes memories: without the parts that it cannot import, for imports point down."""
    return _files_digest(PACKAGE, _ABOVE_MEMORY)


@cache  # a process runs the code that it began with
def _files_digest(package: Path, left_out: Sequence[str]) -> str:
    paths = sorted([*package.rglob("*.py"), *package.glob("prompts/*.md")])
    named = [(path.relative_to(package), path) for path in paths]
    kept = [(name.as_posix(), path) for name, path in named if name.parts[0] not in left_out]
    return digest_of(*((name, sha256(path.read_bytes()).hexdigest()) for name, path in kept))


def digest_of(*parts: Any) -> str:
    """64 hexadecimal digits for plain data."""
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
