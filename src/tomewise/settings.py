"""Every setting, declared once: `Settings`. The only reader of environment variables and configuration files.

A value comes from the first of these sources that has one: the command line, the environment (`TOMEWISE_MODEL`, ...),
`tomewise.toml` in the current folder, `tomewise.toml` in the user's configuration folder. A source that names the
model and no models per role replaces those of later sources too: so `--model extractive` asks nothing else.

Files, environment, `Tome.open`, the command, `tome config` and the server derive from the fields of `Settings`.
pydantic-settings reads and checks; it is imported at the first value, because help needs names and texts alone.

Keys come from the environment only (`read_key`). The current folder may be anybody's work: its file may set what
is `Setting.free` of risk, and may lower bounds.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tomewise.credentials import remember_credentials
from tomewise.errors import ModelUnavailable, UsageError, suggest

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings

FILE = "tomewise.toml"
_PREFIX = "TOMEWISE_"
_MAX_BYTES = 100_000  # of a configuration file
_KEY_ENDS = ("key", "secret", "password")  # of names of what is never kept in a file
_SERVER = (  # the amount of thoughts, a role, and fields of requests
    *("reasoning", "system", "temperature", "response_format", "max_tokens", "max_completion_tokens"),
    *("stream_options", "reasoning_effort", "chat_template_kwargs", "thinking"),
)
_ROLE_MODEL = re.compile(r"\s*([\w.-]+)=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What holds for a setting at every door: files, environment, command line, `tome config`, server and Python.

    A number is `least` or more. `unset` says in words what holds without a value. What is `free` of risk may stand in
    a project's file: it neither says where data goes, nor what is executed, nor allows to spend more.
    """

    name: str
    type: Any
    default: Any
    help: str
    least: float | None = None
    unset: str = ""
    free: bool = False

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return f"{_PREFIX}{self.name.upper()}"

    @property
    def flag(self) -> str:
        """Its option on the command line, where a command has one."""
        return f"--{self.name.replace('_', '-')}"


