"""`kill -9` in the middle of `tome add --sync` of a folder whose files change, move and go, and what the tome holds.

`python bench/sync.py [--rounds 200] [--seed 0]`. Before each round some files of the folder are written, changed, moved
or deleted; then the command runs, and is killed after a random time. After each kill the tome must be sound: each
document whole, and equal to what its file held at some time. Every ten rounds the command runs to its end; then the
tome must equal a new one made from the folder as it is.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tomewise.store.lookups import read_vectors

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from tests.texts import prose

from soak import Commands
from tomewise.tome.tome import Tome

_EACH = 10  # rounds until the command runs to its end


def change_folder(folder: Path, dice: random.Random) -> None:
    """Write, change, move or delete some files."""
    for _ in range(dice.randint(1, 6)):
        files = sorted(folder.rglob("*.txt"))
        file = dice.choice(files) if files else folder / "first.txt"
        kind = dice.choice(("write", "write", "change", "move", "delete", "copy"))
        target = folder / dice.choice("abc") / f"{dice.randrange(40)}.txt"
        target.parent.mkdir(exist_ok=True)
        if kind in ("write", "change") or not files:
            (target if kind == "write" else file).write_text(prose(dice.randrange(10**6), dice.randint(3, 60)))
        elif kind == "move":
            file.rename(target)
        elif kind == "copy":
            target.write_bytes(file.read_bytes())
        else:
            file.unlink()


def export(path: Path) -> list[str]:
    with Tome.open(path, embedder="hash") as tome:
        return list(tome.memory.export())


def check(path: Path, seen: set[str]) -> int:
    """Check that a tome is sound and holds nothing but texts that files had. Returns its documents."""
    if not path.exists():
        return 0
    with Tome.open(path, embedder="hash") as tome:
        assert tome.store.find_damage() == ""
        records = tome.documents()
        for record in records:
            assert tome.documents[record.id].text in seen, f"{record.id} is not what any file held"
        assert len(read_vectors(tome.store, "passages").keys) == len(tome.store.passages())
    return len(records)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as place:
        folder, path, fresh = Path(place) / "files", Path(place) / "a.tome", Path(place) / "fresh.tome"
        folder.mkdir()
        commands = Commands(Path(place))
        own = ["--embedder", "hash", "--passage-tokens", "64"]
        words = ["-m", str(path), "add", str(folder), "--sync", *own]
        seen: set[str] = set()
        longest, killed = 1.0, 0
        for number in range(1, options.rounds + 1):
            change_folder(folder, dice)
            seen |= {file.read_text() for file in folder.rglob("*.txt")}
            if number % _EACH:
                killed += commands.run(words, dice.uniform(0, longest)) == -9
                check(path, seen)
                continue
            start = time.perf_counter()
            code = commands.run(words)
            assert code == 0, commands.read_errors()
            longest = min(5.0, max(0.2, time.perf_counter() - start))
            documents = check(path, seen)
            for file in Path(place).glob("fresh.tome*"):
                if file.is_file():
                    file.unlink()
            assert commands.run(["-m", str(fresh), "add", str(folder), *own]) == 0, commands.read_errors()
            assert export(path) == export(fresh), "the tome differs from a new one of the same folder"
            print(f"round {number}: {killed} kills, {documents} documents, equal to a new tome", flush=True)
        commands.close()


if __name__ == "__main__":
    main()
