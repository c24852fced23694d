"""What tests of the command share: a document, a tome that holds it, and replies as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LOG = "The keeper, Ada Marsh, put out the light at nine. Nobody asked her why."


@pytest.fixture
def log(here: Path) -> Path:
    """A document in the folder to be in."""
    path = here / "log.txt"
    path.write_text(LOG)
    return path


@pytest.fixture
def log_in_tome(command: Callable[..., Any], log: Path) -> Path:
    """The same document, in the tome of that folder."""
    assert command("add", log).code == 0
    return log


@pytest.fixture
def read_json(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a command prints for programs."""
    return lambda *words: json.loads(command(*words, "--json").out)
