"""Damage a tome at random, in its rows, in its file and in the files beside it, and use it as people do.

Whatever is damaged, each use ends with an answer or with one StoreError, and no other file is touched.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

from tomewise.errors import ReadingError, StoreError, UnknownName
from tomewise.store.sql.mirror import encode_header
from tomewise.tome.tome import Tome
from tomewise.types import Document

SYSTEMS = ("hybrid", "cogitorag", "comorag", "hgmem")
QUESTION = "Who sold the Heron to Ida Poe?"
_SENTENCES = (
    "Tom Hale sold the Heron to Ida Poe in Bruges.",
    "Ida Poe sailed the Heron to Ghent with Ada Marsh.",
    "Ada Marsh burned the map of the Heron in Ostend.",
    "Rosa Lind met Tom Hale and Ada Marsh in Ghent.",
)
DOCUMENTS = [
    Document(id=f"d{number}", title=f"Part {number}", text=" ".join(_SENTENCES[number:] + _SENTENCES[:number]))
    for number in range(4)
]
_LATE = Document(id="late", text="Zoe Quill forged the Vellum Codex in Bruges.")
_KEPT = "thesis.txt"  # a file of the user, to which nothing may happen
_VALUES: tuple[Any, ...] = (
    *(None, -1, 0, 7, 2**62, -(2**63), 2**63 - 1, 1.5, float("inf"), "", "x", "12", b"", b"\xff\xfe\x00", b"\0" * 256),
    *("[]", "5", "null", "{}", '"x"', '{"a": ', "[" * 5000, '{"a": "\\ud800"}', '{"chapter": 5, "place": 3}', "a\0b"),
)
_NOT_UTF8 = "CAST(x'fffe41' AS TEXT)"
_DAMAGED_JSON = ("metadata", "data", "record")


def make_tome(folder: Path) -> None:
    """A tome with memory of several kinds, a session, traces and caches."""
    path = folder / "a.tome"
    with Tome.open(path, embedder="hash:32", settings={"passage_tokens": 32}) as tome:
        tome.add(*DOCUMENTS)
        for system in SYSTEMS:
            tome.build(system)
            tome.ask(QUESTION, system=system)
        for system in ("comorag", "hgmem"):
            tome.sessions[system].ask(QUESTION, system=system)
    folder.joinpath(_KEPT).write_text("years of work")


@contextmanager
def open_loose(path: Path) -> Iterator[sqlite3.Connection]:
    """The file of a tome, with columns that take any value until the end: so can whoever makes a file have them."""
    with closing(sqlite3.connect(path)) as file, file:
        statements = file.execute("SELECT sql, rowid FROM sqlite_master WHERE type = 'table'").fetchall()
    _set_statements(path, [(sql.replace(" NOT NULL", ""), row) for sql, row in statements])
    with closing(sqlite3.connect(path)) as file, file:
        yield file
    _set_statements(path, statements)


def _set_statements(path: Path, statements: list[tuple[str, int]]) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("PRAGMA writable_schema = ON")
        file.executemany("UPDATE sqlite_master SET sql = ? WHERE rowid = ?", statements)


def use_damaged(whole: Path, place: Path, dice: random.Random, damage: Callable[[Path, random.Random], str]) -> str:
    """Damage a copy of the tome in `whole`, made in `place`, and use it. Returns what went wrong; empty if nothing."""
    with TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as copy:  # a thread may still end in the one before
        return _use(Path(shutil.copytree(whole, Path(copy) / "a", symlinks=True)), dice, damage)


def _use(folder: Path, dice: random.Random, damage: Callable[[Path, random.Random], str]) -> str:
    words = damage(folder, dice)
    uses = list(_USES)
    dice.shuffle(uses)
    for use in uses[:3]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                with Tome.open(folder / "a.tome", create=False) as tome:
                    use(tome, dice)
        except (StoreError, *_REFUSALS):
            pass
        except Exception as error:  # noqa: BLE001 - it looks for any
            return f"{words}; {use.__name__}: {type(error).__name__}: {str(error)[:300]}"
        if problem := _find_touched(folder):
            return f"{words}; {use.__name__}: {problem}"
    return ""


def _find_touched(folder: Path) -> str:
    kept = folder / _KEPT
    if not kept.exists() or kept.read_text() != "years of work":
        return f"{_KEPT} was touched"
    strange = {file.name for file in folder.iterdir()} - {_KEPT, *(f"a.tome{end}" for end in _ENDS)}
    return f"{strange} are new" if strange else ""


# Of what fits the tome as it is now: a document has another id, or another source.
_REFUSALS = (UnknownName, ReadingError)
_ENDS = ("", "-cache", "-wal", "-shm", "-journal")

# ------------------------------------------------------------ uses


def show(tome: Tome, dice: random.Random) -> None:
    """What `tome show` reads."""
    tome._repr_html_()
    for record in tome.documents():
        tome.documents[record.id]
    tome.store.passages()


def ask(tome: Tome, dice: random.Random) -> None:
    tome.ask(QUESTION, system=dice.choice(SYSTEMS))


def search(tome: Tome, dice: random.Random) -> None:
    """Search within a scope."""
    tome.within("d1", "d2").search("the map of the Heron", system=dice.choice(("hybrid", "cogitorag")))


def ask_in_session(tome: Tome, dice: random.Random) -> None:
    """Go on with a session, and list all."""
    list(tome.sessions)
    tome.sessions[dice.choice(("comorag", "hgmem"))].ask("Where did she sail it?")


def read_log(tome: Tome, dice: random.Random) -> None:
    """List the traces."""
    for trace in tome.traces.latest():
        json.dumps(trace.to_dict())


def add(tome: Tome, dice: random.Random) -> None:
    """Add a document, and one that changed."""
    tome.add(_LATE, Document(id="d0", text="Tom Hale sold nothing."))


def remove(tome: Tome, dice: random.Random) -> None:
    tome.remove(f"d{dice.randrange(4)}")


def build(tome: Tome, dice: random.Random) -> None:
    """Add a document and build a system."""
    tome.add(_LATE)
    tome.build(dice.choice(SYSTEMS[1:]))


def export(tome: Tome, dice: random.Random) -> None:
    for line in tome.memory.export():
        line.encode()


def draw(tome: Tome, dice: random.Random) -> None:
    """Draw a layer, and look up an entity."""
    tome.memory.draw("graph:passages-triples")
    tome.memory.entity("Ida Poe")


def clean(tome: Tome, dice: random.Random) -> None:
    """Delete the caches."""
    tome.memory.clean()


_USES = (show, ask, search, ask_in_session, read_log, add, remove, build, export, draw, clean)

# ------------------------------------------------------------ damages of rows


def damage_row(folder: Path, dice: random.Random) -> str:
    """Change or delete one row of one table, also of those in which SQLite keeps its own."""
    with open_loose(folder / "a.tome") as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        while True:
            table = dice.choice(tables)
            try:
                words = _damage_in(file, table, dice)
            except sqlite3.Error:  # a virtual table, or a row that a key does not allow
                file.rollback()
                continue
            if words:
                file.commit()
                return f"{table}: {words}"


def _damage_in(file: sqlite3.Connection, table: str, dice: random.Random) -> str:
    info = file.execute(f'PRAGMA table_info("{table}")').fetchall()
    keys = [row[1] for row in info if row[5]] or ["rowid"]
    rows = file.execute(f'SELECT {", ".join(keys)} FROM "{table}"').fetchall()
    if not rows:
        return ""
    place, where = dice.choice(rows), " AND ".join(f"{key} IS ?" for key in keys)
    if dice.random() < 0.1:
        file.execute(f'DELETE FROM "{table}" WHERE {where}', place)
        return f"row {place} deleted"
    column = dice.choice([row[1] for row in info])
    if dice.random() < 0.1:
        file.execute(f'UPDATE "{table}" SET "{column}" = {_NOT_UTF8} WHERE {where}', place)
        return f"row {place}, {column}: not UTF-8"
    (old,) = file.execute(f'SELECT "{column}" FROM "{table}" WHERE {where}', place).fetchone()
    value = _change_json(old, dice) if column in _DAMAGED_JSON and dice.random() < 0.6 else dice.choice(_VALUES)
    file.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE {where}', (value, *place))
    return f"row {place}, {column}: {value!r:.300}"


def _change_json(text: str, dice: random.Random) -> str:
    """The JSON with one value in it of another kind, or one field less."""
    content = json.loads(text)
    places = list(_list_places(content))
    if not places:
        return "[]"
    holder, key = dice.choice(places)
    if isinstance(holder, dict) and dice.random() < 0.3:
        del holder[key]
    else:
        holder[key] = dice.choice((None, 5, -1, "x", [], {}, [5], {"x": 5}, 1.5, True))
    return json.dumps(content)


def _list_places(content: Any) -> Iterator[tuple[Any, Any]]:
    pairs = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(pairs):
        yield content, key
        yield from _list_places(value)


# ------------------------------------------------------------ damages of files


def damage_bytes(folder: Path, dice: random.Random) -> str:
    """Change bytes of the tome or of a file beside it."""
    files = [folder / "a.tome", *sorted((folder / "a.tome-cache").iterdir())]
    file = files[0] if dice.random() < 0.4 else dice.choice(files)
    content = bytearray(file.read_bytes())
    kind = dice.choice(("flip", "zero", "cut", "append", "empty", "random"))
    start = dice.randrange(len(content)) if content else 0
    if kind == "flip":
        for _ in range(dice.choice((1, 4, 64)) if content else 0):
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    elif kind == "zero":
        content[start : start + 512] = bytes(len(content[start : start + 512]))
    elif kind == "cut":
        del content[start:]
    elif kind == "append":
        content += dice.randbytes(100)
    else:
        content = bytearray() if kind == "empty" else bytearray(dice.randbytes(len(content)))
    file.write_bytes(content)
    return f"{file.name}: {kind} at {start}"


def damage_cache(folder: Path, dice: random.Random) -> str:
    """Change a cache so that its checksums are right, as a stranger can."""
    cache = folder / "a.tome-cache"
    header_file = dice.choice(sorted(cache.glob("*.json")))
    header = json.loads(header_file.read_bytes().split(b"\n")[0])
    stem = header_file.name.removesuffix(".json")
    kind = dice.choice(("header", "keys", "rows", "dead", "swap"))
    if kind == "header":
        header = json.loads(_change_json(json.dumps(header), dice))
    elif kind == "swap":
        foreign = dice.choice([file for file in sorted(cache.glob("*.json")) if file != header_file])
        version = header["version"]
        header = {**json.loads(foreign.read_bytes().split(b"\n")[0]), "version": version}
        for part in ("keys", "rows", "dead"):
            name = f"{header['generation']}.{part}"
            shutil.copy2(cache / f"{foreign.name.removesuffix('.json')}.{name}", cache / f"{stem}.{name}")
    else:
        file = cache / f"{stem}.{header['generation']}.{kind}"
        content = bytearray(file.read_bytes()) or bytearray(8)
        for _ in range(3):
            start = dice.randrange(0, len(content), 8)
            content[start : start + 8] = dice.choice((dice.randbytes(8), b"\xff" * 8, bytes(8), b"\xff" * 7 + b"\x7f"))
        file.write_bytes(content)
        checksum = crc32(content)
        header["parts"][kind] = {
            "size": len(content),
            "flushed": 0,
            "checksum": checksum,
            "whole": checksum,
            "stamp": file.stat().st_mtime_ns,
        }
    header_file.write_bytes(encode_header(header))
    return f"{header_file.name}: {kind}"


def damage_kind(folder: Path, dice: random.Random) -> str:
    """Put something that is not a plain file of our own where a file beside the tome is, or may come to be."""
    cache, kept = folder / "a.tome-cache", folder / _KEPT
    names = [*sorted(cache.iterdir()), cache, folder / "a.tome-wal", folder / "a.tome-shm", folder / "a.tome-journal"]
    file = dice.choice(names)
    shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
    make: dict[str, Callable[[], object]] = {
        "link": lambda: file.symlink_to(kept),
        "link to nothing": lambda: file.symlink_to(folder / "new.txt"),
        "second name": lambda: os.link(kept, file),
        "folder": file.mkdir,
        "pipe": lambda: os.mkfifo(file),
        "link to a folder": lambda: file.symlink_to(folder),
    }
    kind = dice.choice(tuple(make))
    make[kind]()
    return f"{file.name} is a {kind}"


DAMAGES: tuple[Callable[[Path, random.Random], str], ...] = (damage_row, damage_bytes, damage_cache, damage_kind)
WEIGHTS = (0.6, 0.2, 0.12, 0.08)


def damage_at_random(folder: Path, dice: random.Random) -> str:
    """One damage of any kind."""
    (damage,) = dice.choices(DAMAGES, WEIGHTS)
    return f"{damage.__name__}: {damage(folder, dice)}"
