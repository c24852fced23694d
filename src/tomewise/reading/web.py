"""Read HTML as Markdown-like text."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.exceptions import ParserRejectedMarkup
from markdownify import ATX, MarkdownConverter

from tomewise.errors import ReadingError
from tomewise.reading.decode import decode_text
from tomewise.reading.page_frame import remove_frame
from tomewise.reading.places import mark_headings
from tomewise.types import Document

_NO_TEXT = ("script", "style", "noscript", "template", "svg", "title")
_PROLOG = re.compile(r"\A\s*<\?xml[^>]*>")
# Long white space, which a page shows as one blank. In it markdownify would search for a newline from each character,
# which takes quadratic time.
_PADDING = re.compile(r"(?<![ \t])[ \t]{1000,}")
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*\n")
_DECLARED = re.compile(rb"<(?:meta|\?xml)[^>]{0,200}(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)


def read_html(path: Path) -> tuple[Document]:
    """The page in an HTML file without its frame, see `page_frame`. Raises `ReadingError` if it cannot be parsed."""
    raw = path.read_bytes()
    html = decode_text(raw, str(path), find_charset(raw))
    title, text = convert_html(html, str(path), prepare=remove_frame)
    return (Document(id=str(path), text=text, title=title, source=str(path), marks=mark_headings(text)),)


def read_page(raw: bytes, name: str) -> tuple[str, str]:
    """The title and the text of a page, from its bytes. `name` is its name in errors. Raises `ReadingError`."""
    return convert_html(decode_text(raw, name, find_charset(raw)), name)


def find_charset(raw: bytes) -> str | None:
    """The encoding that a page declares in its first 4 kilobytes."""
    found = _DECLARED.search(raw[:4096])
    return found[1].decode("ascii", "ignore") if found else None


def convert_html(html: str, name: str, *, prepare: Callable[[BeautifulSoup], None] = lambda _: None) -> tuple[str, str]:
    """The `<title>` of a page (empty if it has none) and its text with headings, paragraphs, lists and tables.

    Scripts, styles, images and the addresses of links are dropped. `prepare` may change the parsed page before. Raises
    `ReadingError` if it cannot be parsed.
    """
    if "<" not in html:
        return "", unescape(html).strip()
    converter = MarkdownConverter(
        heading_style=ATX, bullets="-", strip=["a", "img"], escape_asterisks=False, escape_underscores=False
    )
    try:
        soup = BeautifulSoup(_PADDING.sub(" ", _escape_unclosed(_PROLOG.sub("", html))), "html.parser")
        title = " ".join(soup.title.get_text().split()) if soup.title else ""
        for tag in soup.find_all(_NO_TEXT):
            tag.decompose()
        prepare(soup)
        text = str(converter.convert_soup(soup))
    except (ParserRejectedMarkup, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else "not parsable"
        raise ReadingError(f"{name} is HTML but {reason}: save it as text or Markdown") from error
    return title, _BLANK_LINES.sub("\n\n", text).strip()


def _escape_unclosed(html: str) -> str:
    """Escape the start of each tag or comment that is never closed: it is text.

    The parser would search for the end of each one separately. That takes quadratic time: half a minute for 60 KB of
    `<a `.
    """
    html = _escape_after(html, "<!--", "-->")
    return _escape_after(html, "<", ">")


def _escape_after(html: str, opening: str, closing: str) -> str:
    closed = html.rfind(closing) + 1
    return html[:closed] + html[closed:].replace(opening, "&lt;" + opening[1:])
