"""What the shell completes besides commands and options: systems, documents, layers, sessions, settings.

A completion never fails and asks no model: where the tome cannot be read, there is nothing to complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tomewise import settings
from tomewise.errors import TomewiseError

if TYPE_CHECKING:
    from tomewise.store.contract import Store

_MOST = 100  # names that a shell is given
_OBEYED = re.compile(r"""[$`;&|<>!()'"\\*?\[\]{}]""")  # by a shell, which puts a name into the line as it is


def complete_systems(incomplete: str) -> list[str]:
    """Names of systems."""
    from tomewise.systems.registry import SYSTEMS

    return _keep_fitting(incomplete, SYSTEMS.list_names())


def complete_documents(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of the documents of the tome, and the last parts of those that are paths."""

    def list_parts(store: Store) -> Iterator[str]:
        for record in store.documents():
            yield record.id
            if "://" not in record.id:
                yield record.id.rsplit("/", 1)[-1]

    return _read_tome(context, incomplete, list_parts)


def complete_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of the documents of the tome, whole: parts of ids remove nothing."""
    return _read_tome(context, incomplete, lambda store: (record.id for record in store.documents()))


def complete_layers(context: typer.Context, incomplete: str) -> list[str]:
    """Layers that were built in the tome."""
    from tomewise.store.records import BUILDS

    return _read_tome(context, incomplete, lambda store: store.notes(BUILDS))


def complete_sessions(context: typer.Context, incomplete: str) -> list[str]:
    """Sessions of the tome."""
    from tomewise.store.records import SESSIONS

    return _read_tome(context, incomplete, lambda store: store.note_names(SESSIONS))


def complete_settings(incomplete: str) -> list[str]:
    """Names of settings, and after `models.` those of roles."""
    if not incomplete.startswith("models."):
        return _keep_fitting(incomplete, settings.SETTINGS)
    from tomewise.language.choose_model import list_roles

    return _keep_fitting(incomplete, (f"models.{role}" for role in list_roles()))


def complete_values(context: typer.Context, incomplete: str) -> list[str]:
    """Values of the setting named before, where they are names."""
    return complete_systems(incomplete) if context.params.get("name") == "system" else []


def _keep_fitting(incomplete: str, names: Iterable[str]) -> list[str]:
    fitting = {name for name in names if name.startswith(incomplete)}
    return sorted(name for name in fitting if name.isprintable() and not _OBEYED.search(name))[:_MOST]


def _read_tome(context: typer.Context, incomplete: str, read: Callable[[Store], Iterable[str]]) -> list[str]:
    """The names that are read in the tome, as far as they fit."""
    from tomewise.tome.open_store import open_store

    options = [each.params.get("tome") for each in (context, context.parent) if each]
    with suppress(TomewiseError):
        named = next((option for option in options if option), None) or settings.load().tome
        with closing(open_store(Path(named), create=False)) as store:
            return _keep_fitting(incomplete, read(store))
    return []
