"""`make demo`: add the bundled story and ask about it, as a new user would on the command line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tomewise.sample import STORY, questions


def main() -> None:
    """Add the story, ask about it, build the layers that ComoRAG needs, and ask again with the trace.

    The tome stays in a new folder for temporary files, so that it can be served.
    """
    tome = Path(tempfile.mkdtemp(prefix="tomewise-")) / "sample.tome"
    by_id = {question.id: question for question in questions()}
    options = [part for option in by_id["n1"].options for part in ("--option", option)]
    _run("add", str(STORY), tome=tome)
    _run("ask", by_id["f1"].question, tome=tome)
    _run("build", "--system", "comorag", "--estimate", tome=tome)
    _run("build", "--system", "comorag", tome=tome)
    _run("ask", by_id["n1"].question, *options, "--system", "comorag", "--trace", tome=tome)
    _run("show", tome=tome)
    print(f"\nTo go on in a browser:\n\n    {_find_command()} serve {shlex.quote(str(tome))} --open\n")


def _run(*arguments: str, tome: Path) -> None:
    print(f"\n$ tome {' '.join(_quote_argument(argument) for argument in arguments)}", flush=True)
    environment = {**os.environ, "TOMEWISE_TOME": str(tome)}
    subprocess.run([sys.executable, "-m", "tomewise", *arguments], env=environment, check=True)


def _find_command() -> str:
    """The command `tome` as one types it here."""
    command = Path(sys.executable).with_name("tome")
    return "tome" if shutil.which("tome") or not command.exists() else os.path.relpath(command)


def _quote_argument(argument: str) -> str:
    name = Path(argument).name if argument.endswith("story.md") else argument
    return f'"{name}"' if " " in name else name


if __name__ == "__main__":
    main()
