"""The only reader of environment variables and configuration files. `setting_files` writes the files.

A value comes from the first of these sources that has one: the command line, the environment (`TOMEWISE_MODEL`, ...),
`tomewise.toml` in the current folder, `tomewise.toml` in the user's configuration folder. A source that names the
model and no models per role replaces those of later sources too: so `--model extractive` asks nothing else.

`Settings` declares each setting once: its type, default, bounds, help, and who may set it. All else reads `SETTINGS`.

Keys come from the environment only (`read_key`). The current folder may be anybody's work: its file may set what
`Setting.trust` allows; any other setting needs `tome trust` first.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from numbers import Integral, Real
from pathlib import Path
from shlex import quote
from typing import Any, Literal, NoReturn, TypedDict

from tomewise.credentials import remember_credentials
from tomewise.errors import ModelUnavailable, UsageError, suggest
from tomewise.trust import TrustedFolders, refuse_embedder

FILE = "tomewise.toml"
_MAX_BYTES = 100_000  # of a configuration file
_ROLE_MODEL = re.compile(r"\s*([\w.-]+)=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What holds for a setting at every door: files, environment, command line, `tome config`, server and Python.

    `kind` is str, int, float, or models (names by role). A number is `least` or more. `unset` says in words what holds
    without a value. `trust` says what the file of a project may do: set it ("free"), lower it ("lower"),
    set it once the user has confirmed the folder ("confirmed"), or never set it ("user").
    """

    name: str
    kind: str
    default: Any
    help: str
    least: float = 0
    unset: str = ""
    trust: Literal["free", "lower", "confirmed", "user"] = "confirmed"

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return f"TOMEWISE_{self.name.upper()}"

    @property
    def flag(self) -> str:
        """Its option on the command line, where a command has one."""
        return f"--{self.name.replace('_', '-')}"

    def read(self, value: Any, source: str) -> Any:
        """The value that a file or a text gives it, in its type; a number may be a text. Raises UsageError."""
        if self.kind == "models":
            return _read_models(value, source)
        number = value
        if self.kind != "str" and isinstance(value, str):
            try:
                number = int(value) if self.kind == "int" else float(value)
            except ValueError:
                self._refuse(value, source)
        return self._convert(number) if self._fits(number) else self._refuse(value, source)

    def check(self, value: Any, source: str = "") -> Any:
        """The value in its type. Raises UsageError with the `source` if there is one, the value, and the remedy."""
        return self._convert(value) if self._fits(value) else self._refuse(value, source)

    def _fits(self, value: Any) -> bool:
        if self.kind == "models":
            return isinstance(value, Mapping) and all(isinstance(text, str) for pair in value.items() for text in pair)
        if self.kind == "str":
            return isinstance(value, str)
        is_number = isinstance(value, Integral if self.kind == "int" else Real) and not isinstance(value, bool)
        return bool(is_number and self.least <= value < float("inf"))

    def _convert(self, value: Any) -> Any:
        kinds: Mapping[str, Any] = {"models": dict, "int": int, "float": float}
        return kinds.get(self.kind, str)(value)

    def _refuse(self, value: Any, source: str) -> NoReturn:
        if self.kind == "models":
            _refuse_models(value, source)
        words = {"str": "a text in quotation marks", "int": "a whole number", "float": "a number"}
        bound = "" if self.kind == "str" else f" from {self.least} up"
        raise UsageError(f"{_begin(source)}{self.name} must be {words[self.kind]}{bound}, not {value!r:.200}")


