"""Which server the jobs beside a tome belong to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tomewise.server import ownership
from tomewise.server.ownership import Ownership, read_id


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return tmp_path / "novel.tome-jobs"


def test_a_job_of_a_dead_server_goes_to_one_living_server(jobs: Path):
    dead, second, third = Ownership(), Ownership(), Ownership()
    folder = dead.make_folder(jobs)
    (folder / "job.json").write_text("{}")
    assert second.take_over(jobs) == [], "its server lives"
    dead.release()
    (taken,) = second.take_over(jobs)
    assert read_id(taken) == read_id(folder)
    assert (taken / "job.json").exists()
    assert not folder.exists()
    assert third.take_over(jobs) == []
    second.release()
    assert [read_id(each) for each in third.take_over(jobs)] == [read_id(folder)]


def test_servers_that_start_at_once_share_what_is_left(jobs: Path):
    dead = Ownership()
    left = sorted(read_id(dead.make_folder(jobs)) for _ in range(20))
    dead.release()
    servers = [Ownership() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda server: server.take_over(jobs), servers))
    assert sorted(read_id(folder) for folders in taken for folder in folders) == left
    assert all(folder.is_dir() for folders in taken for folder in folders)


def test_a_tome_without_jobs_gets_no_folder_for_them(jobs: Path):
    assert Ownership().take_over(jobs) == []
    assert not jobs.exists()


def test_the_lock_of_another_user_is_that_of_a_living_server(jobs: Path, monkeypatch: pytest.MonkeyPatch):
    dead = Ownership()
    folder = dead.make_folder(jobs)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr(ownership.FileLock, "acquire", refuse)
    assert Ownership().take_over(jobs) == []
    assert folder.is_dir()


def test_jobs_beside_which_no_lock_can_be_made_stay(jobs: Path, monkeypatch: pytest.MonkeyPatch):
    folder = jobs / "dead-job"
    folder.mkdir(parents=True)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("read only")

    monkeypatch.setattr(ownership.FileLock, "acquire", refuse)
    assert Ownership().take_over(jobs) == []
    assert folder.is_dir()
