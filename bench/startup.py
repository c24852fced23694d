"""What a command takes to start, in processor time: `--help`, `show`, `log`, `sessions`, and a cold `tome ask` on the
novel with the extractive model.

Each time is also divided by the time that the same interpreter takes to import what every answer needs (NumPy,
SQLAlchemy, ONNX Runtime). This ratio shows our own part, on a busy machine too. Runs alternate; the best one counts.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tomewise.sample import STORY
from tomewise.tome.tome import Tome

NOVEL = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "novels" / "gods_of_mars.txt"
ROUNDS = 7
LOOKING = ("show", "log", "sessions")
# An extractive answer over passages does not use these modules, so it must not import them.
NEEDLESS = (
    "pydantic_ai",
    "openai",
    "httpx",
    "jinja2",
    "scipy",
    "numba",
    "sklearn",
    "umap",
    "onnx",
    "matplotlib",
    "pyarrow",
)


def time_run(words: list[str]) -> float:
    """Seconds of processor time of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def find_needless(words: list[str]) -> set[str]:
    """The needless modules that a command imports."""
    listing = subprocess.run([words[0], "-X", "importtime", *words[1:]], capture_output=True, text=True, check=True)
    return {line.rsplit("|", 1)[1].strip() for line in listing.stderr.splitlines() if "|" in line} & set(NEEDLESS)


def main() -> None:
    text = NOVEL if NOVEL.exists() else STORY
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "a.tome")
        with Tome.open(path) as tome:
            tome.add(text)
        tome_command = [sys.executable, "-m", "tomewise"]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "python -c 'import numpy, sqlalchemy, onnxruntime'": [
                *(sys.executable, "-c", "import numpy, sqlalchemy, onnxruntime")
            ],
            "tome --help (at most 0.4 s)": [*tome_command, "--help"],
            **{f"tome {word} (at most 0.6 s)": [*tome_command, "-m", path, word] for word in LOOKING},
            f"tome ask, cold, on {text.name} (at most 1.5 s)": [*tome_command, "-m", path, "ask", "Who is Issus?"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, words in commands.items():
                times[name].append(time_run(words))
        floor = min(times["python -c 'import numpy, sqlalchemy, onnxruntime'"])
        for name, found in times.items():
            middle = sorted(found)[len(found) // 2]
            print(f"{min(found):5.2f} s best, {middle:5.2f} s median, {min(found) / floor:4.2f} of the imports: {name}")
        for name, words in list(commands.items())[2:]:
            print(f"needless imports of {name.partition(' (')[0]}: {', '.join(sorted(find_needless(words))) or 'none'}")


if __name__ == "__main__":
    main()
