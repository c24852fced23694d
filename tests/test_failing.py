"""One passage that the model's server fails on, through the command: all else is built, it is named, and mended."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.building import LAYERS, mark, played, remembered, role
from tests.language.openai_server import OpenAIServer, fail_with, reply_with
from tests.texts import prose

from tomewise.tome.tome import Tome

MARKER = "quicksilver"
LETTER = "a letter.txt"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A tome with three documents, one of them with a passage that holds the marker; nothing is built yet."""
    folder = tmp_path_factory.mktemp("library")
    for number in range(2):
        (folder / f"b{number}.txt").write_text(prose(number, 30))
    (folder / LETTER).write_text(f"{prose(2, 12)} The {MARKER} was gone. {prose(3, 12)}")
    with Tome.open(folder / "empty.tome", embedder="hash", passage_tokens=48) as tome:
        tome.add(*sorted(folder.glob("*.txt")))
        (place,) = [one.position for one in tome.store.passages().values() if MARKER in one.text]
    return folder / "empty.tome", place


class Shop:
    """A server that fails on the marker as told, and the command that asks it."""

    def __init__(self, server, command):
        self.server = server
        self._command = command
        self.fail_by(None)

    def fail_by(self, behaviour):
        def play(request):
            return behaviour if behaviour and holds_marker(request) else played(request, delay=0.02)

        self.server.handler = play

    def run(self, *words):
        """What the command leaves behind, and the requests that it made."""
        self.server.requests = []
        ran = self._command(*words, "--model", "openai:test", "--base-url", self.server.url)
        return ran, self.server.requests


def holds_marker(request):
    return MARKER in request["messages"][1]["content"]


def asks_for_a_sign_of_life(request):
    return '{"alive": true}' in request["messages"][1]["content"]


@pytest.fixture
def shop(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with OpenAIServer(played) as server:
        yield Shop(server, command)


def exported(path):
    with Tome.open(path) as tome:
        return list(tome.export())


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (reply_with("I would rather not say."), "gave no usable reply"),
        (fail_with(400, "that text is not for me"), "that text is not for me"),
        (fail_with(500, "out of memory"), "out of memory; meanwhile other requests got a reply"),
    ],
    ids=["garbage", "rejected", "server error"],
)
def test_a_passage_that_keeps_failing_is_named_and_the_rest_is_built(library, here, shop, command, behaviour, reason):
    empty, place = library
    whole = Path(shutil.copy(empty, here / "whole.tome"))
    assert shop.run("build", "-s", "comorag", "-m", whole)[0].code == 0
    Path(shutil.copy(empty, here / "memory.tome"))

    shop.fail_by(behaviour)
    ran, _ = shop.run("build", "-s", "comorag")
    assert ran.code == 0, ran.err
    assert ran.out.count("failed for") == 3
    assert ran.out.count("the next build tries these again") == 3
    assert reason in ran.out

    shown = json.loads(command("show", "--json").out)
    assert {one["layer"] for one in shown["failed"]} == set(LAYERS.values())
    for one in shown["failed"]:
        assert reason in one["reason"]
    (graph,) = [one for one in shown["failed"] if one["layer"] == LAYERS["extract_facts"]]
    assert graph["document"].endswith(LETTER)
    assert graph["passages"] == [place]
    (episode,) = [one for one in shown["failed"] if one["layer"] == "episodes"]
    assert place in episode["passages"]
    told = command("show").out
    assert f"{LAYERS['extract_facts']} lacks {graph['document']}, passage {place}: openai:test" in told
    assert reason in told

    ran, _ = shop.run("ask", "When did the tide turn?", "-s", "comorag", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["answer"] == "at nine"

    before = exported("memory.tome")
    ran, asked = shop.run("build", "-s", "comorag")
    assert ran.code == 0, ran.err
    assert any(map(holds_marker, asked))
    assert all(holds_marker(request) or asks_for_a_sign_of_life(request) for request in asked)
    assert exported("memory.tome") == before

    shop.fail_by(None)
    had = remembered(here / "memory.tome")
    ran, asked = shop.run("build", "-s", "comorag")
    assert ran.code == 0, ran.err
    assert had.isdisjoint(map(mark, asked))
    first = [request for request in asked if holds_marker(request)]
    assert {role(request) for request in first} == set(LAYERS)
    above = [request for request in asked if not holds_marker(request)]
    assert {role(request) for request in above} <= {"summarise"}, "what the tree holds above its lowest summaries"
    assert json.loads(command("show", "--json").out)["failed"] == []
    assert exported("memory.tome") == exported(whole)
    assert shop.run("build", "-s", "comorag")[1] == []