def _declare(default: Any, help: str, **more: Any) -> Any:
    """A field of `Settings`; `more` are fields of its `Setting`."""
    made = {"default_factory": dict} if default == {} else {"default": default}
    return field(**made, metadata={"help": help, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that apply to all commands."""

    tome: str = _declare("memory.tome", "The memory to use: a file, or postgresql://host/db#name.")
    system: str = _declare(
        "hybrid",
        "How to answer; `tome systems` lists them. "
        "With settings: 'NAME key=value', with a part left out: 'NAME:ABLATION'.",
    )
    model: str = _declare("extractive", "extractive, openai:gpt-4o-mini, anthropic:…, ollama:…")
    models: Mapping[str, str] = _declare({}, "Other models by role; in a file the table [models].", unset="none")
    offer: str | None = _declare(
        None, "More models that clients of `tome serve` may choose, with blanks between them.", unset="none"
    )
    base_url: str | None = _declare(
        None, "Address of an OpenAI-compatible server for the model.", unset="the provider's own", trust="user"
    )
    embedder: str | None = _declare(
        None,
        "bundled, fastembed:…, sentence-transformers:…, openai:… (fixed by the first add)",
        unset="the tome's own, or bundled",
    )
    embedder_base_url: str | None = _declare(
        None, "Address of an OpenAI-compatible server for the embedder.", unset="the tome's own", trust="user"
    )
    limit: int = _declare(16, "Model calls in flight.", least=1, trust="free")
    timeout: float = _declare(120.0, "Seconds for one model call.", least=0.1, trust="free")
    window: int | None = _declare(
        None, "Tokens that the model accepts.", least=1, unset="what its server states, or what is known", trust="free"
    )
    max_calls: int | None = _declare(None, "Stop before more model calls than this.", unset="no limit", trust="lower")
    max_tokens: int | None = _declare(
        None, "Stop before more tokens than this may be used.", unset="no limit", trust="lower"
    )
    max_cost: float | None = _declare(
        None, "Stop before more dollars than this may be spent.", unset="no limit", trust="lower"
    )
    max_failures: int = _declare(
        20, "Stop after so many failed calls with no reply between them.", least=1, trust="lower"
    )
    prompts: str | None = _declare(None, "A folder with prompts of your own.", unset="the packaged ones")
    passage_tokens: int | None = _declare(
        None, "Tokens of a passage (fixed by the first add).", least=8, unset="what the embedder sees", trust="free"
    )
    overlap: int | None = _declare(
        None, "Tokens that neighbouring passages share (fixed by the first add).", unset="0", trust="free"
    )
    read_seconds: float | None = _declare(None, "Seconds for reading one file.", least=0.1, unset="300")
    read_memory: int | None = _declare(None, "Megabytes for reading one file.", least=1, unset="1,024")
    read_characters: int | None = _declare(None, "Characters of one file.", least=1, unset="50,000,000")
    read_documents: int | None = _declare(None, "Documents of one file.", least=1, unset="100,000")
    start_seconds: float = _declare(120.0, "Seconds for Ray to start here, and then for a worker.", least=0.1)
    trace_bytes: int = _declare(50_000, "Bytes of the trace that is kept of one answer.", least=4_000)
    session_limit: int = _declare(50, "Entries of its working memory that a session keeps, and turns.", least=1)
    exact_rows: int = _declare(
        200_000, "In PostgreSQL with pgvector, search more vectors than this approximately; 0: search all exactly."
    )

    def __post_init__(self) -> None:
        for name, setting in SETTINGS.items():
            value = getattr(self, name)
            if value is not None or setting.default is not None:
                object.__setattr__(self, name, setting.check(value))


def _read_schema() -> dict[str, Setting]:
    found = {}
    for each in fields(Settings):
        kind = str(each.type).removesuffix(" | None")
        kind = "models" if kind.startswith("Mapping") else kind
        default = {} if each.default is MISSING else each.default
        found[each.name] = Setting(name=each.name, kind=kind, default=default, **each.metadata)
    return found


SETTINGS: Mapping[str, Setting] = _read_schema()  # each setting by its name, in the order of the listing
DEFAULTS = Settings()


class Stated(TypedDict, total=False):
    """Settings as arguments of `Tome.open`, which may be left out; for type checkers."""

    system: str
    base_url: str | None
    embedder_base_url: str | None
    limit: int
    timeout: float
    window: int | None
    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    max_failures: int
    passage_tokens: int | None
    overlap: int | None
    read_seconds: float | None
    read_memory: int | None
    read_characters: int | None
    read_documents: int | None
    start_seconds: float
    trace_bytes: int
    session_limit: int
    exact_rows: int


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
    for name, setting in SETTINGS.items():
        if text := environment.get(setting.variable):
            nearest[name] = setting.read(text, setting.variable)
    return [*sources, SettingsSource(nearest)]


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
    unconfirmed = []
    for name, value in values.items():
        limit = user_values.get(name, SETTINGS[name].default)
        is_raised = SETTINGS[name].trust == "lower" and limit is not None and value > limit
        if is_raised or SETTINGS[name].trust in ("confirmed", "user"):
            unconfirmed.append(name)
    return sorted(unconfirmed)


def refuse_unsafe(values: Mapping[str, Any], path: Path) -> None:
    """Raise UsageError for what the file of a folder may never set."""
    # A folder from elsewhere must not send the user's key to its own address, and must not bring a model with code.
    for name in values:
        if SETTINGS[name].trust == "user":
            raise UsageError(
                f"{path}: a project's file may not set {name}, because your key would be sent there: "
                f"set {SETTINGS[name].variable}, or write it in your own configuration folder"
            )
    if "://" in values.get("tome", ""):
        raise UsageError(
            f"{path}: a project's file may not name an address as its tome, because your documents and questions would "
            "go there: set TOMEWISE_TOME, or write it in your own configuration folder"
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
    return {name: find_setting(name, str(path)).read(value, str(path)) for name, value in table.items()}


def find_setting(name: str, source: str) -> Setting:
    """The setting of this name. Raises UsageError, which names the `source` and the nearest setting."""
    if name not in SETTINGS:
        hint = suggest(name, SETTINGS)
        raise UsageError(f"{source}: {name!r} is not a setting: {hint}known are {', '.join(sorted(SETTINGS))}")
    return SETTINGS[name]


def _read_models(value: Any, source: str) -> dict[str, str]:
    """Models by role: a table, or a text of words `ROLE=NAME`."""
    if isinstance(value, str):
        words = [_ROLE_MODEL.fullmatch(word) for word in value.split()]
        pairs = {word[1]: word[2] for word in words if word}
        return _refuse_models(value, source) if None in words else pairs
    return SETTINGS["models"].check(value, source)  # type: ignore[no-any-return]


def _refuse_models(value: Any, source: str) -> NoReturn:
    raise UsageError(
        f'{_begin(source)}models must be a table of roles and names of models, such as answer = "openai:gpt-4o" below '
        f"[models], or words such as answer=openai:gpt-4o, not {value!r:.200}"
    )


def _begin(source: str) -> str:
    return f"{source}: " if source else ""
