"""What servers say of their models: those at hand on this machine, and how many tokens a model accepts.

At hand are the models of providers whose key is set, of Ollama, and of servers of OpenAI's protocol on their usual
ports. To find these, only loopback addresses are asked, all at once, each for a fraction of a second, and nothing is
loaded.

Ollama and LM Studio load a model with a window of their own settings, whatever the model was made for, and drop or
refuse what exceeds it. Ollama states the window of a model that is loaded, so it is asked to load it, as the first call
would. LM Studio states it too; of a model that is not loaded only the greatest window is known, and the usual one is
assumed. vLLM (`max_model_len`) and llama.cpp (`n_ctx`) state theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from math import inf
from shlex import quote
from threading import Lock
from time import monotonic
from typing import Any

import httpx2

from tomewise.language.adapting import Adapter
from tomewise.language.completion_repair import parse_object, read_count
from tomewise.language.spec import OPENAI_PROTOCOL, ModelSpec
from tomewise.language.wire import CONNECT_SECONDS

SECONDS = 0.6  # for all that one server is asked
WINDOW_SECONDS = 10  # a window that a server states for now holds so long, and one measuring asks once
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
    """The models of all servers that answer; the loaded ones first, then the larger ones."""
    with ThreadPoolExecutor(max(1, len(SERVERS))) as threads:
        models = [model for of_server in threads.map(_list_in_time, SERVERS) for model in of_server]
    return sorted(models, key=lambda model: (model.window is None, -model.size))  # stable: then as servers list them


def _list_in_time(server: LocalServer) -> list[LocalModel]:
    """The models of a server; none if it is not there, or is something else."""
    with closing(_Asking(server.root, SECONDS, may_use_proxy=False)) as asking, suppress(httpx2.HTTPError):
        return list((_list_of_ollama if server.is_ollama else _list_of_openai)(asking, server.name))
    return []


def _list_of_ollama(asking: _Asking, server: str) -> Iterator[LocalModel]:
    windows = {
        row[name]: read_count(row, "context_length")
        for name in ("name", "model")  # the newer name of the two at last
        for row in _read_rows(asking.fetch("/api/ps"), "models", name)
    }
    for number, row in enumerate(_read_rows(asking.fetch("/api/tags"), "models", "name")):
        name = row["name"]
        about = asking.fetch("/api/show", {"model": name}) if number < _MOST_SHOWN else {}
        able = about.get("capabilities")  # one that does not say so counts as one that writes text
        if not isinstance(able, list) or "completion" in able:
            size = read_count(row, "size")
            yield LocalModel(f"ollama:{name}", "", server, windows.get(name) or None, _read_most(about), size)


def _list_of_openai(asking: _Asking, server: str) -> Iterator[LocalModel]:
    listed = _read_rows(asking.fetch("/v1/models"), "data", "id")
    studio = {row["id"]: row for row in _read_rows(asking.fetch("/api/v0/models"), "data", "id")}  # LM Studio's own
    running = _read_running(asking)
    for row in listed:
        about = studio.get(row["id"], {})
        if about.get("type") != "embeddings" and "embed" not in row["id"].lower():
            window = read_count(about, "loaded_context_length") or read_count(row, "max_model_len") or running
            most = read_count(about, "max_context_length") or None
            yield LocalModel(f"openai:{row['id']}", f"{asking.root}/v1", server, window or None, most)


def _read_running(asking: _Asking) -> int:
    """The window that llama.cpp runs with; 0 at any other server."""
    return read_count(asking.fetch("/props").get("default_generation_settings"), "n_ctx")


def _read_most(about: dict[str, Any]) -> int | None:
    info = about.get("model_info")
    names = info if isinstance(info, dict) else ()
    return max((read_count(info, name) for name in names if name.endswith(".context_length")), default=0) or None


@dataclass(frozen=True, slots=True)
class StatedWindow:
    """`tokens` that the model accepts, 0 if its server does not say; `lasts` is False if it may say so later."""

    tokens: int = 0
    lasts: bool = True


@dataclass(eq=False)
class Window:
    """Finds out how many tokens a model accepts; its server is asked at the first use, within `seconds`."""

    spec: ModelSpec
    adapter: Adapter
    given: int | None
    api_key: str | None
    seconds: float
    _stated: int = 0
    _asked_until: float = -inf
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._window_before = self.adapter.known.window

    @property
    def known(self) -> int:
        """The tokens that are known without asking: from the setting, the server or a refusal; 0 for none."""
        return self._choose()[0]

    def find(self) -> tuple[int, str]:
        """The tokens, and who says so: the setting, else the server or a refusal below that, else the table.

        Raises ModelUnavailable for a garbled key.
        """
        with self._lock:
            if not self.given and monotonic() >= self._asked_until:
                stated = ask_window(self.spec, self.spec.find_key(self.api_key), self.seconds)
                self._stated, self._asked_until = stated.tokens, inf if stated.lasts else monotonic() + WINDOW_SECONDS
                if self._stated and self.adapter.known.window == self._window_before:  # it may be another one by now
                    self.adapter.known = replace(self.adapter.known, window=0)
        tokens, source = self._choose()
        return (tokens, source) if tokens else (self.spec.window, "the table of known models")

    def _choose(self) -> tuple[int, str]:
        """The tokens that are known without asking, 0 for none, and who says so."""
        learnt = self.adapter.known.window
        if self.given:
            return self.given, "the setting `window`"
        if self._stated and not 0 < learnt < self._stated:
            return self._stated, "its server"
        return learnt, "a refusal of its server"


def ask_window(spec: ModelSpec, key: str | None, seconds: float) -> StatedWindow:
    """The window that the server of a model states. `seconds` bound all requests, which carry the `key`."""
    if not spec.address or spec.provider not in OPENAI_PROTOCOL:
        return StatedWindow()
    root = spec.address.rstrip("/").removesuffix("/v1")
    try:
        with closing(_Asking(root, seconds, key)) as asking:
            stated = (_ask_ollama if spec.provider == "ollama" else _ask_openai)(asking, spec.model)
            return stated if stated.tokens else StatedWindow(lasts=not asking.failed)
    except httpx2.HTTPError:
        return StatedWindow(lasts=False)


def _ask_ollama(asking: _Asking, model: str) -> StatedWindow:
    for load in (True, False):
        for row in _read_rows(asking.fetch("/api/ps"), "models"):
            is_asked = row.get("model", row.get("name")) in (model, f"{model}:latest")
            if is_asked and (tokens := read_count(row, "context_length")):
                return StatedWindow(tokens)
        if load:
            asking.fetch("/api/generate", {"model": model, "stream": False})
    return StatedWindow()


def _ask_openai(asking: _Asking, model: str) -> StatedWindow:
    for row in _read_rows(asking.fetch("/api/v0/models"), "data"):
        if row.get("id") == model:
            if tokens := read_count(row, "loaded_context_length"):
                return StatedWindow(tokens)
            most = read_count(row, "max_context_length")
            return StatedWindow(min(_NOT_LOADED, most), lasts=False)
    rows = _read_rows(asking.fetch("/v1/models"), "data", "id")
    mine = next((row for row in rows if row["id"] == model or len(rows) == 1), {})
    return StatedWindow(read_count(mine, "max_model_len") or _read_running(asking))


class _Asking:
    """Asks one server; with a `key` in each request. All requests together end some `seconds` after the first."""

    def __init__(self, root: str, seconds: float, key: str | None = None, *, may_use_proxy: bool = True) -> None:
        self.root = root
        self.failed = False
        """Whether it met an error of the server, as one that still loads its model gives."""
        self._ends = monotonic() + seconds
        self._client = httpx2.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)),
            verify=root.startswith("https"),  # to read certificates takes longer than all else here
            trust_env=may_use_proxy,
        )

    def close(self) -> None:
        self._client.close()

    def fetch(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """The object of a reply; empty for any other one, for one that is too long, and for an error of the server."""
        read = b""
        if monotonic() > self._ends:
            return {}
        with (
            suppress(httpx2.ReadTimeout),
            self._client.stream("POST" if body else "GET", self.root + path, json=body) as response,
        ):
            self.failed |= response.is_server_error
            for piece in response.iter_bytes():
                read += piece
                if not response.is_success or len(read) > _LONGEST or monotonic() > self._ends:
                    return {}
        return parse_object(read)


def _read_rows(reply: dict[str, Any], name: str, key: str = "") -> list[dict[str, Any]]:
    """The objects of a list in a reply; with a `key`, those that have a text there."""
    rows = reply.get(name)
    rows = rows if isinstance(rows, list) else []
    return [row for row in rows if isinstance(row, dict) and (not key or isinstance(row.get(key), str))]
