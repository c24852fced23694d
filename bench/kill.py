"""`kill -9` in the middle of `tome add` of the novel, at random moments, and what the tome then holds.

`python bench/kill.py [--embedder hash] [--times 20] [--seed 0]`. After each kill this script opens the tome: its export
must be part of the export of an undisturbed run. Then it starts the next add and kills it too. After the last kill an
add runs to its end, and the two exports must be equal.
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


def start_add(path: Path, texts: list[Path], embedder: str) -> subprocess.Popen[str]:
    """Start `tome add` in its own process."""
    words = [sys.executable, "-m", "tomewise", "-m", str(path), "add", *map(str, texts), "--embedder", embedder]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def export(path: Path, embedder: str) -> list[str]:
    with Tome.open(path, embedder=embedder) as tome:
        return list(tome.memory.export())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--embedder", default="bundled")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    texts = [STORY, NOVEL] if NOVEL.exists() else [STORY]
    with tempfile.TemporaryDirectory() as folder:
        whole_path, path = Path(folder) / "whole.tome", Path(folder) / "killed.tome"
        start = time.perf_counter()
        assert start_add(whole_path, texts, options.embedder).wait() == 0
        seconds = time.perf_counter() - start
        whole = export(whole_path, options.embedder)
        print(f"undisturbed: {seconds:.1f} s, {len(whole)} lines", flush=True)
        killed = 0
        while killed < options.times:
            process = start_add(path, texts, options.embedder)
            after = dice.uniform(0, 1.1 * seconds)
            time.sleep(after)
            process.kill()
            process.communicate()
            found = export(path, options.embedder)
            assert set(found) <= set(whole), "the export has a line that an undisturbed run does not make"
            with Tome.open(path) as tome:
                documents = tome.documents()
                if len(documents) == len(texts):  # the add ended before the kill: start from an empty tome again
                    for record in documents:
                        tome.remove(record.id)
            killed += 1
            print(f"kill {killed} after {after:.2f} s: {len(documents)} of {len(texts)} documents", flush=True)
        _, err = (process := start_add(path, texts, options.embedder)).communicate()
        assert process.returncode == 0, err
        assert export(path, options.embedder) == whole, "the export differs from that of an undisturbed run"
        print("added again: the export equals that of the undisturbed run")


if __name__ == "__main__":
    main()
