"""Roles that plugins bring under the entry points `tomewise.roles`."""

from __future__ import annotations

from pydantic import BaseModel

from tomewise.errors import UsageError
from tomewise.plugins import find_plugin, list_names
from tomewise.types import Role


def find_outside_roles() -> tuple[Role[BaseModel, BaseModel], ...]:
    """All roles of plugins, by name. Raises MissingDependency, and UsageError for what is not a role of that name."""
    return tuple(_find_role(name) for name in sorted(list_names("roles")))


def _find_role(name: str) -> Role[BaseModel, BaseModel]:
    role = find_plugin("roles", name)
    if not isinstance(role, Role) or role.name != name:
        raise UsageError(f"the plugin {name!r} is not a Role of that name: it is {role!r}")
    return role
