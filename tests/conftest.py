"""What tests share: small tomes with the weightless embedder, and the command `tome` in this process."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest
from tests.postgres_server import Server, run_server

from tomewise.language import adapting, models_at_hand
from tomewise.terminal import program
from tomewise.tome.tome import Tome

# A busy machine takes long for an example, and says nothing about it.
SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("unhurried", deadline=None, max_examples=30, suppress_health_check=SLOW)
hypothesis.settings.load_profile("unhurried")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, since many a test waits for a process or a server."""
    return min((os.cpu_count() or 1) + 1, 8)


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A server of PostgreSQL, started when the first test asks for it."""
    with run_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> str:
    """The address of an empty database: `TOMEWISE_TEST_POSTGRES`, or that of a server of these tests."""
    stated = os.environ.get("TOMEWISE_TEST_POSTGRES")
    return stated or request.getfixturevalue("postgres_server").url


@pytest.fixture
def database(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The same for one test: what it makes there goes at its end, and its caches are in its own folder."""
    import psycopg

    monkeypatch.setenv("TOMEWISE_CACHE", str(tmp_path / "cache"))
    yield postgres
    with psycopg.connect(postgres, autocommit=True) as owner:
        for (schema,) in owner.execute("SELECT nspname FROM pg_namespace WHERE oid > 16383 AND nspname !~ '^pg_'"):
            owner.execute(psycopg.sql.SQL("DROP SCHEMA {} CASCADE").format(psycopg.sql.Identifier(schema)))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own to be in, with no settings, no keys, no proxy."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "TOMEWISE_MODEL", "TOMEWISE_TOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(models_at_hand, "SERVERS", ())  # whatever runs on this machine
    return folder


@pytest.fixture(autouse=True)
def learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for what is learnt of servers: the test's own."""
    monkeypatch.setattr(adapting, "find_cache_folder", lambda: tmp_path / "learnt")
    return tmp_path / "learnt"


@pytest.fixture
def command(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """The command `tome` in this process; tomes that it makes use the hash embedder."""

    def run(*arguments: object, embedder: str | None = "hash") -> Ran:
        words = [str(argument) for argument in arguments]
        if embedder and "add" in words and "--embedder" not in words and "--help" not in words:
            words += ["--embedder", embedder]
        capsys.readouterr()
        code = program.run(words)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def type_reply(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Stand at a terminal and type this."""

    def reply(text: str) -> None:
        answers = io.StringIO(text)
        monkeypatch.setattr("sys.stdin", answers)
        monkeypatch.setattr(answers, "isatty", lambda: True, raising=False)

    return reply


@pytest.fixture
def tome(here: Path) -> Iterator[Tome]:
    """An empty tome."""
    with Tome.open(here / "a.tome", embedder="hash") as made:
        yield made
