"""The command `tome help`: the pages of the documentation, which the package carries as text, and a search in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from tomewise.errors import NO_WORDS, MissingDependency, UnknownName
from tomewise.terminal.commands import app
from tomewise.terminal.screen import console, escape

_PACKAGE = Path(__file__).parents[1]
_TOPICS = "topics"
_NOT_SEARCHED = (_TOPICS, "changelog", "architecture")
_INDEX = """
CREATE VIRTUAL TABLE abouts USING fts5(name UNINDEXED, about);
CREATE VIRTUAL TABLE texts USING fts5(name UNINDEXED, headings, text);
"""
_RANKED = """
SELECT name FROM (
  SELECT name, 2 * bm25(abouts) AS score FROM abouts WHERE abouts MATCH ?
  UNION ALL SELECT name, bm25(texts, 0, 3, 1) FROM texts WHERE texts MATCH ?)
GROUP BY name ORDER BY sum(score) LIMIT 3"""
_INCLUDED = re.compile(r'^--8<-- "([^":\n]+)(?::(\d+):)?"$', re.MULTILINE)
_DOCUMENTED = re.compile(r"^::: (\S+)(?:\n    .*)*", re.MULTILINE)
_LINK = re.compile(r"\[([^\[\]]+)\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@app.command("help", epilog="Example: tome help how much will it cost")
def show_help(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]", help="A page, or words to search for.")
    ] = None,
) -> None:
    """Show a page of the documentation, search its pages for words, or list what they are about."""
    root = _find_root()
    topic = " ".join(words or [_TOPICS])
    if path := _find_page(root / "docs", topic):
        _print_page(_name_topics(_read_page(root, path), path.parent, root / "docs"))
    else:
        _print_found(root, topic)


def _find_root() -> Path:
    """The folder with `docs/` and what its pages include: in the package, or the checkout that it lies in.

    Raises MissingDependency if neither has them.
    """
    for root in (_PACKAGE / "manual", _PACKAGE.parents[1]):
        if (root / "docs" / f"{_TOPICS}.md").is_file():
            return root
    raise MissingDependency("this installation came without the documentation: install Tomewise from its wheel")


def _find_page(docs: Path, topic: str) -> Path | None:
    """The page that a topic names: by its path, its name, or that of a command; of several, what users need first."""
    ending = f"/{re.sub('[ _]', '-', topic.lower().removesuffix('.md'))}"
    pages = _list_pages(docs)
    named = [name for name in pages if f"/{name}".replace("_", "-").endswith(ending)]
    return pages[min(named, key=lambda name: (name.count("/"), name))] if named else None


def _list_pages(docs: Path) -> dict[str, Path]:
    """The pages by their names, such as `how-to/costs`."""
    return {path.relative_to(docs).with_suffix("").as_posix(): path for path in sorted(docs.rglob("*.md"))}


def _read_page(root: Path, path: Path) -> str:
    """The text of a page with what it includes, drawings apart; of classes, the command that shows them."""

    def include(found: re.Match[str]) -> str:
        included = root / found[1]
        if included.suffix == ".svg" or not included.is_file():
            return ""
        lines = included.read_text(encoding="utf-8").splitlines()
        return "\n".join(lines[int(found[2] or 1) - 1 :])

    text = _INCLUDED.sub(include, path.read_text(encoding="utf-8"))
    return _DOCUMENTED.sub(r"- `python -m pydoc \1`", text)


def _name_topics(text: str, folder: Path, docs: Path) -> str:
    """The text of a page of this folder, where a link to a page says what `tome help` has to be given."""

    def name(found: re.Match[str]) -> str:
        page = (folder / found[2].partition("#")[0]).resolve()
        if page.suffix != ".md" or not page.is_relative_to(docs.resolve()):
            return found[0]
        return f"{found[1]} (`{page.relative_to(docs.resolve()).with_suffix('').as_posix()}`)"

    return _LINK.sub(name, text)


def _print_page(text: str) -> None:
    """Print a page, laid out on a terminal."""
    out = console()
    if out.is_terminal:
        from rich.markdown import Markdown

        out.print(Markdown(text))
    else:
        print(text)


def _print_found(root: Path, words: str) -> None:
    """Print the pages nearest to the words. Raises UnknownName if no page has one of them."""
    found = list(_search(root, words))
    if not found:
        raise UnknownName(f"no page of the documentation has {words!r}: `tome help` lists what they are about")
    out = console()
    for name, title, about in found:
        out.print(f"[bold]tome help {escape(name)}[/bold]  {escape(title)}")
        if about:
            out.print(f"  [dim]{escape(about)}[/dim]")


def _search(root: Path, words: str) -> Iterator[tuple[str, str, str]]:
    """The names, titles and descriptions of the best pages, by SQLite's BM25, as passages of a tome are.

    What a page is about is an index of its own: there a word counts that stands in the text of nearly every page.
    """
    import sqlite3  # late: some builds of Python lack it

    docs = root / "docs"
    abouts, titles = _read_topics(docs), {}
    with closing(sqlite3.connect(":memory:")) as index:
        try:
            index.executescript(_INDEX)
        except sqlite3.OperationalError as error:
            raise MissingDependency(NO_WORDS) from error
        for name, path in _list_pages(docs).items():
            if name in _NOT_SEARCHED:
                continue
            text = _read_page(root, path)
            titles[name], *headings = _HEADING.findall(text)
            about = f"{titles[name]} {name} {abouts.get(name, '')}"
            index.execute("INSERT INTO abouts VALUES (?, ?)", (name, _stem(about)))
            index.execute("INSERT INTO texts VALUES (?, ?, ?)", (name, _stem(" ".join(headings)), _stem(text)))
        query = " OR ".join(f'"{term}"' for term in _stem(words).split())
        for (name,) in index.execute(_RANKED, (query, query)) if query else ():
            yield name, titles[name], abouts.get(name, "")


def _stem(text: str) -> str:
    from tomewise.text.words import list_terms  # late: what lists the options does without

    return " ".join(list_terms(text))


def _read_topics(docs: Path) -> dict[str, str]:
    """What people come to a page for, by its name."""
    text = (docs / f"{_TOPICS}.md").read_text(encoding="utf-8")
    abouts = re.findall(r"^- \[[^\]\n]+\]\(([^()\n]+)\.md\): (.*(?:\n  .*)*)", text, re.MULTILINE)
    return {name: _name_topics(about, docs, docs) for name, about in abouts}
