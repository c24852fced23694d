"""What runs on each worker of a pool: it embeds texts and asks a model, and touches no tome. It needs no Ray."""

from __future__ import annotations

import asyncio
import os
import pickle
import platform
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import numpy as np

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.errors import TomewiseError
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.spec import ModelSpec
from tomewise.plugins import KINDS, list_names, list_plugins
from tomewise.types import Embedder

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROBE = "The tide turned at nine, and the keeper lit the lamp."  # is embedded everywhere, to compare the vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """What every worker of a pool makes once for itself.

    `embedder` is a name, or an object that can be pickled; `embedder_address` that of an embedder behind one, and with
    `loopback_only` the embedder asks this machine alone. `models` are the chat models that will be asked, with the
    address of each; their keys come from the environment of the worker.
    """

    embedder: str | Embedder
    embedder_address: str | None = None
    loopback_only: bool = False
    models: Mapping[str, str | None] = field(default_factory=dict)

    def make_embedder(self) -> Embedder:
        """The embedder. Raises UnknownName, MissingDependency."""
        if not isinstance(self.embedder, str):
            return self.embedder
        return choose_embedder(self.embedder, base_url=self.embedder_address, loopback_only=self.loopback_only)

    def list_specs(self) -> list[ModelSpec]:
        """The models and the embedder that are asked at an address, or with a key. Raises UsageError."""
        own = {EXTRACTIVE, *list_names("models")}
        named = [(name, address) for name, address in self.models.items() if name.partition(":")[0] not in own]
        if isinstance(self.embedder, str) and self.embedder.startswith("openai:"):
            named.append((self.embedder, self.embedder_address))
        return [ModelSpec.parse(name, address) for name, address in named]


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


@dataclass(frozen=True, slots=True)
class Failed:
    """An error that a worker sends back as a value: Ray would give it another class and another message."""

    error: Exception
    machine: str

    @classmethod
    def of(cls, error: Exception) -> Failed:
        """The error as it is, if it survives the way back; else one of Tomewise with its class and its message."""
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001 - an exception from outside may raise anything when it is pickled
            error = TomewiseError(f"{type(error).__name__}: {error}")
        return cls(error, socket.gethostname())

    def locate(self) -> TomewiseError:
        """The error, of its own class if that is one of Tomewise, with the machine before its message."""
        message = f"the worker on {self.machine}: {self.error}"
        if isinstance(self.error, TomewiseError):
            return type(self.error)(message)
        return TomewiseError(f"{message} ({type(self.error).__name__})")


class Worker:
    """One worker. A call returns its result, or `Failed`."""

    def __init__(self, parts: WorkerParts, threads: int) -> None:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # read by the embedder, Numba and the libraries below NumPy
        self._parts = parts
        self._turn = asyncio.Lock()  # two lists at a time would share the threads and end no earlier

    @cached_property
    def _embedder(self) -> Embedder:
        return self._parts.make_embedder()

    async def describe(self) -> WorkerFacts | Failed:
        """What this worker is. The embedder is loaded, so that its file is made, and what is wrong shows at once."""
        try:
            return await asyncio.to_thread(describe_here, self._parts, self._embedder)
        except Exception as error:  # noqa: BLE001 - the driver raises it
            return Failed.of(error)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Failed:
        """The rows of these texts, shape (len(texts), dimensions)."""
        try:
            async with self._turn:
                return await asyncio.to_thread(self._embedder.embed, texts)
        except Exception as error:  # noqa: BLE001 - the driver raises it
            return Failed.of(error)


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
        row=tuple(embedder.embed([PROBE])[0].tolist()) if computes else (),
    )


def _list_packages() -> tuple[str, ...]:
    names = {plugin.package for kind in KINDS for plugin in list_plugins(kind) if plugin.package}
    return tuple(f"{name} {_find_version(name)}" for name in sorted(names))


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of no known version"
