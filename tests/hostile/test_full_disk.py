"""A full disk: who asks gets an answer and a warning, nothing is paid twice, and a build sends no request."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.building import mark, play_role, role
from tests.full_disk import KINDS, Disk, make_disk
from tests.language.openai_server import OpenAIServer
from tests.patience import SOON
from tests.server.served import serve
from tests.texts import prose

from tomewise.errors import StoreError
from tomewise.language.chat import ChatModel
from tomewise.tome.tome import Tome
from tomewise.types import Document

QUESTION = "Who forged the letter?"
WARNING = "not kept in full"
TOKENS = {"embedder": "hash", "passage_tokens": 64}


def make_documents() -> list[Document]:
    return [Document(id=f"d{number}", text=prose(number, 60)) for number in range(3)]


@pytest.fixture(params=KINDS)
def disk(request: pytest.FixtureRequest, here: Path) -> Iterator[Disk]:
    folder = here / "disk"
    folder.mkdir()
    with make_disk(request.param, folder) as made:
        with Tome.open(folder / "a.tome", settings=TOKENS) as tome:
            tome.add(*make_documents())
        yield made


@pytest.fixture
def server(here: Path) -> Iterator[OpenAIServer]:
    with OpenAIServer(play_role) as running:
        yield running


def run_on_full_disk(disk: Disk, server: OpenAIServer | None, *words: str) -> subprocess.CompletedProcess[str]:
    """A command on the tome, whose disk is full when it begins."""
    asking = ("--model", "openai:test", "--base-url", server.url) if server else ()
    command = [sys.executable, "-m", "tomewise", *words, "-m", str(disk.folder / "a.tome"), *asking]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SOON, preexec_fn=disk.prepare_process)
    assert "Traceback" not in ran.stderr
    assert "never retrieved" not in ran.stderr
    return ran


# Asks and builds in one process, once the disk is full; prints what came of each.
PROGRAM = """
import gc, json, sys, warnings
from tomewise import Tome
from tomewise.errors import TomewiseError
path, url = sys.argv[1:]
warnings.simplefilter("always")
def report(act):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            came = act()
        except TomewiseError as error:
            came = type(error).__name__
    print(json.dumps([came, [str(each.message) for each in warned]]), flush=True)
def show(answer):
    return [answer.words, answer.trace, answer.kept]
with Tome.open(path, model="openai:test", base_url=url) as tome, Tome.open(path) as free:
    tome.search("warm"), free.search("warm")
    print(flush=True)
    sys.stdin.readline()
    for _ in range(3):
        report(lambda: show(tome.ask("Who forged the letter?", system="naive")))
    for _ in range(2):
        report(lambda: show(tome.sessions["s"].ask("Who forged the letter?", system="naive")))
    report(lambda: show(free.ask("Who forged the letter?", system="naive")))
    for _ in range(2):
        report(lambda: str(tome.build("hipporag2")))
