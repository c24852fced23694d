"""Documents that unfold to far more than their files: each is one line of an error, and the next file is read."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.patience import SOON, wait_until
from tests.reading.documents import EPUB, docx, draw_stream, write_zip
from tests.reading.processes import LISTED, list_readers

from tomewise.errors import ReadingError, UsageError
from tomewise.reading.process import Bounds, ReaderProcess
from tomewise.reading.read import SourceReader
from tomewise.tome.tome import Tome

MAILBOX = b"From a\nSubject: rain\n\nbody\n\n" * 101
ENDLESS = ("<b>" * 300 + "x" + "</b>" * 300) * 5_000  # minutes of conversion


@pytest.fixture(scope="module")
def process():
    """Reads within 100 MB and a million characters, and in time enough on a busy machine."""
    with ReaderProcess(Bounds(seconds=600, memory=100, characters=1_000_000)) as process:
        yield process


def read(process: ReaderProcess, path: Path) -> list[str]:
    return [document.text for document in SourceReader(process).read(path).documents]


def deflate_twice(path: Path) -> Path:
    """A PDF of 2 KB whose page is a stream of 150 MB."""
    path.write_bytes(draw_stream(b" " * 10_000_000, 15, squeezed=2))
    return path


def wide_docx(path: Path) -> Path:
    return docx(path, "<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 400_000)


def wide_epub(path: Path) -> Path:
    return write_zip(path, {**EPUB, "c.xhtml": f"<p>{'<i>a</i>' * 400_000}</p>"})


def endless_epub(path: Path) -> Path:
    return write_zip(path, {**EPUB, "c.xhtml": "<p>" + "abc " * 300_000})


def sparse_text(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(2**40)
    return path


def long_text(path: Path) -> Path:
    path.write_text("ab " * 400_000)
    return path


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("a.pdf", deflate_twice, r"takes more than 100 MB of memory to read: raise .*`read_memory`"),
        ("a.docx", wide_docx, r"takes more than 100 MB of memory to read: raise .*`read_memory`"),
        ("a.epub", wide_epub, r"takes more than 100 MB of memory to read: raise .*`read_memory`"),
        ("a.epub", endless_epub, r"holds more than 1,000,000 characters of text: raise .*`read_characters`"),
        ("a.txt", sparse_text, r"holds more than 1,000,000 characters of text: raise .*`read_characters`"),
        ("a.txt", long_text, r"holds more than 1,000,000 characters of text"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_unfolds_is_refused_for_its_bound_and_the_next_file_is_read(process, name, make, message, tmp_path):
    path = make(tmp_path / name)
    assert name == "a.txt" or path.stat().st_size < 300_000
    with pytest.raises(ReadingError, match=message):
        read(process, path)
    (tmp_path / "b.html").write_text("<p>One")
    assert read(process, tmp_path / "b.html") == ["One"]


def test_a_docx_of_more_xml_than_a_reader_can_take_is_refused_at_once(process, tmp_path):
    path = docx(tmp_path / "a.docx", f"<w:p><w:r><w:t>{' ' * 110_000_000}</w:t></w:r></w:p>")
    with pytest.raises(ReadingError, match=r"a\.docx unpacks to 105 MB of XML: split it, or leave it out"):
        read(process, path)


def test_a_slow_file_is_given_up_and_the_process_replaced(tmp_path):
    (tmp_path / "a.html").write_text(ENDLESS)
    (tmp_path / "b.html").write_text("<p>One")
    with ReaderProcess(Bounds(seconds=0.5)) as process:
        with pytest.raises(ReadingError, match=r"took longer than 0\.5 seconds to read: raise .*`read_seconds`"):
            read(process, tmp_path / "a.html")
        assert read(process, tmp_path / "b.html") == ["One"]


@pytest.mark.skipif(not LISTED, reason="looks for processes as Linux lists them")
def test_one_process_serves_many_files_and_is_replaced_when_it_dies(tmp_path):
    (tmp_path / "a.html").write_text(ENDLESS)
    (tmp_path / "b.html").write_text("<p>One")
    (tmp_path / "a.txt").write_text("One")
    (tmp_path / "a.jsonl").write_text('{"text": "Two"}')
    (tmp_path / "bad.epub").write_text("no book")
    others = list_readers()
    with ReaderProcess() as own:
        assert read(own, tmp_path / "a.txt") + read(own, tmp_path / "a.jsonl") == ["One", "Two"]
        assert list_readers() == others, "plain text needs no process"
        for _ in range(2):
            assert read(own, tmp_path / "b.html") == ["One"]
        (first,) = {*list_readers()} - {*others}
        with pytest.raises(ReadingError, match="could not be converted"):
            read(own, tmp_path / "bad.epub")
        assert {*list_readers()} - {*others} == {first}, "a refusal does not end the process"
        threading.Timer(0.3, os.kill, (first, signal.SIGSEGV)).start()
        with pytest.raises(ReadingError, match=r"a\.html crashed its reader \(SIGSEGV\): repair it, or leave it out"):
            read(own, tmp_path / "a.html")
        assert read(own, tmp_path / "b.html") == ["One"]
        (second,) = {*list_readers()} - {*others}
        os.kill(second, signal.SIGKILL)  # between two files
        os.waitid(os.P_PID, second, os.WEXITED | os.WNOWAIT)
        assert read(own, tmp_path / "b.html") == ["One"]
    assert list_readers() == others


def test_closing_from_elsewhere_ends_a_reading_at_once(tmp_path):
    (tmp_path / "a.html").write_text(ENDLESS)
    process = ReaderProcess()
    threading.Timer(1.0, process.close).start()
    with pytest.raises(ReadingError, match=r"crashed its reader|did not start"):
        read(process, tmp_path / "a.html")
    with pytest.raises(ReadingError, match="reading was stopped"):
        read(process, tmp_path / "a.html")


@pytest.mark.parametrize("tag", ["div", "b", "blockquote", "ul><li", "table><tr><td"])
def test_300_nested_tags_are_read(process, tag, tmp_path):
    (tmp_path / "a.html").write_text(f"<{tag}>" * 300 + "deep")
    (text,) = read(process, tmp_path / "a.html")
    assert "deep" in text


def test_nothing_is_imported_from_the_current_folder(tmp_path, monkeypatch):
    for module in ("zipfile", "bs4", "tomewise", "json"):
        (tmp_path / f"{module}.py").write_text("open('ran', 'w')")
    (tmp_path / "a.html").write_text("<p>One")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    with ReaderProcess() as process:
        assert read(process, tmp_path / "a.html") == ["One"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "bounds", [{"seconds": 0}, {"memory": -1}, {"characters": 0}, {"documents": 0}, {"seconds": float("nan")}]
)
def test_bounds_that_allow_nothing_are_refused(bounds):
    with pytest.raises(UsageError, match=f"read_{next(iter(bounds))} is .*: give a number above 0"):
        Bounds(**bounds)


@pytest.mark.parametrize("name", ["a.mbox", "a.jsonl"])
def test_a_file_of_too_many_documents_is_refused_whole(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(MAILBOX if name == "a.mbox" else b'{"text": "rain"}\n' * 101)
    with ReaderProcess(Bounds(documents=101)) as process:
        assert len(read(process, path)) == 101
    with (
        ReaderProcess(Bounds(documents=100)) as process,
        pytest.raises(
            ReadingError, match=rf"{name} holds more than 100 documents: raise the setting `read_documents`, or leave"
        ),
    ):
        SourceReader(process).read(path)


@pytest.mark.parametrize(
    ("bound", "content", "message"),
    [
        ("documents", MAILBOX, "holds more than 100 documents: raise the setting `read_documents`"),
        ("characters", b"From a\nSubject: rain\n\n" + b"rain " * 30, "holds more than 100 characters"),
    ],
)
@pytest.mark.parametrize("door", ["file", "environment", "argument"])
def test_a_bound_is_set_at_every_door(door, bound, content, message, here, command, monkeypatch):
    (here / "a.mbox").write_bytes(content)
    if door == "argument":
        bounded = Tome.open(embedder="hash", settings={f"read_{bound}": 100})
        with bounded as tome, pytest.raises(ReadingError, match=message):
            tome.add("a.mbox")
        return
    if door == "file":
        assert command("config", "set", f"read_{bound}", "100").code == 0
    else:
        monkeypatch.setenv(f"TOMEWISE_READ_{bound.upper()}", "100")
    ran = command("add", "a.mbox")
    (line,) = ran.err.splitlines()
    assert (ran.code, message in line) == (3, True)


@pytest.mark.parametrize("suffix", ["jsonl", "mbox", "eml", "csv", "vtt", "ipynb", "html", "md"])
def test_a_sparse_file_of_30_gigabytes_is_refused_at_once(suffix, tmp_path):
    path = tmp_path / f"a.{suffix}"
    with path.open("wb") as file:
        file.write(b"From a\n")
        file.truncate(30 * 2**30)
    started = time.process_time()
    refuses = pytest.raises(ReadingError, match=r"raise the setting `read_(?:characters|memory)`, or leave it out")
    with ReaderProcess(Bounds(seconds=60, memory=200)) as process, refuses:
        SourceReader(process).read(path)
    assert time.process_time() - started < 10


@pytest.mark.parametrize("times", [2, 2_000])
def test_standard_input_keeps_to_the_bounds_of_files(times, monkeypatch, command):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"rain " * times)))
    with ReaderProcess(Bounds(characters=5 * times)) as process:
        assert [document.text for document in SourceReader(process).read("-").documents] == ["rain " * times]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"rain " * times)))
    monkeypatch.setenv("TOMEWISE_READ_CHARACTERS", "9")
    ran = command("add", "-")
    says = "standard input holds more than 9 characters of text: raise the setting `read_characters`"
    assert (ran.code, says in ran.err) == (3, True)


def test_standard_input_without_end_is_not_read_to_its_end(monkeypatch):
    wanted: list[int] = []

    def read(size: int = -1) -> bytes:
        wanted.append(size)
        return b"a" * size

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read=read)))
    refuses = pytest.raises(ReadingError, match="more than 100 characters")
    with ReaderProcess(Bounds(characters=100)) as process, refuses:
        SourceReader(process).read("-")
    assert wanted == [401]


@pytest.mark.skipif(not LISTED, reason="looks for processes as Linux lists them")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_a_kill_end_the_process_too(here, end):
    (here / "a.html").write_text(ENDLESS)
    words = [sys.executable, "-m", "tomewise", "add", "a.html", "--embedder", "hash"]
    tome = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: list_readers(tome.pid))
    (reader,) = list_readers(tome.pid)
    time.sleep(1)
    tome.send_signal(end)
    _, err = tome.communicate(timeout=SOON)
    wait_until(lambda: not Path(f"/proc/{reader}").exists())
    if end == signal.SIGINT:
        assert tome.returncode == 130
        assert "interrupted" in err
