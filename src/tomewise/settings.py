"""The only reader of environment variables and configuration files. `setting_files` writes the files.

A value comes from the first of these sources that has one: the command line, the environment (`TOMEWISE_MODEL`, ...),
`tomewise.toml` in the current folder, `tomewise.toml` in the user's configuration folder. A source that names the model
and no models per role replaces the models per role of later sources too: so `--model extractive` asks nothing else.

Keys come from the environment only (`read_key`). The current folder may be anybody's work: its file may set what is in
`_FREE`; any other setting needs `tome trust` first.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn

from tomewise.credentials import remember_credentials
from tomewise.errors import ModelUnavailable, UsageError, suggest
from tomewise.trust import TrustedFolders, refuse_embedder

FILE = "tomewise.toml"
_MINIMUMS = {
    "limit": 1,
    "timeout": 0.1,
    "window": 1,
    "passage_tokens": 8,
    "read_seconds": 0.1,
    "read_memory": 1,
    "read_characters": 1,
    "trace_bytes": 4_000,
    "session_limit": 1,
    "max_failures": 1,
}
_FREE = frozenset(
    {"limit", "timeout", "window", "passage_tokens", "overlap", "max_calls", "max_tokens", "max_cost", "max_failures"}
)
_MAX_BYTES = 100_000  # of a configuration file
_ROLE_MODEL = re.compile(r"\s*([\w.-]+)=(.+)", re.DOTALL)
_ADDRESSES = ("base_url", "embedder_base_url")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that apply to all commands."""

    tome: str = "memory.tome"
    system: str = "hybrid"  # the system that answers where a command or a method names none
    model: str = "extractive"
    models: Mapping[str, str] = field(default_factory=dict)  # other models by role; in a file the table [models]
    base_url: str | None = None
    embedder: str | None = None  # None: the tome's own, or the bundled one for a new tome
    embedder_base_url: str | None = None
    limit: int = 16  # model calls in flight
    timeout: float = 120.0  # seconds for one model call
    window: int | None = None  # tokens that the model accepts; None: the value known for this model
    max_calls: int | None = None  # requests that a command may send to the model, retries included
    max_tokens: int | None = None  # input and output tokens, reserved before a request is sent
    max_cost: float | None = None  # dollars, reserved in the same way
    max_failures: int = 20  # failures of a model with no reply between them that end a build or a question
    prompts: str | None = None  # a folder with the user's own prompts
    passage_tokens: int | None = None
    overlap: int | None = None
    read_seconds: float | None = None  # limits on reading one file; None: see `reading.bounds`
    read_memory: int | None = None  # megabytes
    read_characters: int | None = None
    trace_bytes: int = 50_000  # size limit of the trace of one answer
    session_limit: int = 50  # entries of the working memory that a session keeps, and turns


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """One source of settings: the file at `path`, or the environment."""

    values: Mapping[str, Any]
    path: Path | None = None


def load(environment: Mapping[str, str] | None = None, folders: tuple[Path, Path] | None = None) -> Settings:
    """Load the settings; `folders` are the user's configuration folder and the current folder.

    Raises UsageError that names the file or variable with a bad value, or the settings that need `tome trust` first.
    """
    values: dict[str, Any] = {}
    for source in find_sources(environment, folders):
        values = _overlay(values, source.values)
    return Settings(**values)


def find_sources(
    environment: Mapping[str, str] | None = None,
    folders: tuple[Path, Path] | None = None,
    *,
    refused: list[str] | None = None,
) -> list[SettingsSource]:
    """The sources that have settings, the nearest last: the user's file, that of the current folder, the environment.

    Raises what `load` raises. With a list `refused`, the reason why the file of the current folder may not be used goes
    into it, and the file is left out.
    """
    environment = os.environ if environment is None else environment
    user_folder, current = folders or (find_user_folder(environment), Path.cwd())
    user_file = user_folder / FILE
    sources = [SettingsSource(parse_values(read_file(user_file), user_file), user_file)]
    if current.resolve() != user_folder.resolve():
        try:
            trusted = TrustedFolders(user_folder)
            values = load_project(current / FILE, read_file(current / FILE), trusted, sources[0].values)
            sources.append(SettingsSource(values, current / FILE))
        except UsageError as error:
            if refused is None:
                raise
            refused.append(str(error))
    nearest: dict[str, Any] = {}
    for setting in fields(Settings):
        if text := environment.get(variable := name_variable(setting.name)):
            nearest[setting.name] = check_value(setting.name, text, variable)
    return [*sources, SettingsSource(nearest)]


