"""Tomes that workers help to make: what comes out is what one process makes, whatever ends on the way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from tests.building import mark, play_role, read_marks
from tests.cluster.killing import find_processes, kill
from tests.cluster.test_worker_pool import Odd, is_alive
from tests.conftest import Ran
from tests.language.openai_server import OpenAIServer
from tests.patience import SOON, wait_until
from tests.texts import prose

from tomewise import Document, Tome
from tomewise.errors import UsageError
from tomewise.terminal.program import INTERRUPTED

SYSTEMS = ("comorag", "cogitorag", "cam")
QUESTION = "Who put out the light?"
STORY = resources.files("tomewise.sample").joinpath("story.md").read_text("utf-8")
SMALL = 64  # tokens of a passage
ADD = """
import sys
from pathlib import Path
from tests.cluster.test_on_ray import SMALL, Hanging, make_library
from tomewise import Tome

embedder = Hanging(Path(sys.argv[2]), name="hash")
with Tome.open(sys.argv[1], embedder=embedder, settings={"passage_tokens": SMALL, "on": "ray", "workers": 1}) as tome:
    tome.add(*make_library())
"""


class Hanging(Odd):
    """An embedder that never ends with a list of texts in other processes."""

    def embed(self, texts: list[str]) -> Any:
        return super().embed([*texts[:-1], "wait"] if len(texts) > 1 else texts)


def make_library() -> list[Document]:
    return [Document(id=f"d{number}", text=prose(number, 300)) for number in range(4)]


@pytest.fixture
def _without_umap(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes seconds to import, and these tests do not depend on the reduction."""
    monkeypatch.setitem(sys.modules, "umap", None)


def make_story(path: Path, **options: Any) -> tuple[list[str], list[str]]:
    """The export of a part of the sample story built for several systems, and what each answers."""
    with Tome.open(path, embedder="hash", settings={"passage_tokens": SMALL, **options}) as tome:
        tome.add(Document(id="story", text=STORY[:6_000]))
        for system in SYSTEMS:
            tome.build(system)
        return list(tome.memory.export()), [tome.ask(QUESTION, system=system).words for system in SYSTEMS]


@pytest.mark.cluster
@pytest.mark.usefixtures("_without_umap")
def test_the_story_is_that_of_one_process(nodes: object, here: Path) -> None:
    assert make_story(here / "pooled.tome", on="ray", workers=2) == make_story(here / "alone.tome")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The export of a tome of the library that one process makes."""
    with Tome.open(
        tmp_path_factory.mktemp("whole") / "a.tome", embedder="hash", settings={"passage_tokens": SMALL}
    ) as tome:
        tome.add(*make_library())
        return list(tome.memory.export())


@pytest.mark.cluster
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_driver_ends_its_workers(
    nodes: object, tmp_path: Path, library: list[str], sign: signal.Signals
) -> None:
    odd, path = Odd(tmp_path / "workers"), tmp_path / "a.tome"
    odd.folder.mkdir()
    driver = subprocess.Popen([sys.executable, "-c", ADD, str(path), str(odd.folder)], stderr=subprocess.PIPE)
    wait_until(lambda: odd.list_waiting() or driver.poll() is not None)
    workers = odd.list_waiting()
    assert len(workers) == 1
    driver.send_signal(sign)
    _, err = driver.communicate(timeout=20)
    assert not err  # Ray would write a stack
    wait_until(lambda: not any(map(is_alive, workers)))
    with Tome.open(path, embedder="hash", settings={"passage_tokens": SMALL}) as tome:
        tome.add(*make_library())
        assert list(tome.memory.export()) == library


@pytest.mark.cluster
@pytest.mark.parametrize("starting", [False, True], ids=["at once", "while workers start"])
def test_ctrl_c_before_any_work_leaves_nothing(nodes: object, tmp_path: Path, starting: bool) -> None:
    (tmp_path / "novel.txt").write_text(prose(3, 3000))
    words = [sys.executable, "-m", "tomewise", "add", "novel.txt", "--on", "ray", "--workers", "1"]
    command = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_until((tmp_path / "memory.tome").exists)
    wait_until(lambda: find_processes("Worker") or not starting)
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=30)
    assert command.returncode == INTERRUPTED
    assert "Traceback" not in err
    wait_until(lambda: not find_processes("Worker"))


def test_what_cannot_be_asked_of_a_pool_is_one_line(command: Callable[..., Ran], here: Path) -> None:
    (here / "novel.txt").write_text(prose(3))
    for words, line in (
        (["--on", "spark"], "on should be 'ray', not 'spark'"),
        (["--workers", "2"], "2 workers need a cluster: give --on ray too"),
    ):
        ran = command("add", "novel.txt", *words)
        assert ran.code == UsageError.exit_code
        assert ran.err.startswith(f"tome: {line}")
        assert not (here / "memory.tome").exists()


@pytest.mark.cluster
def test_an_address_without_a_cluster_is_one_line(
    nodes: object, command: Callable[..., Ran], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "novel.txt").write_text(prose(3))
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    ran = command("add", "novel.txt", "--on", "ray")
    assert ran.code == UsageError.exit_code
    assert "the cluster at RAY_ADDRESS=127.0.0.1:1 cannot be joined" in ran.err


BUILD = """
import sys

