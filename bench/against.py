"""Compare this source tree with another one: processor time of a cold `tome ask` and of `tome add`, on the novel.

`git worktree add ../before COMMIT; python bench/against.py ../before/src [--rounds 5] [--embedder bundled]`. The two
trees take turns, each run in a process of its own; the least time of each counts. Both ask the same tomes, made by the
other tree.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tomewise.sample import STORY

HERE = Path(__file__).resolve().parents[1]
NOVEL = HERE / ".." / "shared" / "data" / "novels" / "gods_of_mars.txt"
SYSTEMS = ("hybrid", "cogitorag")


def time_run(source: Path, words: list[str], compiled: str) -> float:
    """Processor seconds of one `tome` command of a source tree, whose compiled modules are kept in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": compiled}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling is not compared
    command = [sys.executable, "-m", "tomewise", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, f"{words} of {source} ended with {status}"
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("before", type=Path, nargs="?", help="the folder `src` of the other tree")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--embedder", default="bundled")
    options = parser.parse_args()
    if options.before is None:
        print("name the folder `src` of another tree to compare this one with it")
        return
    text = NOVEL if NOVEL.exists() else STORY
    trees = {"before": options.before.resolve(), "now": HERE / "src"}
    with tempfile.TemporaryDirectory() as place:
        made, compiled = Path(place) / "made.tome", str(Path(place) / "compiled")
        time_run(trees["before"], ["-m", str(made), "add", str(text), "--embedder", options.embedder], compiled)
        time_run(trees["before"], ["-m", str(made), "build", "--system", "cogitorag"], compiled)
        tasks: dict[str, list[str]] = {
            f"ask, {system}": ["ask", "Who is Issus?", "--system", system] for system in SYSTEMS
        }
        tasks["add"] = ["add", str(text), "--embedder", options.embedder]
        times: dict[tuple[str, str], list[float]] = {(task, tree): [] for task in tasks for tree in trees}
        for number in range(options.rounds + 1):  # the first one compiles
            for task, words in tasks.items():
                for tree in sorted(trees, reverse=bool(number % 2)):
                    path = Path(place) / f"{tree}.tome"
                    for file in Path(place).glob(f"{tree}.tome*"):
                        shutil.rmtree(file) if file.is_dir() else file.unlink()
                    if task != "add":
                        shutil.copy2(made, path)
                        shutil.copytree(f"{made}-cache", f"{path}-cache")
                    seconds = time_run(trees[tree], ["-m", str(path), *words], compiled)
                    times[task, tree] += [seconds] if number else []
        for task in tasks:
            before, now = (min(times[task, tree]) for tree in ("before", "now"))
            print(f"{task:16} {before:6.2f} s before, {now:6.2f} s now: {100 * (now / before - 1):+.1f} %")


if __name__ == "__main__":
    main()
