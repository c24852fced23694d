"""Jobs: additions and builds that go on after their request has ended. One at a time works on a tome."""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from pydantic_core import from_json

from tomewise.errors import Locked, ReadingError, StoreError, UnknownName, UsageError
from tomewise.reading.read import NamedFile
from tomewise.server.choosing import choose_bounded
from tomewise.server.error_replies import HttpError, explain_error, make_body
from tomewise.server.library import Library
from tomewise.server.ownership import TEXTS, UPLOADS, Ownership, delete_job, find_job, find_jobs, find_upload, read_id
from tomewise.server.replies import JobProgress, JobReply, Kind, State
from tomewise.store.address import TomeAddress
from tomewise.store.beside import UnsafeFile
from tomewise.tome.tome import Tome
from tomewise.types import Document, Noun, Progress, Report, read_plain
from tomewise.types.plain import map_texts

_FILE = "job.json"
_MOST_ENDED = 100  # jobs that a tome keeps after their end
_MOST_OPEN = 50  # jobs of one tome that may wait
_RETRY_SECONDS = 0.5  # between two looks at a lock that another program holds


@dataclass(slots=True, kw_only=True)
class Job(Noun):
    """One job, as its JSON is kept in its `folder`; clients see what `describe` makes of it.

    `task` holds what it needs to be done again after the server was killed.
    """

    kept_back: ClassVar[tuple[str, ...]] = ("folder",)

    id: str
    tome: str
    kind: Kind
    task: dict[str, Any]
    state: State = "queued"
    progress: dict[str, tuple[int, int]] = field(default_factory=dict)
    note: str | None = None  # why it waits, while it does
    cost: dict[str, Any] | None = None
    report: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    created: str = ""
    started: str | None = None
    ended: str | None = None
    folder: Path = Path()

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state in ("queued", "waiting", "running")

    def describe(self) -> JobReply:
        """What clients see."""
        progress = [JobProgress(label=label, done=done, total=total) for label, (done, total) in self.progress.items()]
        open_steps = [step for step in progress if step.done < step.total or not step.total]
        failures = self._list_failures()
        most_common = [reason for reason, _ in Counter(failures).most_common(1)]
        return JobReply.model_validate({
            **self.to_dict(),
            "progress": progress,
            "doing": open_steps[-1] if open_steps and self.state == "running" else None,
            "failed": len(failures),
            "reason": self.error["message"] if self.error else next(iter(most_common), None),
            "system": self.task.get("system"),
            "files": len(self.task.get("files", ())) or self.task.get("texts", 0),
        })  # fmt: skip

    def has_only_failures(self) -> bool:
        """Whether a build took nothing in, since all its calls failed."""
        layers = (self.report or {}).get("layers", [])
        return any(layer["failures"] for layer in layers) and not any(layer["added"] for layer in layers)

    def _list_failures(self) -> list[str]:
        """Why each node or source failed that is in the report."""
        report = self.report or {}
        reasons = [failure["reason"] for layer in report.get("layers", ()) for failure in layer["failures"]]
        return [*reasons, *report.get("failed", {}).values()]


