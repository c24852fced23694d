"""`kill -9` in the middle of `tome add` of the novel, at random moments, and what is there afterwards.

`python bench/kill.py [--embedder hash] [--times 20] [--seed 0]`. After each kill the tome is opened and compared: what
is there must be part of what an undisturbed run makes; then the novel is added again, killed again, and so on. After
the last kill the add is left to end, and the canonical exports must be equal.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tomewise.sample import STORY
from tomewise.tome.tome import Tome

NOVEL = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "novels" / "gods_of_mars.txt"


def adding(path: Path, texts: list[Path], embedder: str) -> subprocess.Popen[str]:
    """`tome add` in a process of its own."""
    words = [sys.executable, "-m", "tomewise", "-m", str(path), "add", *map(str, texts), "--embedder", embedder]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def exported(path: Path, embedder: str) -> list[str]:
    with Tome.open(path, embedder=embedder) as tome:
        return list(tome.export())


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--embedder", default="bundled")
    options.add_argument("--times", type=int, default=20)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    dice = random.Random(given.seed)
    texts = [STORY, NOVEL] if NOVEL.exists() else [STORY]
    with tempfile.TemporaryDirectory() as folder:
        whole_path, path = Path(folder) / "whole.tome", Path(folder) / "killed.tome"
        begun = time.perf_counter()
        assert adding(whole_path, texts, given.embedder).wait() == 0
        seconds = time.perf_counter() - begun
        whole = exported(whole_path, given.embedder)
        print(f"undisturbed: {seconds:.1f} s, {len(whole)} lines", flush=True)
        killed = 0
        while killed < given.times:
            process = adding(path, texts, given.embedder)
            after = dice.uniform(0, 1.1 * seconds)
            time.sleep(after)
            process.kill()
            process.communicate()
            found = exported(path, given.embedder)
            assert set(found) <= set(whole), "something is there that an undisturbed run does not make"
            with Tome.open(path) as tome:
                held = tome.documents()
                if len(held) == len(texts):  # it was quicker: once more from the start
                    for record in held:
                        tome.remove(record.id)
            killed += 1
            print(f"kill {killed} after {after:.2f} s: {len(held)} of {len(texts)} documents", flush=True)
        _, err = (process := adding(path, texts, given.embedder)).communicate()
        assert process.returncode == 0, err
        assert exported(path, given.embedder) == whole, "the export differs from that of an undisturbed run"
        print("added again: the export equals that of the undisturbed run")


if __name__ == "__main__":
    main()
