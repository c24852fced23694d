"""Folders that may only be read, files cut and scribbled on, forks, closed tomes and closed streams."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path

import numpy as np
import pytest

from tomewise.errors import NotBuilt, ReadingError, StoreError, UsageError
from tomewise.store.beside import FolderBeside
from tomewise.store.export import export
from tomewise.store.lookups import read_vectors
from tomewise.store.sql import database
from tomewise.store.sql.mirror import FILE_NAMES, Mirror
from tomewise.tome.tome import Tome
from tomewise.types import Document

TEXTS = [Document(id=f"d{number}", text=f"The keeper lit {number} lamps at nine.") for number in range(4)]


@pytest.fixture
def path(here: Path) -> Path:
    with Tome.open(here / "memory.tome", embedder="hash") as book:
        book.add(*TEXTS)
        book.build("cogitorag")
        book.ask("Who lit the lamps?", system="cogitorag")  # the cached arrays are there now
    return here / "memory.tome"


# ---------------------------------------------------------------- read-only


def list_files(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(file): (file.stat().st_mtime_ns, file.stat().st_size) for file in folder.rglob("*")}


def protect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be written, as far as the system says: who runs tests may write everywhere."""
    real = os.access
    monkeypatch.setattr(database.os, "access", lambda file, mode: mode != os.W_OK and real(file, mode))


@pytest.mark.parametrize(
    ("is_protected", "reason"), [(True, "check the permissions"), (False, "it was opened with read_only")]
)
def test_a_tome_that_may_only_be_read_answers_and_is_not_touched(
    path: Path, command, monkeypatch: pytest.MonkeyPatch, is_protected: bool, reason: str
) -> None:
    if is_protected:
        protect(monkeypatch)
    before = list_files(path.parent)
    with Tome.open(path, read_only=not is_protected) as book:
        traces = book.store.trace_numbers()
        for system in (None, "cogitorag"):
            answer = book.ask("Who lit 2 lamps?", system=system)
            assert answer.evidence
            assert answer.trace is None
        assert book.store.trace_numbers() == traces
        assert len(book.documents()) == len(TEXTS)
        for change in (lambda: book.add(TEXTS[0]), lambda: book.remove("d0"), lambda: book.build("raptor")):
            with pytest.raises(StoreError, match=f"may only be read: {reason}"):
                change()
    if is_protected:
        assert command("show").code == 0
        assert "To set a model" in command("ask", "Who lit 2 lamps?").err  # and no word of a trace
    after = list_files(path.parent)
    assert after == before if is_protected else after[str(path)] == before[str(path)]


def test_a_tome_that_does_not_exist_is_not_made(here: Path) -> None:
    with pytest.raises(StoreError, match="found no tome"):
        Tome.open(here / "none.tome", read_only=True)
    assert not (here / "none.tome").exists()


# ---------------------------------------------------------------- files cut and scribbled on


def rows_of(path: Path) -> Path:
    (found,) = path.with_name("memory.tome-cache").glob("vectors%2Fpassages.*.rows")
    return found


def test_cached_rows_that_are_cut_while_they_are_mapped_kill_nobody(path: Path) -> None:
    with Tome.open(path) as book:
        whole = np.array(read_vectors(book.store, "passages").rows)
        with rows_of(path).open("r+b") as file:
            file.truncate(0)
        assert np.array_equal(read_vectors(book.store, "passages").rows, whole)
        assert book.ask("Who lit 2 lamps?").evidence
    assert rows_of(path).stat().st_size == whole.nbytes


@pytest.mark.parametrize("part", ["rows", "keys", "json"])
def test_random_bytes_in_what_is_cached_are_noticed(path: Path, part: str) -> None:
    with Tome.open(path) as book:
        whole, keys = np.array(read_vectors(book.store, "passages").rows), read_vectors(book.store, "passages").keys
        lines = list(export(book.store))
    for file in path.with_name("memory.tome-cache").glob(f"vectors%2Fpassages*.{part}"):
        file.write_bytes(os.urandom(file.stat().st_size))
    with Tome.open(path) as book:
        assert np.array_equal(read_vectors(book.store, "passages").rows, whole)
        assert np.array_equal(read_vectors(book.store, "passages").keys, keys)
        assert list(export(book.store)) == lines


