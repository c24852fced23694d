"""The extras that parts of Tomewise need: large packages that `pip install tomewise` leaves out.

A part that needs one states it as `extra`, so that it is missed before the first model call and not after the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType

from tomewise.errors import MissingDependency

GRAPH = "graph"
_PACKAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {GRAPH: ("graspologic_native", "numba", "scipy", "threadpoolctl"), "postgres": ("psycopg",)}
)


def require_extra(extra: str, purpose: str) -> None:
    """Raise MissingDependency if a package of `extra` is not installed; imports none of them.

    `purpose` begins the message: what needs the extra, in the singular. The name of an extra that is not one of ours
    passes.
    """
    missing = [package for package in _PACKAGES.get(extra, ()) if find_spec(package) is None]
    if missing:
        raise MissingDependency(
            f"{purpose} needs {', '.join(missing)}, which the extra `{extra}` installs: "
            f'run `pip install "tomewise[{extra}]"`'
        )
