"""The folders beside a tome: what is opened, written, listed and deleted in them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tomewise.store.beside import FolderBeside, UnsafeFile


@pytest.fixture(params=[True, False], ids=["inside", "by path"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> FolderBeside:
    """Once as here, and once as on Windows, which opens no file relative to a folder."""
    (tmp_path / "a.tome").touch(mode=0o640)
    names = r"[a-z]+\.own|[a-z]+\.lock|deep"
    return FolderBeside(tmp_path / "a.tome", "-cache", names, opens_inside=request.param)


def test_a_file_is_whole_under_its_name_or_not_there(folder: FolderBeside) -> None:
    folder.make()
    with folder.write("a.own") as file:
        file.write(b"first")
    with pytest.raises(OSError, match="Invalid argument"), folder.write("a.own") as file:
        file.write(b"second") and file.seek(-1)
    with folder.open("a.own") as file:
        assert file.read() == b"first"
    assert [each.name for each in folder.path.iterdir()] == ["a.own"]
    modes = [path.stat().st_mode & 0o777 for path in (folder.path, folder.path / "a.own")]
    assert modes == [0o750, 0o640], "who may read the tome may read what is beside it"


def test_a_file_that_was_left_half_written_is_ours_to_delete(folder: FolderBeside) -> None:
    folder.make()
    (folder.path / "a.own.0123abcd.new").write_text("half")
    (folder.path / "a.own.0123abcd.new.txt").write_text("mine")
    assert folder.list_names() == ["a.own.0123abcd.new"]
    folder.delete_all()
    assert [each.name for each in folder.path.iterdir()] == ["a.own.0123abcd.new.txt"]
    (folder.path / "a.own.0123abcd.new.txt").unlink()
    assert folder.prepare_lock("a.lock").is_file()
    folder.delete_all()
    assert not folder.path.exists(), "an empty folder goes with its files"
    assert folder.list_names() == []


def test_names_of_others_are_neither_listed_nor_deleted(folder: FolderBeside) -> None:
    folder.make()
    for name in ("a.own", "A.own", "notes.txt", "a.own~"):
        (folder.path / name).write_text("x")
    (folder.path / "b.own").symlink_to(folder.path / "notes.txt")
    assert folder.list_names() == ["a.own"]
    assert folder.read_size("a.own") == 1
    with pytest.raises(UnsafeFile, match="not a name of ours"):
        folder.delete("notes.txt")
    folder.delete_all()
    assert sorted(each.name for each in folder.path.iterdir()) == ["A.own", "a.own~", "b.own", "notes.txt"]


def test_links_second_names_and_other_kinds_are_refused(folder: FolderBeside, tmp_path: Path) -> None:
    folder.make()
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (folder.path / "link.own").symlink_to(mine)
    os.link(mine, folder.path / "second.own")
    os.mkfifo(folder.path / "pipe.own")
    (folder.path / "folder.own").mkdir()
    reasons = {"link": "is a link", "second": "second name", "pipe": "not a plain file", "folder": "not a plain file"}
    for name, reason in reasons.items():
        for to_change in (False, True):
            with pytest.raises(UnsafeFile, match=reason):
                folder.open(f"{name}.own", to_change=to_change)
    with folder.write("link.own") as file:
        file.write(b"ours")
    assert mine.read_text() == "mine"
    assert not (folder.path / "link.own").is_symlink()


def test_a_folder_that_is_a_link_is_refused_and_so_is_what_is_below_it(folder: FolderBeside, tmp_path: Path) -> None:
    (tmp_path / "foreign" / "deep").mkdir(parents=True)
    folder.path.symlink_to(tmp_path / "foreign")
    assert folder.find_fault() == "is a link"
    deep = folder.find_folder("deep", "x")
    for use in (folder.make, folder.list_names, folder.delete_all, deep.list_names, lambda: deep.open("x")):
        with pytest.raises(UnsafeFile, match=r"a\.tome-cache is a link"):
            use()
    folder.path.unlink()
    folder.path.write_text("a file")
    assert folder.find_fault() == "is not a folder"
    folder.path.unlink()
    assert folder.find_fault() == "", "it does not exist yet"


def test_a_folder_in_the_folder_is_deleted_with_what_is_in_it_but_not_through_links(
    folder: FolderBeside, tmp_path: Path
) -> None:
    folder.make()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    (folder.path / "deep").mkdir()
    (folder.path / "deep" / "link").symlink_to(tmp_path / "mine")
    for delete in (folder.delete_all, lambda: folder.delete("deep")):
        with suppress(OSError):  # a file has this name elsewhere; here it is somebody's folder
            delete()
        assert (folder.path / "deep").is_dir()
    folder.delete_folder("deep")
    assert not (folder.path / "deep").exists()
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


def test_what_belongs_to_somebody_else_is_refused(folder: FolderBeside, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.make()
    with folder.write("a.own"):
        pass
    owner = folder.path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with folder.open("a.own"):
        pass  # the owner of the tome made it
    elsewhere = folder.path.with_name("b.tome")  # nobody's tome
    monkeypatch.setattr(Path, "stat", lambda path, **_: os.stat_result((0o100644, 0, 0, 1, owner + 2, 0, 0, 0, 0, 0)))
    stranger = FolderBeside(elsewhere, "", "x")
    stranger.path = folder.path
    assert stranger.find_fault() == "belongs neither to you nor to the owner of the tome"
