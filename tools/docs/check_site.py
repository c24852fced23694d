"""What the builder does not check: the navigation, links and what is loaded of the finished pages, drawings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from lxml import html

MOST_BYTES = 10_000  # of a drawing
_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(")
_LOADED = ("//link[@rel!='canonical']/@href", "//script/@src", "//img/@src", "//source/@src", "//iframe/@src")


def list_nav(nav: list[object]) -> Iterator[str]:
    """The pages of a navigation, sections included."""
    for entry in nav:
        values = entry.values() if isinstance(entry, dict) else [entry]
        for value in values:
            yield from list_nav(value) if isinstance(value, list) else [str(value)]


def find_nav_faults(nav: list[object], docs: Path) -> Iterator[str]:
    """Pages that the navigation has twice or leaves out, and those that it names and that are not there."""
    listed = list(list_nav(nav))
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    yield from (f"the navigation has {page} twice" for page in sorted({p for p in listed if listed.count(p) > 1}))
    yield from (f"{page} is not in the navigation of mkdocs.yml" for page in sorted(pages - set(listed)))
    yield from (f"the navigation names {page}, which is not there" for page in sorted(set(listed) - pages))


def find_drawing_faults(drawings: Path) -> Iterator[str]:
    """Drawings that are too large, say no title or description, or have colours of their own."""
    for path in sorted(drawings.glob("*.svg")):
        text = path.read_text(encoding="utf-8")
        if len(text.encode()) > MOST_BYTES:
            yield f"{path} has more than {MOST_BYTES:,} bytes"
        if not all(part in text for part in ("<title", "<desc", 'role="img"', "aria-labelledby")):
            yield f'{path} needs <title>, <desc>, role="img" and aria-labelledby'
        if colour := _COLOUR.search(text):
            yield f"{path} has the colour {colour[0]}: take a variable of docs/stylesheets/site.css"


def find_site_faults(site: Path) -> Iterator[str]:
    """Links and anchors of the pages that lead nowhere, and what they would load from elsewhere."""
    trees = {path: html.fromstring(path.read_bytes()) for path in sorted(site.rglob("*.html"))}
    ids = {path: {*tree.xpath("//@id"), *tree.xpath("//a/@name")} for path, tree in trees.items()}
    for path, tree in trees.items():
        page = path.relative_to(site)
        loaded = {str(address) for query in _LOADED for address in tree.xpath(query)}
        for address in sorted(loaded | {str(link) for link in tree.xpath("//a/@href")}):
            if urlsplit(address).scheme or address.startswith("//"):
                if address in loaded and not address.startswith("data:"):
                    yield f"{page} loads {address}"
                continue
            target, anchor = _find_target(address, path, site)
            if target is None or not target.is_file():
                yield f"{page} links to {address}, which is not there"
            elif anchor and target in ids and anchor not in ids[target]:
                yield f"{page} links to {address}, an anchor that the page lacks"


def _find_target(address: str, path: Path, site: Path) -> tuple[Path | None, str]:
    """The file that an address of the site leads to, and the anchor in it."""
    page = "/" + path.relative_to(site).as_posix()
    plain, anchor = urldefrag(urljoin(page, address))
    target = site / unquote(plain).lstrip("/")
    target = target / "index.html" if plain.endswith("/") or target.is_dir() else target
    return (target if target.is_relative_to(site) else None), unquote(anchor)
