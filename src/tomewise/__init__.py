"""Tomewise: answers that need the whole of a long document or a large corpus."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tomewise.errors import TomewiseError
    from tomewise.evaluate.experiment import Experiment
    from tomewise.plugins import register
    from tomewise.tome.tome import Tome
    from tomewise.types import Answer, Condition, Document, Event, Evidence, Question, Quote, Scope, Statement

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Condition",
    "Document",
    "Event",
    "Evidence",
    "Experiment",
    "Question",
    "Quote",
    "Scope",
    "Statement",
    "Tome",
    "TomewiseError",
    "register",
]

_HOMES = {
    "Experiment": "tomewise.evaluate.experiment",
    "Tome": "tomewise.tome.tome",
    "TomewiseError": "tomewise.errors",
    "register": "tomewise.plugins",
}


def __getattr__(name: str) -> object:
    # Each name is imported when it is first used, so `tome --help` does not wait for a database and an array library.
    if name not in __all__:
        raise AttributeError(f"module 'tomewise' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "tomewise.types")), name)
