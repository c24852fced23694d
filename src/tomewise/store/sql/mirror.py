"""Arrays cached in files beside a tome: a cold start maps the files instead of reading the database.

A mirror is three files that only grow (keys, rows, indices of dead rows) and a header. The header gives the valid
length of each file and the version of the space. Versions are random numbers: a mirror is valid only if its version is
the one in the database. Any other mirror is ignored, and the arrays are read from the database again. The header has a
checksum, so readers see the mirror before a change, after it, or not at all.

A folder of caches may come from a stranger, with checksums that are right. So whatever a header says is checked before
it is used: `read` returns arrays that fit together, or None.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, replace
from functools import cached_property
from typing import Any, BinaryIO, TypeAlias
from urllib.parse import quote
from zlib import crc32

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tomewise.store.beside import FolderBeside

Keys = NDArray[np.int64]
Rows = NDArray[Any]  # (n, width), one dtype a space
Block: TypeAlias = tuple[Keys, Rows]  # keys (n,) and their rows (n, width)
EDGE = 3  # numbers of the row of an edge: a, b, weight
_DEAD_SHARE = 0.25  # with a larger share of dead rows, the files are written again
DEAD_LEAST = 1000
_HEADER = 1024  # bytes
_BLOCK = 1 << 24  # bytes read at a time
_GENERATION = re.compile("[0-9a-f]{8}")
_PARTS = ("keys", "rows", "dead")
# Of all files of mirrors.
FILE_NAMES = r"(?:vectors|packed|kept|edges)%2F[\w~%-]+\.(?:json|[0-9a-f]{8}\.(?:keys|rows|dead))"
_UNFLUSHED = 1 << 20  # bytes that may be appended before a flush; until then a checksum protects them


@dataclass(frozen=True)
class Columns:
    """The live rows of one space at one version: `keys` ascending, `rows[i]` belongs to `keys[i]`.

    `stored_keys` and `stored_rows` are the content of the files, in the order of writing; a row is dead if `live` is
    false for it. They are not copied. `rows` is a copy if rows are dead or out of order; `keys` never reads the rows.
    """

    version: int
    stored_keys: Keys
    stored_rows: Rows
    live: NDArray[np.bool_] | None = None  # None: all rows are live
    file: mmap.mmap | None = None  # of the stored rows, where they are mapped

    @cached_property
    def indices(self) -> Keys | None:
        """The index of each key in the stored arrays; None if `keys` are the stored keys as they are."""
        indices = None if self.live is None else np.flatnonzero(self.live)
        keys = self.stored_keys if indices is None else self.stored_keys[indices]
        if (keys[1:] > keys[:-1]).all():
            return indices
        order = np.argsort(keys, kind="stable")  # takes sorted runs as they are: keys are appended in a few
        return order if indices is None else indices[order]

    @cached_property
    def keys(self) -> Keys:
        return self.stored_keys if self.indices is None else self.stored_keys[self.indices]

    @property
    def rows(self) -> Rows:
        return self.stored_rows if self.indices is None else self.stored_rows[self.indices]

    @property
    def is_whole(self) -> bool:
        """Whether the mapped file is still as long as the rows; reading past its end would kill the process."""
        try:
            return self.file is None or self.file.size() >= len(self.file)
        except OSError:  # Windows does not truncate a mapped file
            return True

    def change(self, version: int, delta: Delta) -> Columns:
        """The arrays after a change, in memory."""
        stays = ~np.isin(self.keys, delta.removed)
        keys = np.concatenate([self.keys[stays], delta.added_keys])
        return Columns(version, keys, np.concatenate([self.rows[stays], delta.added_rows]))

    def release_memory(self) -> None:
        """Release the memory of mapped rows; the next access reads them from the file again."""
        if self.file is not None and hasattr(self.file, "madvise"):
            self.file.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True, slots=True)
class Delta:
    """The change that one transaction makes to a space: first the keys in `removed` go, then the new rows are added."""

    added_keys: Keys
    added_rows: Rows
    removed: Keys


Deltas = Mapping[str, tuple[int, int, Delta]]  # by space: the version before, the one after, the change


class Changes:
    """The changes that a transaction has made to a space so far; additions and removals in any order."""

    def __init__(self) -> None:
        self._added: list[tuple[Keys, Rows]] = []
        self._removed: list[Keys] = []
        self.is_renewed = False  # the space gets another version, though its rows stay

    def __bool__(self) -> bool:
        return bool(self.is_renewed or self._added or any(map(len, self._removed)))

    def add(self, keys: Keys, rows: Rows) -> None:
        if len(keys):
            self._added.append((keys, rows))

    def remove(self, keys: Sequence[int]) -> None:
        removed = np.asarray(keys, np.int64)
        added = [(known, rows, ~np.isin(known, removed)) for known, rows in self._added]
        self._added = [(known[stays], rows[stays]) for known, rows, stays in added if stays.any()]
        # Rows that this transaction added need no removal.
        self._removed.append(np.setdiff1d(removed, _join([known for known, _, _ in added])))

    def make_delta(self) -> Delta:
        """All changes as one."""
        rows = np.concatenate([rows for _, rows in self._added]) if self._added else np.empty((0, 0))
        return Delta(_join([keys for keys, _ in self._added]), rows, np.unique(_join(self._removed)))


def _join(keys: Sequence[Keys]) -> Keys:
    return np.concatenate([np.empty(0, np.int64), *keys])


@dataclass(frozen=True, slots=True)
class _Part:
    """One file: the first `size` bytes are valid, the first `flushed` of them are on disk, `checksum` covers the rest.

    `whole` is the checksum of all valid bytes. Computing it means reading the whole file, so it is compared only if the
    file's modification time is not `stamp` (nanoseconds).
    """

    size: int
    flushed: int
    checksum: int
    whole: int
    stamp: int


@dataclass(frozen=True, slots=True)
class _Header:
    """What the header of a mirror says, checked in itself."""

    tome: str
    version: int
    generation: str
    width: int
    parts: Mapping[str, _Part]


class Mirror:
    """The cached arrays of one space. Only one writer may call `apply` and `write` at a time, in any process."""

    def __init__(self, folder: FolderBeside, space: str, tome: str, dtype: np.dtype[Any]) -> None:
        self._folder = folder
        self._stem = quote(space, safe="").replace(".", "%2E")
        self._tome = tome
        self._dtype = dtype

    def read(self, version: int | None = None) -> Columns | None:
        """The arrays at that or any version, mapped from the files; None if these have another one or do not fit."""
        header = self._read_header(version)
        if header is None:
            return None
        try:
            keys, rows, dead = (self._read_part(header, name) for name in _PARTS)
        except (OSError, ValueError):  # a file is missing, damaged or refused, or a writer is replacing it
            return None
        file: Any = rows.base if isinstance(rows, np.memmap) else None
        live = None
        if len(dead):
            if dead.min() < 0 or dead.max() >= len(keys):
                return None
            live = np.ones(len(keys), bool)
            live[dead] = False
        return Columns(header.version, keys, np.asarray(rows), live, file)

    def has(self, version: int) -> bool:
        """Whether the files have that version."""
        return self._read_header(version) is not None

    def apply(self, delta: Delta, before: int, after: int) -> bool:
        """Update the files from the version `before` to `after`; False if the files do not have `before`."""
        header, old = self._read_header(before), self.read(before)
        if header is None or old is None or (len(delta.added_keys) and delta.added_rows.shape[1] != header.width):
            return False
        fresh = delta.added_rows.astype(self._dtype, copy=False)
        live = np.ones(len(old.stored_keys), bool) if old.live is None else old.live
        is_removed = np.isin(old.stored_keys, delta.removed) & live
        remains = live & ~is_removed
        if len(remains) - remains.sum() > max(DEAD_LEAST, _DEAD_SHARE * len(remains)):
            rows = np.concatenate([old.stored_rows[remains], fresh.reshape(-1, header.width)])
            self.write(after, np.concatenate([old.stored_keys[remains], delta.added_keys]), rows)
            return True
        added = {"keys": delta.added_keys, "rows": fresh, "dead": np.flatnonzero(is_removed).astype(np.int64)}
        parts = dict(header.parts)
        for name, array in added.items():
            if len(array):
                with self._folder.open(f"{self._stem}.{header.generation}.{name}", to_change=True) as file:
                    parts[name] = _append(file, parts[name], array)
        self._write_header(replace(header, version=after, parts=parts))
        return True

    def write(self, version: int, keys: Keys, rows: Rows) -> None:
        """Write all files again, under new names: readers that have mapped the old files keep them."""
        self._folder.make()
        generation = secrets.token_hex(4)
        arrays = {"keys": keys, "rows": rows.astype(self._dtype, copy=False), "dead": np.empty(0, np.int64)}
        parts: dict[str, _Part] = {}
        for name, array in arrays.items():
            with self._folder.write(f"{self._stem}.{generation}.{name}") as file:
                parts[name] = _append(file, _Part(0, 0, 0, 0, 0), array)
        self._write_header(_Header(self._tome, version, generation, rows.shape[1], parts))
        kept = [f"{self._stem}.json", *(f"{self._stem}.{generation}.{name}" for name in _PARTS)]
        for old in self._folder.list_names():
            if old.startswith(f"{self._stem}.") and old not in kept:
                with suppress(OSError):
                    self._folder.delete(old)

    def _read_header(self, version: int | None) -> _Header | None:
        """The header, checked in itself; None for one of another tome or version."""
        try:
            with self._folder.open(f"{self._stem}.json") as file:
                body, checksum = file.read(_HEADER).split(b"\n")[:2]
            fields = json.loads(body)
            parts = {name: _Part(**fields["parts"][name]) for name in _PARTS}
            header = _Header(**{**fields, "parts": parts})
            numbers = [header.width, *(number for part in parts.values() for number in astuple(part))]
            is_sound = (
                crc32(body) == int(checksum)  # if not, a writer is writing it at this moment
                and _GENERATION.fullmatch(header.generation) is not None
                and all(type(number) is int and number >= 0 for number in numbers)
                and all(part.flushed <= part.size for part in parts.values())
                and parts["rows"].size == parts["keys"].size // 8 * header.width * self._dtype.itemsize
                and not parts["keys"].size % 8
                and not parts["dead"].size % 8
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError):  # missing, refused, or not one of ours
            return None
        return header if is_sound and header.tome == self._tome and version in (header.version, None) else None

    def _read_part(self, header: _Header, name: str) -> NDArray[Any]:
        """The valid bytes of a file, which rows map. Raises OSError, and ValueError for a file that does not fit.

        See `_Part` for which bytes are checked.
        """
        part = header.parts[name]
        with self._folder.open(f"{self._stem}.{header.generation}.{name}") as file:
            status = os.fstat(file.fileno())
            checksum = 0
            if status.st_mtime_ns != part.stamp:
                for start in range(0, part.size, _BLOCK):
                    checksum = crc32(file.read(min(_BLOCK, part.size - start)), checksum)
                if checksum != part.whole:
                    raise ValueError("another checksum of all bytes")
            file.seek(part.flushed)
            if status.st_size < part.size or crc32(file.read(part.size - part.flushed)) != part.checksum:
                raise ValueError("too short, or another checksum of the last bytes")
            if name != "rows":
                file.seek(0)
                return np.frombuffer(bytearray(file.read(part.size)), np.int64)
            shape = header.parts["keys"].size // 8, header.width
            if not part.size:
                return np.empty(shape, self._dtype)
            return np.memmap(file, dtype=self._dtype, mode="r", shape=shape)

    def _write_header(self, header: _Header) -> None:
        name, content = f"{self._stem}.json", encode_header(asdict(header))
        try:
            # Write in place: some systems flush at once a file that is renamed over another.
            with self._folder.open(name, to_change=True) as file:
                file.write(content)
        except OSError:  # missing, or refused
            with self._folder.write(name) as file:
                file.write(content)


def encode_header(header: Mapping[str, Any]) -> bytes:
    """A header as bytes of a fixed length: JSON, and its checksum on the next line."""
    body = json.dumps(header).encode()
    return (b"%b\n%d\n" % (body, crc32(body))).ljust(_HEADER)


def _append(file: BinaryIO, part: _Part, array: NDArray[Any]) -> _Part:
    """Write an array behind the valid bytes of a file."""
    if not len(array):
        return part
    data = np.ascontiguousarray(array).data.cast("B")
    size = part.size + len(data)
    file.truncate(part.size)  # a writer that was killed may have left more bytes
    file.seek(part.size)
    file.write(data)
    file.flush()
    whole, stamp = crc32(data, part.whole), os.fstat(file.fileno()).st_mtime_ns
    if size - part.flushed > _UNFLUSHED:
        os.fsync(file.fileno())
        return _Part(size, size, 0, whole, stamp)
    return _Part(size, part.flushed, crc32(data, part.checksum), whole, stamp)


def join_blocks(blocks: Iterable[Block], width: int, dtype: DTypeLike) -> Block:
    """All rows, keys ascending. Their bytes grow in place: a list of all blocks would need the memory of both."""
    all_keys, all_rows = bytearray(), bytearray()
    for some_keys, some_rows in blocks:
        all_keys += some_keys.tobytes()
        all_rows += some_rows.astype(dtype, copy=False).tobytes()
    keys = np.frombuffer(all_keys, np.int64)
    rows = np.frombuffer(all_rows, dtype).reshape(len(keys), width)
    if (keys[1:] > keys[:-1]).all():
        return keys, rows
    order = np.argsort(keys, kind="stable")
    return keys[order], rows[order]
