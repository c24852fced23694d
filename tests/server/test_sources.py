"""Sources: many texts in one request, and the list of documents by folder, metadata and part of a name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.patience import wait_until

from tomewise.server.app import make_app
from tomewise.server.library import Library
from tomewise.server.serve_options import ServerOptions
from tomewise.settings import Settings

URL = "/api/tomes/novel"
TEXTS = [
    {"id": "notes/one", "title": "The light", "text": "Ada put out the light.", "metadata": {"year": 1911}},
    {"id": "notes/old/two", "text": "The clerk forged the letter.", "metadata": {"year": 1890}},
    {"id": "three", "title": "Tides", "text": "The harbour lay empty.", "metadata": {"year": 1911, "author": "Reed"}},
]


@pytest.fixture(name="client")
def make_client(tmp_path: Path) -> Iterator[TestClient]:
    app = make_app(Library(Settings(embedder="hash"), root=tmp_path), ServerOptions())
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:
        assert client.post("/api/tomes", json={"name": "novel"}).status_code == 201
        yield client


def add(client: TestClient, body: Any) -> Any:
    job = client.post(f"{URL}/documents", json=body).json()
    wait_until(lambda: client.get(f"/api/jobs/{job['id']}").json()["state"] in ("done", "failed"))
    return client.get(f"/api/jobs/{job['id']}").json()


def test_many_texts_are_one_job(client: TestClient):
    job = add(client, {"documents": [{"id": f"d{n}", "text": f"Text number {n}."} for n in range(200)]})
    assert (job["state"], job["files"], len(job["report"]["added"])) == ("done", 200, 200)
    assert len(client.get("/api/jobs").json()["jobs"]) == 1


@pytest.mark.parametrize(
    "documents",
    [
        [],
        [{"id": "a", "text": "x"}] * 2,
        [{"id": f"d{n}", "text": "x"} for n in range(1001)],
        [{"id": "a", "text": "x"}, {"id": "b", "text": " "}],
        [{"id": "a", "text": "x"}, {"id": "b\n", "text": "x"}],
        [{"id": "a", "text": "x", "path": "/etc/passwd"}],
    ],
)
def test_texts_that_cannot_be_added_are_refused_together(client: TestClient, documents: Any):
    refused = client.post(f"{URL}/documents", json={"documents": documents})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "usage")
    assert client.get("/api/jobs").json()["jobs"] == []


def test_documents_are_listed_by_folder_metadata_and_part_of_a_name(client: TestClient):
    add(client, {"documents": TEXTS})

    def find(**query: Any) -> Any:
        reply = client.get(f"{URL}/documents", params=query).json()
        return [document["id"] for document in reply["documents"]], reply

    found, reply = find()
    assert found == ["notes/old/two", "notes/one", "three"]
    assert reply["folders"] == {"": 1, "notes": 1, "notes/old": 1}
    assert reply["fields"] == ["author", "year"]
    assert find(folder="notes")[0] == find(folder="notes/")[0] == ["notes/old/two", "notes/one"]
    assert find(folder="note")[0] == []
    assert find(where=["year=1911"])[0] == ["notes/one", "three"]
    assert find(where=["year=1911", "author=Reed"])[0] == ["three"]
    assert find(q="LIGHT")[0] == ["notes/one"]
    found, reply = find(q="t", limit=1, folder="notes")
    assert (found, reply["total"], reply["next"]) == (["notes/old/two"], 2, "notes/old/two")
    assert client.get(f"{URL}/documents", params={"where": "year"}).status_code == 400


def test_a_question_stays_within_folders(client: TestClient):
    add(client, {"documents": TEXTS})
    ask = {"question": "Who put out the light?", "documents": ["notes/old/", "three"], "force": True}
    assert client.post(f"{URL}/ask", json=ask).json()["within"]["documents"] == ["notes/old/two", "three"]
    for name in ("old/", "/", "notes", "../"):
        assert client.post(f"{URL}/ask", json={**ask, "documents": [name]}).status_code == 404, name


def test_the_history_is_searched_by_words_in_pages(client: TestClient):
    add(client, {"documents": TEXTS})
    for question in ("Who put out the LIGHT in Hull?", "Who forged the letter of Lyme?", "Who put that of Lyme away?"):
        client.post(f"{URL}/ask", json={"question": question, "force": True})

    def find(**query: Any) -> list[int]:
        return [row["id"] for row in client.get(f"{URL}/traces", params=query).json()["traces"]]

    assert find(q="hull light") == [1]
    assert find(q="LYME who") == [3, 2]
    assert find(q="lyme", limit=1) == [3]
    assert find(q="lyme", before=3) == [2]
    assert find(q="xyzzy") == []
    assert find(q="%") == find(q="_") == []
    assert find(q=" ") == [3, 2, 1]


def test_an_entity_comes_in_pages_and_questions_are_suggested(client: TestClient):
    texts = [{"id": f"d{n}", "text": f"Ada Marsh met Tom Reed{n} in Hull. Ada Marsh saw Finch{n}."} for n in range(9)]
    add(client, {"documents": texts})
    job = client.post(f"{URL}/builds", json={"system": "hipporag2", "accept": {"calls": 100}}).json()
    wait_until(lambda: client.get(f"/api/jobs/{job['id']}").json()["state"] in ("done", "failed"))
    whole = client.get(f"{URL}/entity", params={"name": "Ada Marsh"}).json()
    assert whole["counts"] == {name: len(whole[name]) for name in ("facts", "passages", "neighbours")}
    page = client.get(f"{URL}/entity", params={"name": "Ada Marsh", "start": 2, "limit": 3}).json()
    assert page["counts"] == whole["counts"]
    assert page["passages"] == whole["passages"][2:5]
    assert page["neighbours"] == whole["neighbours"][2:5]
    questions = client.get(f"{URL}/suggestions", params={"limit": 2}).json()["questions"]
    assert [each["source"] for each in questions] == ["names", "names"]
    assert client.get(f"{URL}/suggestions", params={"limit": 21}).status_code == 400
