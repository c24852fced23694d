"""Which of several servers at one tome a job belongs to.

The name of a job's folder is the id of its server, then the id of the job. A server holds a lock named by its own id
beside its jobs while it lives. A server that starts takes over what a dead one left: it renames each folder, which can
succeed for one server alone. What another server works on stays as it is.
"""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

from filelock import FileLock

_SUFFIX = ".lock"
_LOCK_SECONDS = 5  # another server that starts may hold our new lock for a moment, to see whether we live


class Ownership:
    """The id of this server, and its locks."""

    def __init__(self) -> None:
        self._id = token_hex(4)
        self._locks: dict[Path, FileLock] = {}

    def make_folder(self, jobs: Path) -> Path:
        """A new folder for one job of this server in the folder for jobs of a tome. Raises OSError."""
        self._hold(jobs)
        folder = jobs / f"{self._id}-{token_hex(8)}"
        folder.mkdir()
        return folder

    def take_over(self, jobs: Path) -> list[Path]:
        """Make the jobs of dead servers our own. Returns their folders by their new names, sorted.

        The locks of dead servers are deleted. Folders that we may not change stay as they are.
        """
        # The folders are listed before the locks, since a server takes its lock before it makes a folder.
        folders = list(jobs.glob("*/"))
        living = {lock.stem for lock in jobs.glob(f"*{_SUFFIX}") if not _delete_if_free(lock)}
        ownerless = [folder for folder in folders if folder.name.partition("-")[0] not in living]
        if not ownerless:
            return []
        try:
            self._hold(jobs)
        except OSError:
            return []
        return sorted(own for folder in ownerless if (own := self._rename(folder)))

    def release(self) -> None:
        """Give all locks back: this server ends."""
        for jobs, lock in self._locks.items():
            lock.release()
            (jobs / f"{self._id}{_SUFFIX}").unlink(missing_ok=True)
        self._locks.clear()

    def _hold(self, jobs: Path) -> None:
        """Hold the lock of this server in a folder for jobs."""
        if jobs not in self._locks:
            jobs.mkdir(exist_ok=True)
            lock = FileLock(str(jobs / f"{self._id}{_SUFFIX}"), timeout=_LOCK_SECONDS, thread_local=False)
            lock.acquire()
            self._locks[jobs] = lock

    def _rename(self, folder: Path) -> Path | None:
        own = folder.with_name(f"{self._id}-{read_id(folder)}")
        try:
            return folder.rename(own)
        except OSError:  # another server was faster, or we may not
            return None


def read_id(folder: Path) -> str:
    """The id of the job in a folder. It stays the same when another server takes the job over."""
    return folder.name.partition("-")[2] or folder.name


def _delete_if_free(path: Path) -> bool:
    """Whether no server holds a lock any more; then it is deleted. A lock that we may not try counts as held."""
    try:
        with FileLock(str(path), timeout=0):
            path.unlink(missing_ok=True)
    except OSError:  # a timeout is one too
        return False
    return True
