"""How many tokens a model accepts, as its server states it: Ollama and LM Studio are asked.

Both load a model with a window of their own settings, whatever the model was made for, and drop or refuse what exceeds
it. Ollama states the window of a model that is loaded, so it is asked to load it, as the first call would. LM Studio
states it too; of a model that is not loaded only the greatest window is known, and the usual one is assumed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx2

from tomewise.language.spec import ModelSpec
from tomewise.language.wire import CONNECT_SECONDS

LONGEST = 4 * 2**20  # bytes of a reply that are read
_NOT_LOADED = 4_096  # tokens with which LM Studio loads a model unless it is configured otherwise


@dataclass(frozen=True, slots=True)
class StatedWindow:
    """`tokens` that the model accepts. `lasts` is False if the server was not reached, or may state another later."""

    tokens: int
    lasts: bool = True


def ask_window(spec: ModelSpec, seconds: float) -> StatedWindow:
    """The window that the server of a model states, else the known one. `seconds` bound each request."""
    if not spec.address or spec.provider not in ("ollama", "openai"):
        return StatedWindow(spec.window)
    root = spec.address.rstrip("/").removesuffix("/v1")
    try:
        with httpx2.Client(timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS)) as client:
            ask = _ask_ollama if spec.provider == "ollama" else _ask_lm_studio
            return ask(client, root, spec.model) or StatedWindow(spec.window)
    except httpx2.HTTPError:
        return StatedWindow(spec.window, lasts=False)


def _ask_ollama(client: httpx2.Client, root: str, model: str) -> StatedWindow | None:
    loaded = _find_loaded(client, root, model)
    if loaded is None:
        _fetch(client, f"{root}/api/generate", {"model": model, "stream": False})
        loaded = _find_loaded(client, root, model)
    return loaded


def _find_loaded(client: httpx2.Client, root: str, model: str) -> StatedWindow | None:
    names = (model, f"{model}:latest")
    for row in read_rows(_fetch(client, f"{root}/api/ps"), "models"):
        if row.get("model", row.get("name")) in names and (tokens := read_count(row, "context_length")):
            return StatedWindow(tokens)
    return None


def _ask_lm_studio(client: httpx2.Client, root: str, model: str) -> StatedWindow | None:
    for row in read_rows(_fetch(client, f"{root}/api/v0/models"), "data"):
        if row.get("id") == model:
            if tokens := read_count(row, "loaded_context_length"):
                return StatedWindow(tokens)
            most = read_count(row, "max_context_length")
            return StatedWindow(min(_NOT_LOADED, most), lasts=False) if most else None
    return None


def _fetch(client: httpx2.Client, address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The object of a reply; empty for an error of the server, and for a reply that is too long."""
    read = b""
    with client.stream("POST" if body else "GET", address, json=body) as response:
        for piece in response.iter_bytes():
            read += piece
            if not response.is_success or len(read) > LONGEST:
                return {}
    return parse_object(read)


def parse_object(text: bytes) -> dict[str, Any]:
    """The JSON object of a reply; empty for anything else."""
    with suppress(ValueError, RecursionError):
        parsed = json.loads(text)
        return parsed if isinstance(parsed, dict) else {}
    return {}


def read_rows(reply: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a list in a reply."""
    rows = reply.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def read_count(row: dict[str, Any], name: str) -> int:
    """A number, as of tokens or bytes; 0 where none is stated."""
    number = row.get(name)
    return number if isinstance(number, int) and number > 0 else 0