def name_variable(setting: str) -> str:
    """The environment variable of a setting."""
    return f"TOMEWISE_{setting.upper()}"


def with_models(settings: Settings, words: Sequence[str]) -> Settings:
    """The settings with the models that a command line names: `NAME`, and `ROLE=NAME` for one role.

    Raises UsageError for two names for one role, or two without a role.
    """
    named: dict[str, str] = {}
    for word in words:
        role_word = _ROLE_MODEL.fullmatch(word)
        role, model = (role_word[1], role_word[2]) if role_word else ("", word)
        if role in named:
            raise UsageError(f"{role or 'no role'} has two models, {named[role]!r} and {model!r}: name one")
        named[role] = model
    nearest: dict[str, Any] = {"model": named.pop("")} if "" in named else {}
    if named:
        nearest["models"] = named
    return replace(settings, **_overlay({"models": settings.models}, nearest))


def _overlay(values: Mapping[str, Any], nearer: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a nearer source over others. The model replaces the models per role, and these are joined by role."""
    models = {} if "model" in nearer else values.get("models", {})
    return {**values, **nearer, "models": {**models, **nearer.get("models", {})}}


def trust(folder: Path) -> Mapping[str, Any]:
    """Confirm the settings that `folder` has now, and return them. Raises UsageError if they cannot be used."""
    path = folder / FILE
    raw = read_file(path)
    if not raw:
        raise UsageError(f"{path} does not exist or is empty: there is nothing to trust")
    values = parse_values(raw, path)
    refuse_unsafe(values, path)
    load_trusted_folders().add(folder, raw)
    return values


def load_trusted_folders() -> TrustedFolders:
    """The folders that this user has confirmed."""
    return TrustedFolders(find_user_folder())


def find_user_folder(environment: Mapping[str, str] | None = None) -> Path:
    """The user's configuration folder: `tomewise` in `XDG_CONFIG_HOME`, else in `~/.config`."""
    environment = os.environ if environment is None else environment
    return Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "tomewise"


def read_variable(*names: str) -> str | None:
    """The value of the first of these environment variables that is not empty. For keys and their addresses."""
    return next((value for name in names if (value := os.environ.get(name))), None)


def read_key(*names: str, given: str | None = None) -> str | None:
    """The key `given`, else the key in the first of these environment variables that has one; outer blanks are removed.

    From then on, messages hide this key. Raises ModelUnavailable for a key that an HTTP header cannot carry.
    """
    for name, value in (("the key that was given", given), *((name, os.environ.get(name)) for name in names)):
        if stripped := (value or "").strip():
            if not (stripped.isascii() and stripped.isprintable() and " " not in stripped):
                raise ModelUnavailable(
                    f"{name} holds a blank, a control character or a letter that is not ASCII, which a key never has: "
                    "copy the key again (this message does not show it)"
                )
            remember_credentials(stripped)
            return stripped
    return None


def find_cache_folder() -> Path:
    """`TOMEWISE_CACHE`, or `tomewise` in the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`)."""
    if folder := read_variable("TOMEWISE_CACHE"):
        return Path(folder)
    return Path(read_variable("XDG_CACHE_HOME") or Path.home() / ".cache") / "tomewise"


def load_project(path: Path, raw: bytes, trusted: TrustedFolders, user_values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a folder's file with the content `raw`, if it may make them.

    It may lower the limits of `user_values`, not raise them. Raises UsageError for settings that need `tome trust`.
    """
    values = parse_values(raw, path)
    refuse_unsafe(values, path)
    unconfirmed = find_unconfirmed(values, user_values)
    if unconfirmed and not trusted.is_confirmed(path.parent, raw):
        raise UsageError(
            f"{path} sets {', '.join(unconfirmed)}, and you have not confirmed it as it is now: "
            f"read it, then run `tome trust {quote(str(path.parent))}`, or delete these lines"
        )
    return values


def find_unconfirmed(values: Mapping[str, Any], user_values: Mapping[str, Any]) -> list[str]:
    """The settings of a folder's file that need `tome trust`, where the user's own file has `user_values`."""
    limits = {name: user_values.get(name, getattr(Settings(), name)) for name in values if name.startswith("max_")}
    raised = {name for name, limit in limits.items() if limit is not None and values[name] > limit}
    return sorted(raised | values.keys() - _FREE)


def refuse_unsafe(values: Mapping[str, Any], path: Path) -> None:
    """Raise UsageError for what the file of a folder may never set."""
    # A folder from elsewhere must not send the user's key to its own address, and must not bring a model with code.
    for name in _ADDRESSES:
        if name in values:
            raise UsageError(
                f"{path}: a project's file may not set {name}, because your key would be sent there: "
                f"set TOMEWISE_{name.upper()}, or write it in your own configuration folder"
            )
    refuse_embedder(values.get("embedder", ""), str(path))


def read_file(path: Path) -> bytes:
    """The content of a configuration file, empty if it does not exist. Raises UsageError if it cannot be read."""
    if not path.exists():
        return b""
    if not path.is_file():  # reading a pipe could block forever
        raise UsageError(f"{path} cannot be read: it is not a file")
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if len(raw) > _MAX_BYTES:
        raise UsageError(f"{path} cannot be read: it has more than {_MAX_BYTES:,} bytes")
    return raw


def parse_values(raw: bytes, path: Path) -> dict[str, Any]:
    """The settings that a configuration file holds. Raises UsageError that names the file and the bad value."""
    try:
        table = tomllib.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return {name: check_value(name, value, str(path)) for name, value in table.items()}


def check_value(name: str, value: Any, source: str) -> Any:
    """The value of a setting in its type; numbers may be texts. Raises UsageError, which names the `source`."""
    kinds = {field.name: str(field.type).removesuffix(" | None") for field in fields(Settings)}
    if name not in kinds:
        hint = suggest(name, kinds)
        raise UsageError(f"{source}: {name!r} is not a setting: {hint}known are {', '.join(sorted(kinds))}")
    kind = kinds[name]
    if name == "models":
        return _check_models(value, source)
    if kind == "str":
        if not isinstance(value, str):
            raise UsageError(f"{source}: {name} must be a text in quotation marks, not {value!r}")
        return value
    number = _parse_number(value, whole=kind == "int")
    minimum = _MINIMUMS.get(name, 0)
    if number is None or not minimum <= number < float("inf"):
        wanted = "a whole number" if kind == "int" else "a number"
        raise UsageError(f"{source}: {name} must be {wanted} from {minimum} up, not {value!r}")
    return number


def _check_models(value: Any, source: str) -> dict[str, str]:
    """Models by role: a table, or a text of words `ROLE=NAME`."""
    if isinstance(value, str):
        words = [_ROLE_MODEL.fullmatch(word) for word in value.split()]
        pairs = {word[1]: word[2] for word in words if word}
        return _refuse_models(value, source) if None in words else pairs
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value.values()):
        return _refuse_models(value, source)
    return dict(value)


def _refuse_models(value: Any, source: str) -> NoReturn:
    raise UsageError(
        f'{source}: models must be a table of roles and names of models, such as answer = "openai:gpt-4o" below '
        f"[models], or words such as answer=openai:gpt-4o, not {value!r}"
    )


def _parse_number(value: Any, *, whole: bool) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or (whole and isinstance(value, float)):
        return None
    try:
        return int(value) if whole else float(value)
    except ValueError:
        return None
