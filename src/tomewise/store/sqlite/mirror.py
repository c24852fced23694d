"""Arrays cached beside a tome, so that a cold start maps them instead of rebuilding them.

A mirror is three files that are only ever appended to (keys, rows, places of dead rows) and a header that says how much
of each counts and which version of the space it holds. Versions are drawn at random, so a mirror that carries the one
the database names holds just that; any other is not believed and is read again from the database, which alone holds
the truth. The header carries a checksum, so that readers see the mirror before a change or after it, or none.
"""

from __future__ import annotations

import json
import mmap
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
Rows = NDArray[Any]  # (n, width), one dtype a space
_DEAD_SHARE = 0.25  # past this share of dead rows the files are written anew
_DEAD_LEAST = 1000
_HEADER = 1024  # bytes
_BLOCK = 1 << 24  # bytes read at a time
_UNFLUSHED = 1 << 20  # so many bytes may be appended before they are flushed; until then a checksum vouches for them


@dataclass(frozen=True, slots=True)
class Columns:
    """The live rows of one space at one version: `keys` ascending, `rows[i]` belongs to `keys[i]`.

    `stored_keys` and `stored_rows` are what the files hold, in the order of writing, with rows that are dead where
    `live` says so. Reading them copies nothing; `keys` and `rows` copy once where rows are dead or out of order.
    """

    version: int
    stored_keys: Keys
    stored_rows: Rows
    live: NDArray[np.bool_] | None = None  # None: all of them
    _cut: list[tuple[Keys, Rows]] = field(default_factory=list, repr=False)

    @property
    def keys(self) -> Keys:
        return self._compact()[0]

    @property
    def rows(self) -> Rows:
        return self._compact()[1]

    @property
    def is_whole(self) -> bool:
        """Whether the file of mapped rows is still as long as they are: to read past its end would kill the process."""
        file = self._file
        try:
            return file is None or file.size() >= len(file)
        except OSError:  # Windows does not cut what is mapped
            return True

    def release_memory(self) -> None:
        """Take mapped rows out of this process's memory until they are read again; they stay in their file."""
        file = self._file
        if file is not None and hasattr(file, "madvise"):
            file.madvise(mmap.MADV_DONTNEED)

    @property
    def _file(self) -> mmap.mmap | None:
        file = getattr(self.stored_rows.base, "base", None)  # of a plain view of a memmap
        return file if isinstance(file, mmap.mmap) else None

    def _compact(self) -> tuple[Keys, Rows]:
        if not self._cut:
            places = np.arange(len(self.stored_keys)) if self.live is None else np.flatnonzero(self.live)
            keys = self.stored_keys[places]
            if not (keys[1:] > keys[:-1]).all():
                places = places[np.argsort(keys)]
            elif self.live is None:
                self._cut.append((self.stored_keys, self.stored_rows))
                return self._cut[0]
            self._cut.append((self.stored_keys[places], self.stored_rows[places]))
        return self._cut[0]


@dataclass(frozen=True, slots=True)
class Delta:
    """What one transaction did to a space: rows with the keys in `removed` went, then the others came."""

    added_keys: Keys
    added_rows: Rows
    removed: Keys


class Changes:
    """What a transaction has done to a space so far, in any order of coming and going."""

    def __init__(self) -> None:
        self._added: list[tuple[Keys, Rows]] = []
        self._removed: list[Keys] = []

    def __bool__(self) -> bool:
        return bool(self._removed or any(len(keys) for keys, _ in self._added))

    def add(self, keys: Keys, rows: Rows) -> None:
        if len(keys):
            self._added.append((keys, rows))

    def remove(self, keys: Sequence[int]) -> None:
        going = np.unique(np.asarray(keys, np.int64))
        for place, (held, rows) in enumerate(self._added):
            leaves = np.isin(held, going)
            if leaves.any():  # what came and went within one transaction never was
                self._added[place] = (held[~leaves], rows[~leaves])
                going = np.setdiff1d(going, held[leaves])
        if len(going):
            self._removed.append(going)

    def delta(self) -> Delta:
        """All of it as one change."""
        removed = np.unique(np.concatenate(self._removed)) if self._removed else np.empty(0, np.int64)
        if not self._added:
            return Delta(np.empty(0, np.int64), np.empty((0, 0)), removed)
        keys = np.concatenate([keys for keys, _ in self._added])
        return Delta(keys, np.concatenate([rows for _, rows in self._added]), removed)


@dataclass(frozen=True, slots=True)
class _Part:
    """One file: so many bytes count, the first `flushed` are safely on disk, the checksum covers the others.

    `whole` is the checksum of all of them. To reckon it takes as long as to read a large file, so it is only compared
    when the file was touched (its time of change is not `stamp`, in nanoseconds).
    """

    size: int
    flushed: int
    checksum: int
    whole: int
    stamp: int


