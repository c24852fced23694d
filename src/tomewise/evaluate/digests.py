"""Digests of documents, of prompts and of code: equal digests mean equal content."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from tomewise.language.prompts import PACKAGED
from tomewise.language.roles import find_outside_roles
from tomewise.memory.passages import digest_document
from tomewise.types import Document

PACKAGE = PACKAGED.parent
_ABOVE_MEMORY = ("evaluate", "loops", "recall", "working", "terminal")


def digest_documents(documents: Sequence[Document]) -> str:
    """The digest of a set of documents, in whatever order they come."""
    return digest_data(*sorted((document.id, digest_document(document)) for document in documents))


def digest_prompts(folder: Path | None) -> str:
    """The digest of the prompts, those of plugins included, without those of judges.

    A prompt in `folder` replaces the packaged one, or the one that a plugin brings.
    """
    texts = []
    for packaged in sorted(PACKAGED.glob("*.md")):
        replacement = folder / packaged.name if folder else packaged
        if not packaged.name.startswith("judge_"):
            texts.append((replacement if replacement.is_file() else packaged).read_bytes())
    for role in find_outside_roles():
        replacement = (folder or PACKAGED) / f"{role.name}.md"
        texts.append(replacement.read_bytes() if replacement.is_file() else role.prompt.encode())
    return digest_data(*(sha256(text).hexdigest() for text in texts))


def digest_code() -> str:
    """The digest of the package: its sources and its prompts."""
    return _digest_files(PACKAGE, ())


def digest_memory_code() -> str:
    """The digest of the code that makes memories: the package without the parts that this code cannot import."""
    return _digest_files(PACKAGE, _ABOVE_MEMORY)


def digest_recipe(recipe: Callable[..., object]) -> str:
    """The digest of the module that defines a recipe, a recall or a loop, and of arguments that `partial` fixed.

    Where Python cannot find the source, as in an interactive session, it is that of the compiled function.
    """
    fixed: list[object] = []
    function: Any = recipe
    while isinstance(function, partial):
        fixed += [function.args, sorted(function.keywords.items())]
        function = function.func
    file = inspect.getsourcefile(function) if inspect.isroutine(function) or inspect.isclass(function) else None
    if file is not None and Path(file).is_file():
        return digest_data(sha256(Path(file).read_bytes()).hexdigest(), function.__qualname__, *fixed)
    code = getattr(function, "__code__", None)
    parts = (code.co_code.hex(), code.co_consts, code.co_names) if code is not None else (repr(function),)
    return digest_data(*parts, *fixed)


@cache  # the code of a running process does not change
def _digest_files(package: Path, left_out: Sequence[str]) -> str:
    paths = sorted([*package.rglob("*.py"), *package.glob("prompts/*.md")])
    by_name = [(path.relative_to(package), path) for path in paths]
    included = [(name.as_posix(), path) for name, path in by_name if not any(map(name.is_relative_to, left_out))]
    return digest_data(*((name, sha256(path.read_bytes()).hexdigest()) for name, path in included))


def digest_data(*parts: Any) -> str:
    """The digest of plain data: 64 hexadecimal digits."""
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
