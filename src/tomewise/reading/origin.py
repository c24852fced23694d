"""What a file says of its origin: its author, its date and its language, in one form for all formats."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from xml.etree.ElementTree import Element

from tomewise.reading.decode import join_words
from tomewise.types import Metadata

_DATE = re.compile(
    r"(?:D:)?(\d{4})(?:(-?)(\d\d)(?:\2(\d\d)(?:[T ]?(\d\d):?(\d\d)(?::?\d\d(?:[.,]\d+)?)?"
    r"(?: ?(?:UTC|GMT|Z(?:00'00'?)?|[+-]\d\d[:']?(?:\d\d'?)?))?)?)?)?",
    re.ASCII,
)
# What libraries write unasked, so that it says nothing of a document.
_NOBODY = frozenset({"python-docx", "steve canny", "openpyxl", "anonymous", "(anonymous)", "unknown", "unspecified"})
_NEVER = frozenset({"2013-12-23 23:15", "2013-01-27 09:14"})  # of the templates of python-docx and python-pptx


def read_properties(properties: Element) -> tuple[str, Metadata]:
    """The title that Office, OpenDocument or EPUB state in the XML of their properties, and the origin.

    When a document was made counts before when it was changed, and who made it before who changed it.
    """

    def list_texts(*names: str) -> list[str]:
        found = (element for name in names for element in properties.iterfind(f".//{{*}}{name}"))
        return list(filter(None, (join_words("".join(element.itertext())) for element in found)))

    dates = list_texts("creation-date", "created", "date", "modified")
    title, date, language = (next(iter(texts), "") for texts in (list_texts("title"), dates, list_texts("language")))
    authors = list_texts("initial-creator") or list_texts("creator")
    return title, describe_origin(authors=authors, date=date, language=language)


def describe_origin(*, authors: Iterable[str] = (), date: str = "", language: str = "") -> Metadata:
    """The metadata `author` (a list if there are several), `date` and `language`, as far as they are stated."""
    names = list(dict.fromkeys(name for each in authors if (name := join_words(each)).lower() not in _NOBODY and name))
    fields = {
        "author": names[0] if len(names) == 1 else names,
        "date": write_date(date),
        "language": join_words(language).replace("_", "-"),
    }
    return {name: value for name, value in fields.items() if value}


def write_date(words: str) -> str:
    """A date as `2024`, `2024-05`, `2024-05-01` or `2024-05-01 12:04`; as it is written if it has another form.

    A time of midnight is left out: most who write it know the day alone.
    """
    words = join_words(words)
    found = _DATE.fullmatch(words)
    if found is None:
        return words
    year, _, month, day, hour, minute = found.groups()
    try:
        datetime(int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), tzinfo=UTC)
    except ValueError:
        return words
    date = "-".join(filter(None, (year, month, day)))
    date += f" {hour}:{minute}" if hour and (hour, minute) != ("00", "00") else ""
    return "" if date in _NEVER else date
