"""Which of several models plays a role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tomewise.types import In, LanguageModel, Out, PerRole, Role


def find_name(model: LanguageModel, role: Role[In, Out]) -> str:
    """The name of the model that plays `role`, as in keys of the cache and in records of builds."""
    return model.name_for(role) if isinstance(model, PerRole) else model.name


def find_window(model: LanguageModel, role: Role[In, Out]) -> int:
    """How many tokens the model that plays `role` accepts, reply included."""
    return model.window_for(role) if isinstance(model, PerRole) else model.window


def join_names(model: LanguageModel, roles: Iterable[Role[Any, Any]]) -> str:
    """The names of the models that play `roles`, each once, separated by commas."""
    return ", ".join(dict.fromkeys(find_name(model, role) for role in roles))
