"""What runs on each worker of a pool: it embeds texts and asks a model, and touches no tome. It needs no Ray."""

from __future__ import annotations

import asyncio
import errno
import os
import pickle
import platform
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tomewise.embedding.cached_embedder import CachedEmbedder
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.errors import BudgetExceeded, TomewiseError, UsageError
from tomewise.fallbacks import count_fallbacks
from tomewise.language.choose_model import EXTRACTIVE, ModelOrName, choose_model, find_provider
from tomewise.language.prompts import Prompts
from tomewise.language.spec import ModelSpec
from tomewise.language.together import make_batch_role
from tomewise.meter import ModelCall
from tomewise.plugins import KINDS, list_names, list_plugins
from tomewise.run import Request, change_run, meter
from tomewise.settings import DEFAULTS
from tomewise.types import Embedder, LanguageModel, Preparable, Role, Spent

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROBE = "The tide turned at nine, and the keeper lit the lamp."  # is embedded everywhere, to compare the vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParts:
    """What a worker makes its model of: arguments of `choose_model`, and `prompts`, the user's own as text by file.

    Keys are no part of it: they come from the environment of the worker.
    """

    model: ModelOrName = EXTRACTIVE
    models: Mapping[str, ModelOrName] = field(default_factory=dict)
    base_url: str | None = None
    limit: int = DEFAULTS.limit
    timeout: float = DEFAULTS.timeout
    window: int | None = None
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
    `loopback_only` the embedder asks this machine alone. Without `model`, workers ask none.
    """

    embedder: str | Embedder
    embedder_address: str | None = None
    loopback_only: bool = False
    model: ModelParts | None = None

    def make_embedder(self) -> Embedder:
        """The embedder. Raises UnknownName, MissingDependency."""
        if not isinstance(self.embedder, str):
            return self.embedder
        return choose_embedder(self.embedder, base_url=self.embedder_address, loopback_only=self.loopback_only)

    def list_specs(self) -> list[ModelSpec]:
        """The models and the embedder that are asked at an address, or with a key. Raises UsageError."""
        specs = self.model.list_specs() if self.model else []
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a worker is asked: a role and its input. It travels as one argument, since Ray packs each one apart.

    `number` names it for `Worker.give_up`. `size` is that of a batch for the role, 0 for a single input. At most `most`
    requests are sent for it, as many as needed if it is 0.
    """

    number: int
    role: Role[Any, Any]
    size: int
    given: Any
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came of an ask: the output as JSON, or the error; and what the meter of the worker saw meanwhile.

    `fallbacks` counts them by kind.

    `calls` have times of the worker's own clock, and so have `begun` and `ended`, of the whole ask.
    """

    output: str
    failed: Failed | None
    calls: tuple[ModelCall, ...]
    repaired: int
    refused: int
    fallbacks: Mapping[str, int]
    begun: float
    ended: float


class _Bound:
    """Lets so many requests pass, and refuses the next: no more were reserved in the budget of the driver."""

    def __init__(self, most: int) -> None:
        self._left = most

    async def reserve(self, request: Request) -> int:
        if not self._left:
            raise BudgetExceeded("the limit of calls is used up, so a reply was not repaired: raise it, or stop here")
        self._left -= 1
        return 1

    def settle(self, request: Request, spent: Spent) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What a worker has for work that was sent to it: `limit` bounds its model, `prompts` is the user's own folder."""

    embedder: Embedder
    model: LanguageModel
    prompts: Path | None
    limit: int


class Worker:
    """One worker. A call returns its result, or `Failed`."""

    def __init__(self, parts: WorkerParts, threads: int) -> None:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # read by the embedder, Numba and the libraries below NumPy
        self._parts = parts
        self._turn = asyncio.Lock()  # two lists at a time would share the threads and end no earlier
        self._asks: dict[int, asyncio.Task[Any]] = {}  # that are under way, by their number

    @cached_property
    def _embedder(self) -> Embedder:
        return self._parts.make_embedder()

    @cached_property
    def _model(self) -> LanguageModel:
        parts = self._parts.model or ModelParts()
        return parts.make_model(CachedEmbedder(self._embedder))

    async def ask(self, ask: Ask) -> Reply:
        """Ask the model. An ask that is given up ends at once, with an error."""
        role = make_batch_role(ask.role, ask.size) if ask.size else ask.role
        begun, output, failed = perf_counter(), "", None
        permits = (_Bound(ask.most),) if ask.most else ()
        with meter() as seen, count_fallbacks() as fallbacks, change_run(permits=permits):
            asking = self._asks[ask.number] = asyncio.create_task(self._model.ask(role, ask.given))
            await asyncio.wait([asking])
            del self._asks[ask.number]
            try:
                output = asking.result().model_dump_json()
            except asyncio.CancelledError:
                failed = Failed.of(TomewiseError("the ask was given up"))
            except Exception as error:  # noqa: BLE001 - the driver raises it
                failed = Failed.of(error)
        return Reply(
            output=output,
            failed=failed,
            calls=seen.calls,
            repaired=seen.repaired,
            refused=seen.refused,
            fallbacks=dict(fallbacks),
            begun=begun,
            ended=perf_counter(),
        )

    async def give_up(self, number: int) -> None:
        """End the ask of this number, if it is still under way: what asks a server hangs up."""
        if asking := self._asks.get(number):
            asking.cancel()

    async def run_group(self, sent: bytes, desk: Any) -> Failed | None:
        """Run `function(place, desk, work)`, which was pickled with its work, and is imported here."""
        try:
            try:
                function, work = pickle.loads(sent)
            except (ImportError, AttributeError) as error:
                raise UsageError(f"{error}: install the modules of all systems on every machine") from error
            parts, model = self._parts.model or ModelParts(), self._model
            with TemporaryDirectory(prefix="tomewise-") as folder:
                prompts = parts.write_prompts(Path(folder))
                place = Workplace(embedder=self._embedder, model=model, prompts=prompts, limit=parts.limit)
                await function(place, desk, work)
        except Exception as error:  # noqa: BLE001 - the driver raises it
            return Failed.of(Failed.of(_explain_full_disk(error)).locate())
        return None

    async def describe(self) -> WorkerFacts | Failed:
        """What this worker is. The embedder is loaded and the model prepared, so that what is wrong shows at once."""
        try:
            if self._parts.model and isinstance(self._model, Preparable):
                await self._model.prepare()
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


def _explain_full_disk(error: Exception) -> Exception:
    """The error; one of Tomewise with the remedy in place of that of a full disk."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TomewiseError(f"{error.strerror}: make room there, or set TMPDIR to another folder where workers start")
    return error


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
