"""The page of limits: it has every bound that a user can meet, and quotes messages as they are."""

from __future__ import annotations

import re

from tests.texts import REPOSITORY
from tools.docs.limit_pages import SECTIONS, read_number, write_limit_page

from tomewise.settings import SETTINGS

PACKAGE = REPOSITORY / "src" / "tomewise"
LIMITS = [limit for limits in SECTIONS.values() for limit in limits]
BOUND = re.compile(r"^(_?(?:MOST|LONGEST|MAX|DEEPEST|LARGEST)[A-Z_]*)(?:: \w+)? = ", re.MULTILINE)
NO_BOUNDS = {"base_url", "embedder", "embedder_base_url", "model", "models", "offer", "overlap", "prompts", "system"}
# Bounds of a step, at which nothing is refused, cut or left out that a user gave or asked for.
INNER = {
    "reading.captions": {"_MOST_WORDS"},
    "reading.columns": {"_MOST_SPANS", "_DEEPEST"},
    "reading.epub": {"_MOST_LISTED"},
    "reading.fetching": {"_LONGEST_ROBOTS"},
    "reading.folder": {"_MAX_REASONS", "_MOST_DEEP"},
    "reading.mail": {"_LONGEST_FIELD", "_LONGEST_SENDER", "_LONGEST_TYPE"},
    "reading.messages": {"LONGEST_REQUEST", "_MAX_CHARACTER_BYTES", "_MAX_OVERHEAD_BYTES"},
    "reading.metadata": {"_MOST"},
    "reading.open_documents": {"_DEEPEST", "_MOST_COLUMNS"},
    "reading.pdf": {"_LONGEST_TITLE"},
    "reading.units": {"_LONGEST_QUOTATION"},
    "reading.web_pages": {"_LONGEST_NOTICE"},
    "reading.worker": {"_MAX_DEPTH"},
    "server.mcp_results": {"MOST_BYTES"},
    "server.mcp_server": {"_MOST_VALUES", "_MOST_TEXT"},
    "server.mcp_tools": {"_LONGEST"},
    "server.named_documents": {"_LONGEST_NAME"},
    "server.paging": {"MOST_START"},
    "server.tome_endpoints": {"_LONGEST_NAME"},
    "server.trace_endpoints": {"_MOST_NUMBER"},
    "server.uploads": {"_MOST_HEADERS"},
}


def list_bounds(room: str) -> list[str]:
    """The names of bounds that the files of a room declare, as `MODULE:NAME`."""
    return [
        f"{path.relative_to(PACKAGE).with_suffix('').as_posix().replace('/', '.')}:{name}"
        for path in sorted((PACKAGE / room).glob("*.py"))
        for name in BOUND.findall(path.read_text(encoding="utf-8"))
    ]


def test_it_has_every_setting_that_is_a_bound() -> None:
    listed = {limit.setting for limit in LIMITS} - {""}
    assert listed == SETTINGS.keys() - NO_BOUNDS - {"tome"}


def test_numbers_are_those_of_the_code() -> None:
    page = write_limit_page()
    for limit in LIMITS:
        if limit.source and (number := read_number(limit.source)) is not None:
            assert number > 0, limit.source
    assert "| an upload | 100,000,000 bytes |" in page
    assert "| results of one search | 1,000 |" in page


def read_messages() -> str:
    """The source without what joins the pieces of a message, and with "…" for what varies in it."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    joined = re.sub(r"\"\s*\n\s*f?\"", "", source)
    return re.sub(r"\{[^{}]*\}", "…", joined)


def test_messages_are_those_of_the_code() -> None:
    messages = read_messages()
    for limit in LIMITS:
        for part in re.split(r"…|: ", limit.says):
            assert part.strip() in messages, (limit.what, part)


def test_no_bound_of_reading_and_of_the_server_is_missing() -> None:
    listed = {limit.source for limit in LIMITS}
    found = [name for room in ("reading", "server") for name in list_bounds(room)]
    inner = {f"{module}:{name}" for module, names in INNER.items() for name in names}
    assert [name for name in found if name not in listed | inner] == []
    assert inner <= set(found)
