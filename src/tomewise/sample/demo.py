"""`make demo`: add the bundled story and ask about it, as a new user would on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tomewise.sample import STORY, questions


def main() -> None:
    """Add the story, ask about it, build the layers that ComoRAG needs, and ask again with the trace."""
    with tempfile.TemporaryDirectory() as folder:
        by_id = {question.id: question for question in questions()}
        options = [part for option in by_id["n1"].options for part in ("--option", option)]
        _run("add", str(STORY), folder=folder)
        _run("ask", by_id["f1"].question, folder=folder)
        _run("build", "--system", "comorag", "--estimate", folder=folder)
        _run("build", "--system", "comorag", folder=folder)
        _run("ask", by_id["n1"].question, *options, "--system", "comorag", "--trace", folder=folder)
        _run("show", folder=folder)


def _run(*arguments: str, folder: str) -> None:
    print(f"\n$ tome {' '.join(_quote_argument(argument) for argument in arguments)}", flush=True)
    environment = {**os.environ, "TOMEWISE_TOME": str(Path(folder) / "demo.tome")}
    subprocess.run([sys.executable, "-m", "tomewise", *arguments], env=environment, check=True)


def _quote_argument(argument: str) -> str:
    name = Path(argument).name if argument.endswith("story.md") else argument
    return f'"{name}"' if " " in name else name


if __name__ == "__main__":
    main()
