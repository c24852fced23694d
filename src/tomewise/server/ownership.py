"""Which of several servers at one tome a job belongs to.

The folder of a job begins with the id of its server, and a server holds a lock of that name beside its jobs while it
lives. So a server that starts takes over what a killed one left, and lets be what another one works on.
"""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

from filelock import FileLock, Timeout

_SUFFIX = ".lock"


class Ownership:
    """The id of this server, and its locks."""

    def __init__(self) -> None:
        self._id = token_hex(4)
        self._locks: dict[Path, FileLock] = {}

    def make_folder(self, jobs: Path) -> Path:
        """A new folder for one job of this server in the folder for jobs of a tome. Raises OSError."""
        if jobs not in self._locks:
            jobs.mkdir(exist_ok=True)
            lock = FileLock(str(jobs / f"{self._id}{_SUFFIX}"), timeout=0, thread_local=False)
            lock.acquire()
            self._locks[jobs] = lock
        folder = jobs / f"{self._id}-{token_hex(8)}"
        folder.mkdir()
        return folder

    def list_ownerless(self, jobs: Path) -> list[Path]:
        """The folders of jobs whose server lives no more, sorted. The locks of such servers are deleted."""
        living = {lock.stem for lock in jobs.glob(f"*{_SUFFIX}") if not _delete_if_free(lock)}
        return sorted(folder for folder in jobs.glob("*/") if folder.name.partition("-")[0] not in living)

    def release(self) -> None:
        """Give all locks back: this server ends."""
        for jobs, lock in self._locks.items():
            lock.release()
            (jobs / f"{self._id}{_SUFFIX}").unlink(missing_ok=True)
        self._locks.clear()


def _delete_if_free(path: Path) -> bool:
    try:
        with FileLock(str(path), timeout=0):
            path.unlink(missing_ok=True)
    except Timeout:
        return False
    return True
