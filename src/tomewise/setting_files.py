"""Change the files with settings, and say where each value comes from.

A file is the user's own, or that of the current folder. Its comments and its order stay.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomewise.errors import UsageError, suggest
from tomewise.settings import (
    SETTINGS,
    check_values,
    find_file,
    find_setting,
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
    table, dot, role = name.partition(".")
    if dot and table == MODELS and role and text.strip():
        return text.strip()
    find_setting(name)
    if not text.strip():
        raise UsageError(f"{name} has no value: give one, or take it back with `tome config unset {name}`")
    return read_text(name, text.strip())


def put_setting(name: str, value: Any, *, here: bool) -> None:
    """Write a setting into the user's file, or into that of the current folder.

    Raises UsageError for a file that cannot be read, and for what a project's file may not set.
    """
    path = find_file(here=here)
    read_file(path)
    document = _parse(path)
    _, dot, role = name.partition(".")
    if dot:
        _open_models(document)[role] = value
    else:
        document[name] = value
    values = check_values(document.unwrap(), str(path))
    if here:
        refuse_risks(values, path, read_file(find_file()))
    _write(path, document, here=here)


def remove_setting(name: str, *, here: bool) -> None:
    """Delete a setting from the user's file, or from that of the current folder; any name that the file has will do.

    Raises UsageError for a name that the file does not have.
    """
    path = find_file(here=here)
    document = _parse(path)
    table, dot, role = name.partition(".")
    models = _open_models(document) if dot and table == MODELS and MODELS in document else {}
    if name not in document and role not in models:
        near = suggest(name, [*document, *(f"{MODELS}.{role}" for role in models)])
        raise UsageError(f"{path} does not set {name!r}: {near}`tome config` says where each value comes from")
    if role in models and models.keys() != {role}:
        del models[role]
    else:
        del document[name if name in document else table]
    _write(path, document, here=here)


def _open_models(document: TOMLDocument) -> MutableMapping[str, str]:
    """The table of the models by role, to change in place; one text, which a file may have instead, becomes a table."""
    if not isinstance(document.get(MODELS), dict):
        document[MODELS] = check_values({MODELS: document.get(MODELS, {})})[MODELS]
    table: MutableMapping[str, str] = document[MODELS]
    return table


def _parse(path: Path) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(path.read_bytes() if path.exists() else b"")
    except (TOMLKitError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise UsageError(f"{path} cannot be read: {error}; repair or delete it") from error


def _write(path: Path, document: TOMLDocument, *, here: bool) -> None:
    """Replace the file in one step; it keeps its mode. The user's file may be a link to where they keep such files."""
    path = path if here else path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(document.as_string())
            if path.exists():
                shutil.copymode(path, temporary)
            os.replace(temporary, path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """A setting, its value, and where that comes from: `default`, a variable of the environment, or a file."""

    name: str
    value: Any
    origin: str


def find_origins(tome: str | None = None) -> tuple[list[SettingOrigin], list[str]]:
    """Every setting with its origin, and why the file of the current folder is not used, if it is not.

    `tome` is what the option says. The model of a role is a row of its own, `models.ROLE`. Raises UsageError for a
    source that cannot be read.
    """
    refused: list[str] = []
    stated, environment, *files = find_sources({"tome": tome} if tome else {}, refused=refused)
    found: dict[str, SettingOrigin] = {}
    for source in (*reversed(files), environment, stated):
        for name, value in source.values.items():
            setting = SETTINGS[name]
            origin = f"option {setting.flag}" if source is stated else str(source.path or setting.variable)
            rows = {f"{MODELS}.{role}": model for role, model in value.items()} if name == MODELS else {name: value}
            found |= {row: SettingOrigin(row, each, origin) for row, each in rows.items()}
    by_role = [found[name] for name in sorted(found) if name not in SETTINGS]
    rows = [found.get(name) or SettingOrigin(name, each.default, DEFAULT) for name, each in SETTINGS.items()]
    models = by_role or [SettingOrigin(MODELS, None, DEFAULT)]
    return [*(row for row in rows if row.name != MODELS), *models], refused
