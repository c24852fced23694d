"""Sessions over HTTP."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.language.openai_server import OpenAIServer, reply_with
from tests.server.conftest import make_tome
from tests.server.served import Served, serve

from tomewise.tome.tome import Tome

FIRST = "Who put out the light?"
SYSTEM = {"system": "naive", "settings": {"limit": 3}}


def test_questions_that_follow_one_another(served: Served):
    url = "/api/tomes/novel"
    first = served.post(f"{url}/ask", {"question": FIRST, "session": "a/b", **SYSTEM}).json()
    assert first["session"]["number"] == 1
    second = served.post(f"{url}/ask", {"question": "And when did she do it?", "session": "a/b"}).json()
    assert (second["session"]["number"], second["system"]) == (2, first["system"])
    assert "Ada Marsh" in second["session"]["question"]
    listed = served.http.get(f"{url}/sessions").json()["sessions"]
    assert listed == [{"name": "a/b", "system": first["system"], "count": 2}]
    shown = served.http.get(f"{url}/sessions/a%2Fb").json()
    assert [turn["asked"] for turn in shown["turns"]] == [FIRST, "And when did she do it?"]
    assert shown["notes"] == []
    refused = served.post(f"{url}/ask", {"question": FIRST, "session": "a/b", "system": "hybrid"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "usage")
    assert served.http.delete(f"{url}/sessions/a%2Fb").json() == {"deleted": "a/b"}
    assert served.http.get(f"{url}/sessions/a%2Fb").status_code == 404
    assert served.http.delete(f"{url}/sessions/a%2Fb").status_code == 404


def test_a_stream_names_the_system_of_the_session(served: Served):
    served.post("/api/tomes/novel/ask", {"question": FIRST, "session": "streamed", **SYSTEM})
    reply = served.http.post(
        "/api/tomes/novel/ask",
        json={"question": FIRST, "session": "streamed"},
        headers={"accept": "text/event-stream"},
    )
    events = [(name, json.loads(data)) for name, data in re.findall(r"event: (.*)\ndata: (.*)\n", reply.text)]
    assert events[0][1]["system"] == events[-1][1]["system"] == "naive limit=3"


def test_the_command_line_and_the_server_print_the_same_session(served: Served, command, here: Path):
    make_tome(here / "novel.tome")
    command("ask", FIRST, "-m", "novel.tome", "--session", "s", "--system", "naive")
    printed = json.loads(command("sessions", "s", "-m", "novel.tome", "--json").out)
    served.post("/api/tomes/novel/ask", {"question": FIRST, "session": "s", "system": "naive"})
    assert served.http.get("/api/tomes/novel/sessions/s").json() == printed


def test_one_question_at_a_time(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    ask = {"question": FIRST, "session": "s", "system": "naive"}
    with OpenAIServer(lambda _: reply_with("not what was asked for", delay=1.0)) as model:
        words = ("novel.tome", "--model", "openai:test", "--base-url", model.url)
        with serve(tmp_path, *words, OPENAI_API_KEY="test") as served, ThreadPoolExecutor() as threads:
            asking = threads.submit(served.post, "/api/tomes/novel/ask", ask)
            assert model.arrived.wait(60)
            refused = served.post("/api/tomes/novel/ask", ask)
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "locked")
            assert served.http.delete("/api/tomes/novel/sessions/s").status_code == 409
            asking.result()


def test_a_server_that_only_reads_and_bounds_of_a_session(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with Tome.open(tmp_path / "novel.tome", embedder="hash") as tome:
        tome.session("s").ask(FIRST, system="naive limit=5000")
    with serve(tmp_path, "novel.tome") as served:
        refused = served.post("/api/tomes/novel/ask", {"question": FIRST, "session": "s"})
        assert (refused.status_code, "settings.limit" in refused.text) == (400, True)
    with serve(tmp_path, "novel.tome", "--read-only") as served:
        assert served.http.get("/api/tomes/novel/sessions/s").json()["count"] == 1
        assert served.http.delete("/api/tomes/novel/sessions/s").status_code == 403
        assert served.post("/api/tomes/novel/ask", {"question": FIRST, "session": "s"}).status_code == 403
