"""What `Tome.open` checks of its arguments before it opens a file; a server checks its settings when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

from tomewise.language.failures import check_max_failures
from tomewise.language.prompts import Prompts
from tomewise.reading.bounds import Bounds
from tomewise.systems.registry import parse_variant
from tomewise.tome.session_record import check_session_limit
from tomewise.tome.traces import check_trace_bytes

if TYPE_CHECKING:
    from tomewise.settings import Settings
    from tomewise.types import LanguageModel


def check_settings(settings: Settings) -> None:
    """Raise UsageError or UnknownName for settings with which no tome can be opened."""
    given = asdict(settings)
    check_arguments(**{name: given[name] for name in signature(check_arguments).parameters})


def check_arguments(
    *,
    model: str | LanguageModel,
    models: Mapping[str, str | LanguageModel] | None,
    base_url: str | None,
    embedder_base_url: str | None,
    prompts: str | Path | None,
    read_seconds: float | None,
    read_memory: int | None,
    read_characters: int | None,
    trace_bytes: int,
    session_limit: int,
    system: str,
    max_failures: int,
) -> tuple[Prompts, Bounds]:
    """The templates of the prompts and the bounds on reading. Raises UsageError and UnknownName."""
    from tomewise.language.choose_model import check_models, list_roles
    from tomewise.language.spec import check_address

    check_trace_bytes(trace_bytes)
    check_session_limit(session_limit)
    check_max_failures(max_failures)
    parse_variant(system)
    templates = Prompts(Path(prompts) if prompts else None)
    templates.check_files(list_roles())
    bounds = Bounds.of(seconds=read_seconds, memory=read_memory, characters=read_characters)
    check_models(model, models or {}, base_url)
    if embedder_base_url:
        check_address(embedder_base_url)
    return templates, bounds
