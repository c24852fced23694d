"""What is removed is gone from the file of a tome, once it is closed: texts, titles, names, and the index of words."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tomewise.store.sql import sqlite_rows
from tomewise.tome.tome import Tome
from tomewise.types import Document

LETTERS = "bcdfghjklmnpqrstvwxz"
SECRETS = "zyxqwv", "vutsrq", "ponmlk", "jihgfd"
SECRET = " ".join(f"Zyxqwv{n} met Vutsrq{n} at Ponmlk{n} in the harbour of Jihgfd{n}." for n in range(40))
PLAIN = "The rain fell on the harbour, and the clerk wrote a letter to the doctor. "


def find_words(folder: Path, *words: str) -> dict[str, list[str]]:
    """The words that stand in the files of a folder, by file."""
    contents = {file.name: file.read_bytes().lower() for file in folder.rglob("*") if file.is_file()}
    found = {name: [word for word in words if word.encode() in content] for name, content in contents.items()}
    return {name: words for name, words in found.items() if words}


def remove(tome: Tome, folder: Path) -> None:
    tome.remove(str(folder / "texts" / "secret.txt"))


def replace(tome: Tome, folder: Path) -> None:
    (folder / "texts" / "secret.txt").write_text(PLAIN)
    tome.add(folder / "texts")


def lose(tome: Tome, folder: Path) -> None:
    (folder / "texts" / "secret.txt").unlink()
    tome.add(folder / "texts", sync=True)


@pytest.mark.parametrize("forget", [remove, replace, lose])
@pytest.mark.parametrize("copies", [1, 3])
def test_the_words_of_what_was_removed_are_in_no_file(
    here: Path, forget: Callable[[Tome, Path], None], copies: int
) -> None:
    (here / "texts").mkdir()
    for number in range(6):
        (here / "texts" / f"plain{number}.txt").write_text(PLAIN * 60)
    (here / "texts" / "secret.txt").write_text(SECRET * copies)
    with Tome.open(here / "memory.tome", embedder="hash", settings={"passage_tokens": 48}) as tome:
        tome.add(here / "texts")
        tome.build("raptor")
    (before,) = find_words(here, *SECRETS).keys() - {"secret.txt"}
    assert before == "memory.tome"
    with Tome.open(here / "memory.tome") as tome:
        forget(tome, here)
    (here / "texts" / "secret.txt").unlink(missing_ok=True)
    assert find_words(here, *SECRETS).keys() <= {"memory.tome"}
    with closing(sqlite3.connect(here / "memory.tome")) as file, file:  # kept replies stay, see SECURITY.md
        file.execute("PRAGMA secure_delete = ON")
        file.execute("DELETE FROM calls")
    assert find_words(here, *SECRETS) == {}
    with Tome.open(here / "memory.tome") as tome:
        assert tome.search("Who wrote to the doctor?", system="hybrid")
        assert tome.store.find_damage() == ""


def test_many_that_are_removed_one_by_one_leave_nothing(here: Path) -> None:
    words = [f"{letter * 3}{second}zyx" for letter in LETTERS for second in LETTERS[:3]]
    with Tome.open(here / "memory.tome", embedder="hash", settings={"passage_tokens": 48}) as tome:
        for number, word in enumerate(words):
            text = " ".join(f"{word}{line} lay in the fog." for line in range(5 + number % 60))
            tome.add(Document(id=f"name {word}", title=f"title {word}", text=text, metadata={"field": word}))
    gone = words[::2]
    with Tome.open(here / "memory.tome") as tome:
        for word in gone:
            tome.remove(f"name {word}")
    assert find_words(here, *gone) == {}
    assert find_words(here, *words[1::2]) == {"memory.tome": words[1::2]}


def test_the_words_of_a_very_large_tome_go_with_its_caches(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_rows, "MANY_PASSAGES", 3)
    with Tome.open(here / "memory.tome", embedder="hash", settings={"passage_tokens": 48}) as tome:
        tome.add(*(Document(id=f"d{number}", text=PLAIN * 9) for number in range(4)), Document(id="gone", text=SECRET))
        tome.remove("gone")
        tome.clean()
    assert find_words(here, *SECRETS) == {}
