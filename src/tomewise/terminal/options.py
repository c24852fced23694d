"""The options that several commands share, each defined once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, TypeAlias

import typer

from tomewise.errors import UsageError
from tomewise.settings import DECLARED, Settings, load, split_role
from tomewise.systems.efforts import Effort as EffortName
from tomewise.terminal.completion import complete_documents, complete_sessions, complete_systems

# ---------------------------------------------------------------- settings

Stated: TypeAlias = Mapping[str, Any]  # the settings that a command line states; `model` is a list of words
NOTHING: Stated = {}
MODEL = ("model", "base_url", "budget", "max_failures")  # and what it may spend
_FORMS: Mapping[str, Mapping[str, str]] = {
    "model": {
        "metavar": "NAME",
        "more": "Give it again as ROLE=NAME for another model in one role: answer=openai:gpt-4o.",
    },
    "base_url": {"metavar": "URL"},
    "budget": {"metavar": "LIMIT"},
    "embedder": {"metavar": "NAME"},
    "on": {"metavar": "ray"},
    "workers": {"metavar": "N"},
}


def make_option(setting: str, *words: str, metavar: str | None = None, more: str = "", **rest: Any) -> Any:
    """The option of a setting, with its help, its bound and its default. `more` follows the help."""
    found = DECLARED[setting]
    text = " ".join(filter(None, (found.help, more, f"[dim]Default: {found.unset or found.default}[/dim]")))
    return typer.Option(found.flag, *words, metavar=metavar, min=found.least, help=text, **rest)


def take_settings(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of these settings at the place of its parameter `stated`, which gets those stated."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            values = {name: given.pop(name) for name in names}
            command(**given, stated={name: value for name, value in values.items() if value not in (None, [])})

        def list_parameters() -> Iterator[Parameter]:
            for parameter in signature(command, eval_str=True).parameters.values():
                if parameter.name != "stated":
                    yield parameter
                    continue
                for name in names:
                    kind: Any = {"model": list[str], "on": str}.get(name, DECLARED[name].type)
                    option = make_option(name, **_FORMS.get(name, {}))
                    yield Parameter(name, parameter.kind, default=None, annotation=Annotated[kind | None, option])

        run.__signature__ = signature(command).replace(parameters=list(list_parameters()))  # type: ignore[attr-defined]
        return run

    return decorate


def load_settings(stated: Stated, **more: Any) -> Settings:
    """The settings that hold where a command line states these and `more`; None states nothing.

    Raises UsageError for two models of one role, and what `load` raises.
    """
    given = {name: value for name, value in {**stated, **more}.items() if value is not None}
    models: dict[str, str] = {}
    for role, model in map(split_role, given.pop("model", ())):
        if role in models:
            raise UsageError(f"{role or 'no role'} has two models, {models[role]!r} and {model!r}: name one")
        models[role] = model
    if "" in models:
        given["model"] = models.pop("")
    return load(**given, models=models) if models else load(**given)


def repeat_settings(stated: Stated, *names: str) -> list[tuple[str, str]]:
    """What a command line stated of these settings, as words of another one."""
    options = []
    for name in names:
        value = stated.get(name, [])
        options += [(DECLARED[name].flag, str(each)) for each in (value if isinstance(value, list) else [value])]
    return options


# ---------------------------------------------------------------- other options

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
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Estimate = Annotated[bool, typer.Option("--estimate", help="Print what it would cost, and spend nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Markdown = Annotated[
    bool, typer.Option("--markdown", help="Print the answer as Markdown, with its quotations as footnotes.")
]
Effort = Annotated[
    EffortName | None,
    typer.Option(
        help="How much work the question is worth, in place of a system: quick is one search, thorough a loop, "
        "whole reads all of the text, auto does what it needs."
    ),
]
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
