"""How long the command takes to start: `tome --help`, and a cold `tome ask` on the novel with the extractive model.

Each is also given as a ratio to the same interpreter importing what an answer cannot do without (NumPy, SQLAlchemy,
ONNX Runtime), which says what of it is ours, on a machine that is busy too. Runs alternate; the best counts.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tomewise.sample import STORY
from tomewise.tome.tome import Tome

NOVEL = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "novels" / "gods_of_mars.txt"
ROUNDS = 7
# None of these has a part in an extractive answer over passages, so none may be imported for it.
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


def run(words: list[str]) -> float:
    """Wall seconds of one process."""
    begun = time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def needless(words: list[str]) -> set[str]:
    """Which of the needless modules a command imports."""
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
            f"tome ask, cold, on {text.name} (at most 1.5 s)": [*tome_command, "-m", path, "ask", "Who is Issus?"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, words in commands.items():
                times[name].append(run(words))
        floor = min(times["python -c 'import numpy, sqlalchemy, onnxruntime'"])
        for name, found in times.items():
            middle = sorted(found)[len(found) // 2]
            print(f"{min(found):5.2f} s best, {middle:5.2f} s median, {min(found) / floor:4.2f} of the imports: {name}")
        for name, words in list(commands.items())[2:]:
            print(f"needless imports of {name.partition(' (')[0]}: {', '.join(sorted(needless(words))) or 'none'}")


if __name__ == "__main__":
    main()