def _declare(default: Any, help: str, **more: Any) -> Any:
    """A field of `Settings`; `more` are fields of its `Setting`."""
    made = {"default_factory": dict} if default == {} else {"default": default}
    return field(**made, metadata={"help": help, **more})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a tome and of all commands; without arguments the defaults, whatever files and environment say.

    Raises UsageError for a value of another type, or beyond its bound.
    """

    tome: str = _declare("memory.tome", "The memory to use: a file, or postgresql://host/db#name.")
    system: str = _declare(
        "hybrid",
        "How to answer; `tome systems` lists them. "
        "With settings: 'NAME key=value', with a part left out: 'NAME:ABLATION'.",
        free=True,
    )
    model: str = _declare("extractive", "extractive, openai:gpt-4o-mini, anthropic:…, ollama:…")
    models: Mapping[str, Any] = _declare({}, "Other models by role; in a file the table [models].", unset="none")
    """Names; in Python also `LanguageModel`s."""
    offer: str | None = _declare(
        None, "More models that clients of `tome serve` may choose, with blanks between them.", unset="none"
    )
    base_url: str | None = _declare(
        None, "Address of an OpenAI-compatible server for the model.", unset="the provider's own"
    )
    embedder: str | None = _declare(
        None,
        "bundled, fastembed:…, sentence-transformers:…, openai:… (fixed by the first add)",
        unset="the tome's own, or bundled",
    )
    embedder_base_url: str | None = _declare(
        None, "Address of an OpenAI-compatible server for the embedder.", unset="the tome's own"
    )
    limit: int = _declare(16, "Model calls in flight.", least=1, free=True)
    timeout: float = _declare(120.0, "Seconds for one model call.", least=0.1, free=True)
    window: int | None = _declare(
        None, "Tokens that the model accepts.", least=1, unset="what its server states, or what is known", free=True
    )
    server: Mapping[str, str] = _declare(
        {},
        "What the model's server takes, in place of what is learnt: reasoning=off, low, medium or high; for a field of "
        "a request FIELD=off or on, as temperature=off, response_format=off, system=off (the role). "
        "In a file the table [server].",
        unset="what is learnt",
    )
    budget: str | None = _declare(
        None,
        "Stop before more than this is spent: '20 calls', '90,000 tokens', '$0.50', '5 minutes', or several with "
        "commas between.",
        unset="no limit",
        free=True,
    )
    ask_above: str = _declare("2 minutes", "Show what costs more than this, and ask, before it begins.", free=True)
    max_failures: int = _declare(20, "Stop after so many failed calls with no reply between them.", least=1, free=True)
    current: bool = _declare(False, "Refuse memory that lags behind the documents.", free=True)
    only_supported: bool = _declare(False, "Show only statements that the evidence supports.", free=True)
    prompts: str | None = _declare(None, "A folder with prompts of your own.", unset="the packaged ones")
    passage_tokens: int | None = _declare(
        None, "Tokens of a passage (fixed by the first add).", least=8, unset="what the embedder sees", free=True
    )
    overlap: int | None = _declare(
        None, "Tokens that neighbouring passages share (fixed by the first add).", least=0, unset="0", free=True
    )
    read_seconds: float | None = _declare(None, "Seconds for reading one file.", least=0.1, unset="300")
    read_memory: int | None = _declare(None, "Megabytes for reading one file.", least=1, unset="1,024")
    read_characters: int | None = _declare(None, "Characters of one file.", least=1, unset="50,000,000")
    read_documents: int | None = _declare(None, "Documents of one file.", least=1, unset="100,000")
    encoding: str | None = _declare(
        None, "Encoding of text files that are not UTF-8, such as cp1252.", unset="what each declares, or a guess"
    )
    sync_forgets: Literal["emptied", "unreadable", "nothing"] = _declare(
        "emptied",
        "With --sync, forget what stood in files that were emptied, also in unreadable ones, or neither.",
    )
    on: Literal["ray"] | None = _declare(
        None,
        "Let workers on Ray compute: those of the cluster at RAY_ADDRESS, or of one that is started here.",
        unset="in this process",
    )
    """Only stated, on the command line or in Python: no file and no variable sets it."""
    workers: int | None = _declare(None, "Workers of --on ray.", least=1, unset="one for every two CPUs")
    start_seconds: float = _declare(120.0, "Seconds for Ray to start here, and then for a worker.", least=0.1)
    trace_bytes: int = _declare(50_000, "Bytes of the trace that is kept of one answer.", least=4_000)
    session_limit: int = _declare(50, "Entries of its working memory that a session keeps, and turns.", least=1)
    api_key: str | None = field(default=None, repr=False, metadata={"help": "The key of the model's provider."})
    """Only given in Python: no file and no variable sets it, and nothing shows it."""

    def __post_init__(self) -> None:
        for name, value in check_values(vars(self)).items():
            object.__setattr__(self, name, value)


DECLARED: Mapping[str, Setting] = {
    each.name: Setting(
        name=each.name, type=each.type, default={} if each.default is MISSING else each.default, **each.metadata
    )
    for each in fields(Settings)
}
# Each setting that files and variables may set, by its name, in the order of the listing.
SETTINGS: Mapping[str, Setting] = {name: each for name, each in DECLARED.items() if name not in ("api_key", "on")}


# ---------------------------------------------------------------- checking


@cache
def _make_model() -> "type[BaseSettings]":
    """The fields of `Settings` with their bounds, for pydantic-settings, which checks them strictly."""
    from pydantic import BeforeValidator, Field, create_model
    from pydantic_settings import BaseSettings, SettingsConfigDict

    config = SettingsConfigDict(env_prefix=_PREFIX, enable_decoding=False, strict=True, allow_inf_nan=False)
    made: dict[str, Any] = {}
    for name, each in DECLARED.items():
        own = {"models": _read_models, "server": _read_server, "budget": _read_limit, "ask_above": _read_limit}
        prepare = own.get(name, _make_plain)
        made[name] = (Annotated[each.type, BeforeValidator(prepare)], Field(each.default, ge=each.least))
    return create_model("SettingValues", __base__=BaseSettings, __cls_kwargs__=dict(config), **made)


def check_values(*sources: Mapping[str, Any], origin: str = "") -> dict[str, Any]:
    """The values of some settings, in their types; those of earlier sources come first.

    Raises UsageError in one line: the `origin`, if there is one, the setting, its value, and what it should be. A key
    is not shown, and has no origin: no file and no variable sets it.
    """
    from pydantic import ValidationError
    from pydantic_settings import InitSettingsSource

    begin = f"{origin}: " if origin else ""
    for name in (name for source in sources for name in source):
        if name not in (SETTINGS if origin else DECLARED):
            raise UsageError(begin + _describe_unknown(str(name)))
    model = _make_model()
    try:
        checked = model(_build_sources=(tuple(InitSettingsSource(model, dict(source)) for source in sources), {}))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        value = f", not {first['input']!r:.200}" if name != "api_key" else ""
        raise UsageError(begin + first["msg"].replace("Input", name).removeprefix("Value error, ") + value) from None
    return {name: getattr(checked, name) for name in checked.model_fields_set}


def _describe_unknown(name: str) -> str:
    if name.lower().endswith(_KEY_ENDS):
        return (
            f"{name!r} is not a setting: keys stand in the environment alone, see `tome models` for their names, or in "
            "Python in `api_key`"
        )
    return f"{name!r} is not a setting: {suggest(name, SETTINGS)}known are {', '.join(sorted(SETTINGS))}"


def _make_plain(value: Any) -> Any:
    """A path as its text, and a whole number of another library, such as NumPy, as one of Python."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def _read_limit(value: Any) -> Any:
    """The text of a limit as `Limit` writes it. Raises ValueError."""
    from tomewise.types import Limit

    return str(Limit.parse(value)) if isinstance(value, str) else value


