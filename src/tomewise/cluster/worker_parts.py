"""What every worker of a pool makes once for itself, and what must then be equal on all machines."""

from __future__ import annotations

import platform
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from tomewise.addresses import find_loopback
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.errors import BadReply, MissingDependency, ModelUnavailable, UsageError
from tomewise.language.choose_model import EXTRACTIVE, ModelOrName, choose_model, find_provider
from tomewise.language.prompts import Prompts
from tomewise.language.spec import ModelSpec
from tomewise.plugins import KINDS, list_names, list_plugins
from tomewise.settings import Settings
from tomewise.types import Embedder, LanguageModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROBE = "The tide turned at nine, and the keeper lit the lamp."  # is embedded everywhere, to compare the vectors
_SAME = 0.999  # the least cosine of one text's vectors by one embedder on two machines


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParts:
    """What a worker makes its model of: arguments of `choose_model`, and `prompts`, the user's own as text by file.

    Keys are no part of it: they come from the environment of the worker.
    """

    model: ModelOrName = EXTRACTIVE
    models: Mapping[str, ModelOrName] = field(default_factory=dict)
    base_url: str | None = None
    limit: int = Settings.limit
    timeout: float = Settings.timeout
    window: int | None = None
    server: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    short_answers: bool = False

    def make_model(self, embedder: Embedder) -> LanguageModel:
        """The model. Raises UsageError."""
        return choose_model(
            self.model,
            self.models,
            embedder=embedder,
            base_url=self.base_url,
            limit=self.limit,
            timeout=self.timeout,
            window=self.window,
            server=self.server,
            prompts=Prompts(texts=self.prompts) if self.prompts else None,
            short_answers=self.short_answers,
        )

    def write_prompts(self, folder: Path) -> Path | None:
        """Write the user's own prompts into a folder. Returns it, or None if there are none."""
        for name, text in self.prompts.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder if self.prompts else None

    def list_specs(self) -> list[ModelSpec]:
        """The chat models, each with its address. Raises UsageError."""
        home = find_provider(self.model, self.models)
        own = {EXTRACTIVE, *list_names("models")}
        names = {name.strip() for name in (self.model, *self.models.values()) if isinstance(name, str)}
        chat = [(name, name.partition(":")[0]) for name in sorted(names) if name.partition(":")[0] not in own]
        return [ModelSpec.parse(name, self.base_url if provider == home else None) for name, provider in chat]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """What every worker of a pool makes once for itself.

    `embedder` is a name, or an object that can be pickled; `embedder_address` that of an embedder behind one, and with
    `loopback_only` the embedder asks this machine alone.
    """

    embedder: str | Embedder
    embedder_address: str | None = None
    loopback_only: bool = False
    model: ModelParts = ModelParts()

    def make_embedder(self) -> Embedder:
        """The embedder. Raises UnknownName, MissingDependency."""
        if not isinstance(self.embedder, str):
            return self.embedder
        return choose_embedder(self.embedder, base_url=self.embedder_address, loopback_only=self.loopback_only)

    def list_specs(self) -> list[ModelSpec]:
        """The models and the embedder that are asked at an address, or with a key. Raises UsageError."""
        specs = self.model.list_specs()
        if isinstance(self.embedder, str) and self.embedder.startswith("openai:"):
            specs.append(ModelSpec.parse(self.embedder, self.embedder_address))
        return specs


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """What must be equal on all machines of a pool, and the `machine` where it was found.

    `packages` bring parts (plug-ins), each with its version. `keys` are variables with a key that is set, never the
    keys. `row` is the vector of `PROBE`, empty for an embedder behind an address.
    """

    machine: str
    tomewise: str
    python: str
    ray: str
    packages: tuple[str, ...]
    keys: tuple[str, ...]
    row: tuple[float, ...]


def describe_here(parts: WorkerParts, embedder: Embedder) -> WorkerFacts:
    """The facts of this process. Raises ModelUnavailable for a key that is missing here, and what the parts raise."""
    specs = parts.list_specs()
    for spec in specs:
        spec.require_key()
    computes = not (isinstance(parts.embedder, str) and parts.embedder.startswith("openai:"))
    return WorkerFacts(
        machine=socket.gethostname(),
        tomewise=_find_version("tomewise"),
        python=platform.python_version(),
        ray=_find_version("ray"),
        packages=_list_packages(),
        keys=tuple(sorted({spec.key_variables for spec in specs if spec.find_key(None)})),
        row=tuple(embed_rows(embedder, [PROBE])[0].tolist()) if computes else (),
    )


def embed_rows(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """The rows of the texts, shape (len(texts), dimensions). Raises BadReply for rows that cannot be those."""
    rows, shape = embedder.embed(texts), (len(texts), embedder.dimensions)
    if not isinstance(rows, np.ndarray) or rows.shape != shape or rows.dtype.kind != "f":
        found = f"{rows.dtype} {rows.shape}" if isinstance(rows, np.ndarray) else type(rows).__name__
        needed = f"{len(texts)} texts need float32 {shape}"
        raise BadReply(f"the embedder {embedder.name} gave {found}, but {needed}: mend it, or use another one")
    if not np.isfinite(rows).all():
        raise BadReply(f"the embedder {embedder.name} gave a vector that is not finite: mend it, or use another one")
    return np.asarray(rows, np.float32)


def _list_packages() -> tuple[str, ...]:
    names = {plugin.package for kind in KINDS for plugin in list_plugins(kind) if plugin.package}
    return tuple(f"{name} {_find_version(name)}" for name in sorted(names))


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of no known version"


def check_agreement(here: WorkerFacts, there: WorkerFacts, parts: WorkerParts) -> None:
    """Raise an error that names the machine and what differs there: a UsageError, or that of the missing part."""
    where = f"the worker on {there.machine}"
    for name in ("tomewise", "python", "ray"):
        near, far = getattr(here, name), getattr(there, name)
        if near != far:
            raise UsageError(f"{where} has {name.capitalize()} {far}, and this process {near}: install the same one")
    if missing := [package for package in here.packages if package not in there.packages]:
        raise MissingDependency(
            f"{where} lacks packages with parts that this process has ({', '.join(missing)}): install them there"
        )
    if keys := [name for name in here.keys if name not in there.keys]:
        raise ModelUnavailable(f"{where} lacks a key that is set here: set {', '.join(keys)} where workers are started")
    if len(here.row) != len(there.row) or (here.row and float(np.dot(here.row, there.row)) < _SAME):
        raise UsageError(
            f"{where} has another embedder than this process: its vectors for one text differ; "
            "install the same weights on both, and empty the cache (TOMEWISE_CACHE)"
        )
    if here.machine != there.machine:
        _refuse_local_servers(parts, there.machine)


def _refuse_local_servers(parts: WorkerParts, machine: str) -> None:
    """Raise UsageError for a server at `localhost`: each machine would ask itself."""
    for address in (spec.address for spec in parts.list_specs()):
        if address and find_loopback(urlsplit(address).hostname or ""):
            raise UsageError(
                f"{address} means another machine on each machine of the cluster, such as {machine}: name the server "
                "by an address that all of them can reach"
            )
