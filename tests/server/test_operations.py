"""The list of operations: what /openapi.json says of each, what agents get of it, and what came with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.served import TOKEN, Served

from tomewise.sample import STORY
from tomewise.server.app import make_app
from tomewise.server.library import Library
from tomewise.server.operation_list import OPERATIONS
from tomewise.server.serve_options import ServerOptions
from tomewise.settings import Settings
from tomewise.tome.tome import Tome
from tomewise.types import Document


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("library")
    with Tome.open(folder / "novel.tome", embedder="hash") as tome:
        tome.add(Document(id="story", text=STORY.read_text(encoding="utf-8"), metadata={"year": 1911}))
        tome.add(Document(id="log", text="Ada Marsh wrote the Slack Water Book.", metadata={"year": 1890}))
        tome.build("hipporag2")
    app = make_app(Library(Settings(), root=folder), ServerOptions(token=TOKEN))
    headers = {"authorization": f"Bearer {TOKEN}"}
    with TestClient(app, base_url="http://127.0.0.1:8765", headers=headers) as made:
        yield made


def post(client: TestClient, path: str, **body: Any) -> Any:
    return client.post(f"/api/tomes/novel/{path}", json=body).json()


def get(client: TestClient, path: str, **more: Any) -> Any:
    return client.get(f"/api/tomes/novel/{path}", params=more).json()


def test_each_operation_is_described_once_with_its_reply_its_errors_and_the_token(client: TestClient):
    described = client.get("/openapi.json").json()
    found = [operation for methods in described["paths"].values() for operation in methods.values()]
    assert sorted(each["operationId"] for each in found) == sorted({operation.name for operation in OPERATIONS})
    assert len(found) == len(OPERATIONS)
    for each in found:
        assert "422" not in each["responses"]
        assert each["security"] == ([] if each["operationId"] == "check_health" else [{"token": []}])
        for status, reply in each["responses"].items():
            schemas = [kind.get("schema", {}) for kind in reply["content"].values()]
            assert all("$ref" in schema or schema["properties"] for schema in schemas), each["operationId"]
            for schema in schemas:
                if "$ref" in schema:
                    name = schema["$ref"].rpartition("/")[2]
                    assert described["components"]["schemas"][name]["properties"]
                    assert status.startswith("2") or "error" in described["components"]["schemas"][name]["properties"]
    assert set(described["paths"]["/api/tomes/{tome}/ask"]["post"]["responses"]) >= {"402", "404", "409", "429", "502"}


def test_a_server_that_only_reads_offers_nothing_that_changes(tmp_path: Path):
    app = make_app(Library(Settings(), root=tmp_path, read_only=True), ServerOptions(read_only=True))
    offered = {each["operationId"] for methods in app.openapi()["paths"].values() for each in methods.values()}
    assert offered == {operation.name for operation in OPERATIONS if not operation.changes}
    assert {"ask", "search", "complete_chat"} <= offered
    assert offered.isdisjoint({"remove_document", "build", "make_tome"})


def test_an_entity_an_overview_and_a_passage_with_its_neighbours(client: TestClient):
    seen = get(client, "overview")
    assert (seen["documents"], seen["fields"]) == (2, ["year"])
    assert {layer["layer"] for layer in seen["layers"]} > {"passages"}
    found = get(client, "entity", name="Slack Water Book")
    assert found["facts"]
    assert found["passages"]
    assert client.get("/api/tomes/novel/entity", params={"name": "xyzzy"}).status_code == 404
    passage = found["passages"][0]
    alone = get(client, "text", passage=passage["id"])
    assert alone["text"] == passage["text"]
    wide = get(client, "text", passage=passage["id"], neighbours=1)
    assert wide["text"].find(alone["text"]) > 0 or wide["end"] > alone["end"] or wide["document"] == "log"
    same = get(client, "text", document=alone["document"], start=wide["start"], end=wide["end"])
    assert same == wide
    for more in ({}, {"document": "log", "passage": passage["id"]}):
        assert client.get("/api/tomes/novel/text", params=more).status_code == 400


def test_a_question_and_a_search_stay_within_documents_and_conditions(client: TestClient):
    question = "Who wrote the Slack Water Book?"
    answer = post(client, "ask", question=question, documents=["log"])
    assert {citation["document"] for citation in answer["citations"]} == {"log"}
    assert answer["within"]["documents"] == ["log"]
    found = post(client, "search", query=question, where=["year<1900"])
    assert {source["document"] for piece in found["evidence"] for source in piece["sources"]} == {"log"}
    assert post(client, "search", query=question, where=["year>2000"])["error"]["code"] == "usage"
    assert "did you mean 'log'" in post(client, "ask", question=question, documents=["lag"])["error"]["message"]
    first = post(client, "ask", question=question, documents=["log"], session="talk")
    again = post(client, "ask", question="Who was she?", session="talk")
    assert first["within"] == again["within"] == answer["within"]


def test_a_document_brings_metadata(served: Served):
    fields = {"year": 1911, "authors": ["Ada Marsh", "Tom Reed"], "draft": False}
    body = {"id": "with fields", "text": "The widow kept the coin.", "metadata": fields}
    job = served.post("/api/tomes/novel/documents", body).json()
    assert served.wait_for_job(job["id"])["state"] == "done"
    shown = served.http.get("/api/tomes/novel/document", params={"document": "with fields"}).json()
    assert shown["metadata"] == fields
    found = served.post("/api/tomes/novel/search", {"query": "the coin", "where": ["authors=Tom Reed"]}).json()
    assert found["evidence"][0]["sources"][0]["document"] == "with fields"
    for wrong in ({"a": {}}, {"a": "x" * 5000}, {f"f{n}": 1 for n in range(51)}, {"": 1}, [1]):
        reply = served.post("/api/tomes/novel/documents", {**body, "metadata": wrong})
        assert (reply.status_code, "metadata" in reply.text) == (400, True)


def test_a_long_message_holds_no_path(client: TestClient):
    reply = client.post("/api/tomes/novel/search", json={"query": "x", "system": "y" * 400})
    assert len(json.dumps(reply.json())) < 3000
