"""Documents that unfold to far more than their files: each is one line of an error, and the next file is read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest
from tests.patience import SOON, wait_until
from tests.reading.documents import EPUB, docx, pdf, write_zip

from tomewise.errors import ReadingError, UsageError
from tomewise.reading.bounds import Bounds
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import SourceReader
from tomewise.tome.tome import Tome

SPACES = " " * 10_000_000
MAILBOX = b"From a\nSubject: rain\n\nbody\n\n" * 101
ENDLESS = ("<b>" * 300 + "x" + "</b>" * 300) * 5_000  # minutes of conversion


@pytest.fixture(scope="module")
def process():
    """Reads within 100 MB and a million characters."""
    with ReaderProcess(Bounds(seconds=60, memory=100, characters=1_000_000)) as process:
        yield process


def read(process: ReaderProcess, path: Path) -> list[str]:
    return [document.text for document in SourceReader(process).read(path).documents]


def deflate_twice(path: Path) -> Path:
    """A PDF of 2 KB whose page is a stream of 150 MB."""
    squeeze = zlib.compressobj(9)
    once = b"".join(squeeze.compress(SPACES.encode()) for _ in range(15)) + squeeze.flush()
    stream = zlib.compress(once, 9)
    plain = pdf("x")
    begin, end = plain.index(b"<< /Length"), plain.index(b"endstream")
    head = b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n" % len(stream)
    path.write_bytes(plain[:begin] + head + stream + b"\n" + plain[end:])
    return path


def wide_docx(path: Path) -> Path:
    return docx(path, "<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 200_000)


def wide_epub(path: Path) -> Path:
    return write_zip(path, {**EPUB, "c.xhtml": f"<p>{'<i>a</i>' * 400_000}</p>"})


@pytest.mark.parametrize("make", [deflate_twice, wide_docx, wide_epub])
def test_a_bomb_is_refused_for_its_memory_and_the_next_file_is_read(process, make, tmp_path):
    path = make(tmp_path / {"deflate_twice": "a.pdf", "wide_docx": "a.docx", "wide_epub": "a.epub"}[make.__name__])
    assert path.stat().st_size < 300_000
    with pytest.raises(ReadingError, match=r"takes more than 100 MB of memory to read: raise .*`read_memory`"):
        read(process, path)
    (tmp_path / "b.html").write_text("<p>One")
    assert read(process, tmp_path / "b.html") == ["One"]


def test_a_docx_of_more_xml_than_a_reader_can_take_is_refused_at_once(process, tmp_path):
    path = docx(tmp_path / "a.docx", f"<w:p><w:r><w:t>{SPACES * 11}</w:t></w:r></w:p>")
    with pytest.raises(ReadingError, match=r"a\.docx unpacks to 105 MB of XML: split it, or leave it out"):
        read(process, path)


def test_a_text_without_end_is_refused_for_its_characters(process, tmp_path):
    archive = write_zip(tmp_path / "a.epub", {**EPUB, "c.xhtml": "<p>" + "abc " * 300_000})
    assert archive.stat().st_size < 20_000
    with pytest.raises(ReadingError, match=r"holds more than 1,000,000 characters of text: raise .*`read_characters`"):
        read(process, archive)


def test_a_slow_file_is_given_up_and_the_process_replaced(tmp_path):
    (tmp_path / "a.html").write_text(ENDLESS)
    (tmp_path / "b.html").write_text("<p>One")
    with ReaderProcess(Bounds(seconds=0.5)) as process:
        with pytest.raises(ReadingError, match=r"took longer than 0\.5 seconds to read: raise .*`read_seconds`"):
            read(process, tmp_path / "a.html")
        assert read(process, tmp_path / "b.html") == ["One"]


def test_one_process_serves_many_files(process, tmp_path):
    served = set()
    for number in range(3):
        (tmp_path / f"{number}.html").write_text(f"<p>{number}")
        assert read(process, tmp_path / f"{number}.html") == [str(number)]
        served.add(process._worker._process.pid)
    (tmp_path / "bad.epub").write_text("no book")
    with pytest.raises(ReadingError, match="could not be converted"):
        read(process, tmp_path / "bad.epub")
    assert {process._worker._process.pid} == served  # a refusal does not end the process


def test_a_process_that_dies_is_named_and_replaced(process, tmp_path):
    (tmp_path / "a.html").write_text(ENDLESS)
    (tmp_path / "b.html").write_text("<p>One")
    read(process, tmp_path / "b.html")
    threading.Timer(0.3, os.kill, (process._worker._process.pid, signal.SIGSEGV)).start()
    with pytest.raises(ReadingError, match=r"a\.html crashed its reader \(SIGSEGV\): repair it, or leave it out"):
        read(process, tmp_path / "a.html")
    assert read(process, tmp_path / "b.html") == ["One"]


def test_a_process_that_was_killed_between_two_files_is_replaced(tmp_path):
    path = tmp_path / "a.html"
    path.write_text("<p>Hello</p>")
    with ReaderProcess() as own:
        assert read(own, path) == ["Hello"]
        own._worker.kill()
        own._worker._process.wait(SOON)
        assert read(own, path) == ["Hello"]


def test_closing_from_elsewhere_ends_a_reading_at_once(tmp_path):
    (tmp_path / "a.html").write_text(ENDLESS)
    process = ReaderProcess()
    threading.Timer(1.0, process.close).start()
    with pytest.raises(ReadingError, match=r"crashed its reader|did not start"):
        read(process, tmp_path / "a.html")
    with pytest.raises(ReadingError, match="reading was stopped"):
        read(process, tmp_path / "a.html")


def test_a_plain_text_is_refused_for_its_characters_before_it_is_read(process, tmp_path):
    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ReadingError, match=r"holds more than 1,000,000 characters of text: raise .*`read_characters`"):
        read(process, path)
    path.write_text("ab " * 400_000)
    with pytest.raises(ReadingError, match=r"holds more than 1,000,000 characters of text"):
        read(process, path)


def test_plain_text_needs_no_process(tmp_path):
    (tmp_path / "a.txt").write_text("One")
    (tmp_path / "a.jsonl").write_text('{"text": "Two"}')
    with ReaderProcess() as process:
        assert read(process, tmp_path / "a.txt") + read(process, tmp_path / "a.jsonl") == ["One", "Two"]
        assert process._worker is None


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


@pytest.mark.parametrize("door", ["file", "environment", "argument"])
def test_the_limit_on_documents_is_set_at_every_door(door, here, command, monkeypatch):
    (here / "a.mbox").write_bytes(MAILBOX)
    if door == "argument":
        with (
            Tome.open(embedder="hash", read_documents=100) as tome,
            pytest.raises(ReadingError, match="holds more than 100 documents"),
        ):
            tome.add("a.mbox")
        with Tome.open(embedder="hash", read_documents=101) as tome:
            assert len(tome.add("a.mbox").added) == 101
        return
    if door == "file":
        assert command("config", "set", "read_documents", "100").code == 0
    else:
        monkeypatch.setenv("TOMEWISE_READ_DOCUMENTS", "100")
    ran = command("add", "a.mbox")
    (line,) = ran.err.splitlines()
    assert (ran.code, "holds more than 100 documents: raise the setting `read_documents`" in line) == (3, True)


def test_settings_bound_what_a_tome_reads(here):
    (here / "a.html").write_text("<p>One two three")
    with (
        Tome.open(embedder="hash", read_characters=5) as tome,
        pytest.raises(ReadingError, match="holds more than 5 characters"),
    ):
        tome.add("a.html")


def test_the_command_takes_bounds_from_the_environment(command, here, monkeypatch):
    (here / "a.html").write_text("<p>One two three")
    monkeypatch.setenv("TOMEWISE_READ_CHARACTERS", "5")
    ran = command("add", "a.html")
    assert (ran.code, "holds more than 5 characters" in ran.err) == (3, True)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks for processes as Linux lists them")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_a_kill_end_the_process_too(here, end):
    (here / "a.html").write_text(ENDLESS)
    words = [sys.executable, "-m", "tomewise", "add", "a.html", "--embedder", "hash"]
    tome = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: list_children(tome.pid))
    (reader,) = list_children(tome.pid)
    time.sleep(1)
    tome.send_signal(end)
    _, err = tome.communicate(timeout=SOON)
    wait_until(lambda: not Path(f"/proc/{reader}").exists())
    if end == signal.SIGINT:
        assert tome.returncode == 130
        assert "interrupted" in err


def list_children(pid: int) -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if parent(path) == pid]


def parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0