class Mirror:
    """The cached arrays of one space. Only one writer may call `follow` and `write` at a time, in any process."""

    def __init__(self, folder: Path, space: str, tome: str, dtype: np.dtype[Any]) -> None:
        self._folder = folder
        self._stem = quote(space, safe="").replace(".", "%2E")
        self._tome = tome
        self._dtype = dtype

    def read(self, version: int) -> Columns | None:
        """The arrays at that version, mapped from the files, or None where they do not hold it."""
        header = self._header(version)
        return None if header is None else self._columns(header)

    def follow(self, delta: Delta, before: int, after: int) -> bool:
        """Take the files from one version to the next; False where they do not hold the first."""
        header = self._header(before)
        held = None if header is None else self._columns(header)
        if header is None or held is None or (len(delta.added_keys) and delta.added_rows.shape[1] != header["width"]):
            return False
        fresh = delta.added_rows.astype(self._dtype, copy=False)
        leaving = np.isin(held.stored_keys, delta.removed)
        if held.live is not None:
            leaving &= held.live
        gone = (0 if held.live is None else int((~held.live).sum())) + int(leaving.sum())
        if gone > max(_DEAD_LEAST, _DEAD_SHARE * len(held.stored_keys)):
            stays = ~leaving if held.live is None else held.live & ~leaving
            rows = np.concatenate([held.stored_rows[stays], fresh.reshape(-1, header["width"])])
            self.write(after, np.concatenate([held.stored_keys[stays], delta.added_keys]), rows)
            return True
        added = {"keys": delta.added_keys, "rows": fresh, "dead": np.flatnonzero(leaving).astype(np.int64)}
        parts = {
            name: self._append(self._file(header, name), _Part(**header["parts"][name]), array)
            for name, array in added.items()
        }
        self._mark(after, header["generation"], header["width"], parts)
        return True

    def write(self, version: int, keys: Keys, rows: Rows) -> None:
        """Write the files anew, under new names: whoever has mapped the old ones keeps them."""
        self._folder.mkdir(exist_ok=True)
        generation = secrets.token_hex(4)
        parts: dict[str, _Part] = {}
        arrays = {"keys": keys, "rows": rows.astype(self._dtype, copy=False), "dead": np.empty(0, np.int64)}
        for name, array in arrays.items():
            path = self._file({"generation": generation}, name)
            path.touch()
            parts[name] = self._append(path, _Part(0, 0, 0, 0, 0), array)
        self._mark(version, generation, rows.shape[1], parts)
        for old in self._folder.glob(f"{self._stem}.????????.*"):
            if f".{generation}." not in old.name:
                with suppress(OSError):  # Windows keeps what is mapped
                    old.unlink()

    def _columns(self, header: Mapping[str, Any]) -> Columns | None:
        try:
            keys = self._array(header, "keys", np.dtype(np.int64))
            dead = self._array(header, "dead", np.dtype(np.int64))
            rows = self._mapped(header, len(keys))
        except (OSError, ValueError):  # cut short, or being replaced by a writer
            return None
        live = None
        if len(dead):
            live = np.ones(len(keys), bool)
            live[dead] = False
        return Columns(header["version"], keys, rows, live)

    def _append(self, path: Path, part: _Part, array: NDArray[Any]) -> _Part:
        if not len(array):
            return part
        data = np.ascontiguousarray(array).data.cast("B")
        size = part.size + len(data)
        with path.open("r+b") as file:
            file.truncate(part.size)  # a writer that was killed may have left more
            file.seek(part.size)
            file.write(data)
            file.flush()
            whole, stamp = crc32(data, part.whole), os.fstat(file.fileno()).st_mtime_ns
            if size - part.flushed > _UNFLUSHED:
                os.fsync(file.fileno())
                return _Part(size, size, 0, whole, stamp)
        return _Part(size, part.flushed, crc32(data, part.checksum), whole, stamp)

    def _header(self, version: int) -> dict[str, Any] | None:
        try:
            body, seal = self._folder.joinpath(f"{self._stem}.json").read_bytes().split(b"\n")[:2]
            if crc32(body) != int(seal):  # read while it was being written
                return None
            header = json.loads(body)
            if (header["tome"], header["version"]) != (self._tome, version):
                return None
            sound = all(_is_sound(self._file(header, name), _Part(**part)) for name, part in header["parts"].items())
        except (OSError, ValueError, KeyError, TypeError):  # missing, half-written, or not ours
            return None
        return header if sound else None

    def _array(self, header: Mapping[str, Any], name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        count = header["parts"][name]["size"] // dtype.itemsize
        return np.fromfile(self._file(header, name), dtype=dtype, count=count)

    def _mapped(self, header: Mapping[str, Any], count: int) -> Rows:
        shape = (count, header["width"])
        if not count * header["width"]:
            return np.empty(shape, self._dtype)
        return np.asarray(np.memmap(self._file(header, "rows"), dtype=self._dtype, mode="r", shape=shape))

    def _mark(self, version: int, generation: str, width: int, parts: Mapping[str, _Part]) -> None:
        header = {
            "tome": self._tome,
            "version": version,
            "generation": generation,
            "width": width,
            "parts": {name: asdict(part) for name, part in parts.items()},
        }
        # In place: a file that is renamed over another is flushed by some systems there and then.
        file = os.open(self._folder / f"{self._stem}.json", os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.write(file, sealed(header))
        finally:
            os.close(file)

    def _file(self, header: Mapping[str, Any], name: str) -> Path:
        return self._folder / f"{self._stem}.{header['generation']}.{name}"


def sealed(header: Mapping[str, Any]) -> bytes:
    """A header as it is written: JSON and its checksum, always of one length."""
    body = json.dumps(header).encode()
    return (b"%b\n%d\n" % (body, crc32(body))).ljust(_HEADER)


def _is_sound(path: Path, part: _Part) -> bool:
    """Whether the file is as long as it should be, and what was not flushed, or was touched, is what was written."""
    with path.open("rb") as file:
        held = os.fstat(file.fileno())
        if held.st_size < part.size:
            return False
        if held.st_mtime_ns != part.stamp and _checksum(file, part.size) != part.whole:
            return False
        file.seek(part.flushed)
        return crc32(file.read(part.size - part.flushed)) == part.checksum


def _checksum(file: IO[bytes], size: int) -> int:
    """Of the first bytes of a file, read a little at a time."""
    found = 0
    file.seek(0)
    for start in range(0, size, _BLOCK):
        found = crc32(file.read(min(_BLOCK, size - start)), found)
    return found
