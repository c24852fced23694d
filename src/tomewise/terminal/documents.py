"""The commands `tome add`, `tome remove` and `tome clean`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tomewise.errors import ReadingError, UsageError, count_noun
from tomewise.terminal.commands import app, find_tome, open_tome, repeat_options
from tomewise.terminal.completion import complete_ids
from tomewise.terminal.options import NOTHING, Json, Stated, TomeFile, Yes, take_settings
from tomewise.terminal.screen import console, escape, make_table, print_json
from tomewise.terminal.state import promise_to_resume
from tomewise.terminal.work import show_work

if TYPE_CHECKING:
    from rich.console import Console

    from tomewise.store.records import DocumentRecord
    from tomewise.tome.reports import AddReport, Foresight

_NAMES = 3  # documents to name of a folder
_LINES = 10  # paths that were passed over for one reason, each with a line
_LISTED = 50  # documents that the question before a removal lists


@app.command(epilog="Example: tome add novel.txt notes/ corpus.jsonl")
@take_settings("embedder", "passage_tokens", "overlap", "encoding", "on", "workers")
def add(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Files, folders, .jsonl corpora, or - for standard input."),
    ] = None,
    tome: TomeFile = None,
    sync: Annotated[
        bool,
        typer.Option("--sync", help="Also forget documents whose files are gone from a folder; follow moved files."),
    ] = False,
    stated: Stated = NOTHING,
    prefix: Annotated[str, typer.Option(metavar="NAME", help="Put NAME/ before the ids of rows.")] = "",
    meta: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Metadata of these documents, now and when they are added again; KEY= takes it back.",
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="The title of the document, where one file is added.")] = "",
    follow: Annotated[bool, typer.Option("--follow", help="Follow links in a folder to files outside of it.")] = False,
    include: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Of folders, read only files such as '*.md'.")
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Of folders, leave out files and folders such as 'old/'."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also read what a .gitignore leaves out, and node_modules.")
    ] = False,
    formats: Annotated[
        bool, typer.Option("--list-formats", help="List the formats of files that can be read, and end.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read documents and remember them. An unchanged document costs nothing, a changed one is replaced."""
    if formats:
        print_formats(as_json)
        return
    if not paths:
        raise UsageError("no PATH is given: name files or folders, or - for standard input (see `tome add --help`)")
    promise_to_resume()
    started = time.perf_counter()
    options: dict[str, Any] = {"prefix": prefix, "follow": follow, "sync": sync, "keep_going": len(paths) > 1}
    options |= {"include": include or (), "exclude": exclude or (), "ignored": everything}
    options["metadata"] = _read_fields(meta or (), title)
    with (
        show_work(f"adding {count_noun(len(paths), 'source')}") as work,
        _leave_no_empty_tome(tome),
        open_tome(tome, stated, create=True) as opened,
    ):
        report = opened.add(*paths, **options, on_progress=work.report)
    if as_json:
        print_json(report)
    else:
        if len(report.failed) < len(paths):
            from tomewise.terminal.render import offer_build, print_lag

            print_add_report(report, len(paths), time.perf_counter() - started, console())
            print_lag(report.lagging, console())
            offer_build(report.lagging, repeat_options(tome), console())
            console().print(f'[dim]next: tome ask{escape(repeat_options(tome))} "your question"[/dim]')
    if report.failed:
        _print_failures(report, len(paths))
        raise typer.Exit(ReadingError.exit_code)


def _read_fields(stated: Sequence[str], title: str) -> dict[str, Any]:
    """The fields of `--meta` and `--title`; a field that is stated several times is a list."""
    from tomewise.reading.metadata import read_plain  # late, since every command waits for this file

    fields: dict[str, Any] = {}
    for text in stated:
        name, sign, word = text.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"cannot read the metadata {text!a}: give a name and a value, such as year=1911")
        plain = read_plain(word.strip())
        value = word.strip() if plain is None else plain
        before = fields.get(name.strip())
        fields[name.strip()] = value if before is None else [*(before if isinstance(before, list) else [before]), value]
    return fields | ({"title": title} if title else {})


@contextmanager
def _leave_no_empty_tome(tome: str | None) -> Iterator[None]:
    """Delete a tome that the command inside created, if it then failed before it added a document."""
    from tomewise.tome.open_store import delete_empty_store, exists

    place = find_tome(tome)
    existed = exists(place)
    try:
        yield
    finally:
        if not existed:
            delete_empty_store(place)


def _put_on_one_line(text: str) -> str:
    return "\\n".join(text.splitlines())  # the name of a file may have several lines