class JobList:
    """All jobs of all tomes. Each is kept in a folder beside its tome, with what was uploaded for it.

    A job is written when its state changes, so that the list survives a kill: what was open then is `interrupted`.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._jobs: dict[str, Job] = {}
        self._queues: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # in order of arrival
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changes: dict[str, asyncio.Event] = {}
        self._ownership = Ownership()
        self._stopping = False

    def load(self) -> None:
        """Take over the jobs that dead servers left at all tomes. Uploads that did not end are deleted."""
        for name, path in self._library.paths().items():
            try:
                folders = self._ownership.take_over(path)
            except UnsafeFile as error:
                warnings.warn(f"{error}, so jobs are not kept there: delete it, it is made again", stacklevel=2)
                continue
            for folder in folders:
                job = _read_job(folder, name)
                if job is None:
                    delete_job(folder)
                    continue
                self._jobs[job.id] = job
                if job.is_open:
                    self._end(job, "interrupted")

    def list_all(self) -> list[Job]:
        """All jobs, the newest first."""
        return sorted(self._jobs.values(), key=lambda job: (job.created, job.id), reverse=True)

    def find(self, id: str) -> Job:
        """The job of that id. Raises UnknownName."""
        if id not in self._jobs:
            raise UnknownName(f"no job {id[:100]!a} here: GET /api/jobs lists the jobs")
        return self._jobs[id]

    def make_folder(self, tome: str) -> Path:
        """A new folder for one job of a tome; what is uploaded goes there.

        Raises UnknownName, StoreError, HttpError, OSError.
        """
        path = self._library.find_path(tome)
        if sum(job.is_open for job in self._list_of(tome)) >= _MOST_OPEN:
            raise HttpError(
                "busy", f"{_MOST_OPEN} jobs of {tome} wait already: wait for one", headers={"retry-after": "30"}
            )
        try:
            return self._ownership.make_folder(path)
        except UnsafeFile as error:
            raise StoreError(f"{error}, so no job can be kept there: delete it, it is made again") from None

    def add(self, tome: str, kind: Kind, task: dict[str, Any], folder: Path) -> Job:
        """A new job, which waits for its turn."""
        job = Job(id=read_id(folder), tome=tome, kind=kind, task=task, created=_now(), folder=folder)
        self._jobs[job.id] = job
        self._start(job)
        ended = [job for job in self._list_of(tome) if not job.is_open and job.state != "interrupted"]
        self._forget(ended[_MOST_ENDED:])
        return job

    def resume(self, id: str) -> Job:
        """Do an interrupted job again; finished calls of the model are not repeated. Raises UsageError for others."""
        job = self.find(id)
        if job.state != "interrupted":
            raise UsageError(f"the job {id} is {job.state}: only an interrupted job can be resumed")
        job.state, job.error, job.ended = "queued", None, None
        self._start(job)
        return job

    async def cancel(self, id: str) -> Job:
        """Cancel a job that has not ended. One that has ended stays as it is."""
        job = self.find(id)
        if task := self._tasks.get(id):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if job.is_open or job.state == "interrupted":
            self._end(job, "cancelled")
        return job

    def check_idle(self, tome: str) -> None:
        """Raise Locked if a job of a tome has not ended."""
        if any(job.is_open for job in self._list_of(tome)):
            raise Locked(f"a job of the tome {tome} has not ended: wait for it, or cancel it")

    def forget(self, tome: str, path: TomeAddress) -> None:
        """Forget the jobs of a tome that was deleted at this path, with what was uploaded for them."""
        self._forget(self._list_of(tome))
        self._ownership.leave(path)

    def move(self, tome: str, new: str, path: TomeAddress, new_path: TomeAddress) -> None:
        """Give the jobs of a tome to the tome that it is now."""
        self._ownership.move(path, new_path)
        for job in self._list_of(tome):
            job.tome, job.folder = new, find_jobs(new_path).path / job.folder.name
            self._save(job)

    async def stop(self) -> None:
        """Interrupt all jobs: the server ends."""
        self._stopping = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for job in self._jobs.values():
            if job.is_open:
                self._end(job, "interrupted")
        self._ownership.release()

    async def wait_for_change(self, job: Job) -> None:
        """Wait until the job changes."""
        await self._changes.setdefault(job.id, asyncio.Event()).wait()

    def _list_of(self, tome: str) -> list[Job]:
        """The jobs of a tome, the newest first."""
        return [job for job in self.list_all() if job.tome == tome]

    def _forget(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            delete_job(job.folder)
            del self._jobs[job.id]

    def _start(self, job: Job) -> None:
        self._save(job)
        task = asyncio.create_task(self._run(job))
        self._tasks[job.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(job.id, None))

    async def _run(self, job: Job) -> None:
        try:
            async with self._queues[job.tome]:
                job.started = job.started or _now()
                report = await self._work(job)
            clean = self._clean(job)
            job.report = map_texts(report, lambda text, _: clean(text))
            job.cost = report.get("cost")
            if job.has_only_failures():
                reason = job.describe().reason
                job.error = {"code": "model", "message": f"nothing was taken in, as every call failed: {reason}"}
            self._end(job, "failed" if job.error else "done")
        except asyncio.CancelledError:
            self._end(job, "interrupted" if self._stopping else "cancelled")
        except Exception as error:  # noqa: BLE001 - whatever error ends a job, its list goes on
            job.error = make_body(explain_error(error), self._clean(job))["error"]
            self._end(job, "failed")

    async def _work(self, job: Job) -> Any:
        """Work until it is done; while another program writes the tome, wait and try again."""
        loop = asyncio.get_running_loop()

        def note_progress(progress: Progress) -> None:
            job.note = self._clean(job)(progress.note) if progress.note else None
            if not progress.note:
                job.progress.pop(progress.label, None)  # the latest comes last
                job.progress[progress.label] = (progress.done, progress.total)
            loop.call_soon_threadsafe(self._announce, job)

        while True:
            self._set_state(job, "running")
            try:
                with self._library.hold(job.tome):
                    tome = await self._library.open(job.tome)
                    if job.kind == "add":
                        return await _add(tome, job.task, job.folder, note_progress)
                    return await _build(self._library, tome, job.task, note_progress)
            except Locked:
                self._set_state(job, "waiting")
                await asyncio.sleep(_RETRY_SECONDS)

    def _set_state(self, job: Job, state: State) -> None:
        if job.state != state:
            job.state = state
            self._save(job)
            self._announce(job)

    def _end(self, job: Job, state: State) -> None:
        job.state, job.ended, job.note = state, _now(), None
        if state != "interrupted":  # what was uploaded is needed to do it again
            with suppress(OSError):
                find_job(job.folder).delete_folder(UPLOADS)
        self._save(job)
        self._announce(job)

    def _announce(self, job: Job) -> None:
        if event := self._changes.pop(job.id, None):
            event.set()

    def _save(self, job: Job) -> None:
        text = json.dumps(job.to_dict(), ensure_ascii=False)
        # A full disk must not end the job itself.
        with suppress(OSError), find_job(job.folder).write(_FILE) as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())

    def _clean(self, job: Job) -> Callable[[str], str]:
        """Takes the paths of tomes and of uploads out of a message: an upload goes by the name that it came with."""
        names = {str((job.folder / UPLOADS / file).resolve()): name for file, name in job.task.get("files", ())}

        def clean(text: str) -> str:
            for path, name in names.items():
                text = text.replace(path, name)
            return self._library.clean(text)

        return clean


def _read_job(folder: Path, tome: str) -> Job | None:
    """The job in a folder, None if no job can be read there."""
    try:
        with find_job(folder).open(_FILE) as file:
            job = read_plain(Job, from_json(file.read()))
        read_plain(list[tuple[str, str]], job.task.get("files", []))
        read_plain(int, job.task.get("texts", 0))
        job.tome, job.id, job.folder = tome, read_id(folder), folder  # the file may have another name by now
        job.describe()  # it may be one that another version wrote
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return job


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


async def _add(tome: Tome, task: dict[str, Any], folder: Path, on_progress: Report) -> Any:
    """What the command prints as JSON. Raises Locked while another program writes, and the errors of `Tome.add`."""
    sources: list[NamedFile | Document] = [NamedFile(find_upload(folder, file), name) for file, name in task["files"]]
    if task.get("texts"):
        texts = await asyncio.to_thread(_read_texts, find_upload(folder, TEXTS))
        sources += [Document(**fields) for fields in texts]
    report = await tome.aadd(*sources, keep_going=len(sources) > 1, on_progress=on_progress)
    if len(report.skipped) == len(sources):
        raise ReadingError(next(iter(report.skipped.values())))
    return tome.documents.names.hide(report)


async def _build(library: Library, tome: Tome, task: dict[str, Any], on_progress: Report) -> Any:
    """What the command prints as JSON. Raises Locked while another program writes, and the errors of `Tome.build`."""
    model = task.get("model")
    await library.import_client(model)
    variant = choose_bounded(task["system"], {}, tome.default_system)
    with library.use_model(model, tome), library.budget(model, task["budget"]):
        built = await tome.abuild(variant, on_progress=on_progress)
    return await asyncio.to_thread(tome.documents.names.hide, built)


def _read_texts(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the texts of this job are gone ({type(error).__name__}): send them again") from error
