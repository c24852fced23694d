"""Change the files with settings, and say where each value comes from.

A file is the user's own, or that of the current folder. Its comments and its order stay.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomewise import settings
from tomewise.errors import UsageError, suggest
from tomewise.settings import FILE, SETTINGS, SettingsSource, find_sources
from tomewise.trust import replace_file

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

MODELS = "models"
DEFAULT = "default"  # the origin of a value that no source sets
_KEY_ENDS = ("key", "secret", "password")  # of names of what is never kept in a file


def parse_setting(name: str, text: str) -> Any:
    """The value that a text gives to a setting, in its type; `name` may be `models.ROLE`.

    Raises UsageError for a bad value, and for an unknown name with the nearest one.
    """
    table, dot, role = name.partition(".")
    if dot and table == MODELS and role and text.strip():
        return text.strip()
    if name not in SETTINGS:
        raise UsageError(_describe_unknown(name))
    if not text.strip():
        raise UsageError(f"{name} has no value: give one, or take it back with `tome config unset {name}`")
    return SETTINGS[name].read(text.strip(), "the value given")


def find_file(*, here: bool) -> Path:
    """The file of the current folder, or the user's own."""
    return (Path.cwd() if here else settings.find_user_folder()) / FILE


def put_setting(name: str, value: Any, *, here: bool) -> bool:
    """Write a setting into the user's file, or into that of the current folder.

    A folder's file that may be used stays so: it is confirmed again, as by `tome trust`, if it now needs that. Returns
    whether that happened. Raises UsageError for a file that needs `tome trust` first, and for what it may never set.
    """
    path = find_file(here=here)
    before = settings.read_file(path)
    document = _parse(before, path)
    _, dot, role = name.partition(".")
    if dot:
        _open_models(document, path)[role] = value
    else:
        document[name] = value
    raw = document.as_string().encode("utf-8")
    settings.parse_values(raw, path)
    if not here:
        _write(path.resolve(), raw)  # the file may be a link to where the user keeps such files
        return False
    settings.load_project(path, before, settings.load_trusted_folders(), _read_user_values())
    settings.refuse_unsafe(settings.parse_values(raw, path), path)
    _write(path, raw)
    return _confirm_again(path, raw)


def remove_setting(name: str, *, here: bool) -> bool:
    """Delete a setting from the user's file, or from that of the current folder; any name that the file has will do.

    Returns whether the folder was confirmed again. Raises UsageError for a name that the file does not have.
    """
    path = find_file(here=here)
    before = settings.read_file(path)
    document = _parse(before, path)
    table, dot, role = name.partition(".")
    models = _open_models(document, path) if dot and table == MODELS and MODELS in document else {}
    if name not in document and role not in models:
        near = suggest(name, [*document, *(f"{MODELS}.{role}" for role in models)])
        raise UsageError(f"{path} does not set {name!r}: {near}`tome config` says where each value comes from")
    if role in models and models.keys() != {role}:
        del models[role]
    else:
        del document[name if name in document else table]
    was_usable = here and _is_usable(path, before)
    raw = document.as_string().encode("utf-8")
    _write(path if here else path.resolve(), raw)
    return was_usable and _confirm_again(path, raw)


def _describe_unknown(name: str) -> str:
    if name.lower().endswith(_KEY_ENDS):
        return f"{name!r} is not a setting: keys stand in the environment alone, see `tome models` for their names"
    near = suggest(name, SETTINGS)
    return f"{name!r} is not a setting: {near}known are {', '.join(sorted(SETTINGS))}, and models.ROLE"


def _open_models(document: TOMLDocument, path: Path) -> MutableMapping[str, str]:
    """The table of the models by role, to change in place; one text, which a file may have instead, becomes a table."""
    models = SETTINGS[MODELS].read(document.get(MODELS, {}), str(path))
    if not isinstance(document.get(MODELS), dict):
        document[MODELS] = models
    table: MutableMapping[str, str] = document[MODELS]
    return table


def _parse(raw: bytes, path: Path) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(raw)
    except (TOMLKitError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}; repair or delete it") from error


def _read_user_values() -> Mapping[str, Any]:
    path = find_file(here=False)
    return settings.parse_values(settings.read_file(path), path)


def _is_usable(path: Path, raw: bytes) -> bool:
    try:
        settings.load_project(path, raw, settings.load_trusted_folders(), _read_user_values())
    except UsageError:
        return False
    return True


def _confirm_again(path: Path, raw: bytes) -> bool:
    if not settings.find_unconfirmed(settings.parse_values(raw, path), _read_user_values()):
        return False
    settings.load_trusted_folders().add(path.parent, raw)
    return True


def _write(path: Path, raw: bytes) -> None:
    try:
        replace_file(path, raw, keep_mode=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """A setting, its value, and where that comes from: `default`, a variable of the environment, or a file."""

    name: str
    value: Any
    origin: str


def find_origins() -> tuple[list[SettingOrigin], list[str]]:
    """Every setting with its origin, and why the file of the current folder is not used, if it is not.

    The model of a role is a row of its own, `models.ROLE`. Raises UsageError for a source that cannot be read.
    """
    refused: list[str] = []
    sources = find_sources(refused=refused)
    rows = [_find_origin(name, setting.default, sources) for name, setting in SETTINGS.items() if name != MODELS]
    models = [
        SettingOrigin(f"models.{role}", model, _name_source(source, MODELS))
        for role, (model, source) in sorted(_find_models(sources).items())
    ]
    return [*rows, *(models or [SettingOrigin(MODELS, None, DEFAULT)])], refused


def _find_origin(name: str, default: object, sources: Sequence[SettingsSource]) -> SettingOrigin:
    for source in reversed(sources):
        if name in source.values:
            return SettingOrigin(name, source.values[name], _name_source(source, name))
    return SettingOrigin(name, default, DEFAULT)


def _find_models(sources: Sequence[SettingsSource]) -> dict[str, tuple[str, SettingsSource]]:
    """The model of each role that has one of its own; a source that names the model replaces those of later sources."""
    found: dict[str, tuple[str, SettingsSource]] = {}
    for source in sources:
        if "model" in source.values:
            found.clear()
        found |= {role: (model, source) for role, model in source.values.get("models", {}).items()}
    return found


def _name_source(source: SettingsSource, setting: str) -> str:
    return str(source.path) if source.path else SETTINGS[setting].variable
