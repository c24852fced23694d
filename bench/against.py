"""Processor time of jobs in this source tree, divided by that of the same job in another one.

    python bench/against.py --other OTHER/src [JOB ...]

Each job runs in a new process, in the two trees by turns, five times each; the least time of each tree counts, since
the longer ones waited for other work on the machine. OTHER is a checkout of another commit (`git worktree add`). Times
are those of the process and of the processes that it started.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "src"
NOVEL = Path(__file__).resolve().parents[2] / "shared" / "data" / "novels" / "gods_of_mars.txt"
STORY = HERE / "tomewise" / "sample" / "story.md"
RUNS = 5
# Each job is a preparation, which is not measured, and the work. `path` is a folder of its own.
JOBS = {
    "add_novel": (
        "from tomewise import Tome",
        "Tome.open(path / 'a.tome', embedder='hash').add(novel)",
    ),
    "add_small": (
        "from tomewise import Tome; tome = Tome.open(path / 'a.tome', embedder='hash'); "
        "tome.add(story); files = [path / f'{number}.md' for number in range(20)]; "
        "[file.write_text(f'# Rain\\n\\nThe rain fell on {file}.\\n') for file in files]",
        "[tome.add(file) for file in files]",
    ),
    "cold_ask": (
        "from tomewise import Tome; Tome.open(path / 'a.tome', embedder='hash').add(novel)",
        "import subprocess, sys; subprocess.run([sys.executable, '-m', 'tomewise', '-m', str(path / 'a.tome'), 'ask', "
        "'Who is Dejah Thoris?'], check=True, capture_output=True)",
    ),
}
MEASURE = """
import resource, sys, tempfile
from pathlib import Path
novel, story = map(Path, sys.argv[1:3])
def count():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder)
    {prepare}
    before = count()
    {work}
    print(count() - before)
"""


def measure(job: str, source: Path, novel: Path) -> float:
    """The seconds of processor time of one run of a job in a source tree."""
    prepare, work = JOBS[job]
    code = MEASURE.format(prepare=prepare, work=work)
    environment = os.environ | {"PYTHONPATH": str(source), "TOMEWISE_MODEL": "extractive"}
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(
            [sys.executable, "-c", code, str(novel), str(STORY)],
            env=environment, cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if ran.returncode:
        raise SystemExit(f"{job} failed with {source}:\n{ran.stderr}")
    return float(ran.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path, required=True, help="the folder `src` of the other tree")
    parser.add_argument("--novel", type=Path, default=NOVEL if NOVEL.exists() else STORY)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(JOBS)}; all without one")
    given = parser.parse_args()
    if unknown := set(given.jobs) - set(JOBS):
        parser.error(f"unknown: {', '.join(unknown)}; the jobs are {', '.join(JOBS)}")
    if not (given.other / "tomewise").is_dir():
        parser.error(f"{given.other} does not hold the package tomewise: give the folder `src` of a checkout")
    for job in given.jobs or JOBS:
        runs = [
            (measure(job, HERE, given.novel), measure(job, given.other.resolve(), given.novel)) for _ in range(RUNS)
        ]
        here, there = (min(times) for times in zip(*runs, strict=True))
        print(f"{job}: {here:.3f} s here, {there:.3f} s there, {here / there:.3f} times as long", flush=True)


if __name__ == "__main__":
    main()
