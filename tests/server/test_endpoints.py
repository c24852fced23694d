"""The endpoints: what each replies, what /openapi.json says of it, and what agents get of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.conftest import Ran
from tests.drawn import read_picture
from tests.server.schema_cases import check_operations, serve_filled
from tests.server.served import (
    ASK,
    NOVEL,
    QUESTION,
    TOKEN,
    UPLOAD,
    Served,
    finish_job,
    make_client,
    make_tome,
    read_code,
    read_events,
    serve,
    serve_novel,
)

from tomewise.evaluate.experiment import Experiment
from tomewise.sample import STORY
from tomewise.server.operation_list import OPERATIONS
from tomewise.server.serve_options import ServerOptions
from tomewise.store.records import BUILDS
from tomewise.tome.tome import Tome
from tomewise.types import Document

GRAPH = "graph:passages-triples-in-2-calls"
TEXTS = [
    {"id": "notes/one", "title": "The light", "text": "Ada put out the light.", "metadata": {"year": 1911}},
    {"id": "notes/old/two", "text": "The clerk forged the letter.", "metadata": {"year": 1890}},
    {"id": "three", "title": "Tides", "text": "The harbour lay empty.", "metadata": {"year": 1911, "author": "Reed"}},
]
GOOD = {"id": "a", "text": "x"}
BAD = (
    *({"id": id, "text": "x"} for id in (1, "a\0b", "x" * 5000, "  ", "b\n")),
    *({"id": "b", "text": " "}, {"id": "b"}, {"id": "b", "text": "x", "path": "/etc/passwd"}),
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a tome of the sample and a note, with a graph."""
    folder = tmp_path_factory.mktemp("library")
    with Tome.open(folder / "novel.tome", embedder="hash") as tome:
        tome.add(Document(id="story", text=STORY.read_text(encoding="utf-8"), metadata={"year": 1911}))
        tome.add(Document(id="log", text="Ada Marsh wrote the Slack Water Book.", metadata={"year": 1890}))
        tome.build("hipporag2")
    with make_client(folder, options=ServerOptions(token=TOKEN)) as made:
        made.headers["authorization"] = f"Bearer {TOKEN}"
        yield made


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[TestClient]:
    """A client of a new tome."""
    with make_client(tmp_path, embedder="hash") as made:
        assert made.post("/api/tomes", json={"name": "novel"}).status_code == 201
        yield made


def get(client: Any, path: str, **query: Any) -> Any:
    return client.get(f"{NOVEL}/{path}".rstrip("/"), params=query).json()


def post(client: TestClient, path: str, **body: Any) -> Any:
    return client.post(f"{NOVEL}/{path}", json=body).json()


def test_a_server_that_only_reads_offers_nothing_that_changes(tmp_path: Path):
    with make_client(tmp_path, options=ServerOptions(read_only=True)) as reading:
        paths = reading.get("/openapi.json").json()["paths"]
    offered = {each["operationId"] for methods in paths.values() for each in methods.values()}
    assert offered == {operation.name for operation in OPERATIONS if not operation.changes}
    assert {"ask", "search", "complete_chat"} <= offered
    assert offered.isdisjoint({"remove_document", "build", "make_tome"})


def test_health_and_information(served: Served):
    assert served.http.get("/api/health", headers={"authorization": ""}).json() == {"ok": True}
    assert served.http.head("/api/health").status_code == 200
    info = served.http.get("/api/info").json()
    assert info["model"] == "extractive"
    assert {"naive", "comorag"} <= {system["name"] for system in info["systems"]}
    brief = served.http.get("/api/info", params={"systems": False}).json()
    assert {name: value for name, value in info.items() if name != "systems"} == brief
    assert served.http.get("/api/evaluations").json() == {"evaluations": [], "total": 0}


def test_a_tome_and_its_documents(served: Served):
    shown = get(served.http, "")
    assert (shown["contents"]["tome"], shown["contents"]["embedder"]) == ("novel", "hash")
    assert "hybrid" in shown["ready"]
    assert "comorag" not in shown["ready"]
    page = get(served.http, "documents", limit=1)
    assert ([record["id"] for record in page["documents"]], page["next"]) == (["letter"], "letter")
    assert "light" in [record["id"] for record in get(served.http, "documents", after=page["next"])["documents"]]
    piece = get(served.http, "text", document="light", start=0, end=9)
    span = {"id": piece["passages"][0]["id"], "position": 0, "start": 0, "end": 72, "place": {}}
    whole = {"document": "light", "title": "", "characters": 72, "passages": [span]}
    assert piece == {**whole, "start": 0, "end": 9, "text": "Ada Marsh"}
    assert get(served.http, "document", document="light")["passages"][0]["text"].startswith("Ada Marsh")


