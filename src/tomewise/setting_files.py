"""Change the files with settings, and say where each value comes from.

A file is the user's own, or that of the current folder. Its comments and its order stay.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tomewise.credentials import hide_credentials
from tomewise.errors import UsageError, suggest
from tomewise.settings import (
    ENVIRONMENT,
    FILE,
    SETTINGS,
    STATED,
    check_values,
    find_file,
    find_sources,
    read_file,
    read_text,
    refuse_risks,
)

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

MODELS = "models"
DEFAULT = "default"  # the origin of a value that no source sets


def parse_setting(name: str, text: str) -> Any:
    """The value that a text gives to a setting, in its type; `name` may be `models.ROLE`.

    Raises UsageError for a bad value, and for an unknown name with the nearest one.
    """
    text = text.strip()
    if text and name.startswith(f"{MODELS}.") and name != f"{MODELS}.":
        return text
    if name in SETTINGS and not text:
        raise UsageError(f"{name} has no value: give one, or take it back with `tome config unset {name}`")
    return read_text(name, text)


def put_setting(name: str, value: Any, *, here: bool) -> None:
    """Write a setting into the user's file, or into that of the current folder.

    Raises UsageError for a file that cannot be read, and for what a project's file may not set.
    """
    path = find_file(here=here)
    read_file(path)
    document = _parse(path)
    role = name.partition(".")[2]
    if role:
        document.setdefault(MODELS, {})[role] = value
    else:
        document[name] = value
    values = check_values(document.unwrap(), origin=str(path))
    if here:
        refuse_risks(values, path, read_file(find_file()))
    _write(path, document, here=here)


def remove_setting(name: str, *, here: bool) -> None:
    """Delete a setting from the user's file, or from that of the current folder; any name that the file has will do.

    Raises UsageError for a name that the file does not have.
    """
    path = find_file(here=here)
    document = _parse(path)
    table, _, role = name.partition(".")
    models = document.get(MODELS, {})
    if table == MODELS and role in models:
        del models[role]
        name = name if models else MODELS
    elif name not in document:
        near = suggest(name, [*document, *(f"{MODELS}.{each}" for each in models)])
        raise UsageError(f"{path} does not set {name!r}: {near}`tome config` says where each value comes from")
    document.pop(name, None)
    _write(path, document, here=here)


def _parse(path: Path) -> TOMLDocument:
    """What the file holds, to change it in place; models by role that are one text become a table."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(path.read_bytes() if path.exists() else b"")
    except (TOMLKitError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise UsageError(f"{path} cannot be read: {error}; repair or delete it") from error
    if isinstance(models := document.get(MODELS), str):
        document[MODELS] = check_values({MODELS: models}, origin=str(path))[MODELS]
    return document


def _write(path: Path, document: TOMLDocument, *, here: bool) -> None:
    """Replace the file in one step; it keeps its mode. The user's file may be a link to where they keep such files."""
    path = path if here else path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as folder:
            new = Path(folder, FILE)
            new.touch(0o600)
            new.write_text(document.as_string(), encoding="utf-8")
            if path.exists():
                shutil.copymode(path, new)
            os.replace(new, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """A setting, its value, and where that comes from: `default`, a variable of the environment, or a file."""

    name: str
    value: Any
    origin: str


def find_origins(tome: str | None = None) -> tuple[list[SettingOrigin], list[str]]:
    """Every setting with its origin, and why the file of the current folder is not used, if it is not; without keys.

    `tome` is what the option says. The model of a role is a row of its own, `models.ROLE`. Raises UsageError for a
    source that cannot be read.
    """
    refused: list[str] = []
    sources = find_sources({"tome": tome} if tome else {}, refused=refused)
    defaults = {name: each.default for name, each in SETTINGS.items()} | {MODELS: None}
    rows = {name: SettingOrigin(name, value, DEFAULT) for name, value in defaults.items()}
    for source, values in reversed(sources.items()):
        for name, value in values.items():
            origin = {STATED: f"option {SETTINGS[name].flag}", ENVIRONMENT: SETTINGS[name].variable}.get(source, source)
            if name == MODELS:
                rows.pop(MODELS, None)
            named = {f"{MODELS}.{role}": model for role, model in value.items()} if name == MODELS else {name: value}
            for row, each in named.items():
                rows[row] = SettingOrigin(row, hide_credentials(each) if isinstance(each, str) else each, origin)
    return list(rows.values()), [hide_credentials(reason) for reason in refused]
