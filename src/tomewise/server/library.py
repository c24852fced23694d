"""The tomes that a server serves, by name. One model, one limit and one embedder of a name for all of them."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.errors import Locked, StoreError, TomewiseError, UnknownName, UsageError, suggest
from tomewise.language.budget import Budget
from tomewise.language.choose_model import EXTRACTIVE, check_models, choose_model, find_provider
from tomewise.language.spec import PROVIDERS, ModelSpec
from tomewise.language.trial import Trial, try_model
from tomewise.language.wrapped import SharedModel, find_abilities
from tomewise.memory.building import Backlog, find_backlog
from tomewise.run import change_run
from tomewise.server.ownership import find_jobs
from tomewise.settings import Settings
from tomewise.store.address import DatabaseAddress, TomeAddress
from tomewise.store.lookups import read_setting
from tomewise.store.records import BUILDS
from tomewise.systems.registry import SYSTEMS, parse_variant
from tomewise.tome.arguments import check_settings, read_prompts
from tomewise.tome.document_names import hide_paths
from tomewise.tome.fixed_settings import is_local, refuse_foreign_embedder
from tomewise.tome.open_store import delete_dead_drafts, delete_tome, import_all, list_tomes, move_tome, recall_embedder
from tomewise.tome.tome import Tome
from tomewise.types import Cost, Embedder, LanguageModel, Limit

SUFFIX = ".tome"
_NEW_NAME = re.compile(r"\w[\w-]{0,63}")
_IMPORTS = 2  # that arrive or are read at once; others wait


Identity: TypeAlias = tuple[int, int] | str


class ServedTome:
    """A tome in use. It finds what each system still needs, and keeps that until the memory changes.

    `identity` tells whether another tome was put in its place. May be used from several threads.
    """

    def __init__(self, tome: Tome, path: TomeAddress, identity: Identity) -> None:
        self.tome = tome
        self.path = path
        self.identity = identity
        self._lock = Lock()
        self._state: object = None
        self._backlogs: Mapping[str, Backlog] = {}

    def find_backlogs(self) -> Mapping[str, Backlog]:
        """By system, with its default settings: what its layers have yet to take in."""
        store = self.tome.store
        with self._lock:
            state = (store.versions(["vectors/passages"]), store.notes(BUILDS))
            if state != self._state:
                found = {name: self._find(name) for name in SYSTEMS.list_names()}
                self._backlogs = {name: backlog for name, backlog in found.items() if backlog is not None}
                self._state = state
            return self._backlogs

    def list_ready(self) -> list[str]:
        """The systems that can answer now, also those whose memory lags."""
        return [name for name, backlog in self.find_backlogs().items() if not backlog.unbuilt]

    def list_lagging(self) -> list[str]:
        """Those of them whose memory has yet to take in passages."""
        backlogs = self.find_backlogs()
        return [name for name in self.list_ready() if any(backlogs[name].new_keys.values())]

    def _find(self, name: str) -> Backlog | None:
        try:
            return find_backlog(parse_variant(name).wire(self.tome.kit).layers, self.tome.store)
        except TomewiseError:  # a plugin that is broken, or a system without its library
            return None


class Library:
    """Opens tomes by name, keeps them open, and closes them and the models at the end.

    `files` are served by their stems. With `root`, so are all tomes of that folder that are not links, or of that
    database, and new ones are made there. A client names a tome, never a path: a name is only looked up among those
    that exist. With `read_only` answers leave nothing in the tomes.
    """

    def __init__(
        self,
        settings: Settings,
        files: Sequence[TomeAddress] = (),
        root: TomeAddress | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self._settings = settings
        self._read_only = read_only
        self._files: dict[str, TomeAddress] = {}
        for file in files:
            path = file.absolute() if isinstance(file, Path) else file
            name = path.stem if isinstance(path, Path) else path.tome
            if self._files.setdefault(name, path) != path:
                raise UsageError(f"two tomes are named {name!r}: rename one of them")
        self._root = root.absolute() if isinstance(root, Path) else root
        if isinstance(self._root, Path) and not self._root.is_dir():
            raise UsageError(f"the folder {self._root} does not exist: make it first")
        self.tomes: dict[str, Tome] = {}  # those that are open now, by name
        self._open: dict[str, ServedTome] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by name, while they are used
        self._importing = asyncio.Semaphore(_IMPORTS)
        self._embedders: dict[tuple[str, str], Embedder] = {}
        self._models: dict[tuple[str | None, tuple[str, str] | None], LanguageModel] = {}
        self._uses: Counter[str] = Counter()  # questions and jobs that work on a tome
        self._making = Lock()  # tomes are opened in threads
        self.spent = Cost()

    def check(self) -> None:
        """Raise UsageError or UnknownName for settings with which no question could be answered."""
        check_settings(self._settings)
        for name in self.models:
            check_models(name, {}, self._find_address(name))

    def paths(self) -> Mapping[str, TomeAddress]:
        """The file of each tome by its name, or its place in the database."""
        found = dict(self._files)
        if isinstance(self._root, DatabaseAddress):
            for name in list_tomes(self._root):
                if _NEW_NAME.fullmatch(name):
                    found.setdefault(name, self._root.find_tome(name))
        elif self._root:
            for path in sorted(self._root.glob(f"*{SUFFIX}")):
                if path.is_file() and not path.is_symlink() and path.suffix == SUFFIX:
                    found.setdefault(path.stem, path)
        return found

    def names(self) -> list[str]:
        """The names of all tomes."""
        return sorted(self.paths())

    def measure(self) -> dict[str, int]:
        """The names of all tomes, sorted, with the bytes that each takes on the disk."""
        sizes = list_tomes(self._root) if isinstance(self._root, DatabaseAddress) else {}
        return {
            name: _measure(path) if isinstance(path, Path) else sizes.get(name, 0)
            for name, path in sorted(self.paths().items())
        }

    @property
    def model_name(self) -> str:
        """The name of the model, with other models by role."""
        roles = [f"{role}={name}" for role, name in sorted(self._settings.models.items())]
        return " ".join([self._settings.model, *roles])

    @property
    def models(self) -> list[str]:
        """The models that a request may name: that of the settings, then those that are offered."""
        return list(dict.fromkeys([self._settings.model, *(self._settings.offer or "").split()]))

    def name_model(self, name: str | None) -> str:
        """The name of the model that a request names; without one, that of the settings with those by role.

        Raises UnknownName.
        """
        if name is not None and name not in self.models:
            near = suggest(name[:200], self.models)
            raise UnknownName(f"no model {name[:200]!a} is offered here: {near}GET /api/models lists them")
        return self.model_name if name in (None, self._settings.model) else name

    def find_spec(self, name: str) -> ModelSpec | None:
        """The specification of a model; None for the extractive one, and for that of a plugin."""
        known = name.partition(":")[0] in {*PROVIDERS, "ollama"}
        return ModelSpec.parse(name, self._find_address(name)) if known else None

    @contextmanager
    def use_model(self, name: str | None, tome: Tome) -> Iterator[None]:
        """Let a tome ask this model inside, one that is offered. Raises UnknownName."""
        if self.name_model(name) == self.model_name:
            yield
            return
        with self._making:
            model = self._share_model(tome.kit.embedder, name)
        with change_run(model=model):
            yield

    async def try_model(self, name: str) -> Trial:
        """Ask a model one small question, within the limits; the extractive one needs none. Raises UnknownName."""
        self.name_model(name)
        if name == EXTRACTIVE:
            return Trial(structured="yes")
        if self.find_spec(name) is None:
            return Trial(problem=f"{name} comes from a plugin, and is tried with a question alone")
        await self.import_client(name)
        with self.budget(name):
            kept = self._settings
            address = self._find_address(name)
            return await try_model(name, base_url=address, timeout=kept.timeout, server=kept.server)

    @property
    def limits(self) -> dict[str, Any]:
        """The budget of one question or job, None for no limit, and what a person is asked about before."""
        return {name: getattr(self._settings, name) for name in ("budget", "ask_above")}

    @property
    def makes_tomes(self) -> bool:
        """Whether there is a folder for new tomes."""
        return self._root is not None

    def find_path(self, name: str) -> TomeAddress:
        """The file of a tome, or its place in the database. Raises UnknownName."""
        if (known := self._open.get(name)) is not None and isinstance(known.path, DatabaseAddress):
            return known.path  # the database is not asked for all its tomes at each request
        paths = self.paths()
        if name not in paths:
            near = suggest(name[:200], paths)
            raise UnknownName(f"no tome {name[:200]!a} is served here: {near}GET /api/tomes lists the tomes")
        return paths[name]

    async def open(self, name: str) -> Tome:
        """The tome of that name. Raises UnknownName, and StoreError if it was removed, is damaged or too new."""
        return (await self.find(name)).tome

    async def find(self, name: str) -> ServedTome:
        """As `open`, with what the server keeps about the tome."""
        path = self.find_path(name)
        async with self._lock(name):
            known = self._open.get(name)
            if known is not None and await asyncio.to_thread(_is_same, path, known):
                return known
            if known:  # another file was put in its place
                del self._open[name], self.tomes[name]
                await asyncio.to_thread(known.tome.close)
            tome = await asyncio.to_thread(self._open_tome, path)
            return self._keep(name, path, tome, "was removed while it was served: put its file back")

    def _keep(self, name: str, path: TomeAddress, tome: Tome, problem: str) -> ServedTome:
        """Keep a tome open. Raises StoreError with the problem if it is gone."""
        identity = _identify(path, tome)
        if identity is None:
            raise StoreError(f"the tome {name} {problem}")
        self.tomes[name] = tome
        self._open[name] = ServedTome(tome, path, identity)
        return self._open[name]

    async def open_all(self) -> None:
        """Open every tome that can be opened."""
        for name in self.names():
            with suppress(TomewiseError):
                await self.open(name)

    async def create(self, name: str, embedder: str | None = None, passage_tokens: int | None = None) -> None:
        """Make an empty tome in the folder for new ones.

        Raises UsageError for a name that exists or cannot be used, and for an embedder that is not the server's: any
        other would be fetched, or paid with the owner's key, for whoever asked.
        """
        if embedder is not None and not is_local(embedder) and embedder != self._choose_embedder().name:
            raise UsageError(f"the embedder {embedder[:200]!a} is not the server's own: name that, or hash")
        async with self._lock(name):
            path = self._find_place(name)
            make = partial(self._open_tome, path, embedder, passage_tokens, create=True)
            self._keep(name, path, await asyncio.to_thread(make), "was removed as soon as it was made: make it again")

    def delete_dead_drafts(self) -> None:
        """Delete what imports that were killed left in the folder."""
        if isinstance(self._root, Path):
            delete_dead_drafts(self._root)

    @contextmanager
    def hold(self, *names: str) -> Iterator[None]:
        """Keep tomes from being renamed and deleted: a question or a job works on them."""
        self._uses.update(names)
        try:
            yield
        finally:
            self._uses.subtract(names)
            self._uses += Counter()  # leaves out what is 0

    def is_owned(self, name: str) -> bool:
        """Whether clients may rename and delete a tome: it is in the folder, and was not named by itself."""
        return self._root is not None and name not in self._files

    async def delete(self, name: str) -> TomeAddress:
        """Delete a tome. Returns the path that it had. Raises what `_release` raises, and Locked, StoreError."""
        async with self._lock(name):
            path = await self._release(name)
            await asyncio.to_thread(delete_tome, path)
            return path

    async def rename(self, name: str, new: str) -> tuple[TomeAddress, TomeAddress]:
        """Rename a tome. Returns the paths that it had and has. Raises what `delete` raises, and UsageError."""
        async with self._lock(name, new):
            self.find_path(name)
            place = self._find_place(new)
            path = await self._release(name)
            await asyncio.to_thread(move_tome, path, place)
            return path, place

    async def fill(self, name: str, source: str, pieces: AsyncIterator[bytes], seconds: float) -> None:
        """Make a tome of an export that arrives in pieces: whole, or not at all.

        Raises UsageError, also for an embedder that is not the server's, StoreError, and TimeoutError if the turn of
        this import and all its pieces do not come within the seconds.
        """
        check = partial(refuse_foreign_embedder, source=source, own=self._choose_embedder())
        place = self._find_place(name)
        with TemporaryFile(dir=place.parent if isinstance(place, Path) else None) as file:
            async with AsyncExitStack() as turn:
                async with asyncio.timeout(seconds):
                    await turn.enter_async_context(self._importing)
                    async for piece in pieces:
                        await asyncio.to_thread(file.write, piece)
                file.seek(0)
                async with self._lock(name):
                    self._find_place(name)
                    await asyncio.to_thread(import_all, place, source, file, check)
        try:
            await self.open(name)
        except TomewiseError:  # it could not be used here
            await asyncio.to_thread(delete_tome, place)
            raise

    @asynccontextmanager
    async def _lock(self, *names: str) -> AsyncIterator[None]:
        """Open, make or move tomes of these names alone. All take the locks in one order, so none waits for ever."""
        async with AsyncExitStack() as locks:
            for name in sorted(set(names)):
                await locks.enter_async_context(self._locks.setdefault(name, asyncio.Lock()))
            yield

    async def _release(self, name: str) -> TomeAddress:
        """Close a tome of the folder, and return its path. Raises UnknownName, UsageError, and Locked if it is used."""
        path = self.find_path(name)
        if not self.is_owned(name):
            raise UsageError(f"the tome {name} was named on the command line: only those of --root are changed here")
        if self._uses[name]:
            raise Locked(f"the tome {name} is at work on a question or a job: try again when that has ended")
        if self._open.pop(name, None):
            await asyncio.to_thread(self.tomes.pop(name).close)
        return path

    def _find_place(self, name: str) -> TomeAddress:
        """The path for a new tome. Raises UsageError for a name that exists or cannot be used."""
        if self._root is None:
            raise UsageError("this server makes no tomes: start it with --root FOLDER")
        if not _NEW_NAME.fullmatch(name):
            raise UsageError(f"{name[:100]!a} cannot name a tome: give up to 64 letters, digits, - and _")
        if name in self.paths():
            raise UsageError(f"there is a tome {name!a} already: choose another name")
        if isinstance(self._root, DatabaseAddress):
            return self._root.find_tome(name)
        path = self._root / f"{name}{SUFFIX}"
        if os.path.lexists(path):  # a link, which is not served
            raise UsageError(f"there is a file {path.name} already: choose another name")
        jobs = find_jobs(path).path
        if os.path.lexists(jobs) and (jobs.is_symlink() or not jobs.is_dir() or any(jobs.iterdir())):
            raise UsageError(f"{jobs.name} is left of another tome: delete that folder, or choose another name")
        return path

    async def import_client(self, name: str | None) -> None:
        """Import what asks this model, in a thread: it takes a second, and others are answered meanwhile."""
        names = {self._settings.model, *self._settings.models.values()} if name is None else {name}
        providers = {each.partition(":")[0] for each in names - {EXTRACTIVE}}
        if providers:
            await asyncio.to_thread(_import_providers, providers)

    async def close(self) -> None:
        """Close all tomes, then the models."""
        tomes = list(self.tomes.values())
        self._open.clear()
        self.tomes.clear()
        for tome in tomes:
            await asyncio.to_thread(tome.close)
        for model in self._models.values():
            await find_abilities(model).close()

    @contextmanager
    def budget(self, model: str | None = None, lower: str | None = None) -> Iterator[Budget]:
        """A budget for one question or job of this model, within the server's own and one that is `lower`.

        No request raises what the settings allow. What it has spent counts in `spent`.
        """
        budget = Budget(Limit.parse(self._settings.budget, lower), name=self.name_model(model))
        try:
            with change_run(budget=budget):
                yield budget
        finally:
            self.spent += budget.spent

    def clean(self, text: str) -> str:
        """A message without the paths of the tomes and of their documents: a name stands for the file."""
        places = {str(path): name for name, path in self.paths().items()}
        if isinstance(self._root, Path):
            places[f"{self._root}/"] = ""
        return hide_paths(text, places, (tome.documents.names for tome in self.tomes.values()))

    def _open_tome(
        self, path: TomeAddress, embedder: str | None = None, passage_tokens: int | None = None, *, create: bool = False
    ) -> Tome:
        settings = self._settings
        sizes: dict[str, Any] = {"passage_tokens": None, "overlap": None}  # those of the tome
        if create:
            chosen = self._choose_embedder(embedder)
            sizes = {"passage_tokens": passage_tokens or settings.passage_tokens, "overlap": settings.overlap}
        else:
            chosen = recall_embedder(path, settings.embedder_base_url, read_only=self._read_only)
        with self._making:
            shared = self._embedders.setdefault(_identify_embedder(chosen), chosen)
            model = SharedModel(self._share_model(shared))
        sizes |= dict.fromkeys(("budget", "on", "workers"))  # each question and job has a budget of its own
        tome = Tome.open(
            path if isinstance(path, Path) else path.write(),
            model=model,
            embedder=shared,
            read_only=self._read_only,
            create=create,
            settings=replace(settings, models={}, **sizes),
        )
        _ = tome.kit  # its imports take a while: here they do so in a thread
        return tome

    def _choose_embedder(self, name: str | None = None) -> Embedder:
        """The embedder of new tomes: the one of this name, or the server's own."""
        settings = self._settings
        return choose_embedder(name or settings.embedder or "bundled", base_url=settings.embedder_base_url)

    def _share_model(self, embedder: Embedder, name: str | None = None) -> LanguageModel:
        """The model of this name, or of the settings with those by role.

        The extractive model reads with the embedder of the tome, so each has its own.
        """
        settings = self._settings
        model, roles = (settings.model, settings.models) if name is None else (name, {})
        reads_vectors = EXTRACTIVE in (model, *roles.values())
        key = name, _identify_embedder(embedder) if reads_vectors else None
        if key not in self._models:
            self._models[key] = choose_model(
                model,
                roles,
                embedder=embedder,
                base_url=settings.base_url if name is None else self._find_address(name),
                limit=settings.limit,
                timeout=settings.timeout,
                window=settings.window if name is None else None,
                server=settings.server,
                prompts=read_prompts(settings),
            )
        return self._models[key]

    def _find_address(self, name: str) -> str | None:
        """The address for a model that is offered: that of the settings belongs to one provider alone."""
        settings = self._settings
        is_home = find_provider(name, {}) == find_provider(settings.model, settings.models)
        return settings.base_url if is_home else None


def _import_providers(names: Collection[str]) -> None:
    from tomewise.language.connect_model import import_provider

    for name in names:
        import_provider(name)


def _identify_embedder(embedder: Embedder) -> tuple[str, str]:
    """Its name and its address, where it has one: two tomes may remember one name at two addresses."""
    return embedder.name, str(getattr(embedder, "address", ""))


def _is_same(path: TomeAddress, known: ServedTome) -> bool:
    """Whether the known tome is still there. Raises StoreError if a newer Tomewise changed it meanwhile."""
    if _identify(path, known.tome) != known.identity:
        return False
    known.tome.store.check()
    return True


def _identify(path: TomeAddress, tome: Tome) -> Identity | None:
    """What no other tome at this path has: of a file its number; in a database what the tome says of itself."""
    if isinstance(path, DatabaseAddress):
        return read_setting(tome.store, "identity")
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_dev, stat.st_ino)


def _measure(path: Path) -> int:
    """The bytes of a tome with its log; 0 if it is gone."""
    sizes = [0]
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            sizes.append(file.stat().st_size)
    return sum(sizes)
