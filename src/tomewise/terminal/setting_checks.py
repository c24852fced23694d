"""Whether a command could use the value of a setting: its system, model, role, embedder, address or folder exists."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from tomewise.plugins import list_names
from tomewise.setting_files import MODELS


def check_meaning(name: str, value: Any) -> None:
    """Raise UsageError, which names what is nearest, for a value that no command could use. Nothing is asked."""
    table, dot, role = name.partition(".")
    if table == MODELS:
        _check_models({role: value} if dot else value)
    elif check := _CHECKS.get(name):
        check(value)


def _check_system(value: str) -> None:
    from tomewise.systems.spec import parse_variant

    parse_variant(value)


def _check_model(value: str) -> None:
    from tomewise.language.choose_model import EXTRACTIVE, check_models
    from tomewise.language.provider import find_provider_class

    check_models(value, {}, None)
    provider = value.partition(":")[0]
    if provider not in (EXTRACTIVE, *list_names("models")):
        with suppress(ImportError):  # a package that is missing now may be installed later
            find_provider_class(provider)


def _check_models(models: dict[str, str]) -> None:
    from tomewise.language.choose_model import EXTRACTIVE, check_models

    check_models(EXTRACTIVE, models, None)
    for model in models.values():
        _check_model(model)


def _check_embedder(value: str) -> None:
    from tomewise.embedding.choose_embedder import choose_embedder

    choose_embedder(value)


def _check_address(value: str) -> None:
    from tomewise.language.spec import check_address

    check_address(value)


def _check_prompts(value: str) -> None:
    from tomewise.language.choose_model import list_roles
    from tomewise.language.prompts import Prompts

    Prompts(Path(value).expanduser()).check_files(list_roles())


_CHECKS = {
    "system": _check_system,
    "model": _check_model,
    "embedder": _check_embedder,
    "base_url": _check_address,
    "embedder_base_url": _check_address,
    "prompts": _check_prompts,
}