def test_a_part_of_a_text_counts_characters(served: Served):
    text = "Émile 🕯 blew it out. " * 6000
    assert served.add(id="émile", text=text)["state"] == "done"
    for start, end in ((0, 7), (6, 8), (99_990, 100_010), (len(text) - 3, len(text) + 9), (9, 3)):
        part = get(served.http, "text", document="émile", start=start, end=end)
        assert (part["text"], part["characters"]) == (text[start:end], len(text))
        assert part["end"] == start + len(part["text"])
    assert len(get(served.http, "text", document="émile")["text"]) == 100_000


def test_a_request_without_a_system_takes_the_one_of_the_settings(here: Path):
    with serve_novel(here, TOMEWISE_SYSTEM="raptor") as own:
        assert own.post(f"{NOVEL}/estimate", {}).json()["system"] == "raptor"
        assert own.post(ASK, {"question": QUESTION}).status_code == 409  # it is not built
        assert own.post(ASK, {"question": QUESTION, "system": "naive"}).status_code == 200
        assert own.post(f"{NOVEL}/search", {"query": QUESTION}).status_code == 409
        assert own.post(f"{NOVEL}/builds", {"accept": "1,000 calls"}).json()["system"] == "raptor"


def test_a_question_gives_what_the_command_prints_and_a_stream_ends_with_it(command: Callable[..., Ran], here: Path):
    make_tome(here / "novel.tome")
    printed = json.loads(command("ask", QUESTION, "-m", "novel.tome", "--json").out)
    with serve_novel(here) as own:
        answer = own.post(ASK, {"question": QUESTION}).json()
        events = own.stream({"question": QUESTION})
    assert [name for name, _ in events] == ["started", "retrieved", "cost", "answer"]
    assert events[1][1]["detail"]["evidence"]
    streamed = events[-1][1]
    assert 1 <= answer.pop("trace") < streamed.pop("trace")
    printed.pop("trace")
    for reply in (printed, answer, streamed):
        reply.pop("cost")
    assert answer == printed == streamed
    assert answer["statements"][0]["text"].startswith("Ada Marsh put out the light at nine.")


def test_traces_are_shown_with_their_evidence_and_deleted(served: Served):
    number = served.post(ASK, {"question": "Who forged the letter?"}).json()["trace"]
    listed = get(served.http, "traces")["traces"]
    assert (listed[0]["number"], listed[0]["question"]["text"]) == (number, "Who forged the letter?")
    url = f"{NOVEL}/traces/{number}"
    pieces = served.http.get(url).json()["events"][0]["detail"]["evidence"]
    evidence = served.http.get(f"{url}/evidence").json()["evidence"]
    assert evidence.keys() == {piece["id"] for piece in pieces}
    for piece in evidence.values():
        span = {"document": piece["document"], "start": piece["start"], "end": piece["end"]}
        assert get(served.http, "text", **span)["text"] == piece["text"]
    assert served.http.delete(url).json() == {"deleted": number}
    assert served.http.get(url).status_code == served.http.get(f"{url}/evidence").status_code == 404


def test_files_are_added_under_their_names(served: Served):
    files = {
        "notes/one.md": b"# One\n\nThe widow kept the coin.",
        "../x.txt": b"The smith sold the horse.",
        "/etc/x": b"The miller bought the horse.",
        "bad.pdf": b"no PDF at all",
        "notes/empty.txt": b"",
    }
    reply = served.http.post(UPLOAD, files=[("files", each) for each in files.items()])
    assert (reply.status_code, reply.json()["files"], reply.json()["system"]) == (202, 5, None)
    job = served.wait_for_job(reply.json()["id"])
    assert job["state"] == "done"
    assert sorted(job["report"]["added"]) == ["../x.txt", "notes/one.md", "x"]
    assert list(job["report"]["failed"]) == ["bad.pdf", "notes/empty.txt"]
    assert job["report"]["failed"]["notes/empty.txt"].startswith("notes/empty.txt is empty")
    assert get(served.http, "text", document="../x.txt")["text"].startswith("The smith")
    removed = served.http.delete(f"{NOVEL}/document", params={"document": "/etc/x"}).json()
    assert removed["document"] == "x"


