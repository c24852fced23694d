"""What others put beside a tome: links, second names, pipes, foreign files. Nothing outside changes; answers come."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from tests.patience import SOON

from tomewise.errors import StoreError
from tomewise.server.jobs import JobList
from tomewise.server.library import Library
from tomewise.settings import Settings
from tomewise.store.lookups import read_vectors
from tomewise.store.sql.mirror import encode_header
from tomewise.tome.tome import Tome
from tomewise.types import Document

TEXTS = [Document(id=f"d{number}", text=f"The keeper lit {number} lamps at nine.") for number in range(4)]
MORE = Document(id="more", text="The keeper lit the ninth lamp.")
QUESTION = "Who lit 2 lamps?"


@pytest.fixture
def path(here: Path) -> Path:
    with Tome.open(here / "memory.tome", embedder="hash") as book:
        book.add(*TEXTS)
        book.search(QUESTION)
    return here / "memory.tome"


@pytest.fixture
def cache(path: Path) -> Path:
    return path.with_name("memory.tome-cache")


@pytest.fixture
def thesis(tmp_path: Path) -> Iterator[Path]:
    """A file of the user elsewhere, which nothing may touch."""
    file = tmp_path / "home" / "thesis.txt"
    file.parent.mkdir()
    file.write_text("years of work")
    yield file
    assert file.read_text() == "years of work"
    assert [each.name for each in file.parent.iterdir()] == ["thesis.txt"]


def use(path: Path) -> None:
    """Ask, add and remove, as far as the tome lets us, and ask again."""
    with Tome.open(path) as book:
        assert book.search(QUESTION, system="naive")
        book.add(MORE)
        book.remove("d0")
        book.sessions["one"].ask(QUESTION)
        assert book.search("ninth lamp", system="naive")[0].text == MORE.text


def header_of(cache: Path) -> Path:
    return cache / "vectors%2Fpassages.json"


def rows_of(cache: Path, part: str = "rows") -> Path:
    (file,) = cache.glob(f"vectors%2Fpassages.*.{part}")
    return file


@pytest.mark.parametrize("part", ["json", "keys", "rows", "dead"])
@pytest.mark.parametrize("put", [os.symlink, os.link], ids=["link", "second name"])
def test_a_file_of_the_cache_that_is_a_link_is_replaced_and_what_it_names_stays(
    path: Path, cache: Path, thesis: Path, put: Callable[[Path, Path], None], part: str
) -> None:
    file = header_of(cache) if part == "json" else rows_of(cache, part)
    file.unlink()
    put(thesis, file)
    use(path)
    assert not header_of(cache).is_symlink()


def test_a_header_that_holds_the_makers_words_is_not_written_anywhere(path: Path, cache: Path, thesis: Path) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE meta SET value = '$(touch PWNED)' WHERE key = 'identity'")
    header_of(cache).unlink()
    header_of(cache).symlink_to(thesis)
    with pytest.raises(StoreError, match=r"damaged: the row 'identity' of the table meta .* restore it"):
        Tome.open(path)


def test_rows_under_a_linked_name_are_not_cut(path: Path, cache: Path, thesis: Path) -> None:
    # What an add cut to the length in the header: a link, with a size of 0 and a checksum that is right.
    file = rows_of(cache, "dead")
    file.unlink()
    file.symlink_to(thesis)
    with Tome.open(path) as book:
        for text in TEXTS:
            book.remove(text.id)
            book.add(text)


@pytest.mark.parametrize("kind", ["header", "lock"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_a_pipe_or_a_folder_in_the_place_of_a_file_makes_nobody_wait(
    path: Path, cache: Path, kind: str, make: Callable[[Path], None]
) -> None:
    file = header_of(cache) if kind == "header" else cache / "writer.lock"
    file.unlink(missing_ok=True)
    make(file)
    with Tome.open(path) as book:
        assert book.search(QUESTION, system="naive")
        if kind == "lock":
            with pytest.raises(StoreError, match=r"writer\.lock is not a plain file.*delete it"):
                book.add(MORE)
        else:
            book.add(MORE)
            assert book.search("ninth lamp", system="naive")


def test_a_linked_folder_is_not_used_and_the_answer_comes_all_the_same(path: Path, cache: Path, thesis: Path) -> None:
    shutil.rmtree(cache)
    cache.symlink_to(thesis.parent)
    with pytest.warns(UserWarning, match=r"memory\.tome-cache is a link, so it is not used"):
        opened = Tome.open(path)
    with opened as book:
        assert book.search(QUESTION, system="naive")
        assert book.ask(QUESTION).evidence
        for change in (lambda: book.add(MORE), lambda: book.remove("d0"), lambda: book.sessions["s"].ask(QUESTION)):
            with pytest.raises(StoreError, match=r"memory\.tome-cache is a link, so nobody can write"):
                change()
        with pytest.raises(StoreError, match="is a link"):
            book.memory.clean()


def test_a_folder_of_somebody_else_is_not_used(path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    before = [file.stat().st_mtime_ns for file in sorted(cache.iterdir())]
    os.chown(cache, 12345, 12345)
    with pytest.warns(UserWarning, match="belongs neither to you nor"):
        opened = Tome.open(path)
    with opened as book:
        assert book.search(QUESTION, system="naive")
    assert [file.stat().st_mtime_ns for file in sorted(cache.iterdir())] == before
    os.chown(path, 12345, 12345)  # the owner of the tome has made it
    use(path)


def test_clean_deletes_the_names_that_tomewise_writes_and_no_other(path: Path, cache: Path, thesis: Path) -> None:
    foreign = ["notes.txt", "vectors%2Fpassages.12345678.rows.bak", "vectors%2Fpassages", ".hidden", "a.json"]
    for name in foreign:
        (cache / name).write_text("mine")
    (cache / "deep").mkdir()
    (cache / "deep" / "vectors%2Fpassages.json").write_text("mine")
    (cache / "vectors%2Ffolder.json").mkdir()
    (cache / "vectors%2Ffolder.json" / "notes.txt").write_text("mine")
    (cache / "vectors%2Fother.json").symlink_to(thesis)
    with Tome.open(path) as book:
        assert book.memory.clean() > 0
    left = {str(file.relative_to(cache)) for file in cache.rglob("*") if file.is_file()}
    own = {"vectors%2Fother.json", "deep/vectors%2Fpassages.json", "vectors%2Ffolder.json/notes.txt", "writer.lock"}
    assert left == {*foreign, *own}


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("put", [os.symlink, os.link], ids=["link", "second name"])
def test_a_log_of_sqlite_that_shows_elsewhere_is_refused(
    path: Path, thesis: Path, suffix: str, put: Callable[[Path, Path], None]
) -> None:
    put(thesis, path.with_name(path.name + suffix))
    with pytest.raises(StoreError, match=rf"tome{suffix} is a link or not a plain file"):
        Tome.open(path)


def test_a_journal_of_sqlite_that_names_a_file_to_delete_is_refused(path: Path, thesis: Path) -> None:
    with Tome.open(path):
        pass
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(thesis)
    header = magic + struct.pack(">IIIII", 0, 0, path.stat().st_size // 8192, 512, 8192)
    named = struct.pack(">I", 0x40000000 // 8192 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    journal = path.with_name(path.name + "-journal")
    journal.write_bytes(header.ljust(512, b"\0") + named)
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"tome-journal names another file, which SQLite would delete"):
            Tome.open(path, read_only=read_only)
    journal.write_bytes(header.ljust(512, b"\0"))  # without the name: what a kill leaves
    use(path)


def test_no_tome_is_made_through_a_link(here: Path, thesis: Path) -> None:
    for name, target in (("a.tome", thesis.with_name("new.txt")), ("b.tome", here / "empty")):
        (here / "empty").touch()
        (here / name).symlink_to(target)
        with pytest.raises(StoreError, match="no tome is made through a link"):
            Tome.open(here / name)
    assert (here / "empty").stat().st_size == 0
    os.mkfifo(here / "c.tome")
    with pytest.raises(StoreError, match="not a plain file"):
        Tome.open(here / "c.tome")


def test_a_link_to_a_tome_is_a_tome(path: Path, here: Path) -> None:
    (here / "other.tome").symlink_to(path)
    use(here / "other.tome")


def test_files_beside_a_private_tome_are_private(here: Path) -> None:
    before = os.umask(0o022)
    try:
        with Tome.open(here / "a.tome", embedder="hash") as book:
            os.chmod(here / "a.tome", 0o600)
            book.add(*TEXTS)
            modes = {file.name: file.stat().st_mode & 0o777 for file in (here / "a.tome-cache").iterdir()}
        assert modes
        assert set(modes.values()) == {0o600}
        assert (here / "a.tome-cache").stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


# ---------------------------------------------------------------- caches with checksums that are right


@pytest.mark.parametrize(
    ("part", "content", "fields"),
    [
        *(("dead", np.array([place]).tobytes(), {}) for place in (4, 10**6, -5, 2**62)),
        ("keys", np.array([1, 2, 3, 400]).tobytes(), {}),
        ("keys", np.array([1, 2, 2, 5]).tobytes(), {}),
        ("rows", bytes(4 * 4 * 7), {"width": 7}),
    ],
    ids=["place 4", "place 10**6", "place -5", "place 2**62", "unknown key", "a key twice", "another width"],
)
def test_parts_that_do_not_fit_the_tome_make_the_cache_anew(
    path: Path, cache: Path, part: str, content: bytes, fields: dict[str, int]
) -> None:
    """Their header and checksums fit them, as a stranger can make them."""
    header = json.loads(header_of(cache).read_bytes().split(b"\n")[0])
    rows_of(cache, part).write_bytes(content)
    checksum, stamp = crc32(content), rows_of(cache, part).stat().st_mtime_ns
    sums = {"size": len(content), "flushed": 0, "checksum": checksum, "whole": checksum, "stamp": stamp}
    header["parts"][part] = sums
    header_of(cache).write_bytes(encode_header({**header, **fields}))
    assert_made_anew(path, cache)


@pytest.mark.parametrize("generation", ["../../../x", "", "a" * 300, None, "ABCDEF01", "\0" * 8])
def test_a_generation_that_is_not_hexadecimal_makes_the_cache_anew(path: Path, cache: Path, generation: object) -> None:
    header = json.loads(header_of(cache).read_bytes().split(b"\n")[0])
    header_of(cache).write_bytes(encode_header({**header, "generation": generation}))
    assert_made_anew(path, cache)


def assert_made_anew(path: Path, cache: Path) -> None:
    with Tome.open(path) as book:
        assert read_vectors(book.store, "passages").keys.tolist() == [1, 2, 3, 4]
        assert book.search(QUESTION, system="naive")[0].text == TEXTS[2].text
    header = json.loads(header_of(cache).read_bytes().split(b"\n")[0])
    assert (len(header["generation"]), header["width"], header["parts"]["dead"]["size"]) == (8, 256, 0)
    shutil.copytree(cache, cache.with_name("before"))
    with Tome.open(path) as book:
        book.add(MORE)  # follows the cache
        assert len(read_vectors(book.store, "passages").keys) == 5


# ---------------------------------------------------------------- jobs beside a tome


def load_jobs(path: Path) -> JobList:
    jobs = JobList(Library(Settings(), [path]))
    jobs.load()
    return jobs


def test_a_linked_folder_of_jobs_loses_nothing(path: Path, tmp_path: Path, thesis: Path) -> None:
    deep = tmp_path / "documents" / "a" / "deep.txt"
    deep.parent.mkdir(parents=True)
    deep.write_text("mine")
    path.with_name("memory.tome-jobs").symlink_to(tmp_path / "documents")
    with pytest.warns(UserWarning, match=r"tome-jobs is a link, so jobs are not kept there"):
        jobs = load_jobs(path)
    assert jobs.list_all() == []
    with pytest.raises(StoreError, match="is a link, so no job can be kept"):
        jobs.make_folder("memory")
    assert deep.read_text() == "mine"


def make_job(path: Path, **fields: object) -> Path:
    """The folder of a job as a stranger ships it."""
    folder = path.with_name("memory.tome-jobs") / f"{'a' * 8}-{'b' * 16}"
    (folder / "files").mkdir(parents=True)
    job = {"id": "b" * 16, "tome": "memory", "kind": "add", "state": "running", "task": {"files": []}}
    job |= {"progress": {}, "usage": None, "report": None, "error": None, "created": "", "started": None, "ended": None}
    (folder / "job.json").write_text(json.dumps({**job, **fields}))
    return folder


def test_the_record_of_a_job_is_not_written_through_a_link_and_other_folders_stay(path: Path, thesis: Path) -> None:
    folder = make_job(path)
    (folder / "job.json.new").symlink_to(thesis)
    mine = folder.with_name("mine")
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    (job,) = load_jobs(path).list_all()
    assert job.state == "interrupted"
    assert (mine / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "record", ["[]", "5", '{"task": 5}', "[" * 9999, b"\xff", '{"progress": []}', {"files": [5]}, {"texts": "x"}]
)
def test_a_damaged_record_of_a_job_stops_no_server(path: Path, record: str | bytes | dict[str, object]) -> None:
    folder = make_job(path, **({"task": record} if isinstance(record, dict) else {}))
    if not isinstance(record, dict):
        (folder / "job.json").write_bytes(record if isinstance(record, bytes) else record.encode())
    assert load_jobs(path).list_all() == []


@pytest.mark.parametrize("name", ["../../../thesis.txt", "0001.txt", "/etc/hostname", "document.json", "pipe.txt"])
async def test_a_job_from_elsewhere_reads_no_file_of_the_user(path: Path, thesis: Path, name: str) -> None:
    folder = make_job(path, task={"files": [[name, "notes.txt"]]})
    shutil.copy(thesis, path.parent / "thesis.txt")
    (folder / "files" / "0001.txt").symlink_to(thesis)
    os.link(thesis, folder / "files" / "document.json")
    os.mkfifo(folder / "files" / "pipe.txt")
    jobs = load_jobs(path)
    job = jobs.resume("b" * 16)
    while job.state not in ("failed", "done"):
        await asyncio.wait_for(jobs.wait_for_change(job), SOON)
    assert (job.state, job.error and job.error["message"][:28]) == ("failed", "a file of this job cannot be")
    await jobs.stop()
    with Tome.open(path) as book:
        assert len(book.documents()) == len(TEXTS)
