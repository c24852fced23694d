"""The page that `tome serve` shows: plain modules for a browser, their styles, and how each is found by its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePosixPath

from tomewise.drawing.page import join_modules, read_file

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGE = "index.html"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file of the page. Its `etag` changes with its content."""

    body: bytes
    media_type: str
    etag: str


@cache
def list_assets() -> Mapping[str, Asset]:
    """All files by their address below `assets/`. Those of the drawing room are among them, its modules as one."""
    room = files("tomewise.web")
    texts = {
        f"{folder}{file.name}": file.read_text("utf-8")
        for folder in ("", "vendor/")
        for file in room.joinpath(folder).iterdir()
        if PurePosixPath(file.name).suffix in _TYPES
    }
    texts["d3.js"] = read_file("vendor/d3.min.js")
    texts["picture.css"] = read_file("picture.css")
    texts["drawing.js"] = join_modules() + "\nexport { drawPicture };\n"
    return {name: _make_asset(name, text) for name, text in sorted(texts.items())}


def _make_asset(name: str, text: str) -> Asset:
    body = text.encode()
    return Asset(body, _TYPES[PurePosixPath(name).suffix], f'"{sha256(body).hexdigest()[:20]}"')
