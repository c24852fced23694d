"""The model's server fails on one passage: the command builds the rest, names the passage, and builds it later."""

import itertools
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from tests.building import LAYERS, mark, play_role, read_marks, role
from tests.language.openai_server import Behaviour, OpenAIServer, fail_with, reply_with
from tests.texts import prose

from tomewise.tome.tome import Tome

MARKER = "quicksilver"
LETTER = "a letter.txt"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A tome with three documents, one of them with a passage that contains the marker; no layer is built yet."""
    folder = tmp_path_factory.mktemp("library")
    for number in range(2):
        (folder / f"b{number}.txt").write_text(prose(number, 30))
    (folder / LETTER).write_text(f"{prose(2, 12)} The {MARKER} was gone. {prose(3, 12)}")
    with Tome.open(folder / "empty.tome", embedder="hash", settings={"passage_tokens": 48}) as tome:
        tome.add(*sorted(folder.glob("*.txt")))
        (place,) = [passage.position for passage in tome.store.passages().values() if MARKER in passage.text]
    return folder / "empty.tome", place


class Shop:
    """A server that can fail on the marker, and the command that asks it."""

    def __init__(self, server, command):
        self.server = server
        self._command = command
        self.fail_by(None)

    def fail_by(self, behaviour):
        def play(request):
            return behaviour if behaviour and holds_marker(request) else play_role(request, delay=0.02)

        self.server.handler = play

    def run(self, *words):
        """Run the command; returns its result and the requests that it made."""
        self.server.requests = []
        ran = self._command(*words, "--model", "openai:test", "--base-url", self.server.url)
        return ran, self.server.requests


def holds_marker(request):
    prompt = request["messages"][1]["content"]
    return MARKER in re.sub(r"<before>.*?</before>", "", prompt, flags=re.DOTALL)  # the next passage is shown its end


def asks_for_a_sign_of_life(request):
    return '{"alive": true}' in request["messages"][1]["content"]


@pytest.fixture
def shop(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with OpenAIServer(play_role) as server:
        yield Shop(server, command)


def read_export(path):
    with Tome.open(path) as tome:
        return list(tome.memory.export())


def test_a_passage_that_keeps_failing_is_named_and_the_rest_is_built(library, tome, here, shop, command):
    empty, place = library
    reason = "out of memory; meanwhile other requests got a reply"
    whole = Path(shutil.copy(empty, here / "whole.tome"))
    assert shop.run("build", "-s", "comorag", "-m", whole)[0].code == 0
    shop.fail_by(fail_with(500, "out of memory"))
    ran, _ = shop.run("build", "-s", "comorag")
    assert ran.code == 0, ran.err
    assert ran.out.count("the next build tries these again") == 3
    assert reason in ran.out

    report = json.loads(command("show", "--json").out)
    assert {failure["layer"] for failure in report["failed"]} == set(LAYERS.values())
    for failure in report["failed"]:
        assert reason in failure["reason"]
    (graph,) = [failure for failure in report["failed"] if failure["layer"] == LAYERS["extract_facts"]]
    assert graph["document"].endswith(LETTER)
    assert graph["passages"] == [place]
    assert f"{LAYERS['extract_facts']} lacks {graph['document']}, passage {place}: openai:test" in command("show").out

    # The graph lacks the passage; `hybrid`, with which the last prompt is filled by default, would find it.
    ran, _ = shop.run("ask", "When did the tide turn?", "-s", "comorag", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["text"] == "at nine"

    before = read_export("memory.tome")
    ran, asked = shop.run("build", "-s", "comorag")
    assert ran.code == 0, ran.err
    assert any(map(holds_marker, asked))
    assert all(holds_marker(request) or asks_for_a_sign_of_life(request) for request in asked)
    assert read_export("memory.tome") == before

    shop.fail_by(None)
    remembered = read_marks(here / "memory.tome")
    ran, asked = shop.run("build", "-s", "comorag")
    assert ran.code == 0, ran.err
    assert remembered.isdisjoint(map(mark, asked))
    first = [request for request in asked if holds_marker(request)]
    assert {role(request) for request in first} == set(LAYERS)
    above = [request for request in asked if not holds_marker(request)]
    assert {role(request) for request in above} <= {"summarise"}, "the upper levels of the tree"
    assert json.loads(command("show", "--json").out)["failed"] == []
    assert read_export("memory.tome") == read_export(whole)
    assert shop.run("build", "-s", "comorag")[1] == []


GARBAGE = reply_with("I would rather not say.")
GRAPH = ("build", "-s", "associative")


def fail_after(replies, behaviour=GARBAGE):
    """A handler that plays its role so often, and then behaves like this."""
    left = itertools.count(replies, -1)
    return lambda request: play_role(request) if next(left) > 0 else behaviour


@pytest.fixture
def tome(library, here):
    """A copy of the tome of the library."""
    return Path(shutil.copy(library[0], here / "memory.tome"))


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [(GARBAGE, "gave no usable reply"), (fail_with(400, "that text is not for me"), "that text is not for me")],
)
def test_a_reply_that_cannot_be_used_fails_its_passage_alone(tome, shop, behaviour, reason):
    shop.fail_by(behaviour)
    ran, _ = shop.run(*GRAPH)
    assert (ran.code, ran.out.count("failed for 1")) == (0, 1)
    assert reason in ran.out


def test_a_model_that_only_fails_stops_the_build_in_time(tome, shop):
    with Tome.open(tome) as opened:
        assert len(opened.store.passages()) >= 3 + 20
    shop.server.handler = fail_after(3)
    ran, _ = shop.run(*GRAPH)
    assert ran.code == 6
    assert ran.err.startswith("tome: 20 calls of openai:test failed with no reply between them, so this was stopped.")
    assert "gave no usable reply for 'extract_facts'" in ran.err
    assert "Kept: 3 replies, for which the next try does not ask again. Spent: " in ran.err

    kept = read_marks(tome)
    assert len(kept) == 3
    shop.fail_by(None)
    ran, asked = shop.run(*GRAPH)
    assert ran.code == 0, ran.err
    assert kept.isdisjoint(map(mark, asked))


@pytest.mark.parametrize(
    ("behaviour", "words", "least", "most", "says"),
    [
        (GARBAGE, ("ask", "When did the tide turn?", "-s", "cosmir chunk=60"), 1, 80, "gave no usable reply"),
        (
            Behaviour(b"", status=302, headers={"location": "/sign-in"}),
            (*GRAPH, "--max-failures", "1000"),
            *(1, 16),
            "sent a redirect to /sign-in in place of a reply: check the base URL",
        ),
        (Behaviour(b"<html>Hi</html>"), GRAPH, 20, 36, "sent a page of HTML in place of a reply: check the base URL"),
    ],
    ids=["a question", "an address that leads elsewhere", "a page in place of replies"],
)
def test_a_model_that_only_fails_ends_the_work_with_its_reason(tome, shop, behaviour, words, least, most, says):
    shop.server.handler = fail_after(0, behaviour)
    ran, asked = shop.run(*words)
    assert ran.code == 6
    assert least <= len(asked) <= most
    assert says in ran.err
