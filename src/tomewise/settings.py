"""The only reader of environment variables and configuration files.

A value is looked for, in this order: the command line, the environment (`TOMEWISE_MODEL`, ...), `tomewise.toml` in
the current folder, then in the user's configuration folder. Keys stand in the environment alone (`variable`).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tomewise.errors import ModelUnavailable, UsageError

FILE = "tomewise.toml"
_LEAST = {"limit": 1, "timeout": 0.1, "window": 1, "passage_tokens": 8}


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


def load(environment: Mapping[str, str] | None = None, folders: tuple[Path, ...] | None = None) -> Settings:
    """The settings in force. Raises UsageError naming the file or variable that holds a bad value."""
    environment = os.environ if environment is None else environment
    if folders is None:
        home = Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        folders = (home / "tomewise", Path.cwd())
    values: dict[str, Any] = {}
    for folder in folders:
        found = _from_file(folder / FILE)
        if folder == folders[-1]:
            _refuse_addresses(found, folder / FILE)
        values.update(found)
    for field in fields(Settings):
        if (given := environment.get(variable := f"TOMEWISE_{field.name.upper()}")) not in (None, ""):
            values[field.name] = _checked(field.name, given, variable)
    return Settings(**values)


def variable(*names: str) -> str | None:
    """What the first of these environment variables that is not empty says: keys, and addresses that go with them."""
    return next((value for name in names if (value := os.environ.get(name))), None)


def key(*names: str, given: str | None = None) -> str | None:
    """The key that was given, else that of the first variable that holds one, without blanks around it.

    Raises ModelUnavailable, without showing the key, for one that no HTTP header can carry.
    """
    for place, value in (("the key that was given", given), *((name, os.environ.get(name)) for name in names)):
        if stripped := (value or "").strip():
            if not (stripped.isascii() and stripped.isprintable() and " " not in stripped):
                raise ModelUnavailable(
                    f"{place} holds a blank, a control character or a letter that is not ASCII, which no key does: "
                    "copy the key anew, it is not shown here"
                )
            return stripped
    return None


def cache_folder() -> Path:
    """`TOMEWISE_CACHE`, or `tomewise` in the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`)."""
    if own := variable("TOMEWISE_CACHE"):
        return Path(own)
    return Path(variable("XDG_CACHE_HOME") or Path.home() / ".cache") / "tomewise"


def _refuse_addresses(found: Mapping[str, Any], path: Path) -> None:
    # A folder from elsewhere must not send the person's key to an address of its own.
    for name in ("base_url", "embedder_base_url"):
        if name in found:
            raise UsageError(
                f"{path}: {name} may not stand in a project's file, for your key would be sent there: "
                f"set TOMEWISE_{name.upper()}, or write it in your own configuration folder"
            )


def _from_file(path: Path) -> dict[str, Any]:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return {name: _checked(name, value, str(path)) for name, value in given.items()}


def _checked(name: str, value: Any, place: str) -> Any:
    kinds = {field.name: str(field.type).removesuffix(" | None") for field in fields(Settings)}
    if name not in kinds:
        near = get_close_matches(name, kinds, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
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