def _read_models(value: Any) -> dict[str, Any]:
    """Models by role: a table, or a text of words `ROLE=NAME`. Raises ValueError."""
    if isinstance(value, str):
        value = dict(map(split_role, value.split()))
    if isinstance(value, Mapping) and all(
        isinstance(role, str) and role and (isinstance(model, str) or callable(getattr(model, "ask", None)))
        for role, model in value.items()
    ):
        return dict(value)
    raise ValueError(
        'models should be a table of roles and names of models, such as answer = "openai:gpt-4o" below [models], or '
        "words such as answer=openai:gpt-4o"
    )


def _read_server(value: Any) -> dict[str, str]:
    """What a server takes: a table, or a text of words `NAME=VALUE`. Raises ValueError."""
    if isinstance(value, str):
        value = dict(each.partition("=")[::2] for each in value.split())
    for name in value if isinstance(value, Mapping) else ():
        if name not in _SERVER:
            raise ValueError(f"server knows no {name!r}: {suggest(str(name), _SERVER)}known are {', '.join(_SERVER)}")
    if isinstance(value, Mapping) and all(
        word in (("off", "low", "medium", "high") if name == "reasoning" else ("off", "on"))
        for name, word in value.items()
    ):
        return dict(value)
    raise ValueError(
        "server should be words such as reasoning=off (or low, medium, high) and temperature=off (or on), or a table "
        "of them below [server]"
    )


def split_role(word: str) -> tuple[str, str]:
    """The role and the model of a word `ROLE=NAME`; for a word without a role that is empty."""
    found = _ROLE_MODEL.fullmatch(word)
    return (found[1], found[2]) if found else ("", word)


# ---------------------------------------------------------------- sources

STATED, ENVIRONMENT = "what is stated", "the environment"  # sources; others are paths of files


def load(**stated: Any) -> Settings:
    """The settings that hold here. What is `stated` comes before the environment and the files.

    Raises UsageError that names the file or variable with a bad value, or what a project's file may not set.
    """
    values = check_values(*find_sources(stated).values())
    if "on" not in values and "workers" not in stated:
        values.pop("workers", None)  # a file may say how many work wherever some are asked for
    return Settings(**values)


