"""Read HTML as Markdown-like text, without the frame of a page: its navigation, notices and footers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag
from bs4.exceptions import ParserRejectedMarkup
from markdownify import ATX, MarkdownConverter

from tomewise.errors import ReadingError
from tomewise.reading.decode import decode, join_words
from tomewise.reading.metadata import describe_origin
from tomewise.reading.places import make_document
from tomewise.reading.tables import lay_cells, write_grid
from tomewise.types import Document, Metadata

_NO_TEXT = "script style noscript template title".split()
_LOST = {  # a picture with an empty `alt` is an ornament
    **dict.fromkeys(("img", "svg", "canvas"), "picture"),
    "video": "film",
    "audio": "recording",
    "iframe": "embedded page",
    "object": "embedded object",
}
_CELLS = ("td", "th")
_PROLOG = re.compile(r"\A\s*<\?xml[^>]*>")
# Long white space, which a page shows as one blank. In it markdownify would search for a newline from each character,
# which takes quadratic time.
_PADDING = re.compile(r"(?<![ \t])[ \t]{1000,}")
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*\n")
_DECLARED = re.compile(rb"<(?:meta|\?xml)[^>]{0,200}(?:charset|encoding)\s*+=\s*+[\"']?\s*+([\w.:-]+)", re.IGNORECASE)

# The names under which the head of a page states its authors and its date, the best first.
_AUTHORS = "author citation_author dc.creator dcterms.creator article:author".split()
_DATES = (
    "article:published_time citation_publication_date dc.date dcterms.date dcterms.created dcterms.issued date pubdate"
).split()

# What is known of the frame of a page.
_FRAME_TAGS = frozenset("nav dialog button select menu".split())
_SITE_TAGS = frozenset("header footer aside".split())  # of the site, unless they are within the text
_TEXT_TAGS = frozenset("main article section blockquote figure".split())
_FRAME_ROLES = frozenset("navigation banner contentinfo search dialog alertdialog menu menubar complementary".split())
_NOTICE = re.compile(
    r"(?i)\b(?:cookie[-_]?(?:s[-_]?)?(?:banner|bar|box|consent|dialog|law|message|modal|notice|overlay|policy|popup|"
    r"settings|warning|wall)|gdpr|consent|onetrust|cybotcookiebot\w*|skip[-_]?(?:link|to[-_]?content|nav))"
)
_COOKIES = re.compile(r"(?i)(?:^|[\s_-])cookies?(?:$|[\s_-])")  # a notice if it speaks of cookies too, and of no recipe
_CONSENT = re.compile(
    r"(?im)^(?>.*?\bcookies?\b).*\b(?:accept|agree|consent|privacy|policy|use|uses|settings|preferences)\b"
)
_BANNER = re.compile(r"(?i)(?:^|[\s_-])banner(?:$|[\s_-])")
# Names that may also mean text, such as the menu of a restaurant: they are navigation if they are mostly links.
_LISTING = re.compile(
    r"(?i)(?:^|[-_\s])(?:nav|nav[-_]?bar|navigation|menu|submenu|breadcrumbs?|side[-_]?bar|toc|share|social|related|"
    r"footer|header|pager|pagination|tags)(?:$|[-_\s])"
)
_LONGEST_NOTICE = 2_000  # characters
_LINK_SHARE = 0.5  # of the characters of navigation that are in links, at least
_NEVER_FRAME = frozenset("html body main article h1 h2 h3 h4 h5 h6 p pre code table".split())
_LEAST_SHARE = 0.25  # of a page without <main> that is left: with less, the names mislead, and the page stays whole


class Page(NamedTuple):
    """What a page says: its title (empty without one), its text, and as metadata what its head says of its origin.

    `losses` counts what was left out.
    """

    title: str
    text: str
    origin: Metadata
    losses: Mapping[str, int]


class _Converter(MarkdownConverter):
    """Writes a table as `write_grid` does, and one of one column, which is a frame, as what is in it."""

    def __init__(self, soup: BeautifulSoup) -> None:
        super().__init__(
            heading_style=ATX,
            bullets="-",
            strip=["a", "img", "video"],
            escape_asterisks=False,
            escape_underscores=False,
        )
        self._words: dict[int, str] = {}  # of the cells whose table is still open
        self._tables: dict[int, list[list[Tag]]] = {}  # the cells of their rows
        self._frames: set[int] = set()  # cells with a table in them
        self._find_tables(soup)

    def _find_tables(self, soup: BeautifulSoup) -> None:
        """List the cells of each table. One that is never closed holds the next one, so these need not be children."""
        around: dict[int, tuple[int, int, int]] = {}  # the table, the row and the cell that each element is in
        tags: dict[int, list[Tag]] = {}  # of a table
        rows: dict[tuple[int, int], list[Tag]] = {}
        for tag in soup.find_all(True):
            table, row, cell = around.get(id(tag.parent), (0, 0, 0))
            if tag.name == "table":
                self._frames.add(cell)
                table, row, cell = id(tag), 0, 0
            elif tag.name == "tr":
                row = id(tag)
            elif tag.name in _CELLS:
                cell = id(tag)
                rows.setdefault((table, row), []).append(tag)
            around[id(tag)] = table, row, cell
            if tag.name in ("table", "tr", *_CELLS):
                tags.setdefault(table, []).append(tag)
        for (table, _), cells in rows.items():
            self._tables.setdefault(table, []).append(cells)
        for table, parts in tags.items():
            if max(map(len, self._tables.get(table, ())), default=0) < 2 or not table:
                for tag in parts:
                    tag.name = "div"

    def convert_details(self, block: Tag, text: str, parent_tags: Collection[str]) -> str:
        """A block; markdownify would join its words with those beside it."""
        return f" {text.strip()} " if "_inline" in parent_tags else f"\n\n{text.strip()}\n\n" if text.strip() else ""

    convert_address = convert_aside = convert_fieldset = convert_figure = convert_footer = convert_form = (
        convert_details
    )
    convert_header = convert_legend = convert_main = convert_option = convert_summary = convert_details
    convert_textarea = convert_details

    def convert_td(self, cell: Tag, text: str, parent_tags: Collection[str]) -> str:
        """Keeps the words of a cell for its table. A table in it is written in one line."""
        words = text.strip()
        if id(cell) in self._frames:
            words = "; ".join(line.strip("| ").replace(" | ", ", ") for line in words.splitlines() if line.strip())
        self._words[id(cell)] = words
        return ""

    convert_th = convert_td

    def convert_tr(self, row: Tag, text: str, parent_tags: Collection[str]) -> str:
        """What stands in a row beside its cells."""
        return text

    def convert_table(self, table: Tag, text: str, parent_tags: Collection[str]) -> str:
        """What stands in the table beside its cells, such as its caption, and the cells."""
        cells = self._tables[id(table)]
        are_heads = [
            all(cell.name == "th" for cell in row) or row[0].parent.parent.name == "thead"  # type: ignore[union-attr]
            for row in cells
        ]
        heads = [*are_heads, False].index(False)
        laid = lay_cells([(self._words.pop(id(cell), ""), *_read_spans(cell)) for cell in row] for row in cells)
        return f"\n\n{text.strip()}\n\n{write_grid(*laid, heads if 0 < heads < len(cells) else None)}\n\n"


def _read_spans(cell: Tag) -> tuple[int, int]:
    """How many rows and columns a cell covers; 0 stands for all the rows below."""
    words = [str(cell.get(name) or "")[:5] for name in ("rowspan", "colspan")]
    height, width = (int(word) if word.isdecimal() else 1 for word in words)
    return height or 1 << 16, width


def read_html(path: Path) -> tuple[Document]:
    """The page in an HTML file without its frame, see `remove_frame`. Raises `ReadingError` if it cannot be parsed."""
    page = read_page(path.read_bytes(), str(path), is_framed=True)
    return make_document(path, page.text, page.title, page.origin, losses=page.losses)


def _read_origin(soup: BeautifulSoup) -> Metadata:
    """The author, the date and the language that the head of a page states."""
    stated: dict[str, list[str]] = {}
    for tag in soup.find_all("meta"):
        name = str(tag.get("name") or tag.get("property") or "").lower()
        stated.setdefault(name, []).append(str(tag.get("content") or ""))
    authors = next((stated[name] for name in _AUTHORS if name in stated), [])
    date = next((stated[name][0] for name in _DATES if name in stated), "")
    language = str(soup.html.get("lang") or soup.html.get("xml:lang") or "") if soup.html else ""
    names = [author for author in authors if "://" not in author]  # some state the address of a profile
    return describe_origin(authors=names, date=date, language=language)


def read_page(raw: bytes, name: str, *, is_framed: bool = False) -> Page:
    """The page from its bytes, see `convert_html`. `name` is its name in errors."""
    text, encoding = decode(raw, name, find_charset(raw))
    page = convert_html(text, name, is_framed=is_framed)
    return page._replace(origin={**page.origin, **encoding})


def find_charset(raw: bytes) -> str | None:
    """The encoding that a page declares in its first 4 kilobytes."""
    found = _DECLARED.search(raw[:4096])
    return found[1].decode("ascii", "ignore") if found else None


def convert_html(html: str, name: str, *, is_framed: bool = False) -> Page:
    """The `<title>` of a page and its text with headings, paragraphs, lists and tables.

    Scripts, styles, images and the addresses of links are dropped. Of a page that `is_framed` the frame is dropped too,
    and the origin is read. Raises `ReadingError` if it cannot be parsed.
    """
    origin: Metadata = {}
    losses = Counter[str]()
    if "<" not in html:
        return Page("", unescape(html).strip(), origin, losses)
    try:
        soup = BeautifulSoup(_PADDING.sub(" ", _escape_unclosed(_PROLOG.sub("", html))), "html.parser")
        title = join_words(soup.title.get_text()) if soup.title else ""
        scripts = len(soup.find_all("script"))
        for tag in soup.find_all(_NO_TEXT):
            tag.decompose()
        if is_framed:
            origin = _read_origin(soup)
            remove_frame(soup)
        losses.update(_LOST[tag.name] for tag in soup.find_all(list(_LOST)) if tag.get("alt") != "")
        for tag in soup.find_all("svg"):
            tag.decompose()
        text = str(_Converter(soup).convert_soup(soup))
        losses["script"] = 0 if text.strip() else scripts
    except (ParserRejectedMarkup, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else "not parsable"
        raise ReadingError(f"{name} is HTML but {reason}: save it as text or Markdown") from error
    return Page(title, _BLANK_LINES.sub("\n\n", text).strip(), origin, losses)


def _escape_unclosed(html: str) -> str:
    """Escape the start of each tag or comment that is never closed: it is text.

    The parser would search for the end of each one separately. That takes quadratic time: half a minute for 60 KB of
    `<a `.
    """
    for opening, closing in (("<!--", "-->"), ("<", ">")):
        closed = html.rfind(closing) + 1
        html = html[:closed] + html[closed:].replace(opening, "&lt;" + opening[1:])
    return html


def remove_frame(soup: BeautifulSoup) -> None:
    """Remove the frame of a page, known by its elements, roles and names.

    The page stays whole if nothing would be left, or, without a `<main>`, less than a quarter.
    """
    whole = _count_characters(soup)
    frame = list(_find_frame(soup))
    left = whole - sum(map(_count_characters, frame))
    if left <= (0 if soup.find("main") else _LEAST_SHARE * whole):
        return
    for element in frame:
        element.decompose()


def _find_frame(soup: BeautifulSoup) -> Iterator[Tag]:
    """The outermost elements of the frame."""
    waiting: list[tuple[Tag, bool]] = [(soup, False)]  # an element, and whether it is within the text
    while waiting:
        element, is_text = waiting.pop()
        for child in element.children:
            if not isinstance(child, Tag):
                continue
            if _is_frame(child, is_text):
                yield child
            else:
                waiting.append((child, is_text or child.name in _TEXT_TAGS))


def _is_frame(element: Tag, is_text: bool) -> bool:
    if element.name in _NEVER_FRAME:
        return False
    role = str(element.get("role") or "").lower()
    if element.name in _FRAME_TAGS or (not is_text and (element.name in _SITE_TAGS or role in _FRAME_ROLES)):
        return True
    classes = element.get("class") or ()
    names = " ".join([str(element.get("id") or ""), *([classes] if isinstance(classes, str) else classes)])
    if _NOTICE.search(names) or (_BANNER.search(names) and not is_text and element.find("h1") is None):
        return True
    if _COOKIES.search(names) and _CONSENT.search(element.get_text(" ", strip=True)[:_LONGEST_NOTICE]):
        return True
    if _LISTING.search(names) is None:
        return False
    linked = sum(_count_characters(link) for link in element.find_all("a"))
    return linked > _LINK_SHARE * _count_characters(element)


def _count_characters(element: Tag) -> int:
    """The characters of an element that are not white space."""
    return sum(len("".join(text.split())) for text in element.strings)
