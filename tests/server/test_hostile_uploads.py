"""Files that nobody should upload: each is named with its reason within bounds, and the others are kept."""

from __future__ import annotations

import io
import re
import time
import zipfile
from pathlib import Path

import pytest
from tests.hostile.test_reading_bounds import ENDLESS, MAILBOX, deflate_twice
from tests.reading.documents import docx, pdf
from tests.server.conftest import make_tome
from tests.server.served import Served, serve

UPLOAD = "/api/tomes/novel/documents"
ENCRYPTION = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00><00>]" % (
    b"41" * 32,
    b"42" * 32,
)
BOUNDS = "takes more than 100 MB of memory|took longer than 5 seconds"  # a busy machine finds the second first


def nest_archives() -> bytes:
    """An archive in an archive."""
    nested = io.BytesIO()
    with zipfile.ZipFile(nested, "w") as archive:
        archive.writestr("inner.zip", b"PK\x03\x04" * 100)
    return nested.getvalue()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bytes, str]]:
    """By name the bytes of a file and the reason that its refusal names."""
    folder = tmp_path_factory.mktemp("files")
    return {
        "slow.html": (ENDLESS.encode(), "took longer than 5 seconds to read|more than 100 MB of memory"),
        "wide.docx": (
            docx(folder / "a", "<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 200_000).read_bytes(),
            BOUNDS,
        ),
        "endless.pdf": (deflate_twice(folder / "b").read_bytes(), BOUNDS),
        "locked.pdf": (pdf("Rain.").replace(b"/Root 1 0 R", b"/Root 1 0 R " + ENCRYPTION), "needs a password"),
        "nested.epub": (nest_archives(), "could not be converted"),
        "nested.txt": (nest_archives(), "is binary, not text"),
        "wrong.docx": (b"This is plain text.", "could not be converted"),
        "wrong.pdf": (b"This is plain text.", "could not be converted"),
        "many.mbox": (MAILBOX, "holds more than 100 documents: raise the setting `read_documents`"),
        "many.jsonl": (b'{"text": "rain"}\n' * 101, "holds more than 100 documents"),
    }


@pytest.fixture(scope="module", name="bounded")
def serve_within_bounds(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("served")
    make_tome(folder / "novel.tome")
    bounds = {"TOMEWISE_READ_SECONDS": "5", "TOMEWISE_READ_MEMORY": "100", "TOMEWISE_READ_DOCUMENTS": "100"}
    with serve(folder, "novel.tome", **bounds) as running:
        yield running


def test_each_is_named_and_a_good_one_is_kept(bounded: Served, files: dict[str, tuple[bytes, str]]) -> None:
    form = [("files", (name, data)) for name, (data, _) in files.items()]
    form.insert(3, ("files", ("good.txt", b"The miller bought the horse.")))
    job = bounded.http.post(UPLOAD, files=form).json()["id"]
    healthy = 0
    while (state := bounded.http.get(f"/api/jobs/{job}").json())["state"] in ("queued", "running"):
        assert bounded.http.get("/api/health").json() == {"ok": True}
        healthy += 1
        time.sleep(0.05)
    assert (state["state"], state["report"]["added"]) == ("done", ["good.txt"])
    assert state["report"]["failed"].keys() == files.keys()
    for name, message in state["report"]["failed"].items():
        assert re.search(files[name][1], message)
        assert name in message
        assert "-jobs" not in message  # the file's place on the disk is nobody's business
    assert healthy > 1, "others are answered meanwhile"


@pytest.mark.parametrize("name", ["locked.pdf", "nested.txt", "wrong.docx"])
def test_a_job_of_one_such_file_fails_with_its_reason(
    bounded: Served, files: dict[str, tuple[bytes, str]], name: str, tmp_path: Path
) -> None:
    data, reason = files[name]
    job = bounded.http.post(UPLOAD, files={"files": (name, data)}).json()["id"]
    ended = bounded.wait_for_job(job)
    assert (ended["state"], ended["error"]["code"]) == ("failed", "reading")
    assert re.search(reason, ended["error"]["message"])
    assert bounded.http.get("/api/health").json() == {"ok": True}