def test_a_build_goes_on_only_if_its_costs_are_accepted(served: Served):
    estimated = served.post(f"{NOVEL}/estimate", {"system": "cogitorag"}).json()
    refused = served.post(f"{NOVEL}/builds", {"system": "cogitorag", "accept": "0 calls, $0"})
    assert (refused.status_code, refused.json()["estimate"]) == (409, estimated)
    calls = estimated["total"]["calls"]
    assert f'send "accept": "{-(-calls * 11 // 10)} calls, $0"' in refused.json()["error"]["message"]
    accepted = served.post(f"{NOVEL}/builds", {"system": "cogitorag", "accept": f"{calls} calls, $0"})
    assert (accepted.status_code, accepted.json()["system"], accepted.json()["files"]) == (202, "cogitorag", 0)
    followed = read_events(served.http.get(f"/api/jobs/{accepted.json()['id']}/events").text)
    name, job = followed[-1]
    assert (name, job["state"]) == ("job", "done"), "no model is set, so it costs nothing"
    assert job["report"]["layers"][0]["added"] >= 1
    assert "cogitorag" in get(served.http, "")["ready"]
    assert served.http.get("/api/jobs").json()["jobs"][0]["id"] == accepted.json()["id"]


def test_what_a_removal_takes_with_it_is_stated_before(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with make_client(tmp_path) as own:
        build = {"system": "comorag", "accept": "100 calls"}
        assert finish_job(own, f"{NOVEL}/builds", build)["state"] == "done"
        post(own, "ask", question=QUESTION, session="s")
        foreseen = get(own, "removal", document="light")
        assert (foreseen["passages"], foreseen["session_answers"], foreseen["paid"]) == (1, 1, {})
        assert foreseen["layers"]["facts:passages-triples"] > 0
        done = own.delete(f"{NOVEL}/document", params={"document": "light"}).json()
        assert sum(foreseen["layers"].values()) == done["derived"]
        assert own.get(f"{NOVEL}/removal", params={"document": "lihgt"}).status_code == 404


def test_lists_come_in_pages(served: Served):
    numbers = [served.post(ASK, {"question": QUESTION, "session": f"p{n}"}).json()["trace"] for n in range(3)]
    page = get(served.http, "traces", limit=2)
    assert ([row["number"] for row in page["traces"]], page["next"]) == (numbers[:0:-1], numbers[1])
    following = get(served.http, "traces", limit=1, before=page["next"], q="LIGHT who")
    assert [row["number"] for row in following["traces"]] == numbers[:1]
    assert get(served.http, "traces", q="%")["traces"] == []
    names = get(served.http, "sessions", after="p0", limit=1)
    assert ([row["name"] for row in names["sessions"]], names["next"]) == (["p1"], "p1")


def test_an_entity_an_overview_and_a_passage_with_its_neighbours(client: TestClient):
    seen = get(client, "overview")
    assert (seen["documents"], seen["fields"]) == (2, ["year"])
    found = get(client, "entity", name="Slack Water Book")
    assert found["counts"] == {name: len(found[name]) for name in ("facts", "passages", "neighbours")}
    part = get(client, "entity", name="Slack Water Book", start=1, limit=1)
    assert (part["counts"], part["passages"]) == (found["counts"], found["passages"][1:2])
    assert client.get(f"{NOVEL}/entity", params={"name": "xyzzy"}).status_code == 404
    passage = found["passages"][0]
    alone = get(client, "text", passage=passage["id"])
    assert alone["text"] == passage["text"]
    wide = get(client, "text", passage=passage["id"], neighbours=1)
    assert wide["text"].find(alone["text"]) > 0 or wide["end"] > alone["end"] or wide["document"] == "log"
    for more in ({}, {"document": "log", "passage": passage["id"]}):
        assert client.get(f"{NOVEL}/text", params=more).status_code == 400
    assert [each["source"] for each in get(client, "suggestions", limit=2)["questions"]] == ["names", "names"]


def test_a_question_and_a_search_stay_within_documents_and_conditions(client: TestClient):
    question = "Who wrote the Slack Water Book?"
    found = post(client, "search", query=question, where=["year<1900"])
    assert {source["document"] for piece in found["evidence"] for source in piece["origins"]} == {"log"}
    assert post(client, "search", query=question, where=["year>2000"])["error"]["code"] == "usage"
    first = post(client, "ask", question=question, documents=["log"], session="talk")
    assert {citation["document"] for statement in first["statements"] for citation in statement["quotes"]} == {"log"}
    assert first["within"]["documents"] == ["log"]
    assert post(client, "ask", question="Who was she?", session="talk")["within"] == first["within"]


def test_a_document_brings_metadata(served: Served):
    fields = {"year": 1911, "authors": ["Ada Marsh", "Tom Reed"], "draft": False}
    body = {"id": "with fields", "text": "The widow kept the coin."}
    assert served.add(**body, metadata=fields)["state"] == "done"
    assert get(served.http, "document", document="with fields")["document"]["metadata"] == fields
    found = served.post(f"{NOVEL}/search", {"query": "the coin", "where": ["authors=Tom Reed"]}).json()
    assert found["evidence"][0]["origins"][0]["document"] == "with fields"
    too_long = ({"a": "x" * 5000}, {"b": ["z" * 900] * 100, "year": 1}, {f"f{n}": 1 for n in range(51)})
    for wrong in (*too_long, {"a": {}}, {"": 1}, [1], {"year>=": 1}, {"a\x00": 1}):
        reply = served.post(UPLOAD, {**body, "metadata": wrong})
        assert (*read_code(reply), "metadata" in reply.text) == (400, "usage", True), wrong


@pytest.mark.parametrize(
    "body",
    [
        {"documents": []},
        {"documents": [GOOD, GOOD]},
        {"documents": [{"id": f"d{n}", "text": "x"} for n in range(1001)]},
        *({"documents": [GOOD, bad]} for bad in BAD),
        *BAD,
    ],
    ids=lambda body: str(body)[:60],
)
def test_texts_that_cannot_be_added_are_refused_together(served: Served, body: Any):
    before = served.http.get("/api/jobs").json()["total"]
    assert read_code(served.post(UPLOAD, body)) == (400, "usage")
    assert served.http.get("/api/jobs").json()["total"] == before


def test_documents_are_listed_and_asked_by_folder_metadata_and_part_of_a_name(empty: TestClient):
    job = finish_job(empty, UPLOAD, {"documents": TEXTS})
    assert (job["state"], job["files"], len(job["report"]["added"])) == ("done", 3, 3)

    def find(**query: Any) -> Any:
        return [document["id"] for document in get(empty, "documents", **query)["documents"]]

    whole = get(empty, "documents")
    assert (whole["folders"], whole["fields"]) == ({"": 1, "notes": 1, "notes/old": 1}, ["author", "year"])
    assert find(folder="notes") == ["notes/old/two", "notes/one"]
    assert find(folder="note") == []
    assert find(where=["year=1911", "author=Reed"]) == ["three"]
    assert find(q="LIGHT") == ["notes/one"]
    ask = {"question": QUESTION, "documents": ["notes/old/", "three"], "force": True}
    assert post(empty, "ask", **ask)["within"]["documents"] == ["notes/old/two", "three"]
    for name in ("old/", "/", "notes", "../"):
        assert empty.post(ASK, json={**ask, "documents": [name]}).status_code == 404, name


def test_tables_questions_and_two_answers_of_an_experiment(tmp_path: Path, command: Callable[..., Ran], here: Path):
    out = here / "evals"
    Experiment(["naive", "hybrid"], questions=3, out=out, embedder="hash").run()
    printed = json.loads(command("eval", "report", out, "--json", "--baseline", "naive", "--by", "length").out)
    with serve(tmp_path, "--root", ".", "--evaluations", str(out)) as served:
        (about,) = served.http.get("/api/evaluations").json()["evaluations"]
        url = f"/api/evaluations/{about['name']}"
        shown = served.http.get(url, params={"baseline": "naive", "by": "length", "limit": 0}).json()
        assert (shown["table"], shown["rows"], shown["total"]) == (printed, [], 6)
        listed = served.http.get(f"{url}/questions", params={"limit": 2}).json()
        assert (len(listed["questions"]), listed["total"]) == (2, 3)
        chosen = {"first": "naive", "second": "hybrid", "question": listed["questions"][0]["id"]}
        compared = served.http.get(f"{url}/compare", params=chosen).json()
        assert [side["system"] for side in compared["systems"]] == ["naive", "hybrid"]
        assert served.http.get(f"{url}/compare", params={**chosen, "second": "nothing"}).status_code == 404


def test_pictures_of_layers(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with Tome.open(tmp_path / "novel.tome") as tome:
        tome.build("hipporag2")
        number = tome.ask(QUESTION, system="hipporag2").trace
        built = sorted(tome.store.notes(BUILDS))
        chosen = {"around": tome.memory.draw(GRAPH).nodes[0].label, "hops": 1, "limit": 3}
        drawn = [tome.memory.draw(GRAPH, **chosen), tome.memory.draw(GRAPH, trace=number)]
    with make_client(tmp_path) as own:
        assert get(own, "pictures") == {"layers": built}
        layer = f"pictures/{GRAPH}"
        replies = [get(own, layer, **query) for query in (chosen, {"trace": number})]
        assert [read_picture(reply) for reply in replies] == drawn


def test_replies_are_as_the_schema_says(tmp_path: Path):
    with serve_filled(tmp_path) as filled:
        counts = check_operations(filled, examples=5)
        assert counts.total() >= 150
        assert len(counts) == len(OPERATIONS)