def find_sources(stated: Mapping[str, Any], *, refused: list[str] | None = None) -> dict[str, dict[str, Any]]:
    """The values of each source, the nearest source first. A model replaces the models by role of later sources.

    Raises what `load` raises. With a list `refused`, the reason why the file of the current folder may not be used goes
    into it, and the file is left out.
    """
    own, project = find_file(), find_file(here=True)
    own_values = read_file(own)
    sources = {STATED: check_values(stated), ENVIRONMENT: _read_variables(os.environ)}
    if project.parent.resolve() != own.parent.resolve():
        try:
            values = read_file(project)
            refuse_risks(values, project, own_values)
            sources[str(project)] = values
        except UsageError as error:
            if refused is None:
                raise
            refused.append(str(error))
    sources[str(own)] = own_values
    names_model = False
    for values in sources.values():
        if names_model:
            values.pop("models", None)
        names_model = names_model or "model" in values
    return sources


def find_file(*, here: bool = False) -> Path:
    """The user's own file, or that of the current folder."""
    from platformdirs import user_config_path

    return (Path.cwd() if here else user_config_path("tomewise", appauthor=False)) / FILE


def read_file(path: Path) -> dict[str, Any]:
    """The settings that a file holds, none if it does not exist.

    Raises UsageError that names the file, for one that cannot be read, for an unknown setting, and for a bad value.
    """
    from pydantic_settings import TomlConfigSettingsSource

    try:
        if path.exists() and not path.is_file():  # reading a pipe could block forever
            raise OSError("it is not a file")
        if path.exists() and path.stat().st_size > _MAX_BYTES:
            raise OSError(f"it has more than {_MAX_BYTES:,} bytes")
        values = TomlConfigSettingsSource(_make_model(), path).toml_data
    except (OSError, ValueError, RecursionError) as error:  # what is not UTF-8 or TOML is a ValueError
        raise UsageError(f"{path} cannot be read: {error}") from error
    return check_values(values, origin=str(path))


def refuse_risks(values: Mapping[str, Any], path: Path, own: Mapping[str, Any]) -> None:
    """Raise UsageError for what a project's file at `path` may not set, where the user's own file has the values `own`.

    A folder from elsewhere must neither say where documents, questions and keys go, nor what is executed, nor let more
    be spent: it may lower the bounds of the user, not raise them.
    """

    def is_raised(name: str) -> bool:
        most = own.get(name, SETTINGS[name].default)
        if name in ("budget", "ask_above"):
            from tomewise.types import Limit

            return Limit.parse(most, values[name]) != Limit.parse(values[name])  # it lacks a part, or has more of it
        return name == "max_failures" and values[name] > most

    risky = {"sets": [name for name in values if not SETTINGS[name].free], "raises": list(filter(is_raised, values))}
    for verb, names in risky.items():
        if names:
            variables = ", ".join(SETTINGS[name].variable for name in names)
            raise UsageError(
                f"{path} {verb} {', '.join(names)}, and only you may do that: delete it there; if you mean it, put it "
                f"into {find_file()}, set {variables}, or give it on the command line"
            )


def read_text(name: str, text: str) -> Any:
    """The value that a text gives to a setting, as its environment variable would. Raises UsageError."""
    values = _read_variables({f"{_PREFIX}{name.upper()}": text}, "the value given")
    return check_values(values or {name: text}, origin="the value given")[name]


def _read_variables(variables: Mapping[str, str], origin: str = "") -> dict[str, Any]:
    """The values of environment variables by the names of their settings. Raises UsageError."""
    from pydantic_settings import EnvSettingsSource

    values: dict[str, Any] = {}
    source = EnvSettingsSource(_make_model())
    source.env_vars = {name.lower(): text for name, text in variables.items() if text and name.startswith(_PREFIX)}
    if not source.env_vars:  # to look for them takes longer than all else here
        return values
    for name, value in source().items():
        if name in SETTINGS:
            values |= check_values({name: value}, origin=origin or SETTINGS[name].variable)
    return values


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
    """`TOMEWISE_CACHE`, or `tomewise` in the user's cache folder (on Linux `XDG_CACHE_HOME`, else `~/.cache`)."""
    from platformdirs import user_cache_path

    return Path(read_variable("TOMEWISE_CACHE") or user_cache_path("tomewise", appauthor=False))
