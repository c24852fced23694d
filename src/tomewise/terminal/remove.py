"""The commands `tome remove` and `tome clean`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tomewise.errors import UsageError
from tomewise.terminal.commands import app, open_tome
from tomewise.terminal.completion import complete_ids
from tomewise.terminal.options import Json, TomeFile
from tomewise.terminal.plain import count_noun, escape
from tomewise.terminal.screen import console, print_json, print_model

if TYPE_CHECKING:
    from tomewise.store.records import DocumentRecord
    from tomewise.tome.foresight import Foresight

_LISTED = 50  # documents that the question before a removal lists


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
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Forget documents and everything that rests on them alone. On a terminal it says what goes, and asks.

    Elsewhere --yes is needed for a folder, a pattern, and where memory goes that a model was paid for.
    """
    from tomewise.outgoing.report_models import RemoveReport
    from tomewise.tome.exact_names import find_exactly
    from tomewise.tome.foresight import foresee_removal

    with open_tome(tome, create=False) as book:
        named = [find_exactly(name, book.store) for name in documents]
        records = list({record.id: record for each in named for record in each.records}.values())
        if not yes:
            foresight = foresee_removal([record.id for record in records], book.store)
            if sys.stdin.isatty():
                _confirm(records, foresight)
            elif foresight.paid or not all(each.single for each in named):
                loss = _describe_loss(records, foresight)
                raise UsageError(f"this would remove {loss}: give --yes if all of this is meant")
        for record in records:
            report = book.remove(record)
            if as_json:
                print_model(RemoveReport.of(report))
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
    with open_tome(tome, create=False) as book:
        size = book.clean()
    if as_json:
        print_json({"freed": size})
    else:
        console().print(f"[bold]freed[/bold] {size / 1e6:.1f} MB of cached arrays")