def print_add_report(report: AddReport, sources: int, seconds: float, out: Console) -> None:
    """What `tome add` prints of this many sources, added in so many seconds."""
    from tomewise.types.place import name_document  # late, since every command waits for this file

    most = max(_NAMES, sources)
    for word in ("added", "replaced", "moved", "unchanged", "removed"):
        if documents := getattr(report, word):
            names = ", ".join(map(name_document, documents[:most])) + (", …" if len(documents) > most else "")
            why = ", no longer there" if word == "removed" else ""
            out.print(
                f"[bold]{word}[/bold] {count_noun(len(documents), 'document')}{why}: {escape(_put_on_one_line(names))}"
            )
    for word, parts in (("kept the former text", report.kept), ("left out", report.left_out)):
        for document, words in islice(parts.items(), _LINES):
            out.print(f"[yellow]{word}[/yellow] of {escape(_put_on_one_line(f'{name_document(document)}: {words}'))}")
        if (more := len(parts) - _LINES) > 0:
            out.print(f"[yellow]{word}[/yellow] of {count_noun(more, 'more document')}: --json lists all")
    if report.guessed:
        guesses = [f"{name_document(each)} as {page.partition(' ')[0]}" for each, page in report.guessed.items()]
        listed = ", ".join(guesses[:_LINES]) + (", …" if len(guesses) > _LINES else "")
        what = f"[yellow]guessed[/yellow] the encoding of {count_noun(len(guesses), 'document')}"
        out.print(f"{what}: {escape(_put_on_one_line(listed))}: `--encoding` states it")
    if report.resting:
        numbers = ", ".join(map(str, report.resting[:_LINES])) + (", …" if len(report.resting) > _LINES else "")
        what, verb = count_noun(len(report.resting), "answer"), "quotes" if len(report.resting) == 1 else "quote"
        out.print(f"[yellow]{what}[/yellow] of `tome log` {verb} what is no longer there: {numbers}")
    by_reason: dict[str, list[str]] = {}
    for path, reason in report.skipped.items():
        by_reason.setdefault(reason, []).append(name_document(path))
    for reason, paths in by_reason.items():
        shown = paths
        if len(paths) > _LINES:
            shown = [f"{', '.join(paths[:_NAMES])} and {len(paths) - _NAMES:,} more"]
        for name in shown:
            out.print(f"[yellow]passed over[/yellow] {escape(_put_on_one_line(f'{name}: {reason}'))}")
    out.print(f"[dim]{count_noun(report.passages, 'new passage')} in {seconds:.1f} s[/dim]")


def _print_failures(report: AddReport, sources: int) -> None:
    err = console(stderr=True)
    for reason in report.failed.values():
        err.print(f"tome: [red]failed[/red] {escape(' '.join(reason.split()))}")
    if len(report.failed) == sources:
        err.print(f"tome: all {sources} sources failed; nothing was added")
    else:
        err.print(f"tome: {len(report.failed)} of {sources} sources failed; the others are added")


def print_formats(as_json: bool) -> None:
    """Print each format with its suffixes, the places that citations name, and what it needs."""
    from tomewise.reading.formats import list_formats

    formats = list_formats()
    if as_json:
        rows = map(asdict, formats)
        print_json([{name: value for name, value in row.items() if name != "reader"} for row in rows])
        return
    table = make_table("format", "files", "citations name", "needs")
    for format in formats:
        needs = f"tomewise[{format.extra}]" if format.reader else format.extra
        suffixes = " ".join(format.suffixes)
        table.add_row(
            escape(format.name), escape(suffixes), escape(format.places), escape(needs if format.extra else "")
        )
    console().print(table)


# ---------------------------------------------------------------- removing


@app.command(epilog="Example: tome remove old.txt notes/ '*.draft.md'")
def remove(
    documents: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCUMENT",
            help="Whole ids, paths, titles, folders, or patterns such as 'notes/*.md'.",
            autocompletion=complete_ids,
        ),
    ],
    tome: TomeFile = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Forget documents and everything that rests on them alone. On a terminal it says what goes, and asks.

    Elsewhere --yes is needed for a folder, a pattern, and where memory goes that a model was paid for.
    """
    from tomewise.tome.document_names import find_exactly

    with open_tome(tome) as opened:
        named = [find_exactly(name, opened.store) for name in documents]
        records = list({record.id: record for each in named for record in each.records}.values())
        if not yes:
            foresight = opened.documents.foresee_removal(*records)
            if sys.stdin.isatty():
                _confirm(records, foresight)
            elif foresight.paid or not all(each.single for each in named):
                loss = _describe_loss(records, foresight)
                raise UsageError(f"this would remove {loss}: give --yes if all of this is meant")
        for record in records:
            report = opened.remove(record)
            if as_json:
                print_json(report)
                continue
            derived = f" and {_count_derived(report.derived)}" if report.derived else ""
            passages = count_noun(report.passages, "passage")
            console().print(f"[bold]removed[/bold] {escape(report.document)}: {passages}{derived}")


def _confirm(records: Sequence[DocumentRecord], foresight: Foresight) -> None:
    """Say what goes, and ask on the terminal. Ends the command after a no."""
    err = console(stderr=True)
    for record in records[:_LISTED]:
        err.print(f"  {escape(record.id)}")
    if len(records) > _LISTED:
        err.print(f"  … and {len(records) - _LISTED:,} more")
    err.print(escape(f"This removes {_describe_loss(records, foresight)}."))
    typer.confirm(f"Remove {'it' if len(records) == 1 else 'them'}?", abort=True, err=True)


def _describe_loss(records: Sequence[DocumentRecord], foresight: Foresight) -> str:
    """The documents and what goes with them, in numbers; of derived nodes also the layers and what was paid for."""
    parts = [count_noun(len(records), "document"), count_noun(foresight.passages, "passage")]
    if foresight.derived:
        layers = ", ".join(f"{count:,} of {layer}" for layer, count in sorted(foresight.layers.items()))
        paid = "".join(f"; {count:,} made by {models}, and paid for" for models, count in foresight.paid.items())
        parts.append(f"{_count_derived(foresight.derived)} ({layers}{paid})")
    return ", ".join(parts[:-1]) + f" and {parts[-1]}"


def _count_derived(number: int) -> str:
    return count_noun(number, "derived memory", "derived memories")


@app.command()
def clean(tome: TomeFile = None, as_json: Json = False) -> None:
    """Delete the cached arrays beside a tome. The next question makes those that it needs again; nothing is lost."""
    with open_tome(tome) as opened:
        size = opened.memory.clean()
    if as_json:
        print_json({"freed": size})
    else:
        console().print(f"[bold]freed[/bold] {size / 1e6:.1f} MB of cached arrays")