def test_large_rows_are_checked_beyond_what_was_flushed(here: Path) -> None:
    folder = FolderBeside(here / "a.tome", "-cache", FILE_NAMES)
    mirror = Mirror(folder, "vectors/x", "t", np.dtype(np.float32))
    keys, rows = np.arange(5000), np.random.default_rng(0).random((5000, 128), np.float32)
    mirror.write(7, keys, rows)
    assert mirror.read(7) is not None
    (file,) = folder.path.glob("*.rows")
    data = bytearray(file.read_bytes())
    data[1000] ^= 1
    file.write_bytes(data)
    assert mirror.read(7) is None
    data[1000] ^= 1
    file.write_bytes(data)  # touched, and as it was
    assert mirror.read(7) is not None


# ---------------------------------------------------------------- forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("act", [methodcaller("documents"), methodcaller("ask", "Who?"), methodcaller("add", TEXTS[0])])
def test_a_fork_after_use_raises_and_does_not_hang(path: Path, act: Callable[[Tome], object]) -> None:
    with Tome.open(path) as book:
        book.ask("Who lit 2 lamps?")
        child = os.fork()
        if not child:
            code = 1
            try:
                act(book)
            except (StoreError, UsageError) as error:
                code = 0 if "fork" in str(error) else 2
            finally:
                book.close()
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert book.ask("Who lit 2 lamps?").evidence


# ---------------------------------------------------------------- closed


@pytest.mark.parametrize(
    "act",
    [
        lambda book: book.add(TEXTS[0]),
        lambda book: book.remove("d0"),
        lambda book: book.documents(),
        lambda book: book.documents["d0"],
        lambda book: list(book.memory.export()),
        lambda book: book.build("naive"),
        lambda book: book.memory.estimate("naive"),
        lambda book: book.ask("Who?"),
        lambda book: book.ask_many([]),
        lambda book: asyncio.run(book.aask("Who?")),
        lambda book: asyncio.run(book.aask_many([])),
        lambda book: asyncio.run(book.abuild("naive")),
        lambda book: asyncio.run(book.memory.aestimate("naive")),
    ],
)
def test_a_closed_tome_says_so(path: Path, act: Callable[[Tome], object]) -> None:
    book = Tome.open(path)
    book.ask("Who lit 2 lamps?")
    book.close()
    with pytest.raises(StoreError, match="is closed: open it again"):
        act(book)
    book.close()


@pytest.mark.parametrize("closed", ["stdout", "stdin", "all"])
def test_a_closed_stream_ends_quietly_and_leaves_the_tome_alone(path: Path, closed: str) -> None:
    with Tome.open(path) as book:
        before = list(book.memory.export())
    ends = {"stdout": (1,), "stdin": (0,), "all": (0, 1, 2)}[closed]
    ran = subprocess.run(
        [sys.executable, "-c", "from tomewise.terminal.program import main; main()", "-m", str(path), "export"],
        preexec_fn=lambda: [os.close(number) for number in ends],
        stdout=None if 1 in ends else subprocess.DEVNULL,
        stderr=None if 2 in ends else subprocess.PIPE,
        check=False,
    )
    assert ran.returncode == 0
    assert not ran.stderr
    with Tome.open(path) as book:
        assert list(book.memory.export()) == before


# ---------------------------------------------------------------- errors before anything is written


def test_a_place_for_results_is_checked_first(command, here: Path) -> None:
    (here / "file").write_text("x")
    ran = command("eval", "run", "naive", "--data", "sample", "--out", "file/deeper", embedder=None)
    assert ran.code == 2
    assert "is a file" in ran.err


def test_an_id_of_blanks_is_refused(here: Path, tome: Tome) -> None:
    (here / "a.jsonl").write_text('{"id": "  ", "text": "The keeper lit 7 lamps."}')
    with pytest.raises(ReadingError, match="`id` is"):
        tome.add(here / "a.jsonl")
    with pytest.raises(ReadingError, match="has no id"):
        tome.add(Document(id=" \t", text="The keeper lit 7 lamps."))
    with pytest.raises(NotBuilt):
        tome.ask("Who?")
