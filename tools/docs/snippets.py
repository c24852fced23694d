"""The fenced blocks of a page, and what is to be done with each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^( *)```(\w+)?([^\n]*)\n(.*?)^\1```[ ]*$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_NOT_RUN = re.compile(r"<!-- not run: ([^\n]+?) -->\s*$")
_SHOWN = re.compile(r"\s*<!-- shown -->\n(.*?)<!-- end -->", re.DOTALL)
INCLUDED = re.compile(r'^--8<-- "([^"]+)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Snippet:
    """A block of a page: its language, its lines without indentation, and where these stand in the page.

    `title` is the file that the block shows: it is written before later blocks run. `reason` says why it is not run.
    """

    language: str
    text: str
    start: int
    end: int
    indent: str = ""
    title: str = ""
    reason: str = ""

    @property
    def is_included(self) -> bool:
        """Whether the block is the text of a file, which is tested where it stands."""
        return bool(INCLUDED.search(self.text))


@dataclass(slots=True)
class Typed:
    """A command that a page shows after a prompt, and the lines that it shows as its output."""

    command: str
    shown: list[str]


def list_snippets(text: str) -> Iterator[Snippet]:
    """The blocks of a page in order. What a notebook shows as HTML is a block of the language `shown`."""
    found = []
    for match in _FENCE.finditer(text):
        indent, language, options, body = match.groups()
        reason = _NOT_RUN.search(text, 0, match.start())
        title = _TITLE.search(options)
        lines = [line.removeprefix(indent) for line in body.splitlines(keepends=True)]
        snippet = Snippet(
            language or "",
            "".join(lines),
            match.start(4),
            match.end(4),
            indent,
            title[1] if title else "",
            reason[1] if reason else "",
        )
        found.append(snippet)
        if shown := _SHOWN.match(text, match.end()):
            found.append(Snippet("shown", shown[1], shown.start(1), shown.end(1)))
    return iter(found)


def list_typed(snippet: Snippet) -> list[Typed]:
    """The commands of a console block. A line that ends with a backslash goes on."""
    typed: list[Typed] = []
    for line in snippet.text.splitlines():
        if line.startswith("$ "):
            typed.append(Typed(line[2:], []))
        elif typed and typed[-1].command.endswith("\\") and not typed[-1].shown:
            typed[-1].command += f"\n{line}"
        elif typed:
            typed[-1].shown.append(line)
        elif line.strip():
            raise ValueError(f"{line!r} stands before the first command: begin a command with '$ '")
    return typed


def write_typed(typed: list[Typed]) -> str:
    """The text of a console block."""
    return "".join(f"{line}\n" for each in typed for line in (f"$ {each.command}", *each.shown))


def list_pages(repository: Path) -> list[Path]:
    """The pages whose blocks are run: the README and those of the site that are written by hand."""
    docs = repository / "docs"
    written = [path for path in docs.rglob("*.md") if not path.is_relative_to(docs / "reference")]
    return [repository / "README.md", *sorted(written)]
