"""The environments that `make test-wheel` makes from the wheel; without them no test of this folder is collected."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

collect_ignore_glob = [] if "TOMEWISE_LIGHT" in os.environ else ["test_*.py"]
REPOSITORY = Path(__file__).resolve().parents[2]
# What a process needs to find programs and the package registry; no keys, and no settings of Tomewise.
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR")
_KEPT_BEGINNINGS = ("PIP_", "UV_", "SSL_CERT", "HTTP", "http", "NO_PROXY", "no_proxy")
SECONDS = 300


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, a folder to work in, and variables."""

    python: Path
    here: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def tome(self) -> str:
        """The command."""
        return str(self.python.with_name("tome"))

    def run(self, *words: object, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the command `tome`, its output in pipes."""
        return self.call(self.tome, *words, stdin=stdin, **variables)

    def call(self, *words: object, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run any program there."""
        return subprocess.run(
            [str(word) for word in words],
            cwd=self.here,
            env=self._set(variables),
            input=stdin,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=SECONDS,
            check=False,
        )

    def show(self, columns: int, *words: object, **variables: str) -> tuple[int, str]:
        """Run the command on a terminal of that many columns; returns its exit code and all that was shown."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        own = self._set({"TERM": "xterm-256color", **variables})
        process = subprocess.Popen(
            [self.tome, *map(str, words)], cwd=self.here, env=own, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        shown = b""
        with closing(os.fdopen(ours, "rb", buffering=0)) as terminal:
            while chunk := _read(terminal.fileno()):
                shown += chunk
        return process.wait(SECONDS), shown.decode().replace("\r\n", "\n")

    def _set(self, variables: dict[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)}
        return {**kept, **self.variables, **variables}


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux reports so that the other end was closed
        return b""


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder into which the light environment fetched the weights."""
    folder = tmp_path_factory.mktemp("cache")
    python = Path(os.environ["TOMEWISE_LIGHT"])
    fetched = Installed(python, folder, {"TOMEWISE_CACHE": str(folder)}).run("weights")
    assert fetched.returncode == 0, fetched.stderr
    assert fetched.stdout.startswith("ready all-MiniLM-L6-v2, on the ")
    return folder


@pytest.fixture(params=["LIGHT", "ALL", "MAKERS"])
def machine(request: pytest.FixtureRequest, tmp_path: Path, cache: Path) -> Installed:
    """An environment, in an empty folder, with the weights and without settings or keys."""
    here = tmp_path / "here"
    here.mkdir()
    own = {
        "TOMEWISE_CACHE": str(cache),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    return Installed(Path(os.environ[f"TOMEWISE_{request.param}"]), here, own)


light = pytest.mark.parametrize("machine", ["LIGHT"], indirect=True)
everything = pytest.mark.parametrize("machine", ["ALL"], indirect=True)
makers = pytest.mark.parametrize("machine", ["MAKERS"], indirect=True)
