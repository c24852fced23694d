"""Remove what frames the text of a web page: navigation, notices about cookies, the head and the foot of the site."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bs4 import BeautifulSoup, Tag

_FRAME_TAGS = frozenset({"nav", "dialog", "button", "select", "menu"})
_SITE_TAGS = frozenset({"header", "footer", "aside"})  # of the site, unless they are within the text
_TEXT_TAGS = frozenset({"main", "article", "section", "blockquote", "figure"})
_FRAME_ROLES = frozenset(
    {"navigation", "banner", "contentinfo", "search", "dialog", "alertdialog", "menu", "menubar", "complementary"}
)
_NOTICE = re.compile(
    r"(?i)\b(?:cookie[-_]?(?:s[-_]?)?(?:banner|bar|box|consent|dialog|law|message|modal|notice|overlay|policy|popup|"
    r"settings|warning|wall)|gdpr|consent|onetrust|cybotcookiebot\w*|skip[-_]?(?:link|to[-_]?content|nav))"
)
# Names that also stand for text, such as the menu of a restaurant: they are navigation if they are mostly links.
_LISTING = re.compile(
    r"(?i)(?:^|[-_\s])(?:nav|nav[-_]?bar|navigation|menu|submenu|breadcrumbs?|side[-_]?bar|toc|share|social|related|"
    r"footer|header|pager|pagination|tags)(?:$|[-_\s])"
)
_LINK_SHARE = 0.5  # of the characters of navigation that are in links, at least
_KEPT = frozenset({"html", "body", "main", "article", "h1", "h2", "h3", "h4", "h5", "h6", "p", "pre", "code", "table"})
_LEAST_SHARE = 0.25  # of a page without <main> that is left: with less, the names mislead, and the page stays whole


def remove_frame(soup: BeautifulSoup) -> None:
    """Remove the frame of a page, known by its elements, roles and names.

    The page stays whole if nothing would be left, or, without a `<main>`, less than a quarter.
    """
    whole = _count(soup)
    frame = list(_find_frame(soup))
    left = whole - sum(map(_count, frame))
    if left > (0 if soup.find("main") else _LEAST_SHARE * whole):
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
    if element.name in _KEPT:
        return False
    role = str(element.get("role") or "").lower()
    if element.name in _FRAME_TAGS or (not is_text and (element.name in _SITE_TAGS or role in _FRAME_ROLES)):
        return True
    classes = element.get("class") or ()
    names = " ".join([str(element.get("id") or ""), *([classes] if isinstance(classes, str) else classes)])
    if _NOTICE.search(names):
        return True
    return bool(_LISTING.search(names)) and _is_mostly_links(element)


def _is_mostly_links(element: Tag) -> bool:
    linked = sum(_count(link) for link in element.find_all("a"))
    return linked > _LINK_SHARE * _count(element)


def _count(element: Tag) -> int:
    """The characters of an element that are not white space."""
    return sum(len("".join(text.split())) for text in element.strings)
