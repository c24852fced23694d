"""Folders beside a tome, and the files in them: all that Tomewise writes there, it opens and deletes here.

A tome may come from anyone, and with it folders that have our names. So nothing is opened, written or deleted through a
link: files are opened relative to their folder, without following links, and what is open is checked. A folder or file
that does not belong to the user or to the owner of the tome is refused, and so is a file with a second name, since a
change would show there too. New files are written under a temporary name and renamed. Whoever owns a folder gives the
names that it knows; no other file is listed or deleted.

Windows opens no file relative to a folder, and has no owners in numbers: there a name is looked at before it is opened.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

_TEMPORARY = r"\.[0-9a-f]{8}\.new"
# A pipe must not make us wait for its other end. Flags that a system lacks are left out.
_BESIDE = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY"))
_NEW = sum(getattr(os, flag, 0) for flag in ("O_CLOEXEC", "O_BINARY"))
_OPENS_INSIDE = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")


class UnsafeFile(OSError):
    """A file or folder beside a tome that is not used: `strerror` says why, `filename` which."""

    def __str__(self) -> str:
        return f"{self.filename} {self.strerror}"


class FolderBeside:
    """The folder `NAME` + `suffix` beside the tome `NAME`. `names` matches the names of its files and folders.

    `opens_inside` says whether this system opens files relative to a folder. All methods but `find_fault` raise
    UnsafeFile for what is refused, and OSError.
    """

    def __init__(self, tome: Path, suffix: str, names: str, *, opens_inside: bool = _OPENS_INSIDE) -> None:
        self.path = tome.with_name(tome.name + suffix)
        self._tome = tome
        self._opens_inside = opens_inside
        self._names = re.compile(f"(?:{names})(?:{_TEMPORARY})?", re.ASCII)
        self._above: FolderBeside | None = None

    def find_folder(self, name: str, names: str) -> FolderBeside:
        """A folder in this one; `names` as above."""
        inner = FolderBeside(self._tome, "", names, opens_inside=self._opens_inside)
        inner.path, inner._above = self.path / name, self
        return inner

    def find_fault(self) -> str:
        """Why the folder is refused; empty if it is not, or does not exist."""
        try:
            with self._enter():
                return ""
        except UnsafeFile as error:
            return str(error.strerror)
        except OSError:
            return ""

    def make(self) -> None:
        """Make the folder if it does not exist. Those who may read the tome may read it."""
        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            with self._enter():
                return
        with self._enter() as folder:
            mode = self._find_mode()
            # Who may read a folder may also look into it.
            os.chmod(self.path if folder is None else folder, mode | mode >> 2 & 0o111)

    def open(self, name: str, *, to_change: bool = False) -> BinaryIO:
        """Open a file to read it, or `to_change` it in place."""
        with self._enter() as folder:
            flags = os.O_RDWR if to_change else os.O_RDONLY
            try:
                path = self._locate(name, folder)
                if folder is None and os.path.islink(path):
                    raise OSError(errno.ELOOP, "is a link", str(path))
                file = os.open(path, flags | _BESIDE, dir_fd=folder)
            except OSError as error:
                raise self._explain(error, name) from None
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise self._refuse(name, "is not a plain file")
            if status.st_nlink != 1:
                raise self._refuse(name, "is a file with a second name elsewhere")
            self._check_owner(status, name)
        except BaseException:
            os.close(file)
            raise
        return os.fdopen(file, "r+b" if to_change else "rb")

    def create(self, name: str) -> BinaryIO:
        """Open a new file to write it. Those who may read the tome may read it. Raises FileExistsError."""
        with self._enter() as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NEW
            created = os.fdopen(os.open(self._locate(name, folder), flags, 0o600, dir_fd=folder), "wb")
        if hasattr(os, "fchmod"):
            os.fchmod(created.fileno(), self._find_mode())
        return created

    @contextmanager
    def write(self, name: str) -> Iterator[BinaryIO]:
        """Write a file, which replaces what has this name when it is whole. Those who may read the tome may read it."""
        temporary = f"{name}.{token_hex(4)}.new"
        with self._enter() as folder:
            created = self.create(temporary)
            try:
                with created as opened:
                    yield opened
                places = self._locate(temporary, folder), self._locate(name, folder)
                os.replace(*places, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(self._locate(temporary, folder), dir_fd=folder)
                raise

    def prepare_lock(self, name: str) -> Path:
        """The path of a lock file in the folder; both are made if they do not exist."""
        self.make()
        try:
            self.open(name).close()
        except FileNotFoundError:
            with suppress(FileExistsError):  # somebody else made it
                self.create(name).close()
        return self.path / name

    def list_names(self, *, folders: bool = False) -> list[str]:
        """The names of our files in the folder, sorted, or of our `folders`; a name that is a link is left out."""
        try:
            with self._enter() as folder, os.scandir(self.path if folder is None else folder) as entries:
                return sorted(
                    entry.name
                    for entry in entries
                    if self._names.fullmatch(entry.name)
                    and not entry.is_symlink()
                    and entry.is_dir(follow_symlinks=False) == folders
                )
        except FileNotFoundError:
            return []

    def read_size(self, name: str) -> int:
        """The bytes that a file has; 0 if it is gone."""
        with self._enter() as folder, suppress(FileNotFoundError):
            return os.stat(self._locate(name, folder), dir_fd=folder, follow_symlinks=False).st_size
        return 0

    def delete(self, name: str) -> None:
        """Delete a file of ours. What a link points to stays."""
        self._check_name(name)
        with self._enter() as folder, suppress(FileNotFoundError):
            os.unlink(self._locate(name, folder), dir_fd=folder)

    def delete_folder(self, name: str) -> None:
        """Delete a folder of ours with all that is in it, as far as we may. What a link points to stays."""
        self._check_name(name)
        with self._enter() as folder, suppress(RecursionError):  # a stranger's folders may be very deep
            shutil.rmtree(self._locate(name, folder), ignore_errors=True, dir_fd=folder)

    def delete_all(self) -> None:
        """Delete all files of ours, and the folder if nothing else is in it."""
        for name in self.list_names():
            self.delete(name)
        with suppress(OSError):
            self.path.rmdir()

    def _locate(self, name: str, folder: int | None) -> str | Path:
        """The name of a file in the open folder; its path where none is open."""
        return self.path / name if folder is None else name

    @contextmanager
    def _enter(self) -> Iterator[int | None]:
        """Open the folder; None where nothing is opened relative to one."""
        if not self._opens_inside:
            with self._above._enter() if self._above else nullcontext():
                self._look_at_folder()
            yield None
            return
        with self._above._enter() if self._above else nullcontext() as above:
            try:
                place = self.path.name if self._above else self.path
                folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | _BESIDE, dir_fd=above)
            except OSError as error:
                raise self._explain(error) from None
        try:
            self._check_owner(os.fstat(folder), "")
            yield folder
        finally:
            os.close(folder)

    def _look_at_folder(self) -> None:
        status = os.lstat(self.path)
        if not stat.S_ISDIR(status.st_mode):
            raise self._explain(OSError(errno.ENOTDIR, "is not a folder", str(self.path)))
        self._check_owner(status, "")

    def _check_name(self, name: str) -> None:
        if not self._names.fullmatch(name):
            raise self._refuse(name, "is not a name of ours")

    def _check_owner(self, status: os.stat_result, name: str) -> None:
        if not hasattr(os, "geteuid"):
            return
        if status.st_uid != os.geteuid() and status.st_uid != self._tome.stat().st_uid:
            raise self._refuse(name, "belongs neither to you nor to the owner of the tome")

    def _explain(self, error: OSError, name: str = "") -> OSError:
        """The error; an UnsafeFile if it was raised because of a link or of another kind of file."""
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
            is_link = (self.path / name).is_symlink()
            return self._refuse(name, "is a link" if is_link else f"is not a {'plain file' if name else 'folder'}")
        return error

    def _refuse(self, name: str, reason: str) -> UnsafeFile:
        return UnsafeFile(errno.EPERM, reason, str(self.path / name))

    def _find_mode(self) -> int:
        """The permissions of the tome, which SQLite too gives to its files beside it."""
        try:
            return self._tome.stat().st_mode & 0o666
        except FileNotFoundError:
            return 0o600
