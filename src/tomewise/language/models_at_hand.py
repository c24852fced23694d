"""What servers say of their models: those at hand on this machine, and how many tokens a model accepts.

At hand are the models of providers whose key is set, of Ollama, and of servers of OpenAI's protocol on their usual
ports. To find these, only loopback addresses are asked, all at once, each for a fraction of a second, and nothing is
loaded.

Ollama and LM Studio load a model with a window of their own settings, whatever the model was made for, and drop or
refuse what exceeds it. Ollama states the window of a model that is loaded, so it is asked to load it, as the first call
would. LM Studio states it too; of a model that is not loaded only the greatest window is known, and the usual one is
assumed.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from shlex import quote
from typing import Any

import httpx2

from tomewise.language.spec import ModelSpec
from tomewise.language.wire import CONNECT_SECONDS

SECONDS = 0.6  # for all that one server is asked
_MOST_SHOWN = 20  # models of Ollama that are asked for their windows
_LONGEST = 4 * 2**20  # bytes of a reply that are read
_NOT_LOADED = 4_096  # tokens with which LM Studio loads a model unless it is configured otherwise


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that may run here: the root of its address, and whether it speaks Ollama's protocol."""

    name: str
    root: str
    is_ollama: bool = False


SERVERS = (
    LocalServer("Ollama", "http://127.0.0.1:11434", is_ollama=True),
    LocalServer("LM Studio", "http://127.0.0.1:1234"),
    LocalServer("vLLM", "http://127.0.0.1:8000"),
    LocalServer("llama.cpp", "http://127.0.0.1:8080"),
    LocalServer("SGLang", "http://127.0.0.1:30000"),
    LocalServer("Jan", "http://127.0.0.1:1337"),
    LocalServer("KoboldCpp", "http://127.0.0.1:5001"),
)


