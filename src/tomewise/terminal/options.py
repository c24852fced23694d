"""The options that several commands share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tomewise.settings import SETTINGS
from tomewise.terminal.completion import complete_documents, complete_sessions, complete_systems


def make_option(setting: str, *words: str, metavar: str | None = None, more: str = "", **rest: Any) -> Any:
    """The option of a setting, with its help, its bound and its default. `more` follows the help."""
    found = SETTINGS[setting]
    least = found.least if found.kind in ("int", "float") else None
    default = f"[dim]Default: {found.default}[/dim]" if found.default is not None else ""
    text = " ".join(filter(None, (found.help, more, default)))
    return typer.Option(found.flag, *words, metavar=metavar, min=least, help=text, **rest)


TomeFile = Annotated[str | None, make_option("tome", "-m", metavar="FILE")]
Documents = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ID",
        help="Look only into these documents (id, title, file, folder, pattern); give it again for more.",
        autocompletion=complete_documents,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="TEST", help="Look only into documents of which this holds, such as 'year>=1911'; all must."),
]
PictureFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE.html", help="Draw the working memory of the answer: one page, without network."),
]
SessionName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Ask in this session: start from what its earlier questions found.",
        autocompletion=complete_sessions,
    ),
]
Current = Annotated[
    bool, typer.Option("--current", help="Refuse memory that lags behind the documents, instead of saying so.")
]
On = Annotated[
    str | None,
    typer.Option(
        metavar="ray",
        help="Let workers on Ray compute: those of the cluster at RAY_ADDRESS, or of one that is started here.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Workers of --on ray. [dim]Default: one for every two CPUs[/dim]"),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
System = Annotated[str | None, make_option("system", "-s", metavar="NAME", autocompletion=complete_systems)]
SessionSystem = Annotated[
    str | None,
    make_option(
        "system",
        "-s",
        metavar="NAME",
        more="In a session, that of its first question.",
        autocompletion=complete_systems,
    ),
]
