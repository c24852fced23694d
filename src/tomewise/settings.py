"""The only reader of environment variables and configuration files.

A value is looked for, in this order: the command line, the environment (`TOMEWISE_MODEL`, ...), `tomewise.toml` in
the current folder, then in the user's configuration folder. Keys stand in the environment alone (`variable`).
The current folder may come from anyone: what it may decide is in `_FREE`, the rest waits for `tome trust`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from shlex import quote
from typing import Any

from tomewise.credentials import know_credentials
from tomewise.errors import ModelUnavailable, UsageError
from tomewise.names import suggest
from tomewise.trust import TrustedFolders, refuse_folder

FILE = "tomewise.toml"
_LEAST = {
    "limit": 1,
    "timeout": 0.1,
    "window": 1,
    "passage_tokens": 8,
    "read_seconds": 0.1,
    "read_memory": 1,
    "read_characters": 1,
}
_FREE = frozenset({"limit", "timeout", "window", "passage_tokens", "overlap", "max_calls", "max_tokens", "max_cost"})
_LONGEST = 100_000  # bytes of a file
_ADDRESSES = ("base_url", "embedder_base_url")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a person can set once for all commands."""

    tome: str = "memory.tome"
    model: str = "extractive"
    base_url: str | None = None
    embedder: str | None = None  # None: the tome's own, or the bundled one for a new tome
    embedder_base_url: str | None = None
    limit: int = 16  # model calls in flight
    timeout: float = 120.0  # seconds for one model call
    window: int | None = None  # tokens the model takes in; None: what is known of it
    max_calls: int | None = None  # requests that a command may send to the model, retries included
    max_tokens: int | None = None  # tokens, in and out, reserved before a request is sent
    max_cost: float | None = None  # dollars, likewise
    prompts: str | None = None  # a folder with prompts of one's own
    passage_tokens: int | None = None
    overlap: int | None = None
    read_seconds: float | None = None  # bounds on the reading of one file; None: see `reading.bounds`
    read_memory: int | None = None  # megabytes
    read_characters: int | None = None


def load(environment: Mapping[str, str] | None = None, folders: tuple[Path, Path] | None = None) -> Settings:
    """The settings in force; `folders` are the user's own and the current one.

    Raises UsageError naming the file or variable that holds a bad value, or the settings that wait for `tome trust`.
    """
    environment = os.environ if environment is None else environment
    own, current = folders or (own_folder(environment), Path.cwd())
    values = _values(_read(own / FILE), own / FILE)
    if current.resolve() != own.resolve():
        values |= _from_project(current, TrustedFolders(own), values)
    for field in fields(Settings):
        if (given := environment.get(variable := f"TOMEWISE_{field.name.upper()}")) not in (None, ""):
            values[field.name] = _checked(field.name, given, variable)
    return Settings(**values)


def trust(folder: Path) -> Mapping[str, Any]:
    """Confirms the settings that `folder` has now, and returns them. Raises UsageError where they cannot be used."""
    path = folder / FILE
    raw = _read(path)
    if not raw:
        raise UsageError(f"there is no {path}, or it is empty: there is nothing to trust")
    found = _values(raw, path)
    _refuse_always(found, path)
    trusted_folders().add(folder, raw)
    return found


def trusted_folders() -> TrustedFolders:
    """The folders that this user has confirmed."""
    return TrustedFolders(own_folder(os.environ))


def own_folder(environment: Mapping[str, str]) -> Path:
    """The user's own configuration folder: `tomewise` in `XDG_CONFIG_HOME`, else in `~/.config`."""
    return Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "tomewise"


def variable(*names: str) -> str | None:
    """What the first of these environment variables that is not empty says: keys, and addresses that go with them."""
    return next((value for name in names if (value := os.environ.get(name))), None)


def key(*names: str, given: str | None = None) -> str | None:
    """The key that was given, else that of the first variable that holds one, without blanks around it.

    No message shows it from then on. Raises ModelUnavailable for one that no HTTP header can carry.
    """
    for place, value in (("the key that was given", given), *((name, os.environ.get(name)) for name in names)):
        if stripped := (value or "").strip():
            if not (stripped.isascii() and stripped.isprintable() and " " not in stripped):
                raise ModelUnavailable(
                    f"{place} holds a blank, a control character or a letter that is not ASCII, which no key does: "
                    "copy the key anew, it is not shown here"
                )
            know_credentials(stripped)
            return stripped
    return None


def cache_folder() -> Path:
    """`TOMEWISE_CACHE`, or `tomewise` in the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`)."""
    if own := variable("TOMEWISE_CACHE"):
        return Path(own)
    return Path(variable("XDG_CACHE_HOME") or Path.home() / ".cache") / "tomewise"


def _from_project(folder: Path, trusted: TrustedFolders, own: Mapping[str, Any]) -> dict[str, Any]:
    """What the current folder says, if it may. A bound of the user's own may be lowered, but not raised."""
    path = folder / FILE
    raw = _read(path)
    found = _values(raw, path)
    _refuse_always(found, path)
    raised = {name for name in found if name.startswith("max_") and found[name] > own.get(name, float("inf"))}
    waiting = sorted(raised | found.keys() - _FREE)
    if waiting and not trusted.holds(folder, raw):
        raise UsageError(
            f"{path} sets {', '.join(waiting)}, and you have not confirmed it as it is now: "
            f"read it, then run `tome trust {quote(str(folder))}`, or delete these lines"
        )
    return found


def _refuse_always(found: Mapping[str, Any], path: Path) -> None:
    # A folder from elsewhere must not send the person's key to an address of its own, nor bring a model with code.
    for name in _ADDRESSES:
        if name in found:
            raise UsageError(
                f"{path}: {name} may not stand in a project's file, for your key would be sent there: "
                f"set TOMEWISE_{name.upper()}, or write it in your own configuration folder"
            )
    refuse_folder(found.get("embedder", ""), str(path))


def _read(path: Path) -> bytes:
    if not path.exists():
        return b""
    if not path.is_file():  # a pipe in a folder from elsewhere would be waited for without end
        raise UsageError(f"{path} cannot be read: it is no file")
    try:
        with path.open("rb") as file:
            raw = file.read(_LONGEST + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if len(raw) > _LONGEST:
        raise UsageError(f"{path} cannot be read: it has more than {_LONGEST:,} bytes")
    return raw


def _values(raw: bytes, path: Path) -> dict[str, Any]:
    try:
        given = tomllib.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return {name: _checked(name, value, str(path)) for name, value in given.items()}


def _checked(name: str, value: Any, place: str) -> Any:
    kinds = {field.name: str(field.type).removesuffix(" | None") for field in fields(Settings)}
    if name not in kinds:
        hint = suggest(name, kinds)
        raise UsageError(f"{place}: there is no setting {name!r}: {hint}known are {', '.join(sorted(kinds))}")
    kind = kinds[name]
    if kind == "str":
        if not isinstance(value, str):
            raise UsageError(f"{place}: {name} must be a text in quotation marks, not {value!r}")
        return value
    number = _number(value, whole=kind == "int")
    least = _LEAST.get(name, 0)
    if number is None or not least <= number < float("inf"):
        raise UsageError(f"{place}: {name} must be a {'whole ' * (kind == 'int')}number from {least} up, not {value!r}")
    return number


def _number(value: Any, *, whole: bool) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or (whole and isinstance(value, float)):
        return None
    try:
        return int(value) if whole else float(value)
    except ValueError:
        return None