# A model of moderate price of each provider, and the package that asks it.
_USUAL = {
    "openai": ("gpt-4o-mini", "openai"),
    "anthropic": ("claude-sonnet-4-5", "anthropic"),
    "google": ("gemini-2.5-flash", "google"),
}


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model that a server offers, by its name for `--model`; `base_url` is empty where the name alone suffices.

    `window` is how many tokens it accepts as it is loaded now, None if it is not loaded or its server does not say;
    `most_tokens` how many it was made for. `size` is that of its file in bytes, 0 where it is not known.
    """

    name: str
    base_url: str
    server: str
    window: int | None = None
    most_tokens: int | None = None
    size: int = 0


def suggest_model() -> tuple[str, str]:
    """The options that name the best model at hand, and why it is at hand; both empty where nothing is.

    The measured figures are those of small models of providers, so one whose key is set comes first; then what runs
    on this machine.
    """
    for provider, (model, package) in _USUAL.items():
        spec = ModelSpec(provider, model)
        if spec.find_key(None) and find_spec(package):
            return f"--model {spec}", f"{spec.key_variables} is set"
    for found in find_local_models():
        address = f" --base-url {found.base_url}" if found.base_url else ""
        return f"--model {quote(found.name)}{address}", f"{found.server} runs here"
    return "", ""


def find_local_models() -> list[LocalModel]:
    """The models of all servers that answer; the loaded ones first, then the larger ones. May not run in a loop."""
    return asyncio.run(_find_all())


async def _find_all() -> list[LocalModel]:
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as client:  # no proxy stands before this machine
        found = await asyncio.gather(*(_ask_in_time(client, server) for server in SERVERS))
    models = [model for of_server in found for model in of_server]
    return sorted(models, key=lambda model: (model.window is None, -model.size))  # stable: then as servers list them


async def _ask_in_time(client: httpx2.AsyncClient, server: LocalServer) -> list[LocalModel]:
    """The models of a server; none if it is not there, or is something else."""
    ask = _list_of_ollama if server.is_ollama else _list_of_openai
    try:
        return await asyncio.wait_for(ask(client, server), SECONDS)
    except TimeoutError:
        return []


async def _list_of_ollama(client: httpx2.AsyncClient, server: LocalServer) -> list[LocalModel]:
    listed, running = await asyncio.gather(
        _fetch_soon(client, f"{server.root}/api/tags"), _fetch_soon(client, f"{server.root}/api/ps")
    )
    windows = {
        row[name]: _read_count(row, "context_length")
        for name in ("name", "model")  # the newer name of the two at last
        for row in _read_rows(running, "models", name)
    }
    rows = _read_rows(listed, "models", "name")
    shown = await asyncio.gather(
        *(_fetch_soon(client, f"{server.root}/api/show", {"model": row["name"]}) for row in rows[:_MOST_SHOWN])
    )
    shown += [{}] * (len(rows) - len(shown))
    return [
        LocalModel(
            f"ollama:{row['name']}",
            "",
            server.name,
            windows.get(row["name"]) or None,
            _read_most(about),
            _read_count(row, "size"),
        )
        for row, about in zip(rows, shown, strict=True)
        if _can_write(about)
    ]


async def _list_of_openai(client: httpx2.AsyncClient, server: LocalServer) -> list[LocalModel]:
    listed, studio, props = await asyncio.gather(
        _fetch_soon(client, f"{server.root}/v1/models"),
        _fetch_soon(client, f"{server.root}/api/v0/models"),  # LM Studio's own
        _fetch_soon(client, f"{server.root}/props"),  # llama.cpp's own
    )
    known = {row["id"]: row for row in _read_rows(studio, "data", "id")}
    generation = props.get("default_generation_settings")
    running = _read_count(generation, "n_ctx") if isinstance(generation, dict) else 0
    models = []
    for row in _read_rows(listed, "data", "id"):
        about = known.get(row["id"], {})
        if about.get("type") == "embeddings" or "embed" in row["id"].lower():
            continue
        window = _read_count(about, "loaded_context_length") or _read_count(row, "max_model_len") or running
        most = _read_count(about, "max_context_length") or None
        models.append(LocalModel(f"openai:{row['id']}", f"{server.root}/v1", server.name, window or None, most))
    return models


def _can_write(about: dict[str, Any]) -> bool:
    """Whether a model of Ollama writes text; one that does not say so counts as one that does."""
    able = about.get("capabilities")
    return not isinstance(able, list) or "completion" in able


def _read_most(about: dict[str, Any]) -> int | None:
    info = about.get("model_info")
    if not isinstance(info, dict):
        return None
    return max((_read_count(info, name) for name in info if name.endswith(".context_length")), default=0) or None


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
    ask = _ask_ollama if spec.provider == "ollama" else _ask_lm_studio
    try:
        with httpx2.Client(timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS)) as client:
            return ask(client, root, spec.model) or StatedWindow(spec.window)
    except httpx2.HTTPError:
        return StatedWindow(spec.window, lasts=False)


def _ask_ollama(client: httpx2.Client, root: str, model: str) -> StatedWindow | None:
    for load in (True, False):
        for row in _read_rows(_fetch(client, f"{root}/api/ps"), "models"):
            is_asked = row.get("model", row.get("name")) in (model, f"{model}:latest")
            if is_asked and (tokens := _read_count(row, "context_length")):
                return StatedWindow(tokens)
        if load:
            _fetch(client, f"{root}/api/generate", {"model": model, "stream": False})
    return None


def _ask_lm_studio(client: httpx2.Client, root: str, model: str) -> StatedWindow | None:
    for row in _read_rows(_fetch(client, f"{root}/api/v0/models"), "data"):
        if row.get("id") == model:
            if tokens := _read_count(row, "loaded_context_length"):
                return StatedWindow(tokens)
            most = _read_count(row, "max_context_length")
            return StatedWindow(min(_NOT_LOADED, most), lasts=False) if most else None
    return None


def _fetch(client: httpx2.Client, address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The object of a reply, see `_parse`; empty for an error of the server, and for a reply that is too long."""
    read = b""
    with client.stream("POST" if body else "GET", address, json=body) as response:
        for piece in response.iter_bytes():
            read += piece
            if not response.is_success or len(read) > _LONGEST:
                return {}
    return _parse(read)


async def _fetch_soon(client: httpx2.AsyncClient, address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """As `_fetch`; empty too where no reply comes in half of the time."""
    read = b""
    try:
        async with (
            asyncio.timeout(SECONDS / 2),
            client.stream("POST" if body else "GET", address, json=body) as response,
        ):
            async for piece in response.aiter_bytes():
                read += piece
                if not response.is_success or len(read) > _LONGEST:
                    return {}
    except (httpx2.HTTPError, TimeoutError):
        return {}
    return _parse(read)


def _parse(text: bytes) -> dict[str, Any]:
    """The JSON object of a reply; empty for anything else."""
    with suppress(ValueError, RecursionError):
        parsed = json.loads(text)
        return parsed if isinstance(parsed, dict) else {}
    return {}


def _read_rows(reply: dict[str, Any], name: str, key: str = "") -> list[dict[str, Any]]:
    """The objects of a list in a reply; with a `key`, those that have a text there."""
    rows = reply.get(name)
    objects = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [row for row in objects if not key or isinstance(row.get(key), str)]


def _read_count(row: dict[str, Any], name: str) -> int:
    """A number, as of tokens or bytes; 0 where none is stated."""
    number = row.get(name)
    return number if isinstance(number, int) and number > 0 else 0
