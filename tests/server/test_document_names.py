"""Nothing that a server replies holds the path of a folder that was added; ids of before are accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mcp_server.mcp_tomes import connect
from tests.server.served import NOVEL, UPLOAD, Served, serve
from tests.texts import prose

from tomewise.tome.tome import Tome

QUESTION = "What did the clerk forge in May?"
TEXT = "The clerk forged the letter in May. The doctor was away and knew nothing of it."
SYSTEMS = ("naive", "raptor", "hipporag2", "comorag", "hybrid+probe")


@pytest.fixture(scope="module", name="notes")
def make_notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder, and beside it a server's folder with a tome that the folder was added to."""
    home = tmp_path_factory.mktemp("p\xe4th-of-home")
    notes = home / "notes"
    (notes / "sub").mkdir(parents=True)
    (home / "lib").mkdir()
    (notes / "letter.txt").write_text(TEXT)
    (notes / "sub" / "long.txt").write_text("\n\n".join(prose(number, 60) for number in range(4)))
    (notes / "sub" / "gone.txt").write_text("The keeper forged the map.")
    (notes / "rows.jsonl").write_text('{"text": "The widow sold the boat."}\n{"id": "row", "text": "A named row."}\n')
    with Tome.open(home / "lib" / "novel.tome", embedder="hash", settings={"passage_tokens": 32}) as tome:
        tome.add(notes)
        tome.build("comorag")
        tome.build("hipporag2")
        tome.ask("Who forged the map?", system="naive")
        tome.remove(str(notes / "sub" / "gone.txt"))
    return notes


@pytest.fixture(scope="module", name="named")
def serve_notes(notes: Path) -> Iterator[Served]:
    with serve(notes.parent, "--root", "lib") as running:
        yield running


def holds(text: str, notes: Path) -> bool:
    return any(part in text for part in (str(notes), json.dumps(str(notes))[1:-1], notes.parent.name))


def test_no_reply_of_http_holds_the_folder(named: Served, notes: Path) -> None:
    replies = []

    def get(path: str, **query: object) -> dict:
        reply = named.http.get(path, params=query)
        replies.append((path, reply))
        return reply.json()

    def post(path: str, body: object, **headers: str) -> None:
        replies.append((path, named.http.post(path, json=body, headers=headers)))

    for system in SYSTEMS:
        post(f"{NOVEL}/ask", {"question": "How many moons has Jupiter?", "system": system})
        post(f"{NOVEL}/ask", {"question": QUESTION, "system": system}, accept="text/event-stream")
        post(f"{NOVEL}/search", {"query": QUESTION, "system": system})
        chat = {"model": f"novel/{system}", "messages": [{"role": "user", "content": QUESTION}]}
        post("/v1/chat/completions", {**chat, "stream": True})
    post("/v1/chat/completions", chat)
    post(f"{NOVEL}/find", {"wanted": ["the"]})
    for _ in range(2):
        post(f"{NOVEL}/ask", {"question": QUESTION, "session": "talk", "system": "naive"})
    for path in ("", "/documents", "/traces", "/sessions", "/sessions/talk", "/pictures"):
        get(NOVEL + path)
    for row in named.http.get(f"{NOVEL}/traces", params={"limit": 200}).json()["traces"]:
        for part in ("", "/evidence"):
            get(f"{NOVEL}/traces/{row['number']}{part}")
    for layer in named.http.get(f"{NOVEL}/pictures").json()["layers"]:
        get(f"{NOVEL}/pictures/{layer}", limit=100)
    for name in ("letter.txt", str(notes / "letter.txt")):  # an id of before
        found = [get(f"{NOVEL}/{part}", document=name) for part in ("document", "removal", "text", "outline")]
        assert (found[0]["document"]["id"], found[2]["document"], found[2]["text"]) == (
            "letter.txt",
            "letter.txt",
            TEXT,
        )
    for wrong in ("notes/letter.txt", str(notes / "lette.txt"), "letter", "The letter"):
        assert get(f"{NOVEL}/document", document=wrong)["error"]["code"] == "unknown_name"
    for path, reply in replies:
        assert reply.status_code < 500, path
        assert not holds(reply.text, notes), (path, reply.text[:2000])
    listed = named.http.get(f"{NOVEL}/documents").json()["documents"]
    assert [entry["id"] for entry in listed] == ["letter.txt", "row", "rows.jsonl#1", "sub/long.txt"]


def test_a_message_names_the_file_that_owns_an_id_without_its_folder(named: Served, notes: Path) -> None:
    row = json.dumps({"id": "row", "text": "Another one."})
    files = {"files": ("other.jsonl", row)}
    job = named.wait_for_job(named.http.post(UPLOAD, files=files).json()["id"])
    assert job["state"] == "failed"
    assert not holds(json.dumps(job, ensure_ascii=False), notes)
    assert "rows.jsonl" in job["error"]["message"]


async def test_no_reply_of_mcp_holds_the_folder(notes: Path) -> None:
    calls = (
        *(("ask", {"question": question, "system": "comorag"}) for question in (QUESTION, "How many moons?")),
        *(("search", {"query": QUESTION, **within}) for within in ({}, {"documents": ["letter.txt"]})),
        ("search", {"query": QUESTION, "documents": [str(notes / "letter.txt")]}),
        *(("read", {"document": name}) for name in ("letter.txt", "long.txt", str(notes / "sub" / "long.txt"))),
        *(("read", {"document": name}) for name in ("notes/letter.txt", ".txt", "lettr.txt", "nothing")),
        *(("list_documents", {}), ("overview", {}), ("entity", {"name": "clerk"}), ("entity", {"name": "nobody"})),
        *(("remove_document", {"document": name}) for name in ("lette", "long.txt")),
    )
    async with connect(notes.parent / "lib" / "novel.tome", write=True) as client:
        for tool, arguments in calls:
            result = await client.call_tool(tool, arguments)
            assert not holds(result.model_dump_json(), notes), (tool, arguments)
        completed = await client.list_resources()
        assert not holds(completed.model_dump_json(), notes)