gc.collect()
"""


def test_one_process_pays_once_and_each_answer_comes_with_one_warning(disk: Disk, server: OpenAIServer) -> None:
    command = [sys.executable, "-c", PROGRAM, str(disk.folder / "a.tome"), server.url]
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:
        process.stdout.readline()
        disk.fill(process.pid)
        out, err = process.communicate("go\n", timeout=SOON)
    assert not err
    assert process.returncode == 0
    *asked, (first_build, _), (second_build, _) = map(json.loads, out.splitlines())
    for (text, trace, kept), warned in asked:
        assert text
        assert trace is None
        assert kept is False
        assert [WARNING in each for each in warned] == [True]
    assert first_build == second_build == "StoreError"
    marks = list(map(mark, server.requests))
    assert len(set(marks)) == len(marks), "no prompt was sent twice"
    assert set(map(role, server.requests)) == {""}, "no build sent a request"


def test_each_command_pays_once_and_answers_with_one_warning(disk: Disk, server: OpenAIServer) -> None:
    disk.fill()
    for number, words in enumerate([(), ("--json",), ("--session", "s")], start=1):
        ran = run_on_full_disk(disk, server, "ask", QUESTION, *words)
        assert (ran.returncode, len(server.requests)) == (0, number)
        assert "at nine" in ran.stdout
        assert ran.stderr.startswith("tome: ")
        assert WARNING in ran.stderr
        assert ran.stderr.count("\n") == 1
        if "--json" in words:
            assert json.loads(ran.stdout)["kept"] is False
    quoted = run_on_full_disk(disk, None, "ask", QUESTION)
    assert quoted.returncode == 0
    assert "nearest to an answer" in quoted.stdout
    assert quoted.stderr.count(WARNING) == 1
    assert run_on_full_disk(disk, None, "search", QUESTION).stderr == ""


@pytest.mark.parametrize("room", [0, 64 << 10])
def test_a_build_proves_that_it_can_write_before_it_sends_a_request(
    disk: Disk, server: OpenAIServer, room: int
) -> None:
    disk.fill(room=room)
    for _ in range(2):
        ran = run_on_full_disk(disk, server, "build", "--system", "hipporag2")
        assert ran.returncode == StoreError.exit_code
        assert ran.stderr.startswith("tome: ")
        assert ran.stderr.count("\n") == 1
    assert not server.requests


# What PostgreSQL raises on a full disk, raised by the tables of replies and traces.
FULL = """
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON letters.calls EXECUTE FUNCTION public.refuse();
CREATE TRIGGER full_disk BEFORE INSERT ON letters.traces EXECUTE FUNCTION public.refuse();
"""


def test_a_database_without_room_costs_nothing_twice(database: str, server: OpenAIServer) -> None:
    model = ChatModel("openai:test", base_url=server.url)
    with (
        psycopg.connect(database, autocommit=True) as owner,
        Tome.open(f"{database}#letters", model=model, settings=TOKENS) as tome,
    ):
        tome.add(*make_documents())
        owner.execute(FULL)
        try:
            for _ in range(3):
                with pytest.warns(UserWarning, match=WARNING) as warned:
                    answer = tome.ask(QUESTION, system="naive")
                assert (answer.text, answer.trace, answer.kept, len(warned)) == ("at nine", None, False, 1)
            with pytest.raises(StoreError, match="no space left"):
                tome.build("hipporag2")
            assert len(server.requests) == 1
        finally:
            owner.execute("DROP FUNCTION public.refuse CASCADE")
        assert tome.ask("Who held the lamp?", system="naive").kept
    with Tome.open(f"{database}#letters", model=model, settings=TOKENS) as tome:
        assert tome.ask(QUESTION, system="naive").kept
    assert len(server.requests) == 2, "what waited in memory was written with the next reply"


def test_a_server_answers_and_its_jobs_send_no_request(disk: Disk, server: OpenAIServer) -> None:
    words = ("a.tome", "--model", "openai:test", "--base-url", server.url)
    with serve(disk.folder, *words) as served:
        body = {"question": QUESTION, "system": "naive"}
        assert served.post("/api/tomes/a/search", {"query": "warm"}).status_code == 200
        disk.fill(served.process.pid)
        for _ in range(3):
            answer = served.post("/api/tomes/a/ask", body).json()
            assert answer["text"] == "at nine"
            assert answer["trace"] is None
            assert answer["kept"] is False
            assert str(disk.folder) not in json.dumps(answer)
        chat = {"model": "a/naive", "messages": [{"role": "user", "content": QUESTION}]}
        assert "at nine" in served.post("/v1/chat/completions", chat).text
        asked = len(server.requests)
        for _ in range(2):
            accept = "10,000 calls"
            reply = served.post("/api/tomes/a/builds", {"system": "hipporag2", "accept": accept})
            assert reply.status_code >= 400 or served.wait_for_job(reply.json()["id"])["state"] == "failed"
    assert asked == 1
    assert len(server.requests) == asked
