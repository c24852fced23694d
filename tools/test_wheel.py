"""Test the wheel as new users get it: build it, install it into clean environments, run tests/newcomer there.

    python tools/test_wheel.py [arguments of pytest]

Three environments, made in a temporary folder: the wheel alone, the wheel with `[all]`, and one with the libraries that
usually make files and with Jupyter's kernel (the dependency group `newcomer`). Network: the package registry alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

REPOSITORY = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
ENVIRONMENTS = {"LIGHT": ("{wheel}",), "ALL": ("{wheel}[all]",), "MAKERS": ("{wheel}[all]", "--group", "newcomer")}


def run(*words: object) -> None:
    """Run a command in the repository; its failure ends this program."""
    print("+", " ".join(map(str, words)), flush=True)
    if code := subprocess.run(list(map(str, words)), cwd=REPOSITORY, check=False).returncode:
        raise SystemExit(code)


def build_wheel(folder: Path) -> Path:
    """Build the sdist, and the wheel from the sdist, so that what the sdist lacks is noticed."""
    run(UV, "build", "--quiet", "--out-dir", folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def make_environment(folder: Path, packages: list[str]) -> Path:
    """An environment with pip and these packages; returns its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(UV, "pip", "install", "--quiet", "--python", python, "--constraint", "constraints.txt", *packages)
    return python


def main() -> None:
    with TemporaryDirectory(prefix="newcomer-") as work:
        wheel = build_wheel(Path(work) / "dist")
        for name, packages in ENVIRONMENTS.items():
            words = [word.format(wheel=wheel) for word in packages]
            os.environ[f"TOMEWISE_{name}"] = str(make_environment(Path(work) / name.lower(), words))
        run(sys.executable, "-m", "pytest", "tests/newcomer", *sys.argv[1:])


if __name__ == "__main__":
    main()
