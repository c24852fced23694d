"""The options that several commands share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tomewise.terminal.completion import complete_documents, complete_sessions, complete_systems

TomeFile = Annotated[
    str | None, typer.Option("--tome", "-m", metavar="FILE", help="The memory to use. [dim]Default: memory.tome[/dim]")
]
Model = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="extractive, openai:gpt-4o-mini, anthropic:…, ollama:… Default: extractive. "
        "Give it again as ROLE=NAME for another model in one role: answer=openai:gpt-4o",
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Address of an OpenAI-compatible server for the model.")
]
MaxCalls = Annotated[int | None, typer.Option(min=0, help="Stop before more model calls than this.")]
MaxTokens = Annotated[int | None, typer.Option(min=0, help="Stop before more tokens than this may be used.")]
MaxCost = Annotated[float | None, typer.Option(min=0, help="Stop before more dollars than this may be spent.")]
Documents = Annotated[
    list[str] | None,
    typer.Option(
        "--document",
        metavar="ID",
        help="Look only into this document (id, title, file name); give it again for more.",
        autocompletion=complete_documents,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="TEST", help="Look only into documents of which this holds, such as 'year>=1911'; all must."
    ),
]
PictureFile = Annotated[
    Path | None,
    typer.Option(
        "--picture", metavar="FILE.html", help="Draw the working memory of the answer: one page, without network."
    ),
]
SessionName = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="NAME",
        help="Ask in this session: start from what its earlier questions found.",
        autocompletion=complete_sessions,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
_SYSTEM = (
    "How to answer; `tome systems` lists them. With settings: 'NAME key=value', with a part left out: 'NAME:ABLATION'."
)
System = Annotated[
    str | None,
    typer.Option(
        "--system",
        "-s",
        metavar="NAME",
        help=f"{_SYSTEM} [dim]Default: hybrid, or the setting system[/dim]",
        autocompletion=complete_systems,
    ),
]
SessionSystem = Annotated[
    str | None,
    typer.Option(
        "--system",
        "-s",
        metavar="NAME",
        help=f"{_SYSTEM} [dim]Default: hybrid, or the setting system; in a session, that of its first question[/dim]",
        autocompletion=complete_systems,
    ),
]
