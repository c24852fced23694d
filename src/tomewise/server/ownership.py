"""Which of several servers at one tome a job belongs to.

The name of a job's folder is the id of its server, then the id of the job. A server holds a lock named by its own id
beside its jobs while it lives. A server that starts takes over what a dead one left: it renames each folder, which can
succeed for one server alone. What another server works on stays as it is.
"""

from __future__ import annotations

import re
from contextlib import suppress
from errno import ENOENT
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from filelock import FileLock

from tomewise.errors import UsageError
from tomewise.settings import find_cache_folder
from tomewise.store.address import DatabaseAddress, TomeAddress
from tomewise.store.beside import FolderBeside

_SUFFIX = ".lock"
_FOLDER = "-jobs"  # of the folder beside a tome
UPLOADS = "files"  # the folder for uploads in the folder of a job
TEXTS = "texts.json"  # the file of a job for the documents that were sent as JSON
_UPLOADS = r"[0-9]{4,}\.[\w+-]+|texts\.json"
_NAMES = r"[0-9a-f]{8}-[0-9a-f]{16}|[0-9a-f]{8}\.lock"  # of the folders of jobs, and of the locks of servers
_LOCK_SECONDS = 5  # another server that starts may hold our new lock for a moment, to see whether we live


class Ownership:
    """The id of this server, and its locks."""

    def __init__(self) -> None:
        self._id = token_hex(4)
        self._locks: dict[TomeAddress, FileLock] = {}

    def make_folder(self, tome: TomeAddress) -> Path:
        """A new folder for one job of this server beside a tome. Raises OSError."""
        jobs = self._hold(tome)
        folder = jobs.path / f"{self._id}-{token_hex(8)}"
        find_job(folder).make()
        return folder

    def take_over(self, tome: TomeAddress) -> list[Path]:
        """Make the jobs of dead servers our own. Returns their folders by their new names, sorted.

        The locks of dead servers are deleted. What we may not change stays as it is, and so does what has no name of
        ours. Raises UnsafeFile for a folder of jobs that is a link or belongs to somebody else.
        """
        jobs = find_jobs(tome)
        # The folders are listed before the locks, since a server takes its lock before it makes a folder.
        folders = [jobs.path / name for name in jobs.list_names(folders=True) if not name.endswith(_SUFFIX)]
        locks = [name for name in jobs.list_names() if name.endswith(_SUFFIX)]
        living = {name.removesuffix(_SUFFIX) for name in locks if not _delete_if_free(name, jobs)}
        ownerless = [folder for folder in folders if folder.name.partition("-")[0] not in living]
        if not ownerless:
            return []
        try:
            self._hold(tome)
        except OSError:
            return []
        return sorted(own for folder in ownerless if (own := self._rename(folder)))

    def leave(self, tome: TomeAddress) -> None:
        """Give the lock beside a tome back, and delete the folder for jobs if it is empty: the tome is deleted."""
        if tome in self._locks:
            self._give_back(tome)
        with suppress(OSError):
            find_jobs(tome).path.rmdir()

    def move(self, tome: TomeAddress, new: TomeAddress) -> None:
        """Take the folder for jobs to the new path of a tome. Raises OSError where that fails: the jobs stay there."""
        self.leave(tome)
        with suppress(FileNotFoundError):  # it has no jobs
            find_jobs(tome).path.rename(find_jobs(new).path)
            self._hold(new)

    def release(self) -> None:
        """Give all locks back: this server ends."""
        for tome in list(self._locks):
            self._give_back(tome)

    def _give_back(self, tome: TomeAddress) -> None:
        self._locks.pop(tome).release()
        with suppress(OSError):
            find_jobs(tome).delete(f"{self._id}{_SUFFIX}")

    def _hold(self, tome: TomeAddress) -> FolderBeside:
        """Hold the lock of this server in the folder for jobs of a tome."""
        jobs = find_jobs(tome)
        if tome not in self._locks:
            place = jobs.prepare_lock(f"{self._id}{_SUFFIX}")
            lock = FileLock(str(place), timeout=_LOCK_SECONDS, thread_local=False)
            lock.acquire()
            self._locks[tome] = lock
        return jobs

    def _rename(self, folder: Path) -> Path | None:
        own = folder.with_name(f"{self._id}-{read_id(folder)}")
        try:
            return folder.rename(own)
        except OSError:  # another server was faster, or we may not
            return None


def find_jobs(tome: TomeAddress) -> FolderBeside:
    """The folder for jobs beside a tome; of one in a database, in the user's cache folder of this machine."""
    if isinstance(tome, DatabaseAddress):
        tome = find_cache_folder() / "served" / sha256(str(tome).encode()).hexdigest()[:32]
        tome.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return FolderBeside(tome, _FOLDER, _NAMES)


def find_job(folder: Path) -> FolderBeside:
    """The folder of one job, to read and write what is in it."""
    return _find_jobs_of(folder).find_folder(folder.name, rf"job\.json|{UPLOADS}")


def delete_job(folder: Path) -> None:
    """Delete the folder of one job, as far as we may."""
    with suppress(OSError):
        _find_jobs_of(folder).delete_folder(folder.name)


def find_uploads(folder: Path) -> FolderBeside:
    """The folder in the folder of a job for what was uploaded."""
    return find_job(folder).find_folder(UPLOADS, _UPLOADS)


def find_upload(folder: Path, name: str) -> Path:
    """A file that was uploaded for a job. Raises UsageError for any other file, and for a link."""
    files = find_uploads(folder)
    try:
        if re.fullmatch(_UPLOADS, name) is None:
            raise FileNotFoundError(ENOENT, "is gone")
        files.open(name).close()
    except OSError as error:
        raise UsageError(f"a file of this job cannot be used ({error.strerror}): send it again") from None
    return files.path / name


def _find_jobs_of(folder: Path) -> FolderBeside:
    jobs = folder.parent
    return find_jobs(jobs.with_name(jobs.name.removesuffix(_FOLDER)))


def read_id(folder: Path) -> str:
    """The id of the job in a folder. It stays the same when another server takes the job over."""
    return folder.name.partition("-")[2] or folder.name


def _delete_if_free(name: str, jobs: FolderBeside) -> bool:
    """Whether no server holds a lock any more; then it is deleted. A lock that we may not try counts as held."""
    try:
        with FileLock(str(jobs.prepare_lock(name)), timeout=0):
            jobs.delete(name)
    except OSError:  # a timeout is one too
        return False
    return True
