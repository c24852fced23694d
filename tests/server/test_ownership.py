"""Which server the jobs beside a tome belong to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tomewise.server import ownership
from tomewise.server.ownership import Ownership, read_id


@pytest.fixture
def tome(tmp_path: Path) -> Path:
    path = tmp_path / "novel.tome"
    path.touch()
    return path


def test_a_job_of_a_dead_server_goes_to_one_living_server(tome: Path):
    dead, second, third = Ownership(), Ownership(), Ownership()
    folder = dead.make_folder(tome)
    (folder / "job.json").write_text("{}")
    assert second.take_over(tome) == [], "its server lives"
    dead.release()
    (taken,) = second.take_over(tome)
    assert read_id(taken) == read_id(folder)
    assert (taken / "job.json").exists()
    assert not folder.exists()
    assert third.take_over(tome) == []
    second.release()
    assert [read_id(each) for each in third.take_over(tome)] == [read_id(folder)]


def test_servers_that_start_at_once_share_what_is_left(tome: Path):
    dead = Ownership()
    left = sorted(read_id(dead.make_folder(tome)) for _ in range(20))
    dead.release()
    servers = [Ownership() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda server: server.take_over(tome), servers))
    assert sorted(read_id(folder) for folders in taken for folder in folders) == left
    assert all(folder.is_dir() for folders in taken for folder in folders)


def test_a_tome_without_jobs_gets_no_folder_for_them(tome: Path):
    assert Ownership().take_over(tome) == []
    assert not tome.with_name("novel.tome-jobs").exists()


def test_the_lock_of_another_user_is_that_of_a_living_server(tome: Path, monkeypatch: pytest.MonkeyPatch):
    dead = Ownership()
    folder = dead.make_folder(tome)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr(ownership.FileLock, "acquire", refuse)
    assert Ownership().take_over(tome) == []
    assert folder.is_dir()


def test_jobs_beside_which_no_lock_can_be_made_stay(tome: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tome.with_name("novel.tome-jobs") / f"{'a' * 8}-{'b' * 16}"
    folder.mkdir(parents=True)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("read only")

    monkeypatch.setattr(ownership.FileLock, "acquire", refuse)
    assert Ownership().take_over(tome) == []
    assert folder.is_dir()
