"""A server answers from memory that lags, and says so in each kind of reply."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.mcp_server.mcp_tomes import connect
from tests.server.conftest import make_tome
from tests.server.served import Served, serve

from tomewise.tome.tome import Tome
from tomewise.types import Document

QUESTION = "Who dredged the harbour?"
LATE = Document(id="late", text="Ottilie Brand dredged the harbour in 1931.")
STREAM = {"accept": "text/event-stream"}


def make_lagging(path: Path) -> None:
    make_tome(path)
    with Tome.open(path, embedder="hash", model="extractive") as tome:
        tome.build("hipporag2")
        tome.add(LATE)


def check(lagging: dict) -> None:
    assert (lagging["documents"], lagging["count"], lagging["nearer"]) == (["late"], 1, True)
    assert (lagging["system"], lagging["calls"], lagging["unpriced"]) == ("hipporag2", 1, [])


def test_each_kind_of_reply_says_what_is_missing(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    make_lagging(tmp_path / "lib" / "novel.tome")
    with serve(tmp_path, "--root", "lib") as served:
        asked = {"question": QUESTION, "system": "hipporag2"}
        check(served.post("/api/tomes/novel/ask", asked).json()["lagging"])
        text = served.http.post("/api/tomes/novel/ask", json=asked, headers=STREAM).text
        check(json.loads(re.findall(r"event: answer\ndata: (.*)\n", text)[0])["lagging"])
        check(served.post("/api/tomes/novel/search", {"query": QUESTION, "system": "hipporag2"}).json()["lagging"])
        chat = {"model": "novel/hipporag2", "messages": [{"role": "user", "content": QUESTION}]}
        check(served.post("/v1/chat/completions", chat).json()["tomewise"]["lagging"])
        check(served.http.get("/api/tomes/novel/traces/1").json()["lagging"])
        shown = served.http.get("/api/tomes/novel").json()
        assert "hipporag2" in shown["ready"]
        assert "hipporag2" in shown["lagging"]
        assert "hybrid" not in shown["lagging"]
        assert "comorag" not in shown["ready"], "it was never built"
        assert "novel/hipporag2" in [model["id"] for model in served.http.get("/v1/models").json()["data"]]
        assert served.post("/api/tomes/novel/ask", {"question": QUESTION}).json()["lagging"] is None
        _check_strict(served, asked)
        job = served.post("/api/tomes/novel/documents", {"id": "more", "text": "A gull sat on the mast."}).json()
        report = served.wait_for_job(job["id"])["report"]
        assert (report["lagging"]["documents"], report["lagging"]["calls"]) == (["late", "more"], 2)


def _check_strict(served: Served, asked: dict) -> None:
    for headers in ({}, STREAM):
        refused = served.http.post("/api/tomes/novel/ask", json={**asked, "strict": True}, headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_built")
        assert refused.json()["estimate"]["total"]["calls"] == 1
    search = {"query": QUESTION, "system": "hipporag2", "strict": True}
    assert served.post("/api/tomes/novel/search", search).status_code == 409


async def test_a_tool_of_mcp_says_it_in_its_text_and_in_its_fields(tmp_path: Path):
    make_lagging(tmp_path / "novel.tome")
    async with connect(tmp_path / "novel.tome") as client:
        result = await client.call_tool("ask", {"question": QUESTION, "system": "hipporag2"})
    assert result.structured_content
    check(result.structured_content["lagging"])
    assert "What was built does not know 1 document yet." in result.content[0].text  # type: ignore[union-attr]
