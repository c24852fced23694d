"""Which files of a folder are read: patterns of the user's, and files named .gitignore."""

from __future__ import annotations

from pathlib import Path

import pytest

from tomewise.errors import UsageError
from tomewise.reading.folder import FolderRules, list_files

SUFFIXES = frozenset({".txt", ".md", ".js"})


def make(root: Path, *names: str, **ignores: str) -> None:
    """Files with these names; `ignores` are the texts of the files .gitignore, by their folders (`_` for the root)."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("The rain fell.")
    for folder, text in ignores.items():
        (root / folder.strip("_") / ".gitignore").write_text(text)


def find(root: Path, **rules: object) -> list[str]:
    entries = list_files(root, SUFFIXES, FolderRules(**rules))  # type: ignore[arg-type]
    return [entry.relative_to(root).as_posix() for entry in entries if isinstance(entry, Path)]


def test_what_gitignore_leaves_out_is_left_out(tmp_path: Path) -> None:
    make(
        tmp_path,
        *("a.txt", "b.txt", "build/c.txt", "sub/build.md", "sub/d.txt", "sub/e.md", "sub/deep/d.txt", "keep/d.txt"),
        _="# builds\nbuild/\n/b.txt\nd.txt\n!keep/d.txt\n",
        sub="*.md\n!e.md\n!d.txt\n",  # the file that is deeper down has the last word
    )
    assert find(tmp_path) == ["a.txt", "keep/d.txt", "sub/d.txt", "sub/deep/d.txt", "sub/e.md"]
    assert len(find(tmp_path, ignored=True)) == 8


def test_the_files_above_count_within_a_repository_only(tmp_path: Path) -> None:
    make(tmp_path, "repo/notes/a.txt", "repo/notes/b.md", "repo/build/c.txt", "repo/build/c.md", repo="*.md\nbuild/\n")
    notes = tmp_path / "repo" / "notes"
    assert find(notes) == ["a.txt", "b.md"]
    (tmp_path / "repo" / ".git").mkdir()
    assert find(notes) == ["a.txt"]
    assert find(tmp_path / "repo" / "build") == ["c.md", "c.txt"], "it was named, so it is not left out"
    (notes / ".git").mkdir()
    assert find(notes) == ["a.txt", "b.md"], "a repository within another"


def test_patterns_of_the_user_choose_files(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "a.txt", "old/b.md", "old/b.txt", "new/old/c.md")
    assert find(tmp_path, include=["*.md"]) == ["a.md", "new/old/c.md", "old/b.md"]
    assert find(tmp_path, include=["*.md"], exclude=["old/"]) == ["a.md"]
    assert find(tmp_path, exclude=["/old"]) == ["a.md", "a.txt", "new/old/c.md"]
    assert find(tmp_path, include=["old/*"]) == ["old/b.md", "old/b.txt"]


def test_a_pattern_that_is_none_is_named(tmp_path: Path) -> None:
    make(tmp_path, "a.md")
    with pytest.raises(UsageError, match="cannot read the patterns"):
        find(tmp_path, exclude=["a[z-a]"])


def test_usual_wildcards_count_and_lines_after_the_first_thousand_do_not(tmp_path: Path) -> None:
    make(
        tmp_path,
        "my-secret-a.txt",
        "x/y/z/b.txt",
        "a.min.txt",
        "c.txt",
        _="*secret*\n**/y/**\n*.min.*\n" + "#\n" * 997 + "c.txt",
    )
    assert find(tmp_path) == ["c.txt"]


def test_a_gitignore_that_is_a_folder_or_too_large_says_nothing(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "sub/b.txt", _="#" * 300_000 + "\na.txt\n")
    (tmp_path / "sub" / ".gitignore").mkdir()
    assert find(tmp_path) == ["a.txt", "sub/b.txt"]


def test_a_tome_and_what_lies_beside_it_are_not_read(command, here: Path) -> None:
    make(here, "a.txt", "notes-cache/b.txt")
    assert "added 2 documents" in command("add", ".").out
    again = command("add", ".").out
    assert "unchanged 2 documents" in again
    assert again.count("belongs to a tome") == again.count("passed over") > 0
    assert find(here) == ["a.txt", "notes-cache/b.txt"]


def test_many_ignored_files_are_one_line_and_no_work(command, here: Path) -> None:
    names = [f"project/node_modules/p{number % 50}/f{number}.js" for number in range(100)]
    names += [f"project/logs/day{number}.txt" for number in range(200)]
    make(here, "project/a.md", "project/sub/b.md", *names)
    (here / "project" / ".gitignore").write_text("node_modules/\n*.txt\n")
    ran = command("add", here / "project")
    assert "added 2 documents: a.md, b.md" in ran.out
    assert "passed over day0.txt, day1.txt, day10.txt and 198 more: is left out by .gitignore" in ran.out
    assert len(ran.out.splitlines()) < 8
    ran = command("add", here / "project", "--all", "--exclude", "node_modules/", "--include", "day1*.txt")
    assert "111 documents" in ran.out


def test_folders_that_tools_fill_are_passed_over_and_said(command, here: Path) -> None:
    make(here, "a.md", "node_modules/p/b.md", "sub/site-packages/c.md", "env/pyvenv.cfg", "env/d.md", "build/e.md")
    ran = command("add", ".")
    assert "added 2 documents: a.md, e.md" in ran.out
    for folder in ("env", "node_modules", "site-packages"):
        assert f"passed over {folder}: holds what a tool put there: name it, or give --all" in ran.out
    assert "added 1 document: b.md" in command("add", "node_modules").out
    assert "added 3 documents: d.md, pyvenv.cfg, c.md" in command("add", ".", "--all").out
