"""What `Tome.open` checks of its arguments before it opens a file; a server checks its settings when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomewise.errors import UsageError, suggest
from tomewise.settings import DEFAULTS, SETTINGS, Settings

if TYPE_CHECKING:
    from tomewise.language.prompts import Prompts

# What may be an object in place of a name, by its verb.
_OBJECTS = {
    "model": ("ask", "a LanguageModel"),
    "models": ("ask", "a LanguageModel"),
    "embedder": ("embed", "an Embedder"),
}

# Those that go to the models as they are, see `choose_model`.
MODEL_SETTINGS = ("base_url", "limit", "timeout", "window")
LIMITS = ("max_calls", "max_tokens", "max_cost")  # see `limit_spending`


def read_arguments(given: Mapping[str, Any], further: set[str]) -> Settings:
    """The arguments of `Tome.open` as settings; in the place of an object there is the default.

    Raises UsageError for one of another type, beyond its bounds, or neither a setting nor one of the `further` names,
    and what `check_settings` raises.
    """
    known = sorted({*SETTINGS, *further} - {"tome"})
    for name in given:
        if name not in SETTINGS:
            raise UsageError(f"{name!r} is not an argument: {suggest(name, known)}known are {', '.join(known)}")
    named = {name: value for name, value in given.items() if not _is_object(name, value)}
    if isinstance(models := named.pop("models", None), Mapping):
        models = {
            role: DEFAULTS.model if _is_object(f"models[{role!r}]", model) else model for role, model in models.items()
        }
    if isinstance(prompts := named.get("prompts"), PathLike):
        named["prompts"] = str(Path(prompts))
    for name in ("limit", "timeout"):
        if name in named and named[name] is None:  # the default
            del named[name]
    settings = Settings(models={} if models is None else models, **named)
    check_settings(settings)
    return settings


def check_pool(on: str | None, workers: int | None) -> None:
    """Raise UsageError for a place of work that does not exist, and for a number of workers without one."""
    if on not in (None, "ray"):
        raise UsageError(f"work cannot be done on {on!r:.200}: write ray, or leave it out to work in this process")
    if workers is None:
        return
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise UsageError(f"workers must be a whole number from 1 up, not {workers!r:.200}")
    if on is None:
        raise UsageError(f"{workers} workers need a cluster: give --on ray too (in Python, on='ray')")


def _is_object(name: str, value: object) -> bool:
    """Whether it stands in place of a name. Raises UsageError for an object that cannot."""
    verb, kind = _OBJECTS.get(name.partition("[")[0], ("", ""))
    if not verb or name == "models" or value is None or isinstance(value, str):
        return False
    if callable(getattr(value, verb, None)):
        return True
    raise UsageError(f"{name} must be a name or {kind}, not {value!r:.200}")


def check_settings(settings: Settings) -> None:
    """Raise UsageError or UnknownName for settings with which no tome can be opened. Nothing is asked."""
    from tomewise.language.choose_model import check_models
    from tomewise.language.spec import check_address

    if settings.system != DEFAULTS.system:
        from tomewise.systems.registry import parse_variant  # late: it imports all systems

        parse_variant(settings.system)
    read_prompts(settings)
    check_models(settings.model, settings.models, settings.base_url)
    if settings.embedder_base_url:
        check_address(settings.embedder_base_url)


def read_prompts(settings: Settings) -> Prompts:
    """The prompts, those of the user's folder before the packaged ones. Raises UsageError, UnknownName."""
    from tomewise.language.choose_model import list_roles
    from tomewise.language.prompts import Prompts

    if not settings.prompts:
        return Prompts()
    prompts = Prompts(Path(settings.prompts))
    prompts.check_files(list_roles())
    return prompts
