"""Every role that a model plays, with its input and output, one file for each family.

A role's prompt is `prompts/<name>.md`. The extractive model plays the same roles with text algorithms.
The schema shows the descriptions of fields to the model, so they say what the model shall write.
"""

# ruff: noqa: F403 - each of these files defines roles, their inputs and their outputs, and all of that is for everybody

from __future__ import annotations

from pydantic import BaseModel

from tomewise.errors import UsageError
from tomewise.language.roles.answer_roles import *
from tomewise.language.roles.community_roles import *
from tomewise.language.roles.fields import Shown as Shown
from tomewise.language.roles.fields import Text as Text
from tomewise.language.roles.hypergraph_roles import *
from tomewise.language.roles.judge_roles import *
from tomewise.language.roles.memory_roles import *
from tomewise.language.roles.recall_roles import *
from tomewise.language.roles.relay_roles import *
from tomewise.language.roles.table_roles import *
from tomewise.plugins import find_plugin, list_names
from tomewise.types import Role

ROLES: tuple[Role[BaseModel, BaseModel], ...] = tuple(
    value for value in dict(globals()).values() if isinstance(value, Role)
)


def find_outside_roles() -> tuple[Role[BaseModel, BaseModel], ...]:
    """All roles of plugins, by name. Raises MissingDependency, and UsageError for what is not a role of that name."""
    return tuple(_find_role(name) for name in sorted(list_names("roles")))


def _find_role(name: str) -> Role[BaseModel, BaseModel]:
    role = find_plugin("roles", name)
    if not isinstance(role, Role) or role.name != name:
        raise UsageError(f"the plugin {name!r} is not a Role of that name: it is {role!r}")
    return role