sys.modules["umap"] = None
from tomewise import Tome

settings = {"limit": 4, "on": "ray", "workers": 1}
with Tome.open(sys.argv[1], model="openai:test", base_url=sys.argv[2], settings=settings) as tome:
    tome.build("comorag")
"""


@pytest.mark.cluster
@pytest.mark.usefixtures("_without_umap")
def test_a_killed_build_goes_on_and_asks_for_no_kept_reply(nodes: object, tmp_path: Path) -> None:
    """The driver is killed; in the second build a worker is. The third one has nothing left to ask."""
    documents = [Document(id=f"d{number}", text=prose(number, 20)) for number in range(4)]
    file, whole_file = tmp_path / "a.tome", tmp_path / "whole.tome"
    with OpenAIServer(lambda request: play_role(request, delay=0.1)) as server:
        for path in (file, whole_file):
            with Tome.open(path, embedder="hash", settings={"passage_tokens": SMALL}) as tome:
                tome.add(*documents)
        kept: set[str] = set()
        for victim, code in (("driver", -signal.SIGKILL), ("worker", 0)):
            server.requests.clear()
            driver = subprocess.Popen([sys.executable, "-c", BUILD, str(file), server.url])
            wait_until(lambda driver=driver: len(server.requests) >= 6 or driver.poll() is not None)  # type: ignore[misc]
            if victim == "driver":
                driver.kill()
            else:
                kill()
            assert driver.wait(60) == code
            assert not kept & set(map(mark, server.requests)), "a kept reply was asked for again"
            kept = read_marks(file)
        server.requests.clear()
        more: Any = {"model": "openai:test", "base_url": server.url}
        with Tome.open(file, **more) as tome, Tome.open(whole_file, **more) as whole:
            tome.build("comorag")  # not on Ray
            assert not server.requests
            whole.build("comorag")
            assert list(tome.memory.export()) == list(whole.memory.export())


@pytest.fixture
def alone() -> Iterator[dict[str, str]]:
    """The environment of a program that starts a cluster of its own. In the end no process and no log of it is left."""
    home = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))  # short, as in conftest.py
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    try:
        yield environment | {"HOME": str(home), "RAY_TMPDIR": str(home)}
        wait_until(lambda: not list_processes(str(home)))
        assert not [path for path in home.rglob("session_2*") if path.is_dir()]
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.cluster
def test_a_cluster_of_its_own_leaves_nothing(tmp_path: Path, alone: dict[str, str]) -> None:
    """Without RAY_ADDRESS a command starts a cluster, and ends it."""
    tome, words = Path(sys.executable).parent / "tome", "add a.txt --embedder hash --on ray --workers 1 --json"
    (tmp_path / "a.txt").write_text(prose(3, 1000))
    ran = subprocess.run([tome, *words.split()], cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("{")


def list_processes(home: str, words: str = "") -> list[int]:
    """The processes of a home, or with words in their command alone."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            is_at_home = f"HOME={home}".encode() in (path / "environ").read_bytes().split(b"\0")
            if is_at_home and words in command.partition(" --")[0]:
                found.append(int(path.name))
    return found


OPEN = """
import sys
from tomewise import Tome
from tomewise.errors import TomewiseError

for seconds in sys.argv[2:]:
    try:
        settings = {"on": "ray", "workers": 1, "start_seconds": float(seconds)}
        Tome.open(sys.argv[1], embedder="hash", settings=settings).close()
        print("opened", flush=True)
    except TomewiseError as error:
        print(error, flush=True)
    sys.stdin.readline()
"""


def stop_process(words: str, home: str) -> None:
    """Stop the process with these words in its command as soon as it is there."""
    wait_until(lambda: [os.kill(process, signal.SIGSTOP) for process in list_processes(home, words)])


@pytest.mark.cluster
def test_a_slow_start_may_take_as_long_as_it_is_told(tmp_path: Path, alone: dict[str, str]) -> None:
    """A start that takes longer ends what it has started, in a program that goes on and starts again."""
    words = [sys.executable, "-c", OPEN, str(tmp_path / "a.tome"), "1", str(SOON)]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(words, env=alone, text=True, **pipes) as program:
        stop_process("gcs_server", alone["HOME"])
        line = program.stdout.readline() if program.stdout else ""
        late = "it takes more than 1 s, which the setting start_seconds raises"
        assert line == f"Ray cannot start on this machine ({late}): work without --on ray\n"
        wait_until(lambda: list_processes(alone["HOME"]) == [program.pid])
        print(file=program.stdin, flush=True)
        stop_process("dashboard/agent.py", alone["HOME"])  # Ray itself waits for it, and ends
        assert program.communicate("\n", timeout=120)[0] == "opened\n"
