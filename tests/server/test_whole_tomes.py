"""Whole tomes over HTTP: opened, made, renamed, deleted, exported and imported; and what refuses to be half of that."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.patience import SOON, wait_until
from tests.server.served import ASK, NOVEL, make_client, read_code

from tomewise.errors import UsageError
from tomewise.server.library import Library
from tomewise.settings import Settings
from tomewise.store.rights import work_alone
from tomewise.tome.open_store import export_all, open_store
from tomewise.tome.tome import Tome
from tomewise.types import Document

LINES = {"content-type": "application/jsonl"}
OPENAI = "openai:text-embedding-3-small"  # its dimensions are known, so nobody is asked


@pytest.fixture(name="root")
def make_root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    with Tome.open(tmp_path / "root" / "novel.tome", embedder="hash") as tome:
        tome.add(Document(id="d1", text="Ada put out the light."))
        tome.ask("Who put out the light?")
    return tmp_path / "root"


@pytest.fixture
def client(root: Path) -> Iterator[TestClient]:
    with Tome.open(root.parent / "own.tome", embedder="hash") as tome:
        tome.add(Document(id="d1", text="The owner's own."))
    with make_client(root, [root.parent / "own.tome"], embedder="hash") as made:
        yield made


def add(client: TestClient, tome: str, text: str) -> str:
    """The id of a new job."""
    return str(client.post(f"/api/tomes/{tome}/documents", json={"id": text, "text": text}).json()["id"])


def delete(client: TestClient, name: str = "novel", **confirm: str) -> Any:
    return client.delete(f"/api/tomes/{name}", params={"confirm": name} | confirm)


def rename(client: TestClient, name: str, tome: str = "novel") -> Any:
    return client.post(f"/api/tomes/{tome}/rename", json={"name": name})


def fill(client: TestClient, content: bytes | str, tome: str = "copy") -> Any:
    """Import these lines."""
    return client.post(f"/api/tomes/{tome}/import", content=content, headers=LINES)


def wait_for(client: TestClient, job: str, *states: str) -> None:
    wait_until(lambda: client.get(f"/api/jobs/{job}").json()["state"] in states)


def test_a_tome_is_renamed_with_its_answers_and_jobs(client: TestClient, root: Path):
    wait_for(client, job := add(client, "novel", "The clerk forged the letter."), "done")
    client.post(ASK, json={"question": "Who forged the letter?"})
    renamed = rename(client, "new_name")
    contents = renamed.json()["contents"]
    assert (renamed.status_code, contents["tome"], len(contents["documents"])) == (200, "new_name", 2)
    assert client.get(NOVEL).status_code == 404
    assert len(client.get("/api/tomes/new_name/traces").json()["traces"]) == 2
    assert client.get(f"/api/jobs/{job}").json()["tome"] == "new_name"
    assert sorted(path.name for path in root.iterdir() if "novel" in path.name) == []
    wait_for(client, add(client, "new_name", "One more."), "done")
    assert client.get("/api/tomes").json()["sizes"]["new_name"] > 0


@pytest.mark.parametrize("name", ["", "../out", "x" * 65, "novel", "own", ".hidden", "a\x00b"])
def test_a_name_that_no_new_tome_can_have_is_refused(client: TestClient, root: Path, name: str):
    assert read_code(rename(client, name)) == (400, "usage")
    assert (root / "novel.tome").exists()
    assert len(list(root.parent.glob("*.tome"))) == 1


def test_a_tome_is_deleted_only_with_its_name_and_leaves_nothing(client: TestClient, root: Path):
    wait_for(client, job := add(client, "novel", "The clerk forged the letter."), "done")
    for confirm in ("", "Novel", "other"):
        assert read_code(delete(client, confirm=confirm)) == (400, "usage")
    assert read_code(client.delete("/api/tomes/novel")) == (400, "usage")
    assert delete(client).json() == {"deleted": "novel"}
    assert list(root.iterdir()) == []
    assert read_code(delete(client)) == (404, "unknown_name")
    assert client.get(f"/api/jobs/{job}").status_code == 404
    assert client.post("/api/tomes", json={"name": "novel"}).status_code == 201  # the name is free again
    assert client.get(NOVEL).json()["contents"]["documents"] == []


def test_a_tome_that_was_named_on_the_command_line_stays(client: TestClient, root: Path):
    assert client.get("/api/tomes/own").json()["is_owned"] is False
    assert client.get(NOVEL).json()["is_owned"] is True
    assert read_code(delete(client, "own")) == (400, "usage")
    assert read_code(rename(client, "mine", "own")) == (400, "usage")
    assert client.get("/api/tomes/own").status_code == 200


def test_while_a_question_or_a_job_works_a_tome_stays_whole(client: TestClient, root: Path):
    def assert_locked() -> None:
        assert read_code(delete(client)) == (409, "locked")
        assert read_code(rename(client, "other")) == (409, "locked")

    with client.app.state.service.library.hold("novel"):  # type: ignore[attr-defined]
        assert_locked()
    program = open_store(root / "novel.tome")  # a second one
    with work_alone(program, "build"):
        job = add(client, "novel", "It waits.")
        wait_for(client, job, "waiting")
        assert_locked()
        client.delete(f"/api/jobs/{job}")
        assert_locked()  # the second program is still writing
    assert read_code(rename(client, "other")) == (409, "locked")  # or has it open
    program.close()
    answer = client.post(ASK, json={"question": "Who put out the light?"}).json()
    assert answer["statements"]
    assert delete(client).status_code == 200


def test_an_export_is_what_the_command_prints_and_makes_an_equal_tome(client: TestClient, root: Path):
    exported = client.get(f"{NOVEL}/export")
    assert exported.headers["content-disposition"] == "attachment; filename*=UTF-8''novel.jsonl"
    assert exported.text.splitlines() == list(export_all(root / "novel.tome"))
    made = fill(client, exported.content)
    assert (made.status_code, made.json()["contents"]["tome"]) == (201, "copy")
    assert list(export_all(root / "copy.tome")) == list(export_all(root / "novel.tome"))
    for name in ("copy", "own", "..", "a.b"):
        assert fill(client, exported.content, name).status_code in (400, 404, 405), name
    unknown = exported.text.replace('"value": "hash', '"value": "nobody:has-this')
    assert fill(client, unknown, "third").status_code >= 400
    assert not list(root.glob("third*"))


@pytest.mark.parametrize("sent", [b"", b"no JSON", b'{"tomewise": 6}\n{"table": "documents"}', b'{"tomewise": 99}'])
def test_lines_that_make_no_tome_leave_none(client: TestClient, root: Path, sent: bytes):
    reply = fill(client, sent)
    assert read_code(reply) == (409, "store")
    assert str(root) not in reply.text
    assert sorted(path.name for path in root.iterdir() if not path.name.startswith("novel")) == []


def test_an_import_is_no_form_and_has_the_bound_of_uploads(client: TestClient):
    form = {"files": ("x.jsonl", b"{}")}
    assert read_code(client.post("/api/tomes/copy/import", files=form)) == (415, "media_type")
    assert read_code(client.post("/api/tomes/copy/import", json={})) == (415, "media_type")
    large = LINES | {"content-length": "100000001"}
    assert read_code(client.post("/api/tomes/copy/import", content=b"{}", headers=large)) == (413, "too_large")


@pytest.mark.parametrize(
    ("embedder", "address"),
    [
        ("openai:evil", "http://127.0.0.1:1/admin/secret"),
        (OPENAI, None),
        ("fastembed:BAAI/bge-small-en-v1.5", None),
        ("sentence-transformers:somebody/model", None),
        ("/etc", None),
    ],
)
def test_an_import_or_a_new_tome_names_no_embedder_but_those_of_the_server(
    client: TestClient, root: Path, embedder: str, address: str | None
):
    reply = fill(client, write_export(root.parent, embedder, address))
    assert read_code(reply) == (400, "usage")
    assert "tome import" in reply.json()["error"]["message"]
    assert list(root.glob("copy*")) == list(root.glob(".*.import*")) == []
    assert read_code(client.post("/api/tomes", json={"name": "copy", "embedder": embedder})) == (400, "usage")
    assert list(root.glob("copy*")) == []
    assert client.post("/api/tomes", json={"name": "copy", "embedder": "hash:64"}).status_code == 201


def test_a_new_tome_or_an_import_may_have_the_embedder_of_the_server_at_its_own_address(root: Path):
    own = "http://127.0.0.1:1/v1"
    with make_client(root, embedder=OPENAI, embedder_base_url=own) as client:
        assert client.post("/api/tomes", json={"name": "new", "embedder": OPENAI}).status_code == 201
        for address, status in [("http://127.0.0.1:2/v1", 400), (None, 400), (own, 201)]:
            assert fill(client, write_export(root.parent, OPENAI, address)).status_code == status


def write_export(folder: Path, embedder: str, address: str | None) -> bytes:
    """The export of an empty tome that was made with this embedder at this address."""
    (path := folder / "elsewhere.tome").unlink(missing_ok=True)
    Tome.open(path, embedder=OPENAI, settings={"embedder_base_url": address}).close()
    return "\n".join(export_all(path)).replace(json.dumps(OPENAI), json.dumps(embedder)).encode()


def test_imports_have_a_bound_in_seconds_and_do_not_keep_the_name(root: Path):
    async def send_for_ever() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async def fill_while_another_sends() -> None:
        library = Library(Settings(), root=root)
        slow = [asyncio.create_task(library.fill("copy", "it", send_for_ever(), SOON)) for _ in range(2)]
        await asyncio.sleep(0)
        await library.create("copy")  # nobody holds the name
        with pytest.raises(TimeoutError):  # two others have their turn
            await library.fill("third", "it", send_for_ever(), 0.01)
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        with pytest.raises(TimeoutError):  # it has its turn, and does not arrive
            await library.fill("third", "it", send_for_ever(), 0.01)
        await library.close()

    asyncio.run(fill_while_another_sends())
    assert sorted(path.name for path in root.glob("*.tome")) == ["copy.tome", "novel.tome"]


async def test_renames_that_cross_wait_for_each_other_in_one_order(root: Path):
    with Tome.open(root / "other.tome", embedder="hash") as tome:
        tome.add(Document(id="d1", text="Tom Reed built the boat."))
    library = Library(Settings(), root=root)
    opening = [library.open(name) for name in ("novel", "other")]  # each holds a name that both renames wait for
    renames = [library.rename("novel", "other"), library.rename("other", "novel")]
    ended = await asyncio.wait_for(asyncio.gather(*opening, *renames, return_exceptions=True), SOON)
    assert [type(each) for each in ended] == [Tome, Tome, UsageError, UsageError]
    await library.close()


def test_a_name_beside_which_jobs_were_left_is_refused(client: TestClient, root: Path):
    wait_for(client, job := add(client, "novel", "The clerk forged the letter."), "done")
    left = root / "left.tome-jobs"
    (left / "something").mkdir(parents=True)
    for path in ("novel/rename", ""):
        reply = client.post(f"/api/tomes/{path}".rstrip("/"), json={"name": "left"})
        assert read_code(reply) == (400, "usage")
        assert "left.tome-jobs" in reply.json()["error"]["message"]
    (left / "something").rmdir()  # an empty folder holds nothing that could be lost
    assert rename(client, "left").status_code == 200
    assert len(list(left.glob(f"*-{job}"))) == 1


def test_drafts_of_killed_imports_are_deleted_at_the_start_and_no_other_file(root: Path):
    dead = [root / f".{'a' * 32}.import{end}" for end in ("", "-wal", "-shm")]
    fresh, foreign = root / f".{'b' * 32}.import", root / ".notes.import"
    linked, target = root / f".{'c' * 32}.import", root.parent / "target"
    for path in (*dead, fresh, foreign, target):
        path.write_text("x")
        os.utime(path, (1, time.time() if path == fresh else 1))
    linked.symlink_to(target)
    with make_client(root):
        assert not any(path.exists() for path in dead)
        assert all(path.exists() for path in (fresh, foreign, linked, target))


@pytest.fixture(autouse=True)
def no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def make_at(path: Path, address: str) -> Path:
    Tome.open(path, embedder=OPENAI, settings={"embedder_base_url": address}).close()
    return path


async def test_each_tome_has_its_embedder_at_the_address_that_it_remembers(tmp_path: Path):
    addresses = ["http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1"]
    files = [make_at(tmp_path / f"{number}.tome", address) for number, address in enumerate(addresses)]
    files.append(make_at(tmp_path / "2.tome", addresses[0]))
    library = Library(Settings(), files)
    tomes = [await library.open(name) for name in library.names()]
    embedders = [tome.kit.embedder._embedder for tome in tomes]  # behind the cache of each tome
    assert [getattr(each, "address", "") for each in embedders] == [*addresses, addresses[0]]
    assert embedders[0] is embedders[2]
    await library.close()
